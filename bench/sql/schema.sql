-- The floor's tables: columns, defaults, checks, indexes and storage parameters of kslate's, and no trigger. `bench.fill` puts
-- the same rows into both. Run once, as a superuser.

create schema floor;
create schema bench;

do $$
declare
  name text;
  options text;
begin
  foreach name in array array['record', 'field', 'claim', 'checkpoint', 'history'] loop
    execute format('create table floor.%I (like kslate.%1$I including all)', name);
    select array_to_string(reloptions, ', ') into options from pg_class where oid = format('kslate.%I', name)::regclass;
    if options is not null then
      execute format('alter table floor.%I set (%s)', name, options);
    end if;
  end loop;
end $$;

-- Roles are the cluster's: another database has made it.
do $$ begin
  if to_regrole('bench') is null then
    create role bench login;
  end if;
end $$;
grant kslate_user to bench;
grant usage on schema floor, bench to bench;
grant select, insert, update on all tables in schema floor to bench;

-- Empties the tables of a schema and fills them with `records` records, as kslate would have left them: a status and a plan,
-- `entries` entries of the log (the first `long_records` of them have `long_entries`), one checkpoint saved before the entries,
-- a task that is open or, with `held`, claimed by bench an hour ago and renewed since.
create procedure bench.fill(target text, records bigint, entries int, held boolean, document jsonb,
  long_records bigint default 0, long_entries int default 0) language plpgsql as $$
declare
  plan constant jsonb := '{"step": "drain node 7", "because": "latency doubled after the last deploy", "risk": 2}';
  began constant timestamptz := now() - interval '1 hour';
  first constant bigint := 100000000000;
begin
  set local session_replication_role = replica;
  perform set_config('search_path', target || ', pg_catalog', true);
  truncate record, field, claim, checkpoint, history;

  drop table if exists pg_temp.numbers;
  create temp table numbers on commit drop as
    select 'bench/' || n as record, n, case when n - first < long_records then long_entries else entries end as entries
    from generate_series(first, first + records - 1) n;

  insert into record (record, class, key, version, created_by, created_at)
  select numbers.record, 'bench', n::text, 1 + numbers.entries + held::int, 'pg:bench', began from numbers;

  insert into field (record, field, value, version, author, role, evidence, record_version, changed_at)
  select numbers.record, f.field, f.value, f.version, 'pg:bench', 'worker', f.evidence, f.record_version, began
  from numbers, lateral (values
    ('status', '"open"'::jsonb, 1, null, 0),
    ('plan', plan, 1, 'log@1', 1),
    ('log', to_jsonb('entry ' || numbers.entries || ' of the log'), numbers.entries, null, 1 + numbers.entries))
    f (field, value, version, evidence, record_version)
  where f.version > 0;

  insert into claim (record, field, class, state, queued_at, epoch, owner, role, claim_id, lease_seconds, claimed_at, expires_at,
    recheck_at, record_version, changed_by, changed_role, changed_at)
  select numbers.record, 'task', 'bench', 'open', began + (n - first) * interval '1 ms', 0, null, null, null, null::int,
    null::timestamptz, null::timestamptz, null::timestamptz, 0, null, null, null::timestamptz
  from numbers where not held
  union all
  select numbers.record, 'task', 'bench', 'claimed', began, 1, 'pg:bench', 'worker', ('00000000-0000-4000-8000-' || n)::uuid, 3600,
    began, began + interval '1 day', began + interval '1 hour', 2 + numbers.entries, 'pg:bench', 'worker', began
  from numbers where held;

  insert into checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at)
  select numbers.record, 1, 'worker', document, 1, 'pg:bench', began from numbers;

  insert into history (record, record_version, op, field, version, value, author, role, evidence, changed_at, epoch, login)
  select numbers.record, h.record_version, h.op, h.field, h.version, h.value, 'pg:bench', 'worker', h.evidence, began, h.epoch, 'bench'
  from numbers, lateral (
    select 0, 'create', null, null::int, '{"status": "open"}'::jsonb, null, null::int
    union all select 1, 'write', 'plan', 1, plan, 'log@1', null
    union all select 1 + i, 'append', 'log', i, to_jsonb('entry ' || i || ' of the log'), null, null
      from generate_series(1, numbers.entries) i
    union all select 2 + numbers.entries, 'claim', 'task', null, null, null, 1 where held)
    h (record_version, op, field, version, value, evidence, epoch);
end $$;
