-- Touches: claim (locked, updated). Another claim, or one that has lapsed: no row.
-- Lock and check first, the clock read once after the lock, then update.
with l as materialized (
  select lease_seconds, clock_timestamp() as at from floor.claim
  where record = 'bench/' || :n and field = 'task' and state = 'claimed' and owner = :me
    and claim_id = ('00000000-0000-4000-8000-' || :n)::uuid and expires_at > clock_timestamp()
  for no key update)
update floor.claim c
set expires_at = l.at + l.lease_seconds * interval '1 second', lease_seconds = l.lease_seconds,
  recheck_at = least(recheck_at, l.at + l.lease_seconds * interval '1 second')
from l where c.record = 'bench/' || :n and c.field = 'task'
returning c.record, c.field, c.owner, c.claim_id, c.epoch, c.expires_at, c.lease_seconds \gset
