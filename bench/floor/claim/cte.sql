-- Touches: record (locked, updated), claim (locked, updated), history (inserted). A live lease: no row.
-- One statement: lock both rows, then change each out of what was locked.
with o as materialized (
  select c.owner, c.state, c.ended, clock_timestamp() as at, gen_random_uuid() as claim_id
  from floor.record r, floor.claim c
  where r.record = 'bench/' || :n and c.record = 'bench/' || :n and c.field = 'task'
    and (c.state = 'open' or c.state = 'claimed' and c.expires_at <= clock_timestamp())
  for no key update of r, c),
r as (
  update floor.record set version = version + 1 from o where record = 'bench/' || :n returning version),
c as (
  update floor.claim c set state = 'claimed', owner = owner_, role = 'worker', claim_id = o.claim_id, epoch = c.epoch + 1,
    lease_seconds = 1, claimed_at = o.at, expires_at = o.at + interval '1 second', recheck_at = o.at + interval '1 second',
    record_version = r.version, changed_by = owner_, changed_role = 'worker', changed_at = o.at, reason = null,
    ended = case when o.state <> 'claimed' then o.ended when o.owner = owner_ then 'lapsed' else 'taken_over' end
  from o, r, (select :me::text) me (owner_) where c.record = 'bench/' || :n and c.field = 'task'
  returning c.record, c.field, c.owner, c.role, c.claim_id, c.epoch, c.claimed_at, c.expires_at, c.lease_seconds,
    case when o.state = 'claimed' and o.owner <> owner_ then o.owner end as took_over_from, c.record_version),
h as (
  insert into floor.history (record, record_version, op, field, author, role, changed_at, epoch, took_over_from, login)
  select record, record_version, case when took_over_from is null then 'claim' else 'takeover' end, field, owner, role,
    claimed_at, epoch, took_over_from, current_user from c)
select * from c \gset
