-- Reads: record (is it there), checkpoint (the latest of the role), field (what changed after it).
-- The changes as text put together by hand.
select r.record, 'worker' as role, c.document, coalesce(c.record_version, 0) as record_version,
  (select '[' || coalesce(string_agg('{"field"' || chr(58) || to_json(field) || ',"version"' || chr(58) || version
      || ',"author"' || chr(58) || to_json(author)
      || ',"evidence"' || chr(58) || coalesce(to_json(evidence)::text, 'null') || '}', ','
      order by f.record_version), '') || ']'
   from floor.field f
   where f.record = r.record and f.record_version > coalesce(c.record_version, -1)
     and field in ('status', 'plan', 'log')) as changed_fields
from floor.record r
left join lateral (
  select document, record_version from floor.checkpoint k
  where k.record = r.record and k.role = 'worker' order by checkpoint_id desc limit 1) c on true
where r.record = 'bench/' || :n \gset
