//! `kslate claim`, `renew`, `release`, `complete`, `reopen`, `force-release`

use clap::Args;
use serde::Deserialize;

use super::exit::Failure;
use super::http::{read, record, Ask, Http};
use super::json::{self, Object, ValueArgs};
use super::output::{safe, when};
use super::Repeatable;

/// Claim a task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kslate claim incidents/inc-111 remediation --lease-seconds 60
  kslate claim --next incidents remediation --filter status=open
  CLAIM=$(kslate claim --next incidents remediation --json)

The claim_id that is printed is told this once; renew, release and complete want it.")]
pub struct Claim {
    /// class/key, then the field; with --next only the field
    #[arg(value_name = "RECORD FIELD", num_args = 1..=2, required = true)]
    target: Vec<String>,
    /// The next free task of this class
    #[arg(long, value_name = "CLASS")]
    next: Option<String>,
    /// How long; the field's default otherwise
    #[arg(long, value_name = "SECONDS")]
    lease_seconds: Option<u64>,
    /// Take back a claim of this same identity that is still live (a restarted process)
    #[arg(long, conflicts_with = "next")]
    reattach: bool,
    /// Only records with this value; NAME=VALUE, or one JSON object
    #[arg(long, value_name = "NAME=VALUE|JSON", requires = "next")]
    filter: Vec<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

#[derive(Deserialize)]
struct Granted {
    record: Option<String>,
    #[serde(default)]
    field: String,
    #[serde(default)]
    claim_id: String,
    #[serde(default)]
    epoch: u64,
    #[serde(default)]
    expires_at: String,
    #[serde(default)]
    took_over_from: Option<String>,
}

impl Claim {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let ask = match (&self.next, self.target.as_slice()) {
            (Some(class), [field]) => {
                let body = Object::default()
                    .text("field", Some(field))
                    .plain("lease_seconds", self.lease_seconds)
                    .raw("filter", json::filter(&self.filter)?);
                Ask::post(&["v1", "classes", class, "claim"]).json(body.finish())
            }
            (Some(_), _) => return Err(Failure::Usage("with --next CLASS only the field is wanted: kslate claim --next incidents remediation".to_owned())),
            (None, [name, field]) => {
                let (class, key) = record(name)?;
                let body = Object::default().plain("lease_seconds", self.lease_seconds).plain("reattach", self.reattach.then_some(true));
                Ask::post(&["v1", "records", class, key, "fields", field, "claim"]).json(body.finish())
            }
            (None, _) => return Err(Failure::Usage("a record and a field are wanted: kslate claim incidents/inc-111 remediation".to_owned())),
        };
        let body = http.ask(ask.idempotency_key(self.repeatable.idempotency_key.as_deref()))?;
        if json {
            return Ok(body + "\n");
        }
        let granted: Granted = read(&body)?;
        let Some(record) = &granted.record else {
            return Ok("nothing is free now\n".to_owned());
        };
        let mut text = format!("claimed {} {}\n", safe(record), safe(&granted.field));
        text.push_str(&format!("claim_id: {}\n", safe(&granted.claim_id)));
        text.push_str(&format!("epoch: {}\n", granted.epoch));
        text.push_str(&format!(
            "expires: {} ({})\n",
            safe(&granted.expires_at),
            when(&granted.expires_at)
        ));
        if let Some(from) = &granted.took_over_from {
            text.push_str(&format!(
                "took_over_from: {}\nload the checkpoint before you go on: kslate resume {}\n",
                safe(from),
                safe(record)
            ));
        }
        Ok(text)
    }
}

/// Which task of which record.
#[derive(Debug, Args)]
struct Task {
    /// class/key
    record: String,
    /// The task field
    field: String,
}

impl Task {
    fn post(&self, verb: &str, body: Object) -> Result<Ask, Failure> {
        let (class, key) = record(&self.record)?;
        Ok(
            Ask::post(&["v1", "records", class, key, "fields", &self.field, verb])
                .json(body.finish()),
        )
    }
}

#[derive(Deserialize)]
struct Lease {
    expires_at: String,
}

#[derive(Deserialize)]
struct Changed {
    record: String,
    field: String,
    record_version: u64,
}

/// Sends it; says in a few words what was done.
fn change(
    http: &Http,
    ask: Ask,
    repeatable: &Repeatable,
    json: bool,
    done: &str,
) -> Result<String, Failure> {
    let body = http.ask(ask.idempotency_key(repeatable.idempotency_key.as_deref()))?;
    if json {
        return Ok(body + "\n");
    }
    let changed: Changed = read(&body)?;
    Ok(format!(
        "{done} {} {}  record_version {}\n",
        safe(&changed.record),
        safe(&changed.field),
        changed.record_version
    ))
}

/// Extend a lease.
#[derive(Debug, Args)]
pub struct Renew {
    #[command(flatten)]
    task: Task,
    /// What the claim printed
    #[arg(long, value_name = "UUID")]
    claim_id: String,
    /// How long from now; the claim's own time otherwise
    #[arg(long, value_name = "SECONDS")]
    lease_seconds: Option<u64>,
}

impl Renew {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body = Object::default()
            .text("claim_id", Some(&self.claim_id))
            .plain("lease_seconds", self.lease_seconds);
        let body = http.ask(self.task.post("renew", body)?)?;
        if json {
            return Ok(body + "\n");
        }
        let lease: Lease = read(&body)?;
        Ok(format!(
            "renewed; expires {} ({})\n",
            safe(&lease.expires_at),
            when(&lease.expires_at)
        ))
    }
}

/// Give a task back.
#[derive(Debug, Args)]
pub struct Release {
    #[command(flatten)]
    task: Task,
    /// What the claim printed
    #[arg(long, value_name = "UUID")]
    claim_id: String,
    /// Why; it stands in the history
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

impl Release {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body = Object::default()
            .text("claim_id", Some(&self.claim_id))
            .text("reason", self.reason.as_deref());
        change(
            http,
            self.task.post("release", body)?,
            &self.repeatable,
            json,
            "released",
        )
    }
}

/// Finish a task, with its result.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate complete incidents/inc-111 remediation 'replica 2 is primary' --claim-id 0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10\n  kslate complete incidents/inc-111 remediation null --claim-id …      done, nothing to tell"
)]
pub struct Complete {
    #[command(flatten)]
    task: Task,
    #[command(flatten)]
    value: ValueArgs,
    /// What the claim printed
    #[arg(long, value_name = "UUID")]
    claim_id: String,
    /// Why: a sentence, or a pointer such as planned_action@2
    #[arg(long)]
    evidence: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

impl Complete {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body = Object::default()
            .text("claim_id", Some(&self.claim_id))
            .raw("value", Some(self.value.json()?))
            .text("evidence", self.evidence.as_deref());
        change(
            http,
            self.task.post("complete", body)?,
            &self.repeatable,
            json,
            "completed",
        )
    }
}

/// Open a completed task again.
#[derive(Debug, Args)]
pub struct Reopen {
    #[command(flatten)]
    task: Task,
    /// Why; it stands in the history
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    repeatable: Repeatable,
}

impl Reopen {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body = Object::default().text("reason", self.reason.as_deref());
        change(
            http,
            self.task.post("reopen", body)?,
            &self.repeatable,
            json,
            "reopened",
        )
    }
}

/// Take a task from its holder.
#[derive(Debug, Args)]
pub struct ForceRelease {
    #[command(flatten)]
    task: Task,
    /// The claim that is meant, by its epoch: `kslate get RECORD FIELD --json` shows it
    #[arg(long, value_name = "N")]
    expected_epoch: u64,
    /// Why; it stands in the history
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    repeatable: Repeatable,
}

impl ForceRelease {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body = Object::default()
            .plain("expected_epoch", Some(self.expected_epoch))
            .text("reason", Some(&self.reason));
        change(
            http,
            self.task.post("force-release", body)?,
            &self.repeatable,
            json,
            "released by force",
        )
    }
}
