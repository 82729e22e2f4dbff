//! Changes of one field: write, append.

use kslate_class::Mode;
use pgrx::prelude::*;
use pgrx::Uuid;

use crate::change::{check_expected, put, writable, Change};
use crate::error::Outcome;
use crate::fence;
use crate::idempotency::Request;
use crate::json::Jsonb;
use crate::scope::{check_text, need, Call};
use crate::time::Time;

/// Writes a cas or lww field. cas needs `expected_version`; an accepted write counts also where the value stays the same.
#[pg_extern]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kslate_write(
    record: Option<&str>,
    field: Option<&str>,
    value: Option<Jsonb>,
    expected_version: default!(Option<i64>, "NULL"),
    evidence: default!(Option<&str>, "NULL"),
    claim_id: default!(Option<Uuid>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(version, i64),
        name!(record_version, i64),
        name!(author, String),
        name!(role, String),
        name!(evidence, Option<String>),
        name!(changed_at, Time),
    ),
> {
    crate::entry(|| {
        let asked = One {
            record,
            field,
            value,
            expected_version,
            evidence,
            claim_id,
        };
        Ok(TableIterator::once(one(
            asked,
            "write",
            idempotency_key,
            identity,
        )?))
    })
}

/// Appends an entry. The version is the number of entries, which is the new entry's `seq`.
#[pg_extern]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kslate_append(
    record: Option<&str>,
    field: Option<&str>,
    value: Option<Jsonb>,
    evidence: default!(Option<&str>, "NULL"),
    claim_id: default!(Option<Uuid>, "NULL"),
    expected_version: default!(Option<i64>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(version, i64),
        name!(record_version, i64),
        name!(author, String),
        name!(role, String),
        name!(evidence, Option<String>),
        name!(added_at, Time),
    ),
> {
    crate::entry(|| {
        let asked = One {
            record,
            field,
            value,
            expected_version,
            evidence,
            claim_id,
        };
        Ok(TableIterator::once(one(
            asked,
            "append",
            idempotency_key,
            identity,
        )?))
    })
}

/// The arguments that write and append share.
struct One<'a> {
    record: Option<&'a str>,
    field: Option<&'a str>,
    value: Option<Jsonb>,
    expected_version: Option<i64>,
    evidence: Option<&'a str>,
    claim_id: Option<Uuid>,
}

/// The row that both return.
type OneRow = (
    String,
    String,
    i64,
    i64,
    String,
    String,
    Option<String>,
    Time,
);

/// One change of one field.
fn one(
    asked: One<'_>,
    operation: &str,
    idempotency_key: Option<&str>,
    identity: Option<&str>,
) -> Outcome<OneRow> {
    let (record, field) = (need(asked.record, "record")?, need(asked.field, "field")?);
    let value = need(asked.value, "value")?;
    value.check().map_err(|f| f.field(field).record(record))?;
    check_expected(asked.expected_version)?;
    check_text(asked.evidence, "evidence")?;
    let request = Request::new(idempotency_key, operation)?
        .part(Some(field))
        .value(Some(&value))
        .number(asked.expected_version)
        .part(asked.evidence)
        .number(asked.claim_id);
    let change = Change {
        field,
        value: &value,
        expected_version: asked.expected_version,
        evidence: asked.evidence,
    };
    let call = Call::open(identity)?;
    let mut scope = call.scope(record)?;
    scope.lock()?;
    let (definition, role) = match operation {
        "append" => {
            let definition = scope.field_of_mode(field, &[Mode::Append])?;
            (
                definition,
                scope.writer(definition, &format!("appending to {field}"))?,
            )
        }
        _ => writable(&scope, &change)?,
    };
    let changed = request.once(&call, record, || {
        let task = definition.requires_claim.as_deref();
        fence::check(&scope, Some(definition), task, asked.claim_id)?;
        put(&scope, definition, &change, &role, Time::now())
    })?;
    Ok((
        record.to_owned(),
        changed.field,
        changed.version,
        changed.record_version,
        call.caller.identity.clone(),
        changed.role,
        asked.evidence.map(str::to_owned),
        changed.changed_at,
    ))
}
