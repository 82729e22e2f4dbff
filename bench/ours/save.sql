select * from kslate_checkpoint_save('bench/' || :n, :document) \gset
