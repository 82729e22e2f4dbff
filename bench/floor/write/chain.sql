-- Touches: record (locked by its update), field (updated), history (inserted). Another version: history's op is null, which is
-- refused, and all is undone.
-- Each row is changed by the first look at it: the update of record is its lock.
with r as (
  update floor.record set version = version + 1 where record = 'bench/' || :n returning version),
f as (
  update floor.field f set value = :plan, version = f.version + 1, author = :me, role = 'worker', evidence = 'log@1',
    record_version = r.version, changed_at = clock_timestamp()
  from r where f.record = 'bench/' || :n and f.field = 'plan' and f.version = :v
  returning f.*),
h as (
  insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
  select 'bench/' || :n, r.version, case when f.record is not null then 'write' end, f.field, f.version, f.value, f.author, f.role,
    f.evidence, f.changed_at, current_user
  from r left join f on true)
select record, field, version, record_version, author, role, evidence, changed_at from f \gset
