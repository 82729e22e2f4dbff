-- Touches: record (locked, updated), claim (looked up by recheck_at, then by queued_at; locked, updated), history (inserted).
-- Lapsed leases first, then the task queued first; what others have locked is passed over.
-- One statement: two looks, the second only where the first finds nothing.
with lapsed as materialized (
  select r.record, c.state, c.owner, c.ended from floor.claim c join floor.record r on r.record = c.record
  where c.class = 'bench' and c.field = 'task' and c.state = 'claimed' and c.recheck_at <= now() and c.expires_at <= now()
  order by c.recheck_at limit 1 for no key update of r, c skip locked),
opened as materialized (
  select r.record, c.state, c.owner, c.ended from floor.claim c join floor.record r on r.record = c.record
  where c.class = 'bench' and c.field = 'task' and c.state = 'open' and not exists (select from lapsed)
  order by c.queued_at, c.record limit 1 for no key update of r, c skip locked),
o as (select * from lapsed union all select * from opened),
r as (
  update floor.record r set version = r.version + 1 from o where r.record = o.record returning r.record, r.version),
c as (
  update floor.claim c set state = 'claimed', owner = :me, role = 'worker', claim_id = gen_random_uuid(), epoch = c.epoch + 1,
    lease_seconds = 3600, claimed_at = at, expires_at = at + interval '3600 seconds', recheck_at = at + interval '3600 seconds',
    record_version = r.version, changed_by = :me, changed_role = 'worker', changed_at = at, reason = null,
    ended = case when o.state <> 'claimed' then o.ended when o.owner = :me then 'lapsed' else 'taken_over' end
  from o, r, (select clock_timestamp()) clock (at) where c.record = o.record and r.record = o.record and c.field = 'task'
  returning c.record, c.field, c.owner, c.role, c.claim_id, c.epoch, c.claimed_at, c.expires_at, c.lease_seconds,
    case when o.state = 'claimed' and o.owner <> c.owner then o.owner end as took_over_from, c.record_version),
h as (
  insert into floor.history (record, record_version, op, field, author, role, changed_at, epoch, took_over_from, login)
  select record, record_version, case when took_over_from is null then 'claim' else 'takeover' end, field, owner, role,
    claimed_at, epoch, took_over_from, current_user from c)
select * from c \gset
