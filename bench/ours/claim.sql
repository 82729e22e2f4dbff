select * from kslate_claim('bench/' || :n, 'task', 1) \gset
