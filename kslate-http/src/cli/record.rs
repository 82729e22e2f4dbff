//! `kslate create`, `get`, `list`

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::json::{self, Object};
use super::output::{cell, safe, shorten, when, when_some, Table};
use super::Repeatable;

/// Create a record.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate create incidents/inc-111\n  kslate create incidents/inc-111 --field status=open --field 'hypotheses=[\"replica lag\"]' --evidence 'page 17'"
)]
pub struct Create {
    /// class/key
    record: String,
    /// A first value; the value is JSON, or else a string
    #[arg(long = "field", value_name = "NAME=VALUE")]
    fields: Vec<String>,
    /// Why: a sentence, or a pointer such as hypotheses@2
    #[arg(long)]
    evidence: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

#[derive(Deserialize)]
struct Created {
    record: String,
    record_version: u64,
    created: bool,
    created_by: String,
    created_at: String,
}

impl Create {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let fields = if self.fields.is_empty() {
            None
        } else {
            Some(json::members(&self.fields, "--field")?)
        };
        let body = Object::default()
            .raw("fields", fields)
            .text("evidence", self.evidence.as_deref())
            .finish();
        let ask = Ask::put(&["v1", "records", class, key])
            .json(body)
            .idempotency_key(self.repeatable.idempotency_key.as_deref());
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let made: Created = read(&body)?;
        let record = safe(&made.record);
        Ok(if made.created {
            format!("{record} created\n")
        } else {
            format!(
                "{record} exists: record_version {}, created by {} {}\n",
                made.record_version,
                safe(&made.created_by),
                when(&made.created_at)
            )
        })
    }
}

/// Show a record, or one field of it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate get incidents/inc-111\n  kslate get incidents/inc-111 status\n  kslate get incidents/inc-111 --fields status,remediation --json"
)]
pub struct Get {
    /// class/key
    record: String,
    /// One field, with its whole value
    field: Option<String>,
    /// Only these fields
    #[arg(long, value_name = "A,B", conflicts_with = "field")]
    fields: Option<String>,
}

#[derive(Deserialize)]
struct Record {
    record: String,
    record_version: u64,
    created_by: String,
    created_at: String,
    fields: Vec<Field>,
}

/// An element of `fields`.
#[derive(Deserialize)]
struct Field {
    field: String,
    mode: String,
    value: Box<RawValue>,
    version: u64,
    author: Option<String>,
    evidence: Option<String>,
    changed_at: Option<String>,
    claim: Option<Lease>,
}

#[derive(Deserialize)]
struct Lease {
    state: String,
    live: bool,
    owner: Option<String>,
    expires_at: Option<String>,
}

impl Lease {
    fn text(&self) -> String {
        let owner = self.owner.as_deref().map(safe).unwrap_or_default();
        let expiry = when_some(self.expires_at.as_deref());
        match (self.state.as_str(), self.live) {
            ("claimed", true) => format!("held by {owner}, lease ends {expiry}"),
            ("claimed", false) => format!("free: the lease of {owner} ended {expiry}"),
            (state, _) => safe(state).into_owned(),
        }
    }
}

impl Get {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let ask = match &self.field {
            Some(field) => Ask::get(&["v1", "records", class, key, "fields", field]),
            None => Ask::get(&["v1", "records", class, key]).query("fields", self.fields.as_ref()),
        };
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        if self.field.is_some() {
            return Ok(field_text(&read(&body)?));
        }
        let record: Record = read(&body)?;
        let mut table = Table::new(&["FIELD", "VERSION", "VALUE", "AUTHOR", "CHANGED", "EVIDENCE"]);
        for field in &record.fields {
            table.row(vec![
                field.field.clone(),
                format!("v{}", field.version),
                field.text(),
                field.author.clone().unwrap_or_default(),
                when_some(field.changed_at.as_deref()),
                shorten(field.evidence.as_deref().unwrap_or_default()),
            ]);
        }
        Ok(format!(
            "{}  record_version {}  created by {} {}\n{}",
            safe(&record.record),
            record.record_version,
            safe(&record.created_by),
            when(&record.created_at),
            table.text()
        ))
    }
}

impl Field {
    /// What stands there, in one line: of a task, who holds it, until it has a result.
    fn text(&self) -> String {
        match &self.claim {
            Some(lease) if self.version == 0 || lease.state != "completed" => lease.text(),
            _ if self.version == 0 => String::new(),
            _ if self.mode == "append" => entries(self.version),
            _ => cell(&self.value),
        }
    }
}

fn entries(count: u64) -> String {
    if count == 1 {
        "1 entry".to_owned()
    } else {
        format!("{count} entries")
    }
}

fn field_text(field: &Field) -> String {
    let mut text = format!(
        "{}  {}  v{}",
        safe(&field.field),
        safe(&field.mode),
        field.version
    );
    if let Some(author) = &field.author {
        text.push_str(&format!(
            "  {}  {}",
            safe(author),
            when_some(field.changed_at.as_deref())
        ));
    }
    text.push('\n');
    if let Some(lease) = &field.claim {
        text.push_str(&format!("{}\n", lease.text()));
    }
    if let Some(evidence) = &field.evidence {
        text.push_str(&format!("evidence: {}\n", safe(evidence)));
    }
    if field.version > 0 {
        text.push_str(&format!("{}\n", json::indent(field.value.get())));
    }
    text
}

/// List the records of a class.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate list incidents\n  kslate list incidents --filter status=open --fields status,remediation\n  kslate list incidents --filter '{\"status\":[\"open\",\"mitigating\"]}'"
)]
pub struct List {
    /// The class
    class: String,
    /// Only records with this value; NAME=VALUE, more than once for more fields, or one JSON object
    #[arg(long, value_name = "NAME=VALUE|JSON")]
    filter: Vec<String>,
    /// Show these fields too
    #[arg(long, value_name = "A,B")]
    fields: Option<String>,
    #[command(flatten)]
    page: Page<String>,
}

/// Which page of a list.
#[derive(Debug, Args)]
pub struct Page<Cursor: std::str::FromStr + Clone + Send + Sync + 'static>
where
    Cursor::Err: std::error::Error + Send + Sync + 'static,
{
    /// Begin behind this: the `next` of the page before
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<Cursor>,
    /// Rows at most, 1 to 1000
    #[arg(long, value_name = "N")]
    pub page_size: Option<u16>,
}

#[derive(Deserialize)]
struct Records {
    records: Vec<Record>,
    next: Option<String>,
}

impl List {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let ask = Ask::get(&["v1", "records", &self.class])
            .query("filter", json::filter(&self.filter)?)
            .query("fields", self.fields.as_ref())
            .query("after", self.page.after.as_ref())
            .query("page_size", self.page.page_size);
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let list: Records = read(&body)?;
        let names: Vec<&str> = self
            .fields
            .as_deref()
            .map(|names| names.split(',').collect())
            .unwrap_or_default();
        let mut heading = vec!["RECORD", "VERSION", "CREATED"];
        heading.extend(&names);
        let mut table = Table::new(&heading);
        for record in &list.records {
            let mut row = vec![
                record.record.clone(),
                record.record_version.to_string(),
                when(&record.created_at),
            ];
            for name in &names {
                let field = record.fields.iter().find(|field| field.field == *name);
                row.push(
                    field
                        .map(|field| {
                            field
                                .claim
                                .as_ref()
                                .map_or_else(|| cell(&field.value), Lease::text)
                        })
                        .unwrap_or_default(),
                );
            }
            table.row(row);
        }
        Ok(table.text() + &more(list.next.as_deref()))
    }
}

/// How to get the next page.
pub(super) fn more(next: Option<&str>) -> String {
    next.map(|next| format!("there are more: --after {}\n", safe(next)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_its_holder_until_it_has_a_result() {
        let task = |version: u64, value: &str, state: &str, owner: &str| -> String {
            let field: Field = serde_json::from_str(&format!(
                r#"{{"field":"t","mode":"task","value":{value},"version":{version},"author":null,"evidence":null,"changed_at":null,
                "claim":{{"state":"{state}","live":{},"owner":{owner},"expires_at":null}}}}"#,
                state == "claimed"
            ))
            .expect("a field");
            field.text()
        };
        assert_eq!(task(0, "null", "open", "null"), "open");
        assert!(task(0, "null", "claimed", "\"w1\"").starts_with("held by w1"));
        assert_eq!(task(1, "7", "completed", "null"), "7");
        assert_eq!(task(2, "null", "open", "null"), "open");
        assert!(task(2, "null", "claimed", "\"w2\"").starts_with("held by w2"));
    }
}
