//! Claim next: the task of a class that has waited longest, without ever waiting for anybody.
//!
//! Lapsed leases come first, the longest lapsed first, then the open task queued first. Lapsed ones are found by
//! `recheck_at`, a lower bound of the expiry that renewals leave alone; where it is stale it is moved up on the way.

use kslate_class::{Field, Mode};
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::error::Outcome;
use crate::idempotency::Request;
use crate::json::Jsonb;
use crate::lease::{default_lease, grant, is_live, lease_seconds, state, Granted, Lease};
use crate::record::any_of;
use crate::scope::{need, Call, Scope};
use crate::spi::{int, jsonb, text, time, Parameter, Row, Session, Statement};
use crate::store;
use crate::time::Time;

/// How many stale `recheck_at` one call moves up at most.
const MAX_REPAIRS: usize = 20;
/// How many tasks a filtered call looks at, and how many of those that match it tries to lock: at first, and at most.
const FEW: (i64, i64) = (20, 5);
const MANY: (i64, i64) = (1_000, 100);

/// A candidate whose record and claim are locked.
struct Candidate {
    record: String,
    lease: Lease,
    recheck_at: Option<Time>,
}

impl Candidate {
    fn read(row: &Row) -> Outcome<Candidate> {
        Ok(Candidate {
            record: row.need(10)?,
            lease: Lease::read(row, 0)?,
            recheck_at: row.get(11),
        })
    }

    /// Free to be granted now?
    fn is_free(&self, now: Time) -> bool {
        match self.lease.expires_at {
            Some(expires) => !is_live(&self.lease.state, expires, now),
            None => self.lease.state == state::OPEN,
        }
    }
}

/// Claims the task of this class and field that has waited longest; no row where nothing is free now. `filter` is field →
/// value or list of values, all of which must hold.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_claim_next(
    class: Option<&str>,
    field: Option<&str>,
    lease_seconds: default!(Option<f64>, "NULL"),
    filter: default!(Option<Jsonb>, "NULL"),
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
        let (class, field) = (need(class, "class")?, need(field, "field")?);
        let request = Request::new(idempotency_key, "claim_next")?
            .part(Some(field))
            .number(lease_seconds)
            .part(filter.as_ref().map(Jsonb::text));
        let call = Call::open(identity)?;
        let mut scope = call.class_scope(class)?;
        judge(&scope, field, lease_seconds)?;
        let filter = filter.map(|filter| any_of(&scope, &filter)).transpose()?;
        if let Some((record, first)) = request.replay::<(String, Granted)>(&call, class)? {
            return Ok(TableIterator::once(first.row(
                &record,
                field,
                &call.caller.identity,
            )));
        }
        let found = match &filter {
            None => next(&scope, field)?,
            Some(filter) => next_matching(&scope, field, filter)?,
        };
        let Some(candidate) = found else {
            return Ok(TableIterator::empty());
        };
        // The lock on the record's table holds off class changes: what the class says now holds until the end.
        scope.refresh()?;
        scope.record = candidate.record;
        let (definition, seconds, role) = judge(&scope, field, lease_seconds)?;
        let name = definition.name.clone();
        let now = Time::now();
        let granted = grant(&scope, &name, &candidate.lease, role, seconds, now)?;
        let answer = (scope.record.clone(), granted);
        request.remember(&call, class, &answer)?;
        let (record, granted) = answer;
        Ok(TableIterator::once(granted.row(
            &record,
            field,
            &call.caller.identity,
        )))
    })
}

/// The checks that the class makes: field, mode, role, lease.
fn judge<'s>(
    scope: &'s Scope<'_>,
    field: &str,
    seconds: Option<f64>,
) -> Outcome<(&'s Field, i64, String)> {
    let definition = scope.field_of_mode(field, &[Mode::Task])?;
    let role = scope.writer(definition, &format!("claiming {field}"))?;
    let seconds = lease_seconds(scope, seconds, definition, default_lease(Some(definition)))?;
    Ok((definition, seconds, role))
}

/// The first free task in order, its rows locked; those that another has locked are passed over.
fn next(scope: &Scope<'_>, field: &str) -> Outcome<Option<Candidate>> {
    let session = &scope.call.session;
    let class = text(&scope.class.name);
    for _ in 0..=MAX_REPAIRS {
        let due = [class, text(field), time(Time::now())];
        let Some(candidate) = first(session, &store::NEXT_LAPSED, &due)? else {
            return first(session, &store::NEXT_OPEN, &[class, text(field)]);
        };
        if candidate.recheck_at >= candidate.lease.expires_at {
            // Its recheck_at was due, and so is its expiry.
            return Ok(Some(candidate));
        }
        session.write(&store::RECHECK, &[text(&candidate.record), text(field)])?;
    }
    let due = [class, text(field), time(Time::now())];
    match first(session, &store::NEXT_EXPIRED, &due)? {
        Some(candidate) => Ok(Some(candidate)),
        None => first(session, &store::NEXT_OPEN, &[class, text(field)]),
    }
}

/// The candidate that a statement has locked.
fn first(
    session: &Session,
    statement: &Statement,
    parameters: &[Parameter],
) -> Outcome<Option<Candidate>> {
    let rows = session.write(statement, parameters)?;
    rows.first().map(|row| Candidate::read(&row)).transpose()
}

/// The first free task in order that matches a filter. Lapsed leases come first; a few candidates are looked at before many,
/// since judging one costs more than finding it.
fn next_matching(scope: &Scope<'_>, field: &str, filter: &Jsonb) -> Outcome<Option<Candidate>> {
    for statement in [&store::MATCHING_LAPSED, &store::MATCHING_OPEN] {
        for (looked_at, tried) in [FEW, MANY] {
            let found = first_matching(scope, field, filter, statement, looked_at, tried)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Candidates are picked without a lock, then locked one by one and looked at again.
fn first_matching(
    scope: &Scope<'_>,
    field: &str,
    filter: &Jsonb,
    statement: &Statement,
    looked_at: i64,
    tried: i64,
) -> Outcome<Option<Candidate>> {
    let session = &scope.call.session;
    let parameters = [
        text(&scope.class.name),
        text(field),
        time(Time::now()),
        jsonb(filter),
        int(looked_at),
        int(tried),
    ];
    let rows = session.write(statement, &parameters)?;
    let names: Vec<String> = rows.iter().filter_map(|row| row.get(0)).collect();
    drop(rows);
    for name in names {
        pgrx::check_for_interrupts!();
        let rows = session.write(&store::TRY_LOCK, &[text(&name), text(field)])?;
        let Some(candidate) = rows.first().map(|row| Candidate::read(&row)).transpose()? else {
            continue;
        };
        drop(rows);
        let matches = session.write(&store::MATCHES, &[text(&name), jsonb(filter)])?;
        if candidate.is_free(Time::now()) && matches.first().is_some() {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}
