-- Touches: record (locked), checkpoint (the highest number read, a row inserted).
-- The locked record as a subselect, the number from a join on it.
insert into floor.checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at)
select r.record, coalesce(c.last, 0) + 1, 'worker', :document, r.version, :me, clock_timestamp()
from (select record, version from floor.record where record = 'bench/' || :n for no key update) r
left join lateral (
  select checkpoint_id as last from floor.checkpoint where record = r.record order by checkpoint_id desc limit 1) c on true
returning record, role, checkpoint_id, record_version \gset
