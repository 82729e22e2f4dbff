select * from kslate_claim_next('bench', 'task', 3600) \gset
