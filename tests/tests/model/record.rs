//! One record of the model: its fields, its task, its checkpoints, its history.

use crate::model::{apikey, role};
use serde_json::{json, Value};
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Field {
    pub value: Option<Value>,
    pub version: i64,
    pub author: String,
    pub role: &'static str,
    pub record_version: i64,
}

#[derive(Clone, Default)]
pub struct Task {
    pub state: &'static str,
    pub owner: Option<&'static str>,
    pub grant: Option<usize>,
    pub epoch: i64,
    pub lease: i64,
    pub expires: (i64, usize),
    pub queued: (i64, usize),
    pub ended: Option<&'static str>,
}

#[derive(Clone, Default)]
pub struct Record {
    pub version: i64,
    pub fields: BTreeMap<&'static str, Field>,
    pub task: Task,
    /// role, record version
    pub checkpoints: Vec<(&'static str, i64)>,
    pub history: Vec<Value>,
}

impl Record {
    /// One step of the record's version, and its row of history.
    pub fn change(
        &mut self,
        op: &str,
        field: Option<&str>,
        version: Option<i64>,
        who: &str,
        grant: Option<(i64, Option<String>)>,
    ) {
        if op != "create" {
            self.version += 1;
        }
        let (epoch, from) = grant.map_or((None, None), |(epoch, from)| (Some(epoch), from));
        self.history.push(json!([
            self.version,
            op,
            field,
            version,
            apikey(who),
            role(who),
            epoch,
            from
        ]));
    }

    pub fn set(&mut self, name: &'static str, value: Option<Value>, who: &str) -> i64 {
        let field = self.fields.entry(name).or_default();
        let version = field.version + 1;
        *field = Field {
            value,
            version,
            author: apikey(who),
            role: role(who).expect("a role"),
            record_version: self.version,
        };
        version
    }

    pub fn live(&self, now: i64) -> bool {
        self.task.state == "claimed" && now < self.task.expires.0
    }

    /// The claim that is named must be the live one, and the caller's.
    pub fn fence(&self, who: &str, claim: usize, now: i64) -> Result<(), (&'static str, Value)> {
        let (task, live) = (&self.task, self.live(now));
        let same = task.grant == Some(claim);
        if live && same && task.owner == Some(who) {
            return Ok(());
        }
        let theirs = task.owner.is_some_and(|owner| owner != who);
        let reason = match (same, live) {
            (true, true) => "not_claimed",
            (true, false) => "lapsed",
            _ if task.state == "completed" => "completed",
            _ if theirs && matches!(task.ended, Some("lapsed" | "reattached")) => "taken_over",
            _ => task.ended.unwrap_or("not_claimed"),
        };
        Err((
            "LEASE_LOST",
            json!({"reason": reason, "owner": task.owner.filter(|_| live).map(apikey)}),
        ))
    }

    pub fn grant(
        &mut self,
        who: &'static str,
        number: usize,
        seconds: i64,
        now: (i64, usize),
    ) -> Value {
        let (live, claimed) = (self.live(now.0), self.task.state == "claimed");
        let (same, from) = (
            self.task.owner == Some(who),
            self.task.owner.filter(|owner| *owner != who).map(apikey),
        );
        let task = &mut self.task;
        if claimed {
            task.ended = Some(if !same {
                "taken_over"
            } else if live {
                "reattached"
            } else {
                "lapsed"
            });
        }
        let op = if claimed && !same {
            "takeover"
        } else if live {
            "reattach"
        } else {
            "claim"
        };
        let from = from.filter(|_| claimed);
        (task.state, task.owner, task.grant) = ("claimed", Some(who), Some(number));
        (task.epoch, task.lease, task.expires) =
            (task.epoch + 1, seconds, (now.0 + seconds, now.1));
        let epoch = task.epoch;
        self.change(op, Some("job"), None, who, Some((epoch, from.clone())));
        json!({"owner": apikey(who), "role": "worker", "epoch": epoch, "lease_seconds": seconds,
            "took_over_from": from, "record_version": self.version})
    }

    pub fn free(&mut self, ended: &'static str, now: (i64, usize)) {
        let Task { epoch, .. } = self.task;
        self.task = Task {
            state: "open",
            epoch,
            queued: now,
            ended: Some(ended),
            ..Task::default()
        };
    }
}
