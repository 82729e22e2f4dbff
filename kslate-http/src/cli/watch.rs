//! `kslate watch`

use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::history::Row;
use super::http::{read, record, Ask, Http};
use super::output;

/// Follow a record's changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate watch incidents/inc-111\n  kslate watch incidents/inc-111 --since 0 --json | jq .op"
)]
pub struct Watch {
    /// class/key
    record: String,
    /// Begin behind this record version; now, otherwise
    #[arg(long, value_name = "N")]
    since: Option<u64>,
    /// Only of this field
    #[arg(long)]
    field: Option<String>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

#[derive(Deserialize)]
struct Now {
    record_version: u64,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    history: Vec<&'a RawValue>,
    next: Option<u64>,
}

impl Watch {
    /// Prints changes for ever, or until the server refuses.
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<(), Failure> {
        let (class, key) = record(&self.record)?;
        let mut seen = match self.since {
            Some(version) => version,
            None => {
                read::<Now>(&http.ask(Ask::get(&["v1", "records", class, key]))?)?.record_version
            }
        };
        loop {
            let ask = Ask::get(&["v1", "records", class, key, "history"])
                .query("field", self.field.as_ref())
                .query("after", Some(seen));
            let more = match http.ask(ask) {
                Ok(body) => self.show(&body, json, &mut seen)?,
                // A database that is away for a moment comes back.
                Err(Failure::Refused { body })
                    if ["BUSY", "UNAVAILABLE", "TIMEOUT"]
                        .iter()
                        .any(|error| body.starts_with(&format!("{{\"error\":\"{error}\""))) =>
                {
                    false
                }
                Err(failure) => return Err(failure),
            };
            if !more {
                sleep(Duration::from_secs(self.interval));
            }
        }
    }

    fn show(&self, body: &str, json: bool, seen: &mut u64) -> Result<bool, Failure> {
        let page: Page<'_> = serde_json::from_str(body).map_err(|error| {
            Failure::Local(format!("the server's answer cannot be read: {error}"))
        })?;
        for row in page.history {
            let change: Row = read(row.get())?;
            *seen = change.record_version;
            output::print(&if json {
                format!("{}\n", row.get())
            } else {
                format!("{}\n", change.line())
            })?;
        }
        Ok(page.next.is_some())
    }
}
