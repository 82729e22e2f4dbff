//! Blame: who last wrote what, when, and on what evidence.

use std::collections::HashMap;

use kslate_class::{Field, Mode};
use pgrx::prelude::*;

use crate::error::{json_text, Code, Failure, Outcome};
use crate::json::{Json, Jsonb};
use crate::record::must_exist;
use crate::scope::{need, Call, Scope};
use crate::spi::{int, opt_int, text, Row};
use crate::store;
use crate::time::Time;

/// One row of blame; `key` for the keys of an object, `seq` for entries.
struct Blamed {
    field: String,
    key: Option<String>,
    seq: Option<i64>,
    version: i64,
    author: String,
    role: Option<String>,
    evidence: Option<String>,
    record_version: i64,
    changed_at: Time,
}

impl Blamed {
    /// Reads version, author, role, evidence, record_version, changed_at from a column on.
    fn read(field: &Field, row: &Row, first: usize) -> Outcome<Blamed> {
        Ok(Blamed {
            field: field.name.clone(),
            key: None,
            seq: None,
            version: row.need(first)?,
            author: row.need(first + 1)?,
            role: row.get(first + 2),
            evidence: row.get(first + 3),
            record_version: row.need(first + 4)?,
            changed_at: row.need(first + 5)?,
        })
    }
}

/// For each written field (or one): who last wrote it, at which version, on what evidence, and what that evidence points
/// at. For an object value a row per top-level key, for an append field one per entry: the newest 100, or with `after` the
/// 100 that follow that number.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_blame(
    record: Option<&str>,
    field: default!(Option<&str>, "NULL"),
    after: default!(Option<i64>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(field, String),
        name!(key, Option<String>),
        name!(seq, Option<i64>),
        name!(version, i64),
        name!(author, String),
        name!(role, Option<String>),
        name!(evidence, Option<String>),
        name!(points_to, Option<Json>),
        name!(record_version, i64),
        name!(changed_at, Time),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        must_exist(&scope)?;
        let fields: Vec<&Field> = match field {
            Some(name) => vec![scope.readable_field(name)?],
            None => scope.readable().collect(),
        };
        let mut rows = Vec::new();
        // Many keys of an object share one evidence.
        let mut resolved: HashMap<String, Option<Json>> = HashMap::new();
        for field in fields {
            pgrx::check_for_interrupts!();
            for blamed in blame(&scope, field, after)? {
                let points_to = match &blamed.evidence {
                    Some(evidence) => match resolved.get(evidence) {
                        Some(known) => known.clone(),
                        None => {
                            let found = points_to(&scope, evidence)?;
                            resolved.insert(evidence.clone(), found.clone());
                            found
                        }
                    },
                    None => None,
                };
                rows.push((
                    blamed.field,
                    blamed.key,
                    blamed.seq,
                    blamed.version,
                    blamed.author,
                    blamed.role,
                    blamed.evidence,
                    points_to,
                    blamed.record_version,
                    blamed.changed_at,
                ));
            }
        }
        Ok(TableIterator::new(rows))
    })
}

fn blame(scope: &Scope<'_>, field: &Field, after: Option<i64>) -> Outcome<Vec<Blamed>> {
    let session = &scope.call.session;
    let key = [text(&scope.record), text(&field.name)];
    if field.mode == Mode::Append {
        let parameters = [key[0], key[1], opt_int(after)];
        let statement = if after.is_some() {
            &store::BLAME_ENTRIES
        } else {
            &store::BLAME_ENTRIES_TAIL
        };
        let mut entries = Vec::new();
        for row in session.read(statement, &parameters)?.iter() {
            let mut blamed = Blamed::read(field, &row, 0)?;
            blamed.seq = Some(blamed.version);
            entries.push(blamed);
        }
        return Ok(entries);
    }
    let rows = session.read(&store::BLAME_FIELD, &key)?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    let whole = Blamed::read(field, &row, 1)?;
    let is_object = row.get::<Jsonb>(0).is_some_and(|value| value.is_object());
    drop(rows);
    let mut keys = Vec::new();
    if is_object {
        for row in session.read(&store::BLAME_KEYS, &key)?.iter() {
            let mut blamed = Blamed::read(field, &row, 1)?;
            blamed.key = row.get(0);
            keys.push(blamed);
        }
    }
    // An empty object has no keys, but somebody wrote it.
    Ok(if keys.is_empty() { vec![whole] } else { keys })
}

/// What an evidence of the form `field@version` points at; None for free text, for what does not exist and for what the
/// caller may not read.
fn points_to(scope: &Scope<'_>, evidence: &str) -> Outcome<Option<Json>> {
    let Some((name, version)) = evidence.trim().split_once('@') else {
        return Ok(None);
    };
    let Ok(version) = version.parse::<i64>() else {
        return Ok(None);
    };
    let Some(field) = scope
        .class
        .field(name)
        .filter(|field| scope.may_read(field))
    else {
        return Ok(None);
    };
    let parameters = [text(&scope.record), text(&field.name), int(version)];
    let rows = scope.call.session.read(&store::FIELD_AT, &parameters)?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let value = row
        .get::<Jsonb>(0)
        .map_or_else(|| "null".to_owned(), |value| value.text());
    let json = format!(
        "{{\"field\":{},\"version\":{version},\"value\":{value},\"author\":{},\"changed_at\":{}}}",
        json_text(name),
        json_text(&row.need::<String>(1)?),
        json_text(&row.need::<Time>(5)?),
    );
    Ok(Some(json.into()))
}

/// A field as it was at a version.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_field_at(
    record: Option<&str>,
    field: Option<&str>,
    version: Option<i64>,
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(version, i64),
        name!(value, Option<Jsonb>),
        name!(author, String),
        name!(role, Option<String>),
        name!(evidence, Option<String>),
        name!(record_version, i64),
        name!(changed_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let version = need(version, "version")?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        must_exist(&scope)?;
        scope.readable_field(field)?;
        let rows = call
            .session
            .read(&store::FIELD_AT, &[text(record), text(field), int(version)])?;
        let row = rows.first().ok_or_else(|| {
            let message = format!("{field} has no version {version}; see kslate_history");
            scope.about(Failure::new(Code::NotFound, message).field(field))
        })?;
        Ok(TableIterator::once((
            record.to_owned(),
            field.to_owned(),
            version,
            row.get(0),
            row.need(1)?,
            row.get(2),
            row.get(3),
            row.need(4)?,
            row.need(5)?,
        )))
    })
}
