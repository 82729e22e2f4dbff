//! Claim and renew: exclusive, time-limited ownership of a task.

use pgrx::prelude::*;
use pgrx::Uuid;

use crate::columns::claim::{EXPIRES_AT, LEASE_SECONDS, RECHECK_AT};
use crate::error::{Code, Failure, Outcome};
use crate::idempotency::Request;
use crate::lease::{default_lease, grant, is_live, lock, lock_row, state, task, Lease};
use crate::rows::Change;
use crate::scope::{need, Call, Scope};
use crate::spi::{text, time};
use crate::store;
use crate::time::Time;

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
        let lease = lock(&mut scope, field)?;
        let definition = task(&scope, field)?;
        let role = scope.writer(definition, &format!("claiming {field}"))?;
        let granted = request.once(&call, record, || {
            let default = default_lease(Some(definition));
            let seconds = crate::lease::lease_seconds(&scope, lease_seconds, definition, default)?;
            if lease.state == state::COMPLETED {
                return Err(completed(&scope, field, &lease)?);
            }
            let now = Time::now();
            let live = lease
                .expires_at
                .filter(|expires| is_live(&lease.state, *expires, now));
            if let Some(expires) = live {
                let own = lease.owner.as_deref() == Some(call.caller.identity.as_str());
                if !(reattach && own) {
                    return Err(held(&scope, field, &lease, expires, now));
                }
            }
            grant(&scope, field, &lease, role, seconds, now)
        })?;
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
        let Some(lease) = lock_row(&scope, field)? else {
            // Why there is none is told by the checks of a lock.
            lock(&mut scope, field)?;
            return Err(scope.no_record());
        };
        let definition = task(&scope, field)?;
        scope.writer(definition, &format!("renewing {field}"))?;
        let own = lease
            .lease_seconds
            .map_or(default_lease(Some(definition)), i64::from);
        let seconds = crate::lease::lease_seconds(&scope, lease_seconds, definition, own)?;
        let now = Time::now();
        lease.must_be_held(&scope, field, claim_id, now)?;
        let expires_at = now.plus_seconds(seconds);
        let seconds_datum = (seconds as i32).into_datum();
        let renewed = crate::lease::change(&scope, field, |row| {
            // A shorter lease moves recheck_at down; else its value, and so HOT, stays.
            let recheck_at = row
                .get(RECHECK_AT)
                .map_or(expires_at, |at: Time| at.min(expires_at));
            Ok((
                (),
                vec![
                    (EXPIRES_AT, time(expires_at)),
                    (LEASE_SECONDS, seconds_datum),
                    (RECHECK_AT, time(recheck_at)),
                ],
            ))
        })?;
        if let Change::Foreign = renewed {
            let parameters = [text(record), text(field), time(expires_at), seconds_datum];
            let rows = call.session.write(&store::RENEW, &parameters)?;
            if rows.first().and_then(|row| row.get(0)) != Some(expires_at) {
                return Err(Failure::held_back());
            }
        }
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
