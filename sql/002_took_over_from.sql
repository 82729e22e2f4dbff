-- Storage version 2: the live claim says whose lapsed lease it took over, without a look into history.
--
-- A column without a default is added without a rewrite. Writers are waited for in the order in which a change locks (record, then
-- claim), for the time of a lock_timeout at most; then changes wait until this transaction ends. Only claims that are held by a takeover
-- are filled in, each from the history of its own task.

lock table kslate.record in share row exclusive mode;
alter table kslate.claim add column took_over_from text;
comment on column kslate.claim.took_over_from is
  'whose lapsed lease the present claim took over; null where it took none over, and where there is no claim';

update kslate.claim c
set took_over_from = (
  select h.took_over_from from kslate.history h
  where h.record = c.record and h.field = c.field and h.epoch = c.epoch and h.op = 'takeover'
  order by h.record_version desc limit 1)
where c.state = 'claimed' and c.ended = 'taken_over';
