-- Touches: record (locked, updated), field (updated), checkpoint (looked up), history (inserted). Another version, or no
-- checkpoint of the role that the gate wants: no row.
-- One statement: lock the record, change the field, then the record.
with l as materialized (
  select version from floor.record where record = 'bench/' || :n for no key update),
f as (
  update floor.field f set value = '"resolved"', version = f.version + 1, author = :me, role = 'worker', evidence = null,
    record_version = l.version + 1, changed_at = clock_timestamp()
  from l where f.record = 'bench/' || :n and f.field = 'status' and f.version = :v
    and exists (select from floor.checkpoint where record = 'bench/' || :n and role = 'worker')
  returning f.*),
r as (
  update floor.record r set version = f.record_version from f where r.record = 'bench/' || :n),
h as (
  insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
  select record, record_version, 'write', field, version, value, author, role, evidence, changed_at, current_user from f)
select record, field, version, record_version, author, role, evidence, changed_at from f \gset
