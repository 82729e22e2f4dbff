-- Touches: record (locked, updated), field (inserted or updated), history (inserted).
-- One statement: lock the record, change the field, then the record.
with l as materialized (
  select version from floor.record where record = 'bench/' || :n for no key update),
f as (
  insert into floor.field as f (record, field, value, version, author, role, evidence, record_version, changed_at)
  select 'bench/' || :n, 'log', :entry, 1, :me, 'worker', null, l.version + 1, clock_timestamp() from l
  on conflict (record, field) do update set value = excluded.value, version = f.version + 1, author = excluded.author,
    role = excluded.role, evidence = excluded.evidence, record_version = excluded.record_version, changed_at = excluded.changed_at
  returning f.*),
r as (
  update floor.record r set version = f.record_version from f where r.record = 'bench/' || :n),
h as (
  insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
  select record, record_version, 'append', field, version, value, author, role, evidence, changed_at, current_user from f)
select record, field, version, record_version, author, role, evidence, changed_at as added_at from f \gset
