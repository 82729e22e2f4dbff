-- Reads: record, field (all of the record), history (the newest 20 entries of the log), claim (the task).
-- The same as rows turned to JSON.
select r.record, r.version as record_version, r.created_by, r.created_at, (
  select json_agg(to_json(element)) from (
    select d.field, d.mode,
      case when d.mode = 'append' then (select coalesce(json_agg(to_json(e)), '[]') from (
          select version as seq, value, author, role, evidence, record_version, changed_at as added_at from (
            select * from floor.history h where h.record = 'bench/' || :n and h.field = 'log' and op = 'append'
        order by version desc limit 20) newest
          order by version) e)
        else coalesce(to_json(f.value), 'null') end as value,
      coalesce(f.version, 0) as version, f.author, f.role, f.evidence, f.record_version, f.changed_at,
      case when d.mode = 'task' then (select json_build_object('state', state, 'live', coalesce(expires_at > clock_timestamp(), false),
      'owner', owner, 'role', role, 'epoch', epoch, 'claimed_at', claimed_at, 'expires_at', expires_at)
      from floor.claim c where c.record = 'bench/' || :n and c.field = 'task') end as claim
    from (values (1, 'status', 'cas'), (2, 'plan', 'cas'), (3, 'log', 'append'), (4, 'task', 'task')) d (place, field, mode)
    left join (select * from floor.field where record = 'bench/' || :n) f on f.field = d.field
    order by d.place) element) as fields
from floor.record r where r.record = 'bench/' || :n \gset
