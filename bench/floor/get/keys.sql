-- Reads: record, field (all of the record), history (the newest 20 entries of the log), claim (the task).
-- Each field by its own look at the primary key.
select r.record, r.version as record_version, r.created_by, r.created_at, json_build_array(
  json_build_object('field', 'status', 'mode', 'cas', 'value', coalesce(to_json(status.value), 'null'),
    'version', coalesce(status.version, 0), 'author', status.author, 'role', status.role, 'evidence', status.evidence,
    'record_version', status.record_version, 'changed_at', status.changed_at, 'claim', null),
  json_build_object('field', 'plan', 'mode', 'cas', 'value', coalesce(to_json(plan.value), 'null'),
    'version', coalesce(plan.version, 0), 'author', plan.author, 'role', plan.role, 'evidence', plan.evidence,
    'record_version', plan.record_version, 'changed_at', plan.changed_at, 'claim', null),
  json_build_object('field', 'log', 'mode', 'append', 'value', (select coalesce(json_agg(to_json(e)), '[]') from (
      select version as seq, value, author, role, evidence, record_version, changed_at as added_at from (
        select * from floor.history h where h.record = 'bench/' || :n and h.field = 'log' and op = 'append'
        order by version desc limit 20) newest
      order by version) e),
    'version', coalesce(log.version, 0), 'author', log.author, 'role', log.role, 'evidence', log.evidence,
    'record_version', log.record_version, 'changed_at', log.changed_at, 'claim', null),
  json_build_object('field', 'task', 'mode', 'task', 'value', coalesce(to_json(task.value), 'null'),
    'version', coalesce(task.version, 0), 'author', task.author, 'role', task.role, 'evidence', task.evidence,
    'record_version', task.record_version, 'changed_at', task.changed_at,
    'claim', (select json_build_object('state', state, 'live', coalesce(expires_at > clock_timestamp(), false),
      'owner', owner, 'role', role, 'epoch', epoch, 'claimed_at', claimed_at, 'expires_at', expires_at)
      from floor.claim c where c.record = 'bench/' || :n and c.field = 'task'))) as fields
from floor.record r
left join floor.field status on status.record = 'bench/' || :n and status.field = 'status'
left join floor.field plan on plan.record = 'bench/' || :n and plan.field = 'plan'
left join floor.field log on log.record = 'bench/' || :n and log.field = 'log'
left join floor.field task on task.record = 'bench/' || :n and task.field = 'task'
where r.record = 'bench/' || :n \gset
