//! Changes of several fields of one record, all or nothing.

use kslate_class::Field;
use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::change::{check, check_expected, put, writable, Change, Changed, Present};
use crate::error::{json_text, Failure, Outcome};
use crate::fence;
use crate::idempotency::Request;
use crate::json::{Json, Jsonb};
use crate::scope::{check_text, need, Call, Scope};
use crate::time::Time;

/// An element of `changes`, as it came.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    field: String,
    /// Always there, JSON null included: Option would take null for missing.
    value: Box<RawValue>,
    #[serde(default)]
    expected_version: Option<i64>,
    #[serde(default)]
    evidence: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ManyChanged {
    record_version: i64,
    changed_at: Time,
    changes: Vec<Changed>,
}

/// Writes several cas and lww fields of one record, all or nothing. `changes` is an array of 1 to 64 objects
/// `{"field", "value", "expected_version"?, "evidence"?}`, no field twice.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_write_many(
    record: Option<&str>,
    changes: Option<Jsonb>,
    claim_id: default!(Option<Uuid>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(record_version, i64),
        name!(changed_at, Time),
        name!(changes, Json),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let changes = need(changes, "changes")?;
        let request = Request::new(idempotency_key, "write_many")?
            .value(Some(&changes))
            .number(claim_id);
        let asked = asked(&changes)?;
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        scope.lock()?;
        let made = write_many(&scope, &asked, claim_id, &request)?;
        let parts: Vec<String> = made
            .changes
            .iter()
            .map(|change| {
                format!(
                    "{{\"field\":{},\"version\":{},\"record_version\":{},\"role\":{}}}",
                    json_text(&change.field),
                    change.version,
                    change.record_version,
                    json_text(&change.role)
                )
            })
            .collect();
        Ok(TableIterator::once((
            record.to_owned(),
            made.record_version,
            made.changed_at,
            format!("[{}]", parts.join(",")).into(),
        )))
    })
}

/// Reads the elements of `changes`, or says what is wrong with them.
fn read_changes(text: &str) -> Result<Vec<Asked>, String> {
    let reason = |error: serde_json::Error| {
        let reason = error.to_string();
        reason
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let elements: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(reason)?;
    elements
        .iter()
        .map(|element| {
            // serde would take an array for a struct.
            if !element.get().starts_with('{') {
                return Err("an element is no object".to_owned());
            }
            serde_json::from_str(element.get()).map_err(reason)
        })
        .collect()
}

/// Reads and checks the `changes` argument.
fn asked(changes: &Jsonb) -> Outcome<Vec<(Asked, Jsonb)>> {
    const MOST: usize = 64;
    let text = changes.text();
    changes.check_depth("changes", 2)?;
    let asked = read_changes(&text).map_err(|reason| {
        Failure::malformed(format!(
            "changes must be an array of {{\"field\", \"value\", \"expected_version\"?, \"evidence\"?}}: {reason}"
        ))
    })?;
    if asked.is_empty() || asked.len() > MOST {
        return Err(Failure::malformed(format!(
            "changes has {} elements, 1 to {MOST} are allowed",
            asked.len()
        )));
    }
    let mut read = Vec::with_capacity(asked.len());
    for change in asked {
        check_expected(change.expected_version)?;
        check_text(change.evidence.as_deref(), "evidence")?;
        if read
            .iter()
            .any(|(earlier, _): &(Asked, Jsonb)| earlier.field == change.field)
        {
            return Err(
                Failure::malformed(format!("{} is in changes twice", change.field))
                    .field(&change.field),
            );
        }
        let value = Jsonb::parse(change.value.get())?;
        value
            .check()
            .map_err(|failure| failure.field(&change.field))?;
        read.push((change, value));
    }
    Ok(read)
}

fn write_many(
    scope: &Scope<'_>,
    asked: &[(Asked, Jsonb)],
    claim_id: Option<Uuid>,
    request: &Request,
) -> Outcome<ManyChanged> {
    let mut changes = Vec::with_capacity(asked.len());
    for (asked, value) in asked {
        let change = Change {
            field: &asked.field,
            value,
            expected_version: asked.expected_version,
            evidence: asked.evidence.as_deref(),
        };
        let (field, role) = writable(scope, &change)?;
        changes.push((change, field, role));
    }
    request.once(scope.call, &scope.record, || {
        for (_, field, _) in &changes {
            fence::check(
                scope,
                Some(field),
                field.requires_claim.as_deref(),
                claim_id,
            )?;
        }
        conflicts(scope, &changes)?;
        for (change, field, _) in &changes {
            check(scope, field, change.value, change.evidence)?;
        }
        let now = Time::now();
        let mut made = ManyChanged {
            record_version: 0,
            changed_at: now,
            changes: Vec::new(),
        };
        for (change, field, role) in &changes {
            let changed = put(scope, field, change, role, now)?;
            made.record_version = changed.record_version;
            made.changes.push(changed);
        }
        Ok(made)
    })
}

/// The first conflicting change on top, `conflicts` with all of them.
fn conflicts(scope: &Scope<'_>, changes: &[(Change<'_>, &Field, String)]) -> Outcome<()> {
    let mut first = None;
    let mut all = Vec::new();
    for (change, field, _) in changes {
        let Some(expected) = change.expected_version else {
            continue;
        };
        let present = Present::read(scope, field)?;
        if present.version != expected {
            all.push(present.json(scope, field, expected));
            first.get_or_insert_with(|| present.conflict(scope, field, expected));
        }
    }
    match first {
        Some(failure) => Err(failure.with_json("conflicts", format!("[{}]", all.join(",")))),
        None => Ok(()),
    }
}
