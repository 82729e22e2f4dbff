//! How a claim ends: release, complete, force release; and how a completed task is opened again.

use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};

use crate::change;
use crate::columns::claim;
use crate::error::{Code, Failure, Outcome};
use crate::idempotency::Request;
use crate::json::Jsonb;
use crate::lease::{self, lock, state, task, Lease};
use crate::rows::Change;
use crate::scope::{check_text, need, Call, Scope};
use crate::spi::{int, jsonb, opt_text, text, time};
use crate::store;
use crate::time::Time;

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
    let queued_at = (ending.state == state::OPEN).then_some(now);
    let caller = scope.call.caller.identity.as_str();
    let ended = lease::counted_change(scope, field, |row| {
        let version = row.need::<i64>(claim::VERSION)?.saturating_add(ending.step);
        let record_version = scope.count()?;
        let mut columns = vec![
            (claim::STATE, text(ending.state)),
            (claim::OWNER, None),
            (claim::ROLE, None),
            (claim::CLAIM_ID, None),
            (claim::LEASE_SECONDS, None),
            (claim::CLAIMED_AT, None),
            (claim::EXPIRES_AT, None),
            (claim::RECHECK_AT, None),
            (claim::VERSION, int(version)),
            (claim::RECORD_VERSION, int(record_version)),
            (claim::CHANGED_BY, text(caller)),
            (claim::CHANGED_ROLE, text(ending.role)),
            (claim::CHANGED_AT, time(now)),
            (claim::REASON, opt_text(ending.reason)),
            (claim::ENDED, text(ending.ended)),
            (claim::TOOK_OVER_FROM, None),
        ];
        if let Some(queued_at) = queued_at {
            columns.push((claim::QUEUED_AT, time(queued_at)));
        }
        let ended = Ended {
            epoch: row.need(claim::EPOCH)?,
            version,
            record_version,
            at: now,
            from: None,
        };
        Ok((ended, columns))
    })?;
    match ended {
        Change::Made(ended) => Ok(ended),
        Change::Missing => Err(scope.no_record()),
        Change::Foreign => end_by_statement(scope, field, ending, now),
    }
}

/// The same where there is something of somebody else's on `kslate.claim` or `kslate.record`.
fn end_by_statement(
    scope: &Scope<'_>,
    field: &str,
    ending: &Ending<'_>,
    now: Time,
) -> Outcome<Ended> {
    let queued_at = (ending.state == state::OPEN).then_some(now);
    let parameters = [
        text(&scope.record),
        text(field),
        text(ending.state),
        text(&scope.call.caller.identity),
        text(ending.role),
        time(now),
        opt_text(ending.reason),
        text(ending.ended),
        queued_at.and_then(time),
        int(ending.step),
    ];
    let rows = scope.call.session.write(&store::UNCLAIM, &parameters)?;
    let row = rows.first().ok_or_else(Failure::held_back)?;
    let record_version = row.need(2)?;
    scope.counted(record_version)?;
    Ok(Ended {
        epoch: row.need(0)?,
        version: row.need(1)?,
        record_version,
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
    let rows = scope.call.session.write(&store::RESULT, &parameters)?;
    rows.must_have_changed(1)
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
        let lease = lock(&mut scope, field)?;
        let definition = task(&scope, field)?;
        let role = scope.writer(definition, &format!("releasing {field}"))?;
        let ended = request.once(&call, record, || {
            let now = Time::now();
            lease.must_be_held(&scope, field, claim_id, now)?;
            let ending = Ending {
                state: state::OPEN,
                ended: "released",
                role: &role,
                reason,
                step: 0,
            };
            end(&scope, field, &ending, now)
        })?;
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
        value.check().map_err(|f| f.field(field).record(record))?;
        check_text(evidence, "evidence")?;
        let request = Request::new(idempotency_key, "complete")?
            .part(Some(field))
            .number(Some(claim_id))
            .value(Some(&value))
            .part(evidence);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let lease = lock(&mut scope, field)?;
        let definition = task(&scope, field)?;
        let role = scope.writer(definition, &format!("completing {field}"))?;
        let ended = request.once(&call, record, || {
            let now = Time::now();
            lease.must_be_held(&scope, field, claim_id, now)?;
            change::check(&scope, definition, &value, evidence)?;
            let ending = Ending {
                state: state::COMPLETED,
                ended: "completed",
                role: &role,
                reason: None,
                step: 1,
            };
            let ended = end(&scope, field, &ending, now)?;
            set_result(&scope, field, Some(&value), evidence, &role, &ended)?;
            Ok(ended)
        })?;
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
        let lease = lock(&mut scope, field)?;
        let definition = task(&scope, field)?;
        let role = scope.writer(definition, &format!("reopening {field}"))?;
        let ended = request.once(&call, record, || {
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
            Ok(ended)
        })?;
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
        "{field} is {}, not completed: there is nothing to reopen, claim it",
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
        let lease = lock(&mut scope, field)?;
        let definition = task(&scope, field)?;
        let doing = format!("releasing {field} by force");
        let role = scope.one_of(&definition.overriders, Some(field), &doing)?;
        let ended = request.once(&call, record, || {
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
            Ok(ended)
        })?;
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
