//! Leases on task fields: claim, renew, release, complete, reopen, force release.
//!
//! The states of a task: open → claimed → open (release, force release) or completed → open (reopen). A lease is live until
//! its expiry, and over from that instant on; nothing sweeps it, the next claim finds it lapsed.

use kslate_class::{Field, Mode};
use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Failure, Outcome};
use crate::history::ended_by_grant;
use crate::idempotency::Request;
use crate::json::Jsonb;
use crate::scope::{check_text, need, Call, Scope};
use crate::spi::{int, jsonb, opt_text, text, time, uuid, Row};
use crate::store;
use crate::time::Time;
use crate::write;

/// What `kslate.claim.state` may say.
pub mod state {
    pub const OPEN: &str = "open";
    pub const CLAIMED: &str = "claimed";
    pub const COMPLETED: &str = "completed";
}

/// The one comparison of leases: the interval is half-open, `expires_at = now` is free.
pub fn is_live(state: &str, expires_at: Time, now: Time) -> bool {
    state == state::CLAIMED && now < expires_at
}

/// A fresh claim_id: a random uuid (version 4), since an epoch can come back after a failover or a restore.
pub fn new_claim_id() -> Outcome<Uuid> {
    let mut bytes = [0u8; 16];
    // SAFETY: fills exactly these bytes.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        return Err(
            Failure::new(Code::Unavailable, "the server has no randomness to give")
                .with("retry_after_seconds", 1),
        );
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Ok(Uuid::from_bytes(bytes))
}

/// A task's claim as it stands.
pub struct Lease {
    pub state: String,
    pub owner: Option<String>,
    pub claim_id: Option<Uuid>,
    pub epoch: i64,
    pub lease_seconds: Option<i32>,
    pub expires_at: Option<Time>,
    pub version: i64,
    pub ended: Option<String>,
}

impl Lease {
    /// Reads the columns of LOCK_CLAIM and its likes; `first` is the one of the record's version.
    pub fn read(row: &Row, first: usize) -> Outcome<Lease> {
        Ok(Lease {
            state: row.need(first + 1)?,
            owner: row.get(first + 2),
            claim_id: row.get(first + 4),
            epoch: row.need(first + 5)?,
            lease_seconds: row.get(first + 6),
            expires_at: row.get(first + 7),
            version: row.need(first + 8)?,
            ended: row.get(first + 9),
        })
    }
}

/// Locks the record's row and the claim's. A field that is no task, or no field, or a record that is not there, is told.
fn lock<'s>(scope: &'s mut Scope<'_>, field: &str) -> Outcome<(&'s Field, Lease)> {
    let rows = scope
        .call
        .session
        .write(&store::LOCK_CLAIM, &[text(&scope.record), text(field)])?;
    let lease = rows.first().map(|row| Lease::read(&row, 0)).transpose()?;
    drop(rows);
    scope.refresh()?;
    if lease.is_none() {
        scope.lock()?;
    }
    let definition = scope.field_of_mode(field, &[Mode::Task])?;
    let lease = lease.ok_or_else(|| {
        Failure::new(
            Code::Unavailable,
            format!("the claim of {field} is missing: see kslate_doctor()"),
        )
    })?;
    Ok((definition, lease))
}

/// A lease in whole seconds, 1 to the field's most; never clamped.
fn lease_seconds(asked: Option<f64>, field: &Field, default: i64) -> Outcome<i64> {
    let most = field
        .lease
        .as_ref()
        .map_or(i64::MAX, |lease| i64::from(lease.max_seconds));
    let Some(asked) = asked else {
        return Ok(default);
    };
    if asked.fract() == 0.0 && asked >= 1.0 && asked <= most as f64 {
        return Ok(asked as i64);
    }
    Err(Failure::malformed(format!(
        "lease_seconds must be a whole number from 1 to {most} for {}",
        field.name
    ))
    .field(&field.name)
    .with("path", "/lease_seconds"))
}

fn default_lease(field: &Field) -> i64 {
    field
        .lease
        .as_ref()
        .map_or(60, |lease| i64::from(lease.default_seconds))
}

/// A lease that was granted.
#[derive(Serialize, Deserialize)]
pub struct Granted {
    pub role: String,
    #[serde(with = "uuid_bytes")]
    pub claim_id: Uuid,
    pub epoch: i64,
    pub claimed_at: Time,
    pub expires_at: Time,
    pub lease_seconds: i64,
    pub took_over_from: Option<String>,
    pub record_version: i64,
}

/// A uuid in a remembered answer.
mod uuid_bytes {
    use pgrx::Uuid;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        uuid.as_bytes().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        <[u8; 16]>::deserialize(deserializer).map(Uuid::from_bytes)
    }
}

/// The row of claim and claim next.
pub type GrantedRow = (
    String,
    String,
    String,
    String,
    Uuid,
    i64,
    Time,
    Time,
    i64,
    Option<String>,
    i64,
);

impl Granted {
    /// The answer on the wire.
    pub fn row(self, record: &str, field: &str, owner: &str) -> GrantedRow {
        (
            record.to_owned(),
            field.to_owned(),
            owner.to_owned(),
            self.role,
            self.claim_id,
            self.epoch,
            self.claimed_at,
            self.expires_at,
            self.lease_seconds,
            self.took_over_from,
            self.record_version,
        )
    }
}

/// Grants a free or lapsed task (or, to its own holder, a live one). The rows are locked, `now` was read after that.
pub fn grant(
    scope: &Scope<'_>,
    field: &str,
    lease: &Lease,
    role: String,
    seconds: i64,
    now: Time,
) -> Outcome<Granted> {
    let caller = scope.call.caller.identity.as_str();
    let live = lease
        .expires_at
        .is_some_and(|expires| is_live(&lease.state, expires, now));
    let same = lease.owner.as_deref() == Some(caller);
    let ended = ended_by_grant(&lease.state, same, live, lease.ended.clone());
    let (claim_id, expires_at) = (new_claim_id()?, now.plus_seconds(seconds));
    let parameters = [
        text(&scope.record),
        text(field),
        text(caller),
        text(&role),
        uuid(claim_id),
        (seconds as i32).into_datum(),
        time(now),
        time(expires_at),
        opt_text(ended.as_deref()),
    ];
    let rows = scope.call.session.write(&store::GRANT, &parameters)?;
    let row = rows.first().ok_or_else(|| scope.no_record())?;
    Ok(Granted {
        role,
        claim_id,
        epoch: row.need(0)?,
        claimed_at: now,
        expires_at,
        lease_seconds: seconds,
        took_over_from: lease
            .owner
            .clone()
            .filter(|_| lease.state == state::CLAIMED && !same),
        record_version: row.need(1)?,
    })
}

fn held(scope: &Scope<'_>, field: &str, lease: &Lease, expires: Time, now: Time) -> Failure {
    let owner = lease.owner.as_deref().unwrap_or_default();
    let seconds = expires.seconds_after(now);
    let message = if owner == scope.call.caller.identity {
        format!(
            "{field} is held by you ({owner}) in another claim for another {seconds} s; a restarted process may take it back with reattach"
        )
    } else {
        format!(
            "{field} is held by {owner} for another {seconds} s; claim again after that, or take other work with claim next"
        )
    };
    scope
        .about(Failure::new(Code::Held, message).field(field))
        .with("owner", owner)
        .with_time("expires_at", expires)
        .with("retry_after_seconds", seconds)
}

fn completed(scope: &Scope<'_>, field: &str, lease: &Lease) -> Outcome<Failure> {
    let rows = scope
        .call
        .session
        .write(&store::FIELD_GET, &[text(&scope.record), text(field)])?;
    let row = rows.first();
    let author: Option<String> = row.as_ref().and_then(|row| row.get(2));
    let at: Option<Time> = row.as_ref().and_then(|row| row.get(4));
    let message = format!(
        "{field} was completed by {}; there is nothing left to claim",
        author.as_deref().unwrap_or("somebody")
    );
    Ok(scope
        .about(Failure::new(Code::Completed, message).field(field))
        .with("author", author)
        .with("version", lease.version)
        .with("completed_at", at))
}

/// Claims a task that is open or whose lease has lapsed. While a lease is live the answer is HELD, whoever asks; with
/// `reattach` the holder's own identity takes it back under a new claim_id, which fences its old process out.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_claim(
    record: Option<&str>,
    field: Option<&str>,
    lease_seconds: default!(Option<f64>, "NULL"),
    reattach: default!(Option<bool>, "false"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(owner, String),
        name!(role, String),
        name!(claim_id, Uuid),
        name!(epoch, i64),
        name!(claimed_at, Time),
        name!(expires_at, Time),
        name!(lease_seconds, i64),
        name!(took_over_from, Option<String>),
        name!(record_version, i64),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let reattach = reattach.unwrap_or(false);
        let request = Request::new(idempotency_key, "claim")?
            .part(Some(field))
            .number(lease_seconds)
            .number(Some(reattach));
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let (definition, lease) = lock(&mut scope, field)?;
        let (definition, scope) = (definition.clone(), scope);
        let role = scope.writer(&definition, &format!("claiming {field}"))?;
        if let Some(first) = request.replay::<Granted>(&call, record)? {
            return Ok(TableIterator::once(first.row(
                record,
                field,
                &call.caller.identity,
            )));
        }
        let seconds = self::lease_seconds(lease_seconds, &definition, default_lease(&definition))?;
        if lease.state == state::COMPLETED {
            return Err(completed(&scope, field, &lease)?);
        }
        let now = Time::now();
        if let Some(expires) = lease
            .expires_at
            .filter(|expires| is_live(&lease.state, *expires, now))
        {
            let own = lease.owner.as_deref() == Some(call.caller.identity.as_str());
            if !(reattach && own) {
                return Err(held(&scope, field, &lease, expires, now));
            }
        }
        let granted = grant(&scope, field, &lease, role, seconds, now)?;
        request.remember(&call, record, &granted, now)?;
        Ok(TableIterator::once(granted.row(
            record,
            field,
            &call.caller.identity,
        )))
    })
}

/// Moves the expiry of a live lease to now + `lease_seconds` (default: the claim's own last). Writes no history.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_renew(
    record: Option<&str>,
    field: Option<&str>,
    claim_id: Option<Uuid>,
    lease_seconds: default!(Option<f64>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(owner, String),
        name!(claim_id, Uuid),
        name!(epoch, i64),
        name!(expires_at, Time),
        name!(lease_seconds, i64),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let claim_id = need(claim_id, "claim_id")?;
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let rows = call
            .session
            .write(&store::LOCK_LEASE, &[text(record), text(field)])?;
        let lease = rows.first().map(|row| Lease::read(&row, 0)).transpose()?;
        let Some(lease) = lease else {
            // Why there is none is told by the checks of a lock.
            lock(&mut scope, field)?;
            return Err(scope.no_record());
        };
        let definition = scope.field_of_mode(field, &[Mode::Task])?;
        scope.writer(definition, &format!("renewing {field}"))?;
        let own = lease
            .lease_seconds
            .map_or(default_lease(definition), i64::from);
        let seconds = self::lease_seconds(lease_seconds, definition, own)?;
        let now = Time::now();
        lease.must_be_held(&scope, field, claim_id, now)?;
        let expires_at = now.plus_seconds(seconds);
        let seconds_datum = (seconds as i32).into_datum();
        call.session.write(
            &store::RENEW,
            &[text(record), text(field), time(expires_at), seconds_datum],
        )?;
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            call.caller.identity.clone(),
            claim_id,
            lease.epoch,
            expires_at,
            seconds,
        )))
    })
}

/// What ends a claim, or a completion.
struct Ending<'e> {
    state: &'static str,
    ended: &'static str,
    role: &'e str,
    reason: Option<&'e str>,
    /// 1 where the task's value changes with it.
    step: i64,
}

/// An ended claim: epoch, version and record version after it.
#[derive(Serialize, Deserialize)]
struct Ended {
    epoch: i64,
    version: i64,
    record_version: i64,
    at: Time,
    #[serde(default)]
    from: Option<String>,
}

fn end(scope: &Scope<'_>, field: &str, ending: &Ending<'_>, now: Time) -> Outcome<Ended> {
    let queued_at = if ending.state == state::OPEN {
        time(now)
    } else {
        None
    };
    let parameters = [
        text(&scope.record),
        text(field),
        text(ending.state),
        text(&scope.call.caller.identity),
        text(ending.role),
        time(now),
        opt_text(ending.reason),
        text(ending.ended),
        queued_at,
        int(ending.step),
    ];
    let rows = scope.call.session.write(&store::UNCLAIM, &parameters)?;
    let row = rows.first().ok_or_else(|| scope.no_record())?;
    Ok(Ended {
        epoch: row.need(0)?,
        version: row.need(1)?,
        record_version: row.need(2)?,
        at: now,
        from: None,
    })
}

/// Stores the task's value, at the versions that [`end`] made.
fn set_result(
    scope: &Scope<'_>,
    field: &str,
    value: Option<&Jsonb>,
    evidence: Option<&str>,
    role: &str,
    ended: &Ended,
) -> Outcome<()> {
    let parameters = [
        text(&scope.record),
        text(field),
        value.and_then(jsonb),
        int(ended.version),
        text(&scope.call.caller.identity),
        text(role),
        opt_text(evidence),
        int(ended.record_version),
        time(ended.at),
    ];
    scope.call.session.write(&store::RESULT, &parameters)?;
    Ok(())
}

/// Gives a task back: it can be claimed at once.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_release(
    record: Option<&str>,
    field: Option<&str>,
    claim_id: Option<Uuid>,
    reason: default!(Option<&str>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(epoch, i64),
        name!(record_version, i64),
        name!(released_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let claim_id = need(claim_id, "claim_id")?;
        check_text(reason, "reason")?;
        let request = Request::new(idempotency_key, "release")?
            .part(Some(field))
            .number(Some(claim_id))
            .part(reason);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let (definition, lease) = lock(&mut scope, field)?;
        let (definition, scope) = (definition.clone(), scope);
        let role = scope.writer(&definition, &format!("releasing {field}"))?;
        let ended = match request.replay::<Ended>(&call, record)? {
            Some(first) => first,
            None => {
                let now = Time::now();
                lease.must_be_held(&scope, field, claim_id, now)?;
                let ending = Ending {
                    state: state::OPEN,
                    ended: "released",
                    role: &role,
                    reason,
                    step: 0,
                };
                let ended = end(&scope, field, &ending, now)?;
                request.remember(&call, record, &ended, now)?;
                ended
            }
        };
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            ended.epoch,
            ended.record_version,
            ended.at,
        )))
    })
}

/// Sets the task's value, its result, and ends the claim.
#[pg_extern]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kslate_complete(
    record: Option<&str>,
    field: Option<&str>,
    claim_id: Option<Uuid>,
    value: default!(Option<Jsonb>, "'null'"),
    evidence: default!(Option<&str>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(epoch, i64),
        name!(version, i64),
        name!(record_version, i64),
        name!(completed_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let claim_id = need(claim_id, "claim_id")?;
        let value = value.map_or_else(|| Jsonb::parse("null"), Ok)?;
        let value_text = value
            .checked_text()
            .map_err(|f| f.field(field).record(record))?;
        check_text(evidence, "evidence")?;
        let request = Request::new(idempotency_key, "complete")?
            .part(Some(field))
            .number(Some(claim_id))
            .part(Some(&value_text))
            .part(evidence);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let (definition, lease) = lock(&mut scope, field)?;
        let (definition, scope) = (definition.clone(), scope);
        let role = scope.writer(&definition, &format!("completing {field}"))?;
        let ended = match request.replay::<Ended>(&call, record)? {
            Some(first) => first,
            None => {
                let now = Time::now();
                lease.must_be_held(&scope, field, claim_id, now)?;
                write::check(&scope, &definition, &value, evidence)?;
                let ending = Ending {
                    state: state::COMPLETED,
                    ended: "completed",
                    role: &role,
                    reason: None,
                    step: 1,
                };
                let ended = end(&scope, field, &ending, now)?;
                set_result(&scope, field, Some(&value), evidence, &role, &ended)?;
                request.remember(&call, record, &ended, now)?;
                ended
            }
        };
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            ended.epoch,
            ended.version,
            ended.record_version,
            ended.at,
        )))
    })
}

/// Opens a completed task again: its result becomes null.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_reopen(
    record: Option<&str>,
    field: Option<&str>,
    reason: default!(Option<&str>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(version, i64),
        name!(record_version, i64),
        name!(reopened_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        check_text(reason, "reason")?;
        let request = Request::new(idempotency_key, "reopen")?
            .part(Some(field))
            .part(reason);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let (definition, lease) = lock(&mut scope, field)?;
        let (definition, scope) = (definition.clone(), scope);
        let role = scope.writer(&definition, &format!("reopening {field}"))?;
        let ended = match request.replay::<Ended>(&call, record)? {
            Some(first) => first,
            None => {
                if lease.state != state::COMPLETED {
                    return Err(not_completed(&scope, field, &lease)?);
                }
                let now = Time::now();
                let ending = Ending {
                    state: state::OPEN,
                    ended: "reopened",
                    role: &role,
                    reason,
                    step: 1,
                };
                let ended = end(&scope, field, &ending, now)?;
                set_result(&scope, field, None, None, &role, &ended)?;
                request.remember(&call, record, &ended, now)?;
                ended
            }
        };
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            ended.version,
            ended.record_version,
            ended.at,
        )))
    })
}

fn not_completed(scope: &Scope<'_>, field: &str, lease: &Lease) -> Outcome<Failure> {
    let rows = scope
        .call
        .session
        .write(&store::FIELD_GET, &[text(&scope.record), text(field)])?;
    let author: Option<String> = rows.first().and_then(|row| row.get(2));
    let message = format!(
        "{field} is {}, not completed: there is nothing to reopen",
        lease.state
    );
    Ok(scope
        .about(Failure::new(Code::NotCompleted, message).field(field))
        .with("author", author)
        .with("version", lease.version))
}

/// Takes a claim away from its holder, by a role that the field's `override` names. It names the epoch it means and why.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_force_release(
    record: Option<&str>,
    field: Option<&str>,
    expected_epoch: Option<i64>,
    reason: Option<&str>,
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(released_from, String),
        name!(epoch, i64),
        name!(record_version, i64),
        name!(released_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let expected = need(expected_epoch, "expected_epoch")?;
        let reason = need(reason, "reason")?;
        check_text(Some(reason), "reason")?;
        if expected < 0 || reason.trim().is_empty() {
            return Err(Failure::malformed(
                "force release needs the epoch it means (0 or more) and a reason that is not empty",
            ));
        }
        let request = Request::new(idempotency_key, "force_release")?
            .part(Some(field))
            .number(Some(expected))
            .part(Some(reason));
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let (definition, lease) = lock(&mut scope, field)?;
        let (definition, scope) = (definition.clone(), scope);
        let doing = format!("releasing {field} by force");
        let role = scope.one_of(&definition.overriders, Some(field), &doing)?;
        let ended = match request.replay::<Ended>(&call, record)? {
            Some(first) => first,
            None => {
                if lease.state != state::CLAIMED || lease.epoch != expected {
                    return Err(other_epoch(&scope, field, &lease, expected));
                }
                let now = Time::now();
                let ending = Ending {
                    state: state::OPEN,
                    ended: "force_released",
                    role: &role,
                    reason: Some(reason),
                    step: 0,
                };
                let mut ended = end(&scope, field, &ending, now)?;
                ended.from = lease.owner.clone();
                request.remember(&call, record, &ended, now)?;
                ended
            }
        };
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            ended.from.unwrap_or_default(),
            ended.epoch,
            ended.record_version,
            ended.at,
        )))
    })
}

fn other_epoch(scope: &Scope<'_>, field: &str, lease: &Lease, expected: i64) -> Failure {
    let message = if lease.state == state::CLAIMED {
        format!(
            "{field} is claimed in epoch {}, you expected {expected}: look at who holds it now before you release it",
            lease.epoch
        )
    } else {
        format!("{field} is {}: there is no claim to release", lease.state)
    };
    scope
        .about(Failure::new(Code::VersionConflict, message).field(field))
        .with("expected_epoch", expected)
        .with("current_epoch", lease.epoch)
}
