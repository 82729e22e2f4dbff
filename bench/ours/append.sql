select * from kslate_append('bench/' || :n, 'log', :entry) \gset
