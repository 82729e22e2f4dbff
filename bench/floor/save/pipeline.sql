-- Touches: record (locked), checkpoint (the highest number read, a row inserted).
-- A transaction of statements, sent without waiting for any answer; the number is read after the lock.
\startpipeline
begin;
select version from floor.record where record = 'bench/' || :n for no key update;
insert into floor.checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at)
select 'bench/' || :n, coalesce((select max(checkpoint_id) from floor.checkpoint where record = 'bench/' || :n), 0) + 1, 'worker',
  :document, r.version, :me, clock_timestamp()
from floor.record r where r.record = 'bench/' || :n
returning record, role, checkpoint_id, record_version;
commit;
\endpipeline
