-- Touches: record (locked by its update), claim (locked, updated), history (inserted). A live lease: history's op is null, which
-- is refused, and all is undone.
-- Each row is changed by the first look at it: the update of record is its lock.
with r as (
  update floor.record set version = version + 1 where record = 'bench/' || :n returning version),
o as (
  select c.owner, c.state, c.ended, clock_timestamp() as at, r.version
  from r, lateral (
    select owner, state, ended from floor.claim
    where record = 'bench/' || :n and field = 'task' and (state = 'open' or state = 'claimed' and expires_at <= clock_timestamp())
    for no key update) c),
c as (
  update floor.claim c set state = 'claimed', owner = :me, role = 'worker', claim_id = gen_random_uuid(), epoch = c.epoch + 1,
    lease_seconds = 1, claimed_at = o.at, expires_at = o.at + interval '1 second', recheck_at = o.at + interval '1 second',
    record_version = o.version, changed_by = :me, changed_role = 'worker', changed_at = o.at, reason = null,
    ended = case when o.state <> 'claimed' then o.ended when o.owner = :me then 'lapsed' else 'taken_over' end
  from o where c.record = 'bench/' || :n and c.field = 'task'
  returning c.record, c.field, c.owner, c.role, c.claim_id, c.epoch, c.claimed_at, c.expires_at, c.lease_seconds,
    case when o.state = 'claimed' and o.owner <> c.owner then o.owner end as took_over_from, c.record_version),
h as (
  insert into floor.history (record, record_version, op, field, author, role, changed_at, epoch, took_over_from, login)
  select 'bench/' || :n, r.version, case when c.took_over_from is not null then 'takeover' when c.owner is not null then 'claim' end,
    c.field, c.owner, c.role, c.claimed_at, c.epoch, c.took_over_from, current_user
  from r left join c on true)
select * from c \gset
