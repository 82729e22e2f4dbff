//! Every statement that the operations execute, as kept plans. No statement is ever put together from user text.
//!
//! Statements that write contain no volatile function: time and uuid come as parameters, read after the lock.

use pgrx::pg_sys::{
    self, BYTEAOID as BYTES, INT4OID as INT4, INT8OID as INT8, JSONBOID as JSONB,
    TEXTARRAYOID as TEXTS, TEXTOID as TEXT, TIMESTAMPTZOID as TIME, UUIDOID as UUID,
};

use crate::spi::Statement;

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident ($($kind:ident),*) $sql:literal;)*) => {
        $($(#[$doc])* pub static $name: Statement = Statement::new($sql, {
            const TYPES: &[pg_sys::Oid] = &[$($kind),*];
            TYPES
        });)*
    };
}

// Classes.
statements! {
    STORAGE_VERSION() c"select max(version) from kslate.storage";
    /// class → source of the version in force
    CLASS_SOURCE(TEXT) c"select source from kslate.class where class = $1 order by version desc limit 1";
    CLASS_NAMES() c"select distinct class from kslate.class order by class";
    /// class, version or NULL for the newest
    CLASS_GET(TEXT, INT8)
        c"select version, source, applied_by, applied_at from kslate.class
          where class = $1 and ($2 is null or version = $2) order by version desc limit 1";
    CLASS_LIST()
        c"select distinct on (class) class, version, source, applied_by, applied_at from kslate.class
          order by class, version desc";
    /// Classes are changed one after the other.
    CLASS_LOCK() c"lock table kslate.class in share row exclusive mode";
    /// Waits for every change that is under way, and lets none begin: they judge by the class.
    RECORDS_LOCK() c"lock table kslate.record in exclusive mode";
    CLASS_INSERT(TEXT, INT8, TEXT, JSONB, TEXT, TIME)
        c"insert into kslate.class (class, version, source, definition, applied_by, applied_at)
          values ($1, $2, $3, $4, $5, $6)";
    /// first and last possible record name of a class, field
    FIELD_USES(TEXT, TEXT, TEXT)
        c"select count(*) from kslate.record r where r.record > $1 and r.record < $2
          and (exists (select from kslate.field f where f.record = r.record and f.field = $3)
            or exists (select from kslate.history h where h.record = r.record and h.field = $3))";
    ROLE_USES(TEXT, TEXT, TEXT)
        c"select count(distinct record) from kslate.checkpoint where record > $1 and record < $2 and role = $3";
    TASK_ADD(TEXT, TEXT, TIME)
        c"insert into kslate.claim (record, field, class, state, queued_at)
          select record, $2, class, 'open', $3 from kslate.record where class = $1
          on conflict do nothing";
    TASK_DROP(TEXT, TEXT) c"delete from kslate.claim where class = $1 and field = $2 and epoch = 0";
}

// Records.
statements! {
    RECORD_GET(TEXT) c"select version, created_by, created_at from kslate.record where record = $1";
    /// record, class, key, created_by, created_at
    RECORD_INSERT(TEXT, TEXT, TEXT, TEXT, TIME)
        c"insert into kslate.record (record, class, key, version, created_by, created_at)
          values ($1, $2, $3, 0, $4, $5) on conflict do nothing returning version";
    /// first values: record, field, value, author, role, evidence, changed_at
    FIRST_VALUE(TEXT, TEXT, JSONB, TEXT, TEXT, TEXT, TIME)
        c"insert into kslate.field (record, field, value, version, author, role, evidence, record_version, changed_at)
          values ($1, $2, $3, 1, $4, $5, $6, 0, $7) returning value::text";
    /// record, class, task fields, queued_at
    CLAIM_ROWS(TEXT, TEXT, TEXTS, TIME)
        c"insert into kslate.claim (record, field, class, state, queued_at)
          select $1, t.field, $2, 'open', $4 from unnest($3) t (field)";
    BUMP_RECORD(TEXT) c"update kslate.record set version = version + 1 where record = $1 returning version";
    /// The newest 20 entries of an append field, oldest first.
    ENTRIES_TAIL(TEXT, TEXT)
        c"select * from (select seq, value::text, author, role, evidence, record_version, added_at from kslate.entry
            where record = $1 and field = $2 order by seq desc limit 20) newest order by seq";
    /// record, field, above, limit
    ENTRIES(TEXT, TEXT, INT8, INT8)
        c"select seq, value, author, role, evidence, record_version, added_at from kslate.entry
          where record = $1 and field = $2 and seq > $3 order by seq limit $4";
    /// record, field, below, limit
    ENTRIES_NEWEST(TEXT, TEXT, INT8, INT8)
        c"select seq, value, author, role, evidence, record_version, added_at from kslate.entry
          where record = $1 and field = $2 and seq < $3 order by seq desc limit $4";
    /// above, and below this record name, filter, limit. Never written counts as null.
    RECORD_LIST(TEXT, TEXT, JSONB, INT8)
        c"select r.record, r.version, r.created_by, r.created_at from kslate.record r
          where r.record > $1 and r.record < $2
            and ($3 is null or not exists (
              select from jsonb_each($3) w (field, wanted)
              where not exists (
                select from jsonb_array_elements(w.wanted) any_of (value)
                where any_of.value = coalesce(
                  (select f.value from kslate.field f where f.record = r.record and f.field = w.field), 'null'))))
          order by r.record limit $4";
}

// Values of fields.
statements! {
    /// record, field, value, author, role, evidence, changed_at, expected version (at least 1)
    FIELD_UPDATE(TEXT, TEXT, JSONB, TEXT, TEXT, TEXT, TIME, INT8)
        c"with r as (update kslate.record set version = version + 1 where record = $1 returning version)
          update kslate.field f set value = $3, version = f.version + 1, author = $4, role = $5, evidence = $6,
            record_version = r.version, changed_at = $7
          from r where f.record = $1 and f.field = $2 and f.version = $8
          returning f.version, f.record_version";
    /// The same for a field that was never written; nothing is returned where it was.
    FIELD_INSERT(TEXT, TEXT, JSONB, TEXT, TEXT, TEXT, TIME)
        c"with r as (update kslate.record set version = version + 1 where record = $1 returning version)
          insert into kslate.field (record, field, value, version, author, role, evidence, record_version, changed_at)
          select $1, $2, $3, 1, $4, $5, $6, r.version, $7 from r
          on conflict do nothing returning version, record_version";
    /// The same whatever the version is.
    FIELD_UPSERT(TEXT, TEXT, JSONB, TEXT, TEXT, TEXT, TIME)
        c"with r as (update kslate.record set version = version + 1 where record = $1 returning version)
          insert into kslate.field as f (record, field, value, version, author, role, evidence, record_version, changed_at)
          select $1, $2, $3, 1, $4, $5, $6, r.version, $7 from r
          on conflict (record, field) do update set value = excluded.value, version = f.version + 1,
            author = excluded.author, role = excluded.role, evidence = excluded.evidence,
            record_version = excluded.record_version, changed_at = excluded.changed_at
          returning version, record_version";
    FIELD_GET(TEXT, TEXT)
        c"select version, value::text, author, evidence, changed_at from kslate.field where record = $1 and field = $2";
}

// Claims.
statements! {
    CLAIM_STATES(TEXT)
        c"select field, 0::bigint, state, owner, role, claim_id, epoch, lease_seconds, expires_at, version, ended
          from kslate.claim where record = $1";
    /// record, field, owner, role, claim_id, lease_seconds, claimed_at, expires_at, ended, took_over_from
    GRANT(TEXT, TEXT, TEXT, TEXT, UUID, INT4, TIME, TIME, TEXT, TEXT)
        c"with r as (update kslate.record set version = version + 1 where record = $1 returning version)
          update kslate.claim c set state = 'claimed', owner = $3, role = $4, claim_id = $5, epoch = c.epoch + 1,
            lease_seconds = $6, claimed_at = $7, expires_at = $8, recheck_at = $8, record_version = r.version,
            changed_by = $3, changed_role = $4, changed_at = $7, reason = null, ended = $9, took_over_from = $10
          from r where c.record = $1 and c.field = $2
          returning c.epoch, c.record_version";
    /// record, field, expires_at, lease_seconds. A shorter lease moves recheck_at down; else its value, and so HOT, stays.
    RENEW(TEXT, TEXT, TIME, INT4)
        c"update kslate.claim set expires_at = $3, lease_seconds = $4, recheck_at = least(recheck_at, $3)
          where record = $1 and field = $2 returning expires_at";
    /// record, field, state, changed_by, changed_role, changed_at, reason, ended, queued_at, version step
    UNCLAIM(TEXT, TEXT, TEXT, TEXT, TEXT, TIME, TEXT, TEXT, TIME, INT8)
        c"with r as (update kslate.record set version = version + 1 where record = $1 returning version)
          update kslate.claim c set state = $3, owner = null, role = null, claim_id = null, lease_seconds = null,
            claimed_at = null, expires_at = null, recheck_at = null, record_version = r.version,
            changed_by = $4, changed_role = $5, changed_at = $6, reason = $7, ended = $8, took_over_from = null,
            queued_at = coalesce($9, c.queued_at), version = c.version + $10
          from r where c.record = $1 and c.field = $2
          returning c.epoch, c.version, c.record_version";
    /// A task's value was changed by hand: its version is the claim's too.
    CLAIM_FOLLOWS(TEXT, TEXT) c"update kslate.claim set version = version + 1 where record = $1 and field = $2";
    /// The task's value, at the record version that UNCLAIM made:
    /// record, field, value, version, author, role, evidence, record_version, changed_at
    RESULT(TEXT, TEXT, JSONB, INT8, TEXT, TEXT, TEXT, INT8, TIME)
        c"insert into kslate.field (record, field, value, version, author, role, evidence, record_version, changed_at)
          values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
          on conflict (record, field) do update set value = excluded.value, version = excluded.version,
            author = excluded.author, role = excluded.role, evidence = excluded.evidence,
            record_version = excluded.record_version, changed_at = excluded.changed_at";
}

// Claim next. The columns are those of CLAIM_STATES from the record's version on, then record and recheck_at. Record and claim
// are locked both: locking the record only would judge the claim as the snapshot shows it, and grant it twice.
statements! {
    /// class, field, now: the lease whose recheck_at is earliest, of those that are due
    NEXT_LAPSED(TEXT, TEXT, TIME)
        c"select r.version, c.state, c.owner, c.role, c.claim_id, c.epoch, c.lease_seconds, c.expires_at, c.version, c.ended,
            c.record, c.recheck_at
          from kslate.claim c join kslate.record r on r.record = c.record
          where c.class = $1 and c.field = $2 and c.state = 'claimed' and c.recheck_at <= $3
          order by c.recheck_at limit 1 for no key update of r, c skip locked";
    /// The same by the expiry itself, over all that are due: for when too many of them are stale.
    NEXT_EXPIRED(TEXT, TEXT, TIME)
        c"select r.version, c.state, c.owner, c.role, c.claim_id, c.epoch, c.lease_seconds, c.expires_at, c.version, c.ended,
            c.record, c.recheck_at
          from kslate.claim c join kslate.record r on r.record = c.record
          where c.class = $1 and c.field = $2 and c.state = 'claimed' and c.recheck_at <= $3 and c.expires_at <= $3
          order by c.expires_at limit 1 for no key update of r, c skip locked";
    /// class, field: the task that was queued first
    NEXT_OPEN(TEXT, TEXT)
        c"select r.version, c.state, c.owner, c.role, c.claim_id, c.epoch, c.lease_seconds, c.expires_at, c.version, c.ended,
            c.record, c.recheck_at
          from kslate.claim c join kslate.record r on r.record = c.record
          where c.class = $1 and c.field = $2 and c.state = 'open'
          order by c.queued_at, c.record limit 1 for no key update of r, c skip locked";
    RECHECK(TEXT, TEXT) c"update kslate.claim set recheck_at = expires_at where record = $1 and field = $2";
    /// class, field, now, filter as lists, how many to look at, how many to give
    MATCHING_LAPSED(TEXT, TEXT, TIME, JSONB, INT8, INT8)
        c"select c.record from (
            select record, expires_at from kslate.claim
            where class = $1 and field = $2 and state = 'claimed' and recheck_at <= $3 and expires_at <= $3
            order by recheck_at limit $5) c
          where not exists (
            select from jsonb_each($4) w (field, wanted)
            where not exists (
              select from jsonb_array_elements(w.wanted) any_of (value)
              where any_of.value = coalesce(
                (select f.value from kslate.field f where f.record = c.record and f.field = w.field), 'null')))
          order by c.expires_at limit $6";
    MATCHING_OPEN(TEXT, TEXT, TIME, JSONB, INT8, INT8)
        c"select c.record from (
            select record, queued_at from kslate.claim
            where class = $1 and field = $2 and state = 'open' and $3 is not null
            order by queued_at, record limit $5) c
          where not exists (
            select from jsonb_each($4) w (field, wanted)
            where not exists (
              select from jsonb_array_elements(w.wanted) any_of (value)
              where any_of.value = coalesce(
                (select f.value from kslate.field f where f.record = c.record and f.field = w.field), 'null')))
          order by c.queued_at, c.record limit $6";
    TRY_LOCK(TEXT, TEXT)
        c"select r.version, c.state, c.owner, c.role, c.claim_id, c.epoch, c.lease_seconds, c.expires_at, c.version, c.ended,
            c.record, c.recheck_at
          from kslate.record r, kslate.claim c
          where r.record = $1 and c.record = $1 and c.field = $2 for no key update of r, c skip locked";
    MATCHES(TEXT, JSONB)
        c"select true where not exists (
            select from jsonb_each($2) w (field, wanted)
            where not exists (
              select from jsonb_array_elements(w.wanted) any_of (value)
              where any_of.value = coalesce(
                (select f.value from kslate.field f where f.record = $1 and f.field = w.field), 'null')))";
}

// Blame.
statements! {
    BLAME_FIELD(TEXT, TEXT)
        c"select value, version, author, role, evidence, record_version, changed_at
          from kslate.field where record = $1 and field = $2";
    BLAME_ENTRIES(TEXT, TEXT, INT8)
        c"select seq, author, role, evidence, record_version, added_at from kslate.entry
          where record = $1 and field = $2 and seq > $3 order by seq limit 100";
    BLAME_ENTRIES_TAIL(TEXT, TEXT, INT8)
        c"select * from (select seq, author, role, evidence, record_version, added_at from kslate.entry
            where record = $1 and field = $2 and $3 is null order by seq desc limit 100) newest order by seq";
    /// For each top-level key of the present object, the last version that changed it. Every version is taken apart once.
    BLAME_KEYS(TEXT, TEXT)
        c"with versions as materialized (
            select row_number() over (order by version) as n, v.* from (
              select version, value, author, role, evidence, record_version, changed_at from kslate.history
              where record = $1 and field = $2 and version is not null
              union all
              select 1, value -> $2, author, role, evidence, record_version, changed_at from kslate.history
              where record = $1 and record_version = 0 and value ? $2) v),
          parts as materialized (
            select v.n, part.key, part.value from versions v,
              jsonb_each(case when jsonb_typeof(v.value) = 'object' then v.value else '{}' end) part),
          last as (
            select part.key, max(part.n) as n from parts part
            left join parts before_ on before_.key = part.key and before_.n = part.n - 1
            where before_.value is distinct from part.value
            group by part.key)
          select last.key, v.version, v.author, v.role, v.evidence, v.record_version, v.changed_at
          from last join versions v on v.n = last.n
            join parts present on present.key = last.key and present.n = (select max(n) from versions)
          order by last.key";
    /// record, field, version
    FIELD_AT(TEXT, TEXT, INT8)
        c"select value, author, role, evidence, record_version, changed_at from kslate.history
          where record = $1 and field = $2 and version = $3
          union all
          select value -> $2, author, role, evidence, record_version, changed_at from kslate.history
          where record = $1 and record_version = 0 and $3 = 1 and value ? $2";
}

// Checkpoints.
statements! {
    /// record, role, document, record_version, author, saved_at. Under REPEATABLE READ a number taken by somebody
    /// whom the snapshot does not show ends in 40001 here, where a plain INSERT would give 23505.
    CHECKPOINT_INSERT(TEXT, TEXT, JSONB, INT8, TEXT, TIME)
        c"insert into kslate.checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at)
          values ($1, 1 + coalesce((select checkpoint_id from kslate.checkpoint where record = $1
            order by checkpoint_id desc limit 1), 0), $2, $3, $4, $5, $6)
          on conflict do nothing returning checkpoint_id";
    /// record, role
    CHECKPOINT_LATEST(TEXT, TEXT)
        c"select document, record_version from kslate.checkpoint where record = $1 and role = $2
          order by checkpoint_id desc limit 1";
    CHECKPOINT_GET(TEXT, TEXT, INT8)
        c"select document, record_version from kslate.checkpoint where record = $1 and role = $2 and checkpoint_id = $3";
    /// record, roles, below, limit
    CHECKPOINT_LIST(TEXT, TEXTS, INT8, INT8)
        c"select checkpoint_id, role, record_version, author, saved_at, octet_length(document::text)::bigint
          from kslate.checkpoint
          where record = $1 and role = any ($2) and checkpoint_id < $3
          order by checkpoint_id desc limit $4";
    /// The roles of the list that have no checkpoint on the record, in the list's order.
    GATE(TEXT, TEXTS)
        c"select role from unnest($2) with ordinality required (role, place)
          where not exists (select from kslate.checkpoint c where c.record = $1 and c.role = required.role)
          order by place";
}

// History.
statements! {
    /// record, record_version, op, field, version, value, author, role, evidence, changed_at, epoch, took_over_from,
    /// reason, login
    HISTORY_INSERT(TEXT, INT8, TEXT, TEXT, INT8, JSONB, TEXT, TEXT, TEXT, TIME, INT8, TEXT, TEXT, TEXT)
        c"insert into kslate.history (record, record_version, op, field, version, value, author, role, evidence,
            changed_at, epoch, took_over_from, reason, login)
          values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    EPOCH(TEXT, TEXT) c"select epoch, reason from kslate.claim where record = $1 and field = $2";
    /// record, readable fields, only this field or NULL, above, limit
    HISTORY(TEXT, TEXTS, TEXT, INT8, INT8)
        c"select record_version, op, field, version, value, author, role, evidence, changed_at, epoch, took_over_from, reason
          from kslate.history
          where record = $1 and (field is null or field = any ($2)) and record_version > $4
            and ($3 is null or field = $3 or (field is null and value ? $3))
          order by record_version limit $5";
    HISTORY_NEWEST(TEXT, TEXTS, TEXT, INT8, INT8)
        c"select record_version, op, field, version, value, author, role, evidence, changed_at, epoch, took_over_from, reason
          from kslate.history
          where record = $1 and (field is null or field = any ($2)) and record_version < $4
            and ($3 is null or field = $3 or (field is null and value ? $3))
          order by record_version desc limit $5";
}

// Idempotency keys.
statements! {
    /// record or class, identity, key
    KEY_GET(TEXT, TEXT, TEXT)
        c"select request_hash, answer from kslate.idempotency where record = $1 and identity = $2 and key = $3";
    /// Under REPEATABLE READ a plain INSERT would give 23505, this one 40001, which is right.
    KEY_INSERT(TEXT, TEXT, TEXT, BYTES, TEXT, TIME)
        c"insert into kslate.idempotency (record, identity, key, request_hash, answer, created_at)
          values ($1, $2, $3, $4, $5, $6) on conflict do nothing";
    KEYS_FORGET(TIME) c"delete from kslate.idempotency where created_at < $1";
}
