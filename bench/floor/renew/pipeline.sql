-- Touches: claim (locked, updated). Another claim, or one that has lapsed: no row.
-- A transaction of statements, sent without waiting for any answer.
\startpipeline
begin;
select state from floor.claim where record = 'bench/' || :n and field = 'task' for no key update;
update floor.claim
set expires_at = clock_timestamp() + interval '3600 seconds', lease_seconds = 3600,
  recheck_at = least(recheck_at, clock_timestamp() + interval '3600 seconds')
where record = 'bench/' || :n and field = 'task' and state = 'claimed' and owner = :me
  and claim_id = ('00000000-0000-4000-8000-' || :n)::uuid and expires_at > clock_timestamp()
returning record, field, owner, claim_id, epoch, expires_at, lease_seconds;
commit;
\endpipeline
