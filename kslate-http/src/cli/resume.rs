//! `kslate resume`: what a replacement wakes up to, printed exactly as on the manual page.

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::json::indent;
use super::output::{push_safe, safe};

/// Load the latest checkpoint and show what changed since.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate resume incidents/inc-111\n  kslate resume --server http://127.0.0.1:8080 --role remediator incidents/inc-4471"
)]
pub struct Resume {
    /// class/key
    record: String,
    /// Whose checkpoint; needed if the key holds several roles in the class
    #[arg(long)]
    role: Option<String>,
}

impl Resume {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        load(http, json, &self.record, self.role.as_deref(), None)
    }
}

/// Loads a checkpoint and prints it.
pub(super) fn load(
    http: &Http,
    json: bool,
    name: &str,
    role: Option<&str>,
    checkpoint_id: Option<u64>,
) -> Result<String, Failure> {
    let (class, key) = record(name)?;
    let ask = Ask::get(&["v1", "records", class, key, "checkpoint"])
        .query("role", role)
        .query("checkpoint_id", checkpoint_id);
    let body = http.ask(ask)?;
    if json {
        return Ok(body + "\n");
    }
    Ok(read::<Loaded>(&body)?.text())
}

#[derive(Deserialize)]
struct Loaded {
    role: String,
    /// Text as it came, so that the order of keys and every digit stay.
    document: Option<Box<RawValue>>,
    record_version: u64,
    changed_fields: Vec<Changed>,
}

#[derive(Deserialize)]
struct Changed {
    field: String,
    version: u64,
    author: String,
    evidence: Option<String>,
}

impl Loaded {
    fn text(&self) -> String {
        let mut text = format!("role: {}\n", safe(&self.role));
        match &self.document {
            None => text.push_str("no checkpoint saved yet\nwritten so far:\n"),
            Some(document) => {
                text.push_str(&format!(
                    "checkpoint at record_version {}:\n",
                    self.record_version
                ));
                for line in indent(document.get()).lines() {
                    text.push_str(&format!("  {line}\n"));
                }
                text.push_str("changed since this checkpoint:\n");
            }
        }
        if self.changed_fields.is_empty() {
            text.push_str("  nothing\n");
        }
        for changed in &self.changed_fields {
            let version = format!("v{}", changed.version);
            text.push_str(&format!(
                "  {:20} {version:5} {}\n",
                safe(&changed.field),
                safe(&changed.author)
            ));
            if let Some(evidence) = &changed.evidence {
                text.push_str(&format!("      evidence: {}\n", lines(evidence)));
            }
        }
        text
    }
}

/// Evidence over several lines stays in its column.
fn lines(evidence: &str) -> String {
    let mut text = String::with_capacity(evidence.len());
    for character in evidence.chars() {
        match character {
            '\n' => text.push_str("\n                "),
            other => push_safe(&mut text, other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> String {
        read::<Loaded>(body).expect("an answer of load").text()
    }

    #[test]
    fn the_manual_page() {
        let body = r#"{"record":"incidents/inc-111","role":"remediator","document":{"goal": "drain node-7", "progress": "cordoned; 4 of 11 pods evicted", "decisions": "evict in batches of 4", "open_questions": "none"},"record_version":2,"changed_fields":[{"field":"planned_action","version":2,"author":"apikey:diagnoser","evidence":"eviction caused a second outage on node-4"}]}"#;
        let page = "\
role: remediator
checkpoint at record_version 2:
  {
    \"goal\": \"drain node-7\",
    \"progress\": \"cordoned; 4 of 11 pods evicted\",
    \"decisions\": \"evict in batches of 4\",
    \"open_questions\": \"none\"
  }
changed since this checkpoint:
  planned_action       v2    apikey:diagnoser
      evidence: eviction caused a second outage on node-4
";
        assert_eq!(text(body), page);
    }

    #[test]
    fn nothing_changed() {
        let body =
            r#"{"record":"r/1","role":"x","document":{},"record_version":0,"changed_fields":[]}"#;
        assert_eq!(text(body), "role: x\ncheckpoint at record_version 0:\n  {}\nchanged since this checkpoint:\n  nothing\n");
    }

    #[test]
    fn nothing_saved() {
        let body = r#"{"record":"r/1","role":"remediator","document":null,"record_version":0,"changed_fields":[{"field":"status","version":1,"author":"apikey:diagnoser","evidence":null}]}"#;
        assert_eq!(text(body), "role: remediator\nno checkpoint saved yet\nwritten so far:\n  status               v1    apikey:diagnoser\n");
        let body =
            r#"{"record":"r/1","role":"x","document":null,"record_version":0,"changed_fields":[]}"#;
        assert_eq!(
            text(body),
            "role: x\nno checkpoint saved yet\nwritten so far:\n  nothing\n"
        );
    }

    #[test]
    fn order_digits_and_nesting_of_the_document_stay() {
        let body = r#"{"record":"r/1","role":"x","document":{"z": 1.0000000000000000000000000000000010, "a": [{"k": []}, 12345678901234567890123], "é": "\u0001"},"record_version":7,"changed_fields":[]}"#;
        let page = "role: x\ncheckpoint at record_version 7:\n  {\n    \"z\": 1.0000000000000000000000000000000010,\n    \"a\": [\n      {\n        \"k\": []\n      },\n      12345678901234567890123\n    ],\n    \"é\": \"\\u0001\"\n  }\nchanged since this checkpoint:\n  nothing\n";
        assert_eq!(text(body), page);
    }

    #[test]
    fn long_names_push_and_nothing_steers_the_terminal() {
        let body = r#"{"record":"r/1","role":"x","document":{},"record_version":7,"changed_fields":[{"field":"a_field_with_a_long_name","version":123456,"author":"apikey:a\u001b[31m","evidence":"first\nsecond\tx\u001b[2J\u009b"}]}"#;
        let page = text(body);
        let tail: Vec<&str> = page.lines().skip(4).collect();
        assert_eq!(
            tail,
            [
                "  a_field_with_a_long_name v123456 apikey:a\\u001b[31m",
                "      evidence: first",
                "                second\\tx\\u001b[2J\\u009b",
            ]
        );
    }
}
