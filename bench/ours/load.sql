select * from kslate_checkpoint_load('bench/' || :n) \gset
