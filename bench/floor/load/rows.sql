-- Reads: record (is it there), checkpoint (the latest of the role), field (what changed after it).
-- The changes as an aggregate of rows.
select r.record, 'worker' as role, c.document, coalesce(c.record_version, 0) as record_version, coalesce(f.changes, '[]') as changed_fields
from floor.record r
left join lateral (
  select document, record_version from floor.checkpoint
  where record = 'bench/' || :n and role = 'worker' order by checkpoint_id desc limit 1) c on true
left join lateral (
  select json_agg(to_json(change)) as changes from (
    select field, version, author, evidence from floor.field
    where record = 'bench/' || :n and record_version > coalesce(c.record_version, -1) and field in ('status', 'plan', 'log')
    order by record_version) change) f on true
where r.record = 'bench/' || :n \gset
