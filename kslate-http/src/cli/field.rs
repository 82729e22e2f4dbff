//! `kslate set`, `append`, `entries`

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::json::{Object, ValueArgs};
use super::output::{cell, safe, shorten, when, Table};
use super::record::{more, Page};
use super::Repeatable;

/// Write a cas or lww field.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kslate set incidents/inc-111 status mitigating --expected-version 1
  kslate set incidents/inc-111 hypotheses '[\"replica lag\", \"the deploy\"]' --expected-version 0
  kslate set incidents/inc-111 planned_action 'wait' --expected-version 2 --evidence hypotheses@2
  kslate set incidents/inc-111 note 12 --string              the text \"12\", not the number
  kslate set incidents/inc-111 report --value-file - < report.json

A cas field wants the version that the new value was decided on: the one that `kslate get` showed.
0 is a field that was never written. `--expected-version current` writes over whatever stands
there now.")]
pub struct Set {
    /// class/key
    record: String,
    /// The field
    field: String,
    #[command(flatten)]
    value: ValueArgs,
    /// The field's version that this write was decided on, or `current`
    #[arg(long, value_name = "N|current", value_parser = expected)]
    expected_version: Option<Expected>,
    /// Why: a sentence, or a pointer such as hypotheses@2
    #[arg(long)]
    evidence: Option<String>,
    /// The claim this write is made under
    #[arg(long, value_name = "UUID")]
    claim_id: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Version(u64),
    Current,
}

fn expected(text: &str) -> Result<Expected, String> {
    match text {
        "current" => Ok(Expected::Current),
        number => number
            .parse()
            .map(Expected::Version)
            .map_err(|_| "a version such as 2, or `current`".to_owned()),
    }
}

#[derive(Deserialize)]
struct FieldState {
    version: u64,
    mode: String,
}

#[derive(Deserialize)]
struct Written {
    record: String,
    field: String,
    version: u64,
    record_version: u64,
}

impl Written {
    fn text(&self) -> String {
        format!(
            "{} {} v{}  record_version {}\n",
            safe(&self.record),
            safe(&self.field),
            self.version,
            self.record_version
        )
    }
}

impl Set {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let path = ["v1", "records", class, key, "fields", &self.field];
        let expected = match self.expected_version {
            Some(Expected::Version(version)) => Some(version),
            Some(Expected::Current) => {
                Some(read::<FieldState>(&http.ask(Ask::get(&path))?)?.version)
            }
            None => None,
        };
        let body = Object::default()
            .raw("value", Some(self.value.json()?))
            .plain("expected_version", expected)
            .text("evidence", self.evidence.as_deref())
            .text("claim_id", self.claim_id.as_deref())
            .finish();
        let ask = Ask::put(&path)
            .json(body)
            .idempotency_key(self.repeatable.idempotency_key.as_deref());
        let body = match http.ask(ask) {
            Err(refused @ Failure::Refused { .. }) if expected.is_none() => {
                return Err(self.version_hint(http, &path, refused))
            }
            other => other?,
        };
        if json {
            return Ok(body + "\n");
        }
        Ok(read::<Written>(&body)?.text())
    }

    /// A cas field that was written without a version: says which command would do it.
    fn version_hint(&self, http: &Http, path: &[&str], refused: Failure) -> Failure {
        let malformed = matches!(&refused, Failure::Refused { body } if body.starts_with("{\"error\":\"MALFORMED\""));
        let state = if malformed {
            http.ask(Ask::get(path))
                .and_then(|body| read::<FieldState>(&body))
                .ok()
        } else {
            None
        };
        match state {
            Some(state) if state.mode == "cas" => Failure::Usage(format!(
                "{field} is a cas field: say which version the new value was decided on. It is at v{version} now: look at it with\n  \
                 kslate get {record} {field}\nand repeat the command with\n  --expected-version {version}",
                field = self.field,
                record = self.record,
                version = state.version,
            )),
            _ => refused,
        }
    }
}

/// Add an entry to an append field.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate append incidents/inc-111 actions_taken 'uncordoned node-7' --evidence planned_action@2"
)]
pub struct Append {
    /// class/key
    record: String,
    /// The field
    field: String,
    #[command(flatten)]
    value: ValueArgs,
    /// How many entries there must be, if that matters
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
    /// Why: a sentence, or a pointer such as planned_action@2
    #[arg(long)]
    evidence: Option<String>,
    /// The claim this is done under
    #[arg(long, value_name = "UUID")]
    claim_id: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

impl Append {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let body = Object::default()
            .raw("value", Some(self.value.json()?))
            .text("evidence", self.evidence.as_deref())
            .text("claim_id", self.claim_id.as_deref())
            .plain("expected_version", self.expected_version)
            .finish();
        let ask = Ask::post(&[
            "v1",
            "records",
            class,
            key,
            "fields",
            &self.field,
            "entries",
        ])
        .json(body)
        .idempotency_key(self.repeatable.idempotency_key.as_deref());
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        Ok(read::<Written>(&body)?.text())
    }
}

/// List the entries of an append field.
#[derive(Debug, Args)]
pub struct Entries {
    /// class/key
    record: String,
    /// The field
    field: String,
    /// Newest first
    #[arg(long)]
    newest_first: bool,
    #[command(flatten)]
    page: Page<u64>,
}

#[derive(Deserialize)]
struct EntryList {
    entries: Vec<Entry>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct Entry {
    seq: u64,
    value: Box<RawValue>,
    author: String,
    evidence: Option<String>,
    added_at: String,
}

impl Entries {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let ask = Ask::get(&[
            "v1",
            "records",
            class,
            key,
            "fields",
            &self.field,
            "entries",
        ])
        .query("after", self.page.after)
        .query("page_size", self.page.page_size)
        .query("newest_first", self.newest_first.then_some(true));
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let list: EntryList = read(&body)?;
        let mut table = Table::new(&["SEQ", "VALUE", "AUTHOR", "ADDED", "EVIDENCE"]);
        for entry in list.entries {
            let evidence = shorten(entry.evidence.as_deref().unwrap_or_default());
            table.row(vec![
                entry.seq.to_string(),
                cell(&entry.value),
                entry.author,
                when(&entry.added_at),
                evidence,
            ]);
        }
        Ok(table.text() + &more(list.next.map(|next| next.to_string()).as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_versions() {
        assert_eq!(expected("0"), Ok(Expected::Version(0)));
        assert_eq!(expected("current"), Ok(Expected::Current));
        for bad in ["", "-1", "1.0", "latest"] {
            assert!(expected(bad).is_err(), "{bad}");
        }
    }
}
