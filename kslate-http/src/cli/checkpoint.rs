//! `kslate checkpoint save`, `load`, `list`

use clap::{Args, Subcommand};
use serde::Deserialize;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::json::{read_file, Object};
use super::output::{safe, when, Table};
use super::record::{more, Page};
use super::resume;
use super::Repeatable;

/// Save, load or list checkpoints.
#[derive(Debug, Subcommand)]
pub enum Checkpoint {
    /// Save a document, from a file or stdin
    Save(Save),
    /// Show the latest, or an earlier one, and what changed since
    Load(Load),
    /// List what was saved
    List(List),
}

impl Checkpoint {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        match self {
            Self::Save(command) => command.run(http, json),
            Self::Load(command) => command.run(http, json),
            Self::List(command) => command.run(http, json),
        }
    }
}

/// Save a document.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate checkpoint save incidents/inc-111 checkpoint.json\n  agent --account | kslate checkpoint save incidents/inc-111 - --seen-version 19"
)]
pub struct Save {
    /// class/key
    record: String,
    /// File with a JSON object; `-` is stdin
    file: String,
    /// The role it belongs to, if the key holds several
    #[arg(long)]
    role: Option<String>,
    /// The record version that the document was written from
    #[arg(long, value_name = "N")]
    seen_version: Option<u64>,
    /// The claim it is saved under
    #[arg(long, value_name = "UUID")]
    claim_id: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

#[derive(Deserialize)]
struct Saved {
    record: String,
    role: String,
    checkpoint_id: u64,
    record_version: u64,
}

impl Save {
    fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let document = read_file(&self.file)?;
        if !document.trim_start().starts_with('{') {
            return Err(Failure::Usage(format!(
                "{}: a checkpoint is a JSON object",
                self.file
            )));
        }
        let body = Object::default()
            .raw("document", Some(document.trim()))
            .plain("seen_version", self.seen_version)
            .text("claim_id", self.claim_id.as_deref())
            .finish();
        let ask = Ask::put(&["v1", "records", class, key, "checkpoint"])
            .query("role", self.role.as_ref())
            .json(body)
            .idempotency_key(self.repeatable.idempotency_key.as_deref());
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let saved: Saved = read(&body)?;
        Ok(format!(
            "saved checkpoint {} of {} for role {} at record_version {}\n",
            saved.checkpoint_id,
            safe(&saved.record),
            safe(&saved.role),
            saved.record_version
        ))
    }
}

/// Show the latest, or an earlier one.
#[derive(Debug, Args)]
pub struct Load {
    /// class/key
    record: String,
    /// Whose; needed if the key holds several roles
    #[arg(long)]
    role: Option<String>,
    /// An earlier one
    #[arg(long, value_name = "N")]
    checkpoint_id: Option<u64>,
}

impl Load {
    fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        resume::load(
            http,
            json,
            &self.record,
            self.role.as_deref(),
            self.checkpoint_id,
        )
    }
}

/// List what was saved.
#[derive(Debug, Args)]
pub struct List {
    /// class/key
    record: String,
    /// Only this role's
    #[arg(long)]
    role: Option<String>,
    #[command(flatten)]
    page: Page<u64>,
}

#[derive(Deserialize)]
struct Checkpoints {
    checkpoints: Vec<Entry>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct Entry {
    checkpoint_id: u64,
    role: String,
    record_version: u64,
    author: String,
    saved_at: String,
    bytes: u64,
}

impl List {
    fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let (class, key) = record(&self.record)?;
        let ask = Ask::get(&["v1", "records", class, key, "checkpoints"])
            .query("role", self.role.as_ref())
            .query("after", self.page.after)
            .query("page_size", self.page.page_size);
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let list: Checkpoints = read(&body)?;
        let mut table = Table::new(&[
            "CHECKPOINT",
            "ROLE",
            "RECORD_VERSION",
            "AUTHOR",
            "SAVED",
            "BYTES",
        ]);
        for entry in list.checkpoints {
            table.row(vec![
                entry.checkpoint_id.to_string(),
                entry.role,
                entry.record_version.to_string(),
                entry.author,
                when(&entry.saved_at),
                entry.bytes.to_string(),
            ]);
        }
        Ok(table.text() + &more(list.next.map(|next| next.to_string()).as_deref()))
    }
}
