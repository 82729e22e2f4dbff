select * from kslate_write('bench/' || :n, 'plan', :plan, :v, 'log@1') \gset
