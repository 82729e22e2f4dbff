select * from kslate_renew('bench/' || :n, 'task', ('00000000-0000-4000-8000-' || :n)::uuid) \gset
