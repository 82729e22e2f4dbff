select * from kslate_get('bench/' || :n) \gset
