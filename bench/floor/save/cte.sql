-- Touches: record (locked), checkpoint (the highest number read, a row inserted).
-- One statement: lock the record, then number and insert.
with r as materialized (
  select version from floor.record where record = 'bench/' || :n for no key update)
insert into floor.checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at)
select 'bench/' || :n, coalesce((select max(checkpoint_id) from floor.checkpoint where record = 'bench/' || :n), 0) + 1, 'worker',
  :document, r.version, :me, clock_timestamp()
from r
returning record, role, checkpoint_id, record_version \gset
