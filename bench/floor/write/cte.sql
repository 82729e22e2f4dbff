-- Touches: record (locked, updated), field (updated), history (inserted). Another version: no row.
-- One statement: lock the record, change the field, then the record.
with l as materialized (
  select version from floor.record where record = 'bench/' || :n for no key update),
f as (
  update floor.field f set value = :plan, version = f.version + 1, author = :me, role = 'worker', evidence = 'log@1',
    record_version = l.version + 1, changed_at = clock_timestamp()
  from l where f.record = 'bench/' || :n and f.field = 'plan' and f.version = :v
  returning f.*),
r as (
  update floor.record r set version = f.record_version from f where r.record = 'bench/' || :n),
h as (
  insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
  select record, record_version, 'write', field, version, value, author, role, evidence, changed_at, current_user from f)
select record, field, version, record_version, author, role, evidence, changed_at from f \gset
