//! A field as the wire shows it: the element of GET record.

use std::collections::HashMap;

use kslate_class::{Field, Mode};

use crate::columns::{claim, field};
use crate::error::{json_text, Outcome};
use crate::json::Jsonb;
use crate::rows;
use crate::scope::Scope;
use crate::spi::{text, Row};
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
    /// A field that the record has no row of.
    fn never_written(field: &Field) -> Element {
        let value = if field.mode == Mode::Append {
            "[]"
        } else {
            "null"
        };
        Element {
            field: field.name.clone(),
            mode: field.mode.as_str(),
            value: value.to_owned(),
            version: 0,
            author: None,
            role: None,
            evidence: None,
            record_version: None,
            changed_at: None,
            claim: None,
        }
    }

    /// Takes on a row of kslate.field. Of an append field the row has the last entry only.
    fn read(&mut self, row: &Row) -> Outcome<()> {
        if self.mode != Mode::Append.as_str() {
            let value = row.get::<Jsonb>(field::VALUE);
            self.value = value.map_or_else(|| "null".to_owned(), |value| value.text());
        }
        self.version = row.need(field::VERSION)?;
        self.author = row.get(field::AUTHOR);
        self.role = row.get(field::ROLE);
        self.evidence = row.get(field::EVIDENCE);
        self.record_version = row.get(field::RECORD_VERSION);
        self.changed_at = row.get(field::CHANGED_AT);
        Ok(())
    }

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
    let (storage, key) = (scope.call.storage, [scope.record.as_str()]);
    let mut elements: Vec<Element> = fields.iter().copied().map(Element::never_written).collect();
    let mut place: HashMap<&str, &mut Element> = fields
        .iter()
        .map(|field| field.name.as_str())
        .zip(&mut elements)
        .collect();
    rows::each(storage, c"field", &key, |row| {
        let name: String = row.need(field::FIELD)?;
        match place.get_mut(name.as_str()) {
            Some(element) => element.read(row),
            None => Ok(()),
        }
    })?;
    if fields.iter().any(|field| field.mode == Mode::Task) {
        let now = Time::now();
        rows::each(storage, c"claim", &key, |row| {
            let name: String = row.need(claim::FIELD)?;
            if let Some(element) = place.get_mut(name.as_str()) {
                element.claim = Some(claim_json(row, now)?);
            }
            Ok(())
        })?;
    }
    for element in &mut elements {
        if element.mode == Mode::Append.as_str() && element.version > 0 {
            element.value = entries_json(scope, &element.field)?;
        }
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
    let state: String = row.need(claim::STATE)?;
    let expires_at: Option<Time> = row.get(claim::EXPIRES_AT);
    let live = expires_at.is_some_and(|expires| crate::lease::is_live(&state, expires, now));
    Ok(format!(
        "{{\"state\":{},\"live\":{live},\"owner\":{},\"role\":{},\"epoch\":{},\"claimed_at\":{},\"expires_at\":{}}}",
        json_text(&state),
        json_text(&row.get::<String>(claim::OWNER)),
        json_text(&row.get::<String>(claim::ROLE)),
        row.need::<i64>(claim::EPOCH)?,
        json_text(&row.get::<Time>(claim::CLAIMED_AT)),
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
