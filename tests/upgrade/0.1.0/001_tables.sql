-- The storage of kslate, version 1.
--
--   class        one row per accepted version of a class definition; the highest version is in force
--   record       one row per record; its row lock puts all of the record's changes in one order
--   field        the present value of each field, from its first value on        (trigger writes history)
--   claim        one narrow row per record and task field: who holds the lease   (trigger writes history)
--   checkpoint   what agents saved about themselves, one row per save            (append-only)
--   history      one row per accepted change                                     (append-only)
--   idempotency  first answers of requests that carried an idempotency key
--
-- A change goes: lock the record's row, read the clock, change field or claim; the triggers on those two see the final row,
-- judge the gate and append to history. `record` ("class/key") is the leading key of all tables that have it.
-- The order of columns is known to kslate-pg/src/triggers: new columns go to the end.
--
-- Run by kslate_setup() as the owner of schema kslate. The tables are no members of the extension.

create table kslate.storage (
  version int primary key,
  migrated_at timestamptz not null default clock_timestamp()
);

create table kslate.class (
  class text collate "C",
  version bigint,
  source text not null,
  definition jsonb not null,
  applied_by text not null,
  applied_at timestamptz not null,
  primary key (class, version)
);

create table kslate.record (
  record text collate "C" primary key,
  class text collate "C" not null,
  key text collate "C" not null,
  version bigint not null default 0,
  created_by text not null,
  created_at timestamptz not null
) with (fillfactor = 80);

create table kslate.field (
  record text collate "C",
  field text collate "C",
  value jsonb,
  version bigint not null,
  author text not null,
  role text,
  evidence text,
  record_version bigint not null,
  changed_at timestamptz not null,
  primary key (record, field)
) with (fillfactor = 80);

-- No index on expires_at: renewals stay HOT. recheck_at <= expires_at always; renewals leave it alone.
create table kslate.claim (
  record text collate "C",
  field text collate "C",
  class text collate "C" not null,
  state text collate "C" not null default 'open' check (state in ('open', 'claimed', 'completed')),
  owner text,
  role text,
  claim_id uuid,
  epoch bigint not null default 0,
  lease_seconds int,
  queued_at timestamptz not null,
  claimed_at timestamptz,
  expires_at timestamptz,
  recheck_at timestamptz,
  version bigint not null default 0,
  record_version bigint not null default 0,
  changed_by text,
  changed_role text,
  changed_at timestamptz,
  reason text,
  ended text collate "C",
  primary key (record, field),
  check ((state = 'claimed') = (owner is not null and claim_id is not null and expires_at is not null and recheck_at is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

comment on column kslate.claim.ended is
  'how the claim before the present state ended: released, force_released, lapsed, taken_over, reattached, completed, reopened';
comment on column kslate.claim.version is 'the version of the task''s value: complete and reopen count';

create index claim_open on kslate.claim (class, field, queued_at, record) where state = 'open';
create index claim_recheck on kslate.claim (class, field, recheck_at) where state = 'claimed';

create table kslate.checkpoint (
  record text collate "C",
  checkpoint_id bigint,
  role text collate "C" not null,
  document jsonb not null,
  record_version bigint not null,
  author text not null,
  saved_at timestamptz not null,
  primary key (record, checkpoint_id)
);
create index checkpoint_role on kslate.checkpoint (record, role, checkpoint_id);

create table kslate.history (
  record text collate "C",
  record_version bigint,
  op text collate "C" not null,
  field text collate "C",
  version bigint,
  value jsonb,
  author text not null,
  role text,
  evidence text,
  changed_at timestamptz not null,
  epoch bigint,
  took_over_from text,
  reason text,
  login text not null,
  primary key (record, record_version)
);
create index history_field on kslate.history (record, field, version);

create table kslate.idempotency (
  record text collate "C",
  identity text collate "C",
  key text collate "C",
  request_hash bytea not null,
  answer text not null,
  created_at timestamptz not null,
  primary key (record, identity, key)
);
create index idempotency_age on kslate.idempotency (created_at);
