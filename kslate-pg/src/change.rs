//! One change of one field: what the class asks of it, how it is made, and what a conflict tells.

use kslate_class::{Evidence, Field, Mode};
use serde::{Deserialize, Serialize};

use crate::columns::field::{AUTHOR, CHANGED_AT, EVIDENCE, RECORD_VERSION, ROLE, VALUE, VERSION};
use crate::error::{json_text, Code, Failure, Outcome};
use crate::json::Jsonb;
use crate::rows;
use crate::scope::Scope;
use crate::spi::{int, jsonb, opt_text, text, time, Row};
use crate::store;
use crate::time::Time;

/// An accepted change of one field.
#[derive(Serialize, Deserialize)]
pub struct Changed {
    pub field: String,
    pub version: i64,
    pub record_version: i64,
    pub role: String,
    pub changed_at: Time,
}

/// One change that is asked for.
pub struct Change<'w> {
    pub field: &'w str,
    pub value: &'w Jsonb,
    pub expected_version: Option<i64>,
    pub evidence: Option<&'w str>,
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
pub fn check_expected(expected: Option<i64>) -> Outcome<()> {
    const END: i64 = 1 << 53;
    match expected {
        Some(version) if !(0..END).contains(&version) => Err(Failure::malformed(
            "expected_version must be the version you last read, 0 if the field was never written",
        )),
        _ => Ok(()),
    }
}

/// Makes one change under the record's lock; `role` is the one it is recorded under.
pub fn put(
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
    if scope.counts_by_statement()? {
        return put_by_statement(scope, field, change, role, now);
    }
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
            if !rows::insert(scope.call.storage, c"field", &row)? {
                return Err(Failure::held_back());
            }
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

/// The same where there is something of somebody else's on `kslate.field` or `kslate.record`.
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
        (Some(row), _) => {
            let record_version = row.need(1)?;
            scope.counted(record_version)?;
            Ok(Changed {
                field: change.field.to_owned(),
                version: row.need(0)?,
                record_version,
                role: role.to_owned(),
                changed_at: now,
            })
        }
        (None, expected) => {
            let present = Present::read(scope, field)?;
            Err(match expected {
                Some(expected) if expected != present.version => {
                    present.conflict(scope, field, expected)
                }
                _ => Failure::held_back(),
            })
        }
    }
}

/// A field as it stands, for a conflict.
pub struct Present {
    pub version: i64,
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

    pub fn read(scope: &Scope<'_>, field: &Field) -> Outcome<Present> {
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

    pub fn conflict(&self, scope: &Scope<'_>, field: &Field, expected: i64) -> Failure {
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
    pub fn json(&self, scope: &Scope<'_>, field: &Field, expected: i64) -> String {
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
pub fn writable<'s>(scope: &'s Scope<'_>, change: &Change<'_>) -> Outcome<(&'s Field, String)> {
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
