-- Touches: record (locked by its update), field (updated), history (inserted). Another version: history's op is null, which is
-- refused, and all is undone.
-- A transaction of statements, sent without waiting for any answer.
\startpipeline
begin;
update floor.record set version = version + 1 where record = 'bench/' || :n;
update floor.field f set value = :plan, version = f.version + 1, author = :me, role = 'worker', evidence = 'log@1',
  record_version = r.version, changed_at = clock_timestamp()
from floor.record r where r.record = 'bench/' || :n and f.record = 'bench/' || :n and f.field = 'plan' and f.version = :v
returning f.record, f.field, f.version, f.record_version, f.author, f.role, f.evidence, f.changed_at;
insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
select r.record, r.version, case when f.record is not null then 'write' end, f.field, f.version, f.value, f.author, f.role,
  f.evidence, f.changed_at, current_user
from floor.record r left join floor.field f on f.record = r.record and f.field = 'plan' and f.record_version = r.version
where r.record = 'bench/' || :n;
commit;
\endpipeline
