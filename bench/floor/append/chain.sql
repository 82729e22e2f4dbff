-- Touches: record (locked by its update), field (inserted or updated), history (inserted).
-- Each row is changed by the first look at it: the update of record is its lock.
with r as (
  update floor.record set version = version + 1 where record = 'bench/' || :n returning record, version),
f as (
  insert into floor.field as f (record, field, value, version, author, role, evidence, record_version, changed_at)
  select record, 'log', :entry, 1, :me, 'worker', null, version, clock_timestamp() from r
  on conflict (record, field) do update set value = excluded.value, version = f.version + 1, author = excluded.author,
    role = excluded.role, evidence = excluded.evidence, record_version = excluded.record_version, changed_at = excluded.changed_at
  returning f.*),
h as (
  insert into floor.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, login)
  select record, record_version, 'append', field, version, value, author, role, evidence, changed_at, current_user from f)
select record, field, version, record_version, author, role, evidence, changed_at as added_at from f \gset
