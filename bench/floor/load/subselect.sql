-- Reads: record (is it there), checkpoint (the latest of the role), field (what changed after it).
-- The changes as a subselect of json_build_object.
select r.record, 'worker' as role, c.document, coalesce(c.record_version, 0) as record_version,
  (select coalesce(json_agg(json_build_object('field', field, 'version', version, 'author', author, 'evidence', evidence)
      order by f.record_version), '[]')
   from floor.field f
   where f.record = r.record and f.record_version > coalesce(c.record_version, -1)
     and field in ('status', 'plan', 'log')) as changed_fields
from floor.record r
left join lateral (
  select document, record_version from floor.checkpoint k
  where k.record = r.record and k.role = 'worker' order by checkpoint_id desc limit 1) c on true
where r.record = 'bench/' || :n \gset
