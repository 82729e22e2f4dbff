//! A field as the wire shows it: the element of GET record.

use std::collections::HashMap;

use kslate_class::{Field, Mode};

use crate::error::{json_text, Outcome};
use crate::scope::Scope;
use crate::spi::{text, texts, Row};
use crate::store;
use crate::time::Time;

/// One field with its present state; `value` and `claim` are JSON text.
pub struct Element {
    pub field: String,
    pub mode: &'static str,
    pub value: String,
    pub version: i64,
    pub author: Option<String>,
    pub role: Option<String>,
    pub evidence: Option<String>,
    pub record_version: Option<i64>,
    pub changed_at: Option<Time>,
    pub claim: Option<String>,
}

impl Element {
    /// The JSON object, keys in wire order.
    pub fn json(&self) -> String {
        format!(
            "{{\"field\":{},\"mode\":{},\"value\":{},\"version\":{},\"author\":{},\"role\":{},\"evidence\":{},\"record_version\":{},\"changed_at\":{},\"claim\":{}}}",
            json_text(&self.field),
            json_text(self.mode),
            self.value,
            self.version,
            json_text(&self.author),
            json_text(&self.role),
            json_text(&self.evidence),
            json_text(&self.record_version),
            json_text(&self.changed_at),
            self.claim.as_deref().unwrap_or("null"),
        )
    }
}

/// The elements of these fields, in the class's order: those named (which must be readable), or all that are readable.
pub fn elements(scope: &Scope<'_>, names: Option<&[String]>) -> Outcome<Vec<Element>> {
    let fields: Vec<&Field> = match names {
        None => scope.readable().collect(),
        Some(names) => {
            for name in names {
                scope.readable_field(name)?;
            }
            scope
                .class
                .fields
                .iter()
                .filter(|field| names.contains(&field.name))
                .collect()
        }
    };
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let session = &scope.call.session;
    let record = text(&scope.record);
    let wanted = names.and_then(|_| texts(fields.iter().map(|field| field.name.as_str())));
    let mut values: HashMap<String, Row> = HashMap::new();
    let rows = session.read(&store::FIELDS_GET, &[record, wanted])?;
    for row in rows.iter() {
        values.insert(row.need(0)?, row);
    }
    let mut claims: HashMap<String, String> = HashMap::new();
    if fields.iter().any(|field| field.mode == Mode::Task) {
        let now = Time::now();
        for row in session.read(&store::CLAIMS_GET, &[record])?.iter() {
            claims.insert(row.need(0)?, claim_json(&row, now)?);
        }
    }
    let mut elements = Vec::with_capacity(fields.len());
    for field in fields {
        let row = values.get(&field.name);
        let value = match (field.mode, row) {
            (Mode::Append, Some(_)) => entries_json(scope, &field.name)?,
            (Mode::Append, None) => "[]".to_owned(),
            (_, row) => row
                .and_then(|row| row.get(1))
                .unwrap_or_else(|| "null".to_owned()),
        };
        elements.push(Element {
            field: field.name.clone(),
            mode: field.mode.as_str(),
            value,
            version: row.and_then(|row| row.get(2)).unwrap_or(0),
            author: row.and_then(|row| row.get(3)),
            role: row.and_then(|row| row.get(4)),
            evidence: row.and_then(|row| row.get(5)),
            record_version: row.and_then(|row| row.get(6)),
            changed_at: row.and_then(|row| row.get(7)),
            claim: claims.remove(&field.name),
        });
    }
    Ok(elements)
}

/// The JSON array of elements.
pub fn array(elements: &[Element]) -> String {
    let parts: Vec<String> = elements.iter().map(Element::json).collect();
    format!("[{}]", parts.join(","))
}

/// The claim of a task, without its claim_id, which is told to its holder only.
fn claim_json(row: &Row, now: Time) -> Outcome<String> {
    let state: String = row.need(1)?;
    let expires_at: Option<Time> = row.get(6);
    let live = expires_at.is_some_and(|expires| crate::lease::is_live(&state, expires, now));
    Ok(format!(
        "{{\"state\":{},\"live\":{live},\"owner\":{},\"role\":{},\"epoch\":{},\"claimed_at\":{},\"expires_at\":{}}}",
        json_text(&state),
        json_text(&row.get::<String>(2)),
        json_text(&row.get::<String>(3)),
        row.need::<i64>(4)?,
        json_text(&row.get::<Time>(5)),
        json_text(&expires_at),
    ))
}

/// The newest 20 entries, oldest first.
fn entries_json(scope: &Scope<'_>, field: &str) -> Outcome<String> {
    let mut parts = Vec::new();
    let parameters = [text(&scope.record), text(field)];
    for row in scope
        .call
        .session
        .read(&store::ENTRIES_TAIL, &parameters)?
        .iter()
    {
        parts.push(format!(
            "{{\"seq\":{},\"value\":{},\"author\":{},\"role\":{},\"evidence\":{},\"record_version\":{},\"added_at\":{}}}",
            row.need::<i64>(0)?,
            row.get::<String>(1).unwrap_or_else(|| "null".to_owned()),
            json_text(&row.get::<String>(2)),
            json_text(&row.get::<String>(3)),
            json_text(&row.get::<String>(4)),
            row.need::<i64>(5)?,
            json_text(&row.get::<Time>(6)),
        ));
    }
    Ok(format!("[{}]", parts.join(",")))
}
