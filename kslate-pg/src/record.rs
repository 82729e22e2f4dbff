//! Records: create, read, list.

use std::collections::BTreeMap;

use kslate_class::{Class, Mode};
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::columns::record as columns;
use crate::error::{json_text, Code, Failure, Outcome};
use crate::field_json::{array, elements};
use crate::history::{self, check_page, Entry};
use crate::idempotency::Request;
use crate::json::{Json, Jsonb};
use crate::rows;
use crate::scope::{check_text, need, quoted, Call, Scope};
use crate::spi::{int, jsonb, opt_text, text, texts, time};
use crate::store;
use crate::time::Time;

/// What a record begins with.
pub struct FirstValues<'f> {
    pub given: Vec<(String, Jsonb)>,
    pub author: &'f str,
    pub role: Option<&'f str>,
    pub evidence: Option<&'f str>,
}

/// Gives a new record its first values (those given and the class's `initial`s), its claims and its row of history.
pub fn furnish(
    call: &Call,
    class: &Class,
    record: &str,
    first: &FirstValues<'_>,
    now: Time,
) -> Outcome<()> {
    let mut shown = Vec::new();
    for field in &class.fields {
        let given = first.given.iter().find(|(name, _)| *name == field.name);
        let value = match (given, &field.initial) {
            (Some((_, value)), _) => value.clone(),
            (None, Some(initial)) => Jsonb::parse(&json_text(initial))?,
            (None, None) => continue,
        };
        let parameters = [
            text(record),
            text(&field.name),
            jsonb(&value),
            text(first.author),
            opt_text(first.role),
            opt_text(first.evidence),
            time(now),
        ];
        let rows = call.session.write(&store::FIRST_VALUE, &parameters)?;
        rows.must_have_changed(1)?;
        // As it is stored: a trigger of somebody else's may have changed it.
        let stored: Option<String> = rows.first().and_then(|row| row.get(0));
        let stored = stored.unwrap_or_else(|| "null".to_owned());
        shown.push(format!("{}:{stored}", json_text(&field.name)));
    }
    let tasks = class.fields.iter().filter(|field| field.mode == Mode::Task);
    let tasks: Vec<&str> = tasks.map(|field| field.name.as_str()).collect();
    if !tasks.is_empty() {
        let count = tasks.len();
        let parameters = [text(record), text(&class.name), texts(tasks), time(now)];
        let rows = call.session.write(&store::CLAIM_ROWS, &parameters)?;
        rows.must_have_changed(count)?;
    }
    let values = Jsonb::parse(&format!("{{{}}}", shown.join(",")))?;
    let entry = Entry {
        record,
        record_version: 0,
        op: "create",
        field: None,
        version: None,
        value: jsonb(&values),
        author: first.author,
        role: first.role.map(str::to_owned),
        evidence: first.evidence.map(str::to_owned),
        changed_at: now,
        epoch: None,
        took_over_from: None,
        reason: None,
    };
    history::append(&call.session, call.storage, &entry)
}

/// NOT_FOUND where the record is not there, for reads; else its version, creator and time of creation.
pub fn must_exist(scope: &Scope<'_>) -> Outcome<(i64, String, Time)> {
    let found = rows::read(scope.call.storage, c"record", &[&scope.record], |row| {
        Ok((
            row.need(columns::VERSION)?,
            row.need(columns::CREATED_BY)?,
            row.need(columns::CREATED_AT)?,
        ))
    })?;
    found.ok_or_else(|| scope.no_record())
}

/// The members of a JSON object, each as a value of its own.
fn members(object: &Jsonb, what: &str) -> Outcome<Vec<(String, Jsonb)>> {
    if !object.is_object() {
        return Err(Failure::malformed(format!("{what} must be an object")));
    }
    let text = object.text();
    object.check_depth(what, 1)?;
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&text)
        .map_err(|_| Failure::malformed(format!("{what} must be an object")))?;
    members
        .into_iter()
        .map(|(name, value)| Ok((name, Jsonb::parse(value.get())?)))
        .collect()
}

#[derive(Serialize, Deserialize)]
struct Created {
    record: String,
    record_version: i64,
    created: bool,
    created_by: String,
    created_at: Time,
}

/// Creates a record, with first values of cas and lww fields. One that exists is answered as it is when no first values
/// came, else ALREADY_EXISTS.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_create(
    record: Option<&str>,
    fields: default!(Option<Jsonb>, "NULL"),
    evidence: default!(Option<&str>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(record_version, i64),
        name!(created, bool),
        name!(created_by, String),
        name!(created_at, Time),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        check_text(evidence, "evidence")?;
        let given = fields
            .as_ref()
            .map(|fields| members(fields, "fields"))
            .transpose()?;
        for (name, value) in given.iter().flatten() {
            value
                .check()
                .map_err(|failure| failure.field(name).record(record))?;
        }
        let request = Request::new(idempotency_key, "create")?
            .part(Some(record))
            .value(fields.as_ref())
            .part(evidence);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let made = create(&mut scope, given, evidence, &request)?;
        Ok(TableIterator::once((
            made.record,
            made.record_version,
            made.created,
            made.created_by,
            made.created_at,
        )))
    })
}

fn create(
    scope: &mut Scope<'_>,
    given: Option<Vec<(String, Jsonb)>>,
    evidence: Option<&str>,
    request: &Request,
) -> Outcome<Created> {
    let doing = format!("creating a record of {}", scope.class.name);
    scope.one_of(&scope.class.create, None, &doing)?;
    let session = &scope.call.session;
    let author = scope.call.caller.identity.clone();
    let now = Time::now();
    let parameters = [
        text(&scope.record),
        text(&scope.class.name),
        text(&scope.key),
        text(&author),
        time(now),
    ];
    let inserted = session
        .write(&store::RECORD_INSERT, &parameters)?
        .first()
        .is_some();
    // The insertion has locked the table against class changes: what the class says now holds until the end.
    scope.refresh()?;
    let role = scope.one_of(&scope.class.create, None, &doing)?;
    for (name, _) in given.iter().flatten() {
        let field = scope.field(name)?;
        if !matches!(field.mode, Mode::Cas | Mode::Lww) {
            return Err(Failure::malformed(format!(
                "{name} has mode {}: only cas and lww fields can have a first value",
                field.mode.as_str()
            ))
            .field(name)
            .record(&scope.record));
        }
        scope.writer(field, &format!("writing {name}"))?;
    }
    if !inserted {
        return existing(scope, given.is_some(), request);
    }
    for (name, value) in given.iter().flatten() {
        let field = scope.field(name)?;
        if let Some(task) = &field.requires_claim {
            return Err(crate::fence::needs_a_claim(scope, Some(name), task));
        }
        crate::change::check(scope, field, value, evidence)?;
    }
    let given = given.unwrap_or_default();
    let first = FirstValues {
        given,
        author: &author,
        role: Some(&role),
        evidence,
    };
    furnish(scope.call, &scope.class, &scope.record, &first, now)?;
    let made = Created {
        record: scope.record.clone(),
        record_version: 0,
        created: true,
        created_by: author.clone(),
        created_at: now,
    };
    request.remember(scope.call, &scope.record, &made)?;
    Ok(made)
}

/// The answer for a record that was there before.
fn existing(scope: &mut Scope<'_>, with_values: bool, request: &Request) -> Outcome<Created> {
    // What was in the way of the insertion is a row that can be seen, or somebody else's.
    let record_version = scope.lock_if_there()?.ok_or_else(Failure::held_back)?;
    if let Some(first) = request.replay(scope.call, &scope.record)? {
        return Ok(first);
    }
    if with_values {
        return Err(Failure::new(
            Code::AlreadyExists,
            format!(
                "{} exists already and your first values were not written; read it and write its fields",
                scope.record
            ),
        )
        .record(&scope.record)
        .with("record_version", record_version));
    }
    let rows = scope
        .call
        .session
        .write(&store::RECORD_GET, &[text(&scope.record)])?;
    let row = rows.first().ok_or_else(|| scope.no_record())?;
    Ok(Created {
        record: scope.record.clone(),
        record_version,
        created: false,
        created_by: row.need(1)?,
        created_at: row.need(2)?,
    })
}

/// A record as the caller may see it: every readable field, or those named.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_get(
    record: Option<&str>,
    fields: default!(Option<Vec<Option<String>>>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(record_version, i64),
        name!(created_by, String),
        name!(created_at, Time),
        name!(fields, Json),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let names = names(fields)?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        let (version, created_by, created_at) = must_exist(&scope)?;
        let fields = array(&elements(&scope, names.as_deref())?);
        Ok(TableIterator::once((
            record.to_owned(),
            version,
            created_by,
            created_at,
            fields.into(),
        )))
    })
}

/// The fields of a record as rows.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_fields(
    record: Option<&str>,
    fields: default!(Option<Vec<Option<String>>>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(field, String),
        name!(mode, String),
        name!(value, Json),
        name!(version, i64),
        name!(author, Option<String>),
        name!(role, Option<String>),
        name!(evidence, Option<String>),
        name!(record_version, Option<i64>),
        name!(changed_at, Option<Time>),
        name!(claim, Option<Json>),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let names = names(fields)?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        must_exist(&scope)?;
        let rows: Vec<_> = elements(&scope, names.as_deref())?
            .into_iter()
            .map(|element| {
                (
                    record.to_owned(),
                    element.field,
                    element.mode.to_owned(),
                    Json::from(element.value),
                    element.version,
                    element.author,
                    element.role,
                    element.evidence,
                    element.record_version,
                    element.changed_at,
                    element.claim.map(Json::from),
                )
            })
            .collect();
        Ok(TableIterator::new(rows))
    })
}

/// The records of a class in order of their names, those that a filter leaves.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_list(
    class: Option<&str>,
    filter: default!(Option<Jsonb>, "NULL"),
    fields: default!(Option<Vec<Option<String>>>, "NULL"),
    after: default!(Option<&str>, "NULL"),
    page_size: default!(Option<i32>, "100"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(record_version, i64),
        name!(created_by, String),
        name!(created_at, Time),
        name!(fields, Json),
    ),
> {
    crate::entry(|| {
        let class = need(class, "class")?;
        let page = check_page(page_size)?;
        let names = names(fields)?.unwrap_or_default();
        let call = Call::open(identity)?;
        let (first, last) = (format!("{class}/"), format!("{class}0"));
        let mut scope = call.class_scope(class)?;
        let filter = filter.map(|filter| any_of(&scope, &filter)).transpose()?;
        if after.is_some_and(|after| !after.starts_with(&first)) {
            return Err(Failure::malformed(format!(
                "after must be a record of {class}, as {class}/key: send the next of the page before"
            )));
        }
        for name in &names {
            scope.readable_field(name)?;
        }
        let parameters = [
            text(after.unwrap_or(&first)),
            text(&last),
            filter.as_ref().and_then(jsonb),
            int(page),
        ];
        let mut found: Vec<(String, i64, String, Time)> = Vec::new();
        for row in call.session.read(&store::RECORD_LIST, &parameters)?.iter() {
            found.push((row.need(0)?, row.need(1)?, row.need(2)?, row.need(3)?));
        }
        let mut rows = Vec::with_capacity(found.len());
        for (record, version, created_by, created_at) in found {
            pgrx::check_for_interrupts!();
            scope.record = record;
            let shown = if names.is_empty() {
                Vec::new()
            } else {
                elements(&scope, Some(&names))?
            };
            rows.push((
                scope.record.clone(),
                version,
                created_by,
                created_at,
                array(&shown).into(),
            ));
        }
        Ok(TableIterator::new(rows))
    })
}

/// A filter (field → value, or a list of values) as an object of lists.
pub fn any_of(scope: &Scope<'_>, filter: &Jsonb) -> Outcome<Jsonb> {
    let mut parts = Vec::new();
    for (name, value) in members(filter, "filter")? {
        let field = scope.field(&name)?;
        if field.mode == Mode::Append {
            return Err(Failure::malformed(format!(
                "{name} has mode append: filter by cas, lww or task fields"
            ))
            .field(&name));
        }
        scope.readable_field(&name)?;
        let value = value.text();
        let list = if value.starts_with('[') {
            value
        } else {
            format!("[{value}]")
        };
        parts.push(format!("{}:{list}", json_text(&name)));
    }
    Jsonb::parse(&format!("{{{}}}", parts.join(",")))
}

/// A text[] argument: names of fields.
fn names(argument: Option<Vec<Option<String>>>) -> Outcome<Option<Vec<String>>> {
    let Some(names) = argument else {
        return Ok(None);
    };
    if names.iter().any(Option::is_none) {
        return Err(Failure::malformed("fields must not contain null"));
    }
    let names: Vec<String> = names.into_iter().flatten().collect();
    if let Some(odd) = names.iter().find(|name| name.is_empty()) {
        return Err(Failure::malformed(format!(
            "{} is no field name",
            quoted(odd)
        )));
    }
    Ok(Some(names))
}
