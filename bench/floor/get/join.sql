-- Reads: record, field (all of the record), history (the newest 20 entries of the log), claim (the task).
-- One join of the class's fields with the record's, an object built of each.
select r.record, r.version as record_version, r.created_by, r.created_at, (
  select json_agg(json_build_object('field', d.field, 'mode', d.mode,
    'value', case when d.mode = 'append' then (select coalesce(json_agg(to_json(e)), '[]') from (
      select version as seq, value, author, role, evidence, record_version, changed_at as added_at from (
        select * from floor.history h where h.record = r.record and h.field = 'log' and op = 'append'
        order by version desc limit 20) newest
      order by version) e)
      else coalesce(to_json(f.value), 'null') end,
    'version', coalesce(f.version, 0), 'author', f.author, 'role', f.role, 'evidence', f.evidence,
    'record_version', f.record_version, 'changed_at', f.changed_at,
    'claim', case when d.mode = 'task' then (select json_build_object('state', state, 'live', coalesce(expires_at > clock_timestamp(), false),
      'owner', owner, 'role', role, 'epoch', epoch, 'claimed_at', claimed_at, 'expires_at', expires_at)
      from floor.claim c where c.record = r.record and c.field = 'task') end) order by d.place)
  from (values (1, 'status', 'cas'), (2, 'plan', 'cas'), (3, 'log', 'append'), (4, 'task', 'task')) d (place, field, mode)
  left join floor.field f on f.record = r.record and f.field = d.field) as fields
from floor.record r where r.record = 'bench/' || :n \gset
