-- Touches: record (locked by its update), claim (locked, updated), history (inserted). A live lease: history's op is null, which
-- is refused, and all is undone.
-- A transaction of statements, sent without waiting for any answer. What the claim was comes back from the first.
\startpipeline
begin;
update floor.record set version = version + 1 where record = 'bench/' || :n;
select owner, state, ended from floor.claim where record = 'bench/' || :n and field = 'task' for no key update;
update floor.claim c set state = 'claimed', owner = :me, role = 'worker', claim_id = gen_random_uuid(), epoch = c.epoch + 1,
  lease_seconds = 1, claimed_at = at, expires_at = at + interval '1 second', recheck_at = at + interval '1 second',
  record_version = r.version, changed_by = :me, changed_role = 'worker', changed_at = at,
  reason = case when c.state = 'claimed' and c.owner <> :me then c.owner end,
  ended = case when c.state <> 'claimed' then c.ended when c.owner = :me then 'lapsed' else 'taken_over' end
from floor.record r, (select clock_timestamp()) clock (at)
where c.record = 'bench/' || :n and c.field = 'task' and r.record = 'bench/' || :n
  and (c.state = 'open' or c.state = 'claimed' and c.expires_at <= at)
returning c.record, c.field, c.owner, c.role, c.claim_id, c.epoch, c.claimed_at, c.expires_at, c.lease_seconds, c.reason, c.record_version;
insert into floor.history (record, record_version, op, field, author, role, changed_at, epoch, took_over_from, login)
select r.record, r.version, case when c.reason is not null then 'takeover' when c.record is not null then 'claim' end, c.field,
  c.owner, c.role, c.claimed_at, c.epoch, c.reason, current_user
from floor.record r left join floor.claim c on c.record = r.record and c.field = 'task' and c.record_version = r.version
where r.record = 'bench/' || :n;
commit;
\endpipeline
