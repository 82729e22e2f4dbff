//! The eight operations that race, and the class of the records that they race for.

/// A lock that an operation takes: of the record's row, of its claim's row, or of the classes (and so of every record).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    Record,
    Claim,
    Classes,
}

use Lock::{Claim, Classes, Record};

/// One call. In `arguments`, `{r}` is the record, `{id}` the claim_id of worker 1's last claim, `{class}` the record's class.
pub struct Operation {
    pub name: &'static str,
    /// `apikey:<who>` calls.
    pub who: &'static str,
    pub function: &'static str,
    pub arguments: &'static str,
    pub locks: &'static [Lock],
    /// Which of the locked rows it updates, too: under an older snapshot nobody can lock those any more.
    pub updates: &'static [Lock],
}

impl Operation {
    /// Does `later` wait while this one's transaction is open?
    pub fn holds_up(&self, later: &Operation) -> bool {
        let shared = later.locks.iter().any(|lock| self.locks.contains(lock));
        // The lock on the classes is one on every record, too.
        let all = |one: &Operation, other: &Operation| {
            one.locks.contains(&Classes) && other.locks.contains(&Record)
        };
        shared || all(self, later) || all(later, self)
    }

    /// Has this one updated a row that `later` locks?
    pub fn moves_a_row_of(&self, later: &Operation) -> bool {
        later.locks.iter().any(|lock| self.updates.contains(lock))
    }
}

#[rustfmt::skip]
pub const OPERATIONS: [Operation; 8] = [
    Operation { name: "claim", who: "worker/2", function: "claim", arguments: "'{r}', 'job', 600",
        locks: &[Record, Claim], updates: &[Record, Claim] },
    Operation { name: "renew", who: "worker/1", function: "renew", arguments: "'{r}', 'job', {id}, 900",
        locks: &[Claim], updates: &[Claim] },
    Operation { name: "release", who: "worker/1", function: "release", arguments: "'{r}', 'job', {id}",
        locks: &[Record, Claim], updates: &[Record, Claim] },
    Operation { name: "complete", who: "worker/1", function: "complete", arguments: "'{r}', 'job', {id}, '\"done\"'",
        locks: &[Record, Claim], updates: &[Record, Claim] },
    Operation { name: "write", who: "worker/1", function: "write", arguments: "'{r}', 'cursor', '7', 0, claim_id => {id}",
        locks: &[Record], updates: &[Record] },
    Operation { name: "save", who: "worker/1", function: "checkpoint_save", arguments: "'{r}', '{\"goal\": 1}'",
        locks: &[Record], updates: &[] },
    Operation { name: "resolve", who: "reviewer", function: "write", arguments: "'{r}', 'status', '\"resolved\"', 1",
        locks: &[Record], updates: &[Record] },
    Operation { name: "apply", who: "operator", function: "class_apply", arguments: "'{class}'",
        locks: &[Classes], updates: &[] },
];

/// The operation of that name.
pub fn operation(name: &str) -> &'static Operation {
    OPERATIONS
        .iter()
        .find(|operation| operation.name == name)
        .unwrap_or_else(|| panic!("no operation {name}"))
}

/// The class as it is at first, and as `apply` makes it: stricter in what each other operation but release is judged by.
pub fn class(name: &str, strict: bool) -> String {
    let (evidence, longest, required, sections) = if strict {
        ("required", 300, "worker, reviewer", "goal, risks")
    } else {
        ("optional", 3600, "worker", "goal")
    };
    format!(
        "class: {name}
roles:
  worker: [apikey:worker, \"apikey:worker/*\"]
  reviewer: [apikey:reviewer]
fields:
  status: {{ mode: cas, write: [reviewer], values: [open, resolved], initial: open }}
  cursor: {{ mode: cas, write: [worker], requires_claim: job, evidence: {evidence} }}
  job: {{ mode: task, write: [worker], evidence: {evidence}, lease: {{ default_seconds: 60, max_seconds: {longest} }} }}
checkpoint:
  required: [{required}]
  sections: [{sections}]
"
    )
}
