select * from kslate_write('bench/' || :n, 'status', '"resolved"', :v) \gset
