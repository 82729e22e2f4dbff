-- bench.queue fills the class with a queue: `open` tasks, `done` ones and `held` ones, whose records have status open, and
-- in one case of ten mitigating. Tables hold nothing else afterwards.
create procedure bench.queue(open bigint, done bigint, held bigint) language plpgsql as $$
declare
  began constant timestamptz := now() - interval '1 hour';
  first constant bigint := 100000000000;
begin
  set local session_replication_role = replica;
  truncate kslate.record, kslate.field, kslate.claim, kslate.checkpoint, kslate.history;

  insert into kslate.record (record, class, key, version, created_by, created_at)
  select 'bench/' || n, 'bench', n::text, (n - first >= open)::int, 'pg:bench', began
  from generate_series(first, first + open + done + held - 1) n;

  insert into kslate.field (record, field, value, version, author, role, record_version, changed_at)
  select 'bench/' || n, 'status', case n % 10 when 0 then '"mitigating"'::jsonb else '"open"' end, 1, 'pg:bench', 'worker', 0, began
  from generate_series(first, first + open + done + held - 1) n;

  insert into kslate.claim (record, field, class, state, queued_at, epoch, version, record_version)
  select 'bench/' || n, 'task', 'bench', case when n - first < open then 'open' else 'completed' end,
    began + (n - first) * interval '1 ms', (n - first >= open)::int, (n - first >= open)::int, (n - first >= open)::int
  from generate_series(first, first + open + done - 1) n;

  insert into kslate.claim (record, field, class, state, queued_at, epoch, owner, role, claim_id, lease_seconds, claimed_at, expires_at,
    recheck_at, record_version)
  select 'bench/' || n, 'task', 'bench', 'claimed', began, 1, 'pg:other', 'worker', ('00000000-0000-4000-8000-' || n)::uuid, 3600,
    began, began + interval '1 day', began + interval '1 day', 1
  from generate_series(first + open + done, first + open + done + held - 1) n;
end $$;
