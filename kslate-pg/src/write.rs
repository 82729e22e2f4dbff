//! Changes of fields: write, write many, append.

use kslate_class::{Evidence, Field, Mode};
use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::columns::field::{AUTHOR, CHANGED_AT, EVIDENCE, RECORD_VERSION, ROLE, VALUE, VERSION};
use crate::error::{json_text, Code, Failure, Outcome};
use crate::fence;
use crate::idempotency::Request;
use crate::json::{Json, Jsonb};
use crate::rows;
use crate::scope::{check_text, need, Call, Scope};
use crate::spi::{int, jsonb, opt_text, text, time, Row};
use crate::store;
use crate::time::Time;

/// An accepted change of one field.
#[derive(Serialize, Deserialize)]
struct Changed {
    field: String,
    version: i64,
    record_version: i64,
    role: String,
    changed_at: Time,
}

/// One change that is asked for.
struct Change<'w> {
    field: &'w str,
    value: &'w Jsonb,
    expected_version: Option<i64>,
    evidence: Option<&'w str>,
}

/// Evidence and value as the class wants them; call it after the version was checked.
pub fn check(
    scope: &Scope<'_>,
    field: &Field,
    value: &Jsonb,
    evidence: Option<&str>,
) -> Outcome<()> {
    let about = |failure: Failure| scope.about(failure.field(&field.name));
    if field.evidence == Evidence::Required && evidence.is_none_or(|text| text.trim().is_empty()) {
        return Err(about(Failure::new(
            Code::EvidenceRequired,
            format!(
                "{} must say why: send evidence, a sentence or a pointer such as hypotheses@2",
                field.name
            ),
        )));
    }
    if field.values.is_none() && field.schema.is_none() {
        return Ok(());
    }
    field.check_value(&value.text()).map_err(|violation| {
        about(Failure::new(Code::InvalidValue, violation.message)).with("path", violation.path)
    })
}

/// An expected version is a version: 0 or more, and below 2^53, where JSON numbers end to be exact.
fn check_expected(expected: Option<i64>) -> Outcome<()> {
    const END: i64 = 1 << 53;
    match expected {
        Some(version) if !(0..END).contains(&version) => Err(Failure::malformed(
            "expected_version must be the version you last read, 0 if the field was never written",
        )),
        _ => Ok(()),
    }
}

/// Makes one change under the record's lock; `role` is the one it is recorded under.
fn put(
    scope: &Scope<'_>,
    field: &Field,
    change: &Change<'_>,
    role: &str,
    now: Time,
) -> Outcome<Changed> {
    if let Err(failure) = check(scope, field, change.value, change.evidence) {
        // A conflict is told first: what the agent would correct is out of date.
        if let Some(expected) = change.expected_version {
            let present = Present::read(scope, field)?;
            if present.version != expected {
                return Err(present.conflict(scope, field, expected));
            }
        }
        return Err(failure);
    }
    let expected = change.expected_version;
    let columns = |version: i64, record_version: i64| {
        vec![
            (VALUE, jsonb(change.value)),
            (VERSION, int(version)),
            (AUTHOR, text(&scope.call.caller.identity)),
            (ROLE, text(role)),
            (EVIDENCE, opt_text(change.evidence)),
            (RECORD_VERSION, int(record_version)),
            (CHANGED_AT, time(now)),
        ]
    };
    let key = [scope.record.as_str(), change.field];
    let changed = rows::update(scope.call.storage, c"field", &key, |row| {
        let version: i64 = row.need(VERSION)?;
        match expected {
            Some(expected) if expected != version => {
                Err(Present::of_row(row)?.conflict(scope, field, expected))
            }
            _ => {
                let made = (version.saturating_add(1), scope.count()?);
                Ok((made, columns(made.0, made.1)))
            }
        }
    })?;
    let (version, record_version) = match changed {
        rows::Change::Made(made) => made,
        rows::Change::Missing => {
            if let Some(expected) = expected.filter(|expected| *expected != 0) {
                return Err(Present::NEVER.conflict(scope, field, expected));
            }
            let record_version = scope.count()?;
            let mut row = vec![text(&scope.record), text(change.field)];
            row.extend(
                columns(1, record_version)
                    .into_iter()
                    .map(|(_, value)| value),
            );
            rows::insert(scope.call.storage, c"field", &row)?;
            (1, record_version)
        }
        rows::Change::Foreign => return put_by_statement(scope, field, change, role, now),
    };
    Ok(Changed {
        field: change.field.to_owned(),
        version,
        record_version,
        role: role.to_owned(),
        changed_at: now,
    })
}

/// The same where somebody has triggers of their own on `kslate.field`.
fn put_by_statement(
    scope: &Scope<'_>,
    field: &Field,
    change: &Change<'_>,
    role: &str,
    now: Time,
) -> Outcome<Changed> {
    let mut parameters = vec![
        text(&scope.record),
        text(change.field),
        jsonb(change.value),
        text(&scope.call.caller.identity),
        text(role),
        opt_text(change.evidence),
        time(now),
    ];
    let statement = match change.expected_version {
        None => &store::FIELD_UPSERT,
        Some(0) => &store::FIELD_INSERT,
        Some(version) => {
            parameters.push(int(version));
            &store::FIELD_UPDATE
        }
    };
    let rows = scope.call.session.write(statement, &parameters)?;
    match (rows.first(), change.expected_version) {
        (Some(row), _) => Ok(Changed {
            field: change.field.to_owned(),
            version: row.need(0)?,
            record_version: row.need(1)?,
            role: role.to_owned(),
            changed_at: now,
        }),
        (None, expected) => {
            Err(Present::read(scope, field)?.conflict(scope, field, expected.unwrap_or(0)))
        }
    }
}

/// A field as it stands, for a conflict.
struct Present {
    version: i64,
    value: Option<String>,
    author: Option<String>,
    evidence: Option<String>,
}

impl Present {
    const NEVER: Present = Present {
        version: 0,
        value: None,
        author: None,
        evidence: None,
    };

    /// Reads a row of the table.
    fn of_row(row: &Row) -> Outcome<Present> {
        Ok(Present {
            version: row.need(VERSION)?,
            value: row.get::<Jsonb>(VALUE).map(|value| value.text()),
            author: row.get(AUTHOR),
            evidence: row.get(EVIDENCE),
        })
    }

    fn read(scope: &Scope<'_>, field: &Field) -> Outcome<Present> {
        let parameters = [text(&scope.record), text(&field.name)];
        let rows = scope.call.session.write(&store::FIELD_GET, &parameters)?;
        let row = rows.first();
        let row = row.as_ref();
        Ok(Present {
            version: row.and_then(|row| row.get(0)).unwrap_or(0),
            value: row.and_then(|row| row.get(1)),
            author: row.and_then(|row| row.get(2)),
            evidence: row.and_then(|row| row.get(3)),
        })
    }

    fn value_json(&self) -> String {
        self.value.clone().unwrap_or_else(|| "null".to_owned())
    }

    fn conflict(&self, scope: &Scope<'_>, field: &Field, expected: i64) -> Failure {
        let readable = scope.may_read(field);
        let merge = if readable {
            "merge with the value given here and write"
        } else {
            "write"
        };
        let message = format!(
            "{} is at version {1}, you expected {expected}; {merge} again with expected_version {1}",
            field.name, self.version
        );
        let failure = scope
            .about(Failure::new(Code::VersionConflict, message).field(&field.name))
            .with("expected_version", expected)
            .with("current_version", self.version);
        if !readable {
            return failure;
        }
        failure
            .with_json("value", self.value_json())
            .with("author", &self.author)
            .with("evidence", &self.evidence)
    }

    /// An element of `conflicts`.
    fn json(&self, scope: &Scope<'_>, field: &Field, expected: i64) -> String {
        let mut json = format!(
            "{{\"field\":{},\"expected_version\":{expected},\"current_version\":{}",
            json_text(&field.name),
            self.version
        );
        if scope.may_read(field) {
            json.push_str(&format!(
                ",\"value\":{},\"author\":{},\"evidence\":{}",
                self.value_json(),
                json_text(&self.author),
                json_text(&self.evidence)
            ));
        }
        json.push('}');
        json
    }
}

/// The field of a write, and the role that the caller writes it under.
fn writable<'s>(scope: &'s Scope<'_>, change: &Change<'_>) -> Outcome<(&'s Field, String)> {
    let field = scope.field_of_mode(change.field, &[Mode::Cas, Mode::Lww])?;
    if field.mode == Mode::Cas && change.expected_version.is_none() {
        return Err(scope.about(
            Failure::malformed(format!(
                "{} has mode cas: send expected_version, the version you last read (0 if it was never written)",
                field.name
            ))
            .field(&field.name),
        ));
    }
    let role = scope.writer(field, &format!("writing {}", field.name))?;
    Ok((field, role))
}

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
    let value_text = value
        .checked_text()
        .map_err(|f| f.field(field).record(record))?;
    check_expected(asked.expected_version)?;
    check_text(asked.evidence, "evidence")?;
    let request = Request::new(idempotency_key, operation)?
        .part(Some(field))
        .part(Some(&value_text))
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
            .part(Some(changes.text()))
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
    changes.check_depth(&text, "changes")?;
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
            .checked_text()
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
