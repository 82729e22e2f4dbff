-- Touches: record (locked by its update), field (inserted or updated), history (inserted).
-- A transaction of statements, sent without waiting for any answer.
\startpipeline
begin;
update floor.record set version = version + 1 where record = 'bench/' || :n;
insert into floor.field as f (record, field, value, version, author, role, evidence, record_version, changed_at)
select record, 'log', :entry, 1, :me, 'worker', null, version, clock_timestamp() from floor.record where record = 'bench/' || :n
on conflict (record, field) do update set value = excluded.value, version = f.version + 1, author = excluded.author,
  role = excluded.role, evidence = excluded.evidence, record_version = excluded.record_version, changed_at = excluded.changed_at
returning f.record, f.field, f.version, f.record_version, f.author, f.role, f.evidence, f.changed_at;
insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
select record, record_version, 'append', field, version, value, author, role, evidence, changed_at, current_user
from floor.field where record = 'bench/' || :n and field = 'log';
commit;
\endpipeline
