//! `kslate history`, `blame`

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::output::{cell, safe, shorten, when, Table};
use super::record::{more, Page};

/// Show the accepted changes of a record.
#[derive(Debug, Args)]
pub struct History {
    /// class/key
    record: String,
    /// Only of this field
    #[arg(long)]
    field: Option<String>,
    /// Newest first
    #[arg(long)]
    newest_first: bool,
    /// Leave the values out
    #[arg(long)]
    no_values: bool,
    #[command(flatten)]
    page: Page<u64>,
}

#[derive(Deserialize)]
struct Rows {
    history: Vec<Row>,
    next: Option<u64>,
}

/// One accepted change.
#[derive(Deserialize)]
pub(super) struct Row {
    pub record_version: u64,
    op: String,
    field: Option<String>,
    version: Option<u64>,
    value: Option<Box<RawValue>>,
    author: String,
    evidence: Option<String>,
    changed_at: String,
    epoch: Option<u64>,
    took_over_from: Option<String>,
    reason: Option<String>,
}

impl Row {
    /// What else there is to say, on one line.
    fn notes(&self) -> String {
        let mut notes = Vec::new();
        if let Some(epoch) = self.epoch {
            notes.push(format!("epoch {epoch}"));
        }
        if let Some(from) = &self.took_over_from {
            notes.push(format!("took over from {from}"));
        }
        if let Some(evidence) = &self.evidence {
            notes.push(format!("evidence: {evidence}"));
        }
        if let Some(reason) = &self.reason {
            notes.push(format!("reason: {reason}"));
        }
        shorten(&notes.join("; "))
    }

    fn field(&self) -> String {
        match (&self.field, self.version) {
            (Some(field), Some(version)) => format!("{field}@{version}"),
            (Some(field), None) => field.clone(),
            (None, _) => String::new(),
        }
    }

    fn value(&self) -> String {
        self.value.as_deref().map(cell).unwrap_or_default()
    }

    /// The change on one line, for `watch`.
    pub fn line(&self) -> String {
        let parts = [
            self.record_version.to_string(),
            self.op.clone(),
            self.field(),
            self.author.clone(),
            self.value(),
            self.notes(),
        ];
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        safe(&parts.join("  ")).into_owned()
    }
}

impl History {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let ask = Ask::get(&["v1", "records", class, key, "history"])
            .query("field", self.field.as_ref())
            .query("after", self.page.after)
            .query("page_size", self.page.page_size)
            .query("newest_first", self.newest_first.then_some(true))
            .query("with_values", self.no_values.then_some(false));
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let rows: Rows = read(&body)?;
        let mut table = Table::new(&[
            "RECORD_VERSION",
            "OP",
            "FIELD",
            "VALUE",
            "AUTHOR",
            "WHEN",
            "NOTES",
        ]);
        for row in &rows.history {
            table.row(vec![
                row.record_version.to_string(),
                row.op.clone(),
                row.field(),
                row.value(),
                row.author.clone(),
                when(&row.changed_at),
                row.notes(),
            ]);
        }
        Ok(table.text() + &more(rows.next.map(|next| next.to_string()).as_deref()))
    }
}

/// Show who last wrote what.
#[derive(Debug, Args)]
pub struct Blame {
    /// class/key
    record: String,
    /// Only of this field
    #[arg(long)]
    field: Option<String>,
    /// Entries of an append field behind this one
    #[arg(long, value_name = "SEQ", requires = "field")]
    after: Option<u64>,
}

#[derive(Deserialize)]
struct Lines {
    blame: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    field: String,
    key: Option<String>,
    seq: Option<u64>,
    version: u64,
    author: String,
    evidence: Option<String>,
    points_to: Option<Target>,
    changed_at: String,
}

#[derive(Deserialize)]
struct Target {
    value: Box<RawValue>,
    author: String,
}

impl Line {
    fn place(&self) -> String {
        match (&self.key, self.seq) {
            (Some(key), _) => format!("{}.{key}", self.field),
            (None, Some(seq)) => format!("{}[{seq}]", self.field),
            (None, None) => self.field.clone(),
        }
    }

    fn evidence(&self) -> String {
        let evidence = self.evidence.as_deref().unwrap_or_default();
        match &self.points_to {
            Some(target) => format!("{evidence} = {} ({})", cell(&target.value), target.author),
            None => shorten(evidence),
        }
    }
}

impl Blame {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let ask = Ask::get(&["v1", "records", class, key, "blame"])
            .query("field", self.field.as_ref())
            .query("after", self.after);
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let lines: Lines = read(&body)?;
        let mut table = Table::new(&["FIELD", "VERSION", "AUTHOR", "WHEN", "EVIDENCE"]);
        for line in &lines.blame {
            table.row(vec![
                line.place(),
                format!("v{}", line.version),
                line.author.clone(),
                when(&line.changed_at),
                line.evidence(),
            ]);
        }
        Ok(table.text())
    }
}
