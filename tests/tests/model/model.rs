//! The pure model: what the manual says, without a database. Time is whole seconds, and the count of steps for what comes at the
//! same second; a claim_id is the number of its grant.

use crate::record::Record;
use crate::settle::Call;
use crate::steps::{Op, KEYS, UNIT};
use serde_json::{json, Value};

pub const CLASS: &str = "
roles:
  planner: [apikey:planner]
  worker: [\"apikey:worker/*\"]
  boss: [apikey:boss]
create: [planner]
fields:
  status: { mode: cas, write: [planner, worker], values: [open, resolved], initial: open }
  plan:   { mode: cas, write: [planner] }
  rate:   { mode: lww, write: [planner, worker] }
  cursor: { mode: cas, write: [worker], requires_claim: job }
  secret: { mode: lww, write: [boss], read: [boss] }
  log:    { mode: append, write: [worker] }
  job:    { mode: task, write: [worker], lease: { default_seconds: 1000, max_seconds: 3000 }, override: [boss] }
checkpoint:
  required: [worker]
  sections: [goal]
";

const ORDER: [&str; 6] = ["status", "plan", "rate", "cursor", "secret", "log"];

/// Accepted, with what the answer must say at least; or the error, with what its body must say.
pub type Answer = Result<Value, (&'static str, Value)>;

#[derive(Clone, Default)]
pub struct Model {
    pub now: i64,
    steps: usize,
    pub records: [Option<Record>; KEYS],
    /// The record of each grant.
    pub grants: Vec<usize>,
    /// The fault of a model that is wrong on purpose: a live claim is no obstacle to its own holder.
    pub forgetful: bool,
}

pub fn role(who: &str) -> Option<&'static str> {
    match who {
        "planner" => Some("planner"),
        "boss" => Some("boss"),
        "worker/1" | "worker/2" => Some("worker"),
        _ => None,
    }
}

pub fn apikey(who: &str) -> String {
    format!("apikey:{who}")
}

fn refuse<T>(error: &'static str) -> Result<T, (&'static str, Value)> {
    Err((error, json!({})))
}

impl Model {
    pub fn call(&mut self, call: &Call) -> Answer {
        self.steps += 1;
        let (now, who) = ((self.now, self.steps), call.who);
        if let Op::Tick { seconds } = call.op {
            self.now += seconds;
            return Ok(json!({}));
        }
        let Some(role) = role(who) else {
            return refuse("SCOPE_DENIED");
        };
        if let Op::ClaimNext { seconds } = call.op {
            return self.claim_next(who, role, seconds, now);
        }
        if let Op::Create { values } = call.op {
            if role != "planner" {
                return refuse("SCOPE_DENIED");
            }
            return self.create(call.key, who, values, now);
        }
        let number = self.grants.len();
        let forgetful = self.forgetful;
        let Some(record) = self.records[call.key].as_mut() else {
            return refuse("NOT_FOUND");
        };
        let may = |allowed: &[&str]| {
            if allowed.contains(&role) {
                Ok(())
            } else {
                refuse("SCOPE_DENIED")
            }
        };
        let fence = |record: &Record| {
            call.claim
                .map_or(Ok(()), |claim| record.fence(who, claim, now.0))
        };
        let whole = |seconds: i64| {
            if seconds <= 3 * UNIT {
                Ok(())
            } else {
                refuse("MALFORMED")
            }
        };
        match &call.op {
            Op::Write { field, value, .. } => {
                let cas = !matches!(*field, "rate" | "secret");
                if cas && call.version.is_none() {
                    return refuse("MALFORMED");
                }
                may(match *field {
                    "plan" => &["planner"],
                    "cursor" => &["worker"],
                    "secret" => &["boss"],
                    _ => &["planner", "worker"],
                })?;
                if *field == "cursor" && call.claim.is_none() {
                    return Err((
                        "LEASE_LOST",
                        json!({"reason": "not_claimed", "owner": null}),
                    ));
                }
                fence(record)?;
                let present = record.fields.get(field);
                let version = present.map_or(0, |field| field.version);
                if call.version.is_some_and(|expected| expected != version) {
                    return Err((
                        "VERSION_CONFLICT",
                        json!({"current_version": version, "expected_version": call.version}),
                    ));
                }
                if *value == "\"odd\"" {
                    return refuse("INVALID_VALUE");
                }
                let value: Value = serde_json::from_str(value).expect("JSON");
                let was = present.and_then(|field| field.value.clone());
                let gate =
                    *field == "status" && value == "resolved" && was != Some(json!("resolved"));
                if gate && !record.checkpoints.iter().any(|(role, _)| *role == "worker") {
                    return refuse("INVALID_CHECKPOINT");
                }
                record.change("write", Some(field), Some(version + 1), who, None);
                record.set(field, Some(value), who);
                Ok(
                    json!({"version": version + 1, "record_version": record.version, "role": role, "author": apikey(who)}),
                )
            }
            Op::Append { .. } => {
                may(&["worker"])?;
                fence(record)?;
                let version = record.fields.get("log").map_or(0, |field| field.version) + 1;
                record.change("append", Some("log"), Some(version), who, None);
                record.set("log", Some(json!("entry")), who);
                Ok(json!({"version": version, "record_version": record.version, "role": role}))
            }
            Op::Claim { seconds, reattach } => {
                may(&["worker"])?;
                whole(*seconds)?;
                let own = record.task.owner == Some(who);
                if record.task.state == "completed" {
                    return Err((
                        "COMPLETED",
                        json!({"version": record.fields["job"].version}),
                    ));
                }
                if record.live(now.0) && !(own && (*reattach || forgetful)) {
                    return Err(("HELD", json!({"owner": record.task.owner.map(apikey)})));
                }
                let answer = record.grant(who, number, *seconds, now);
                self.grants.push(call.key);
                Ok(answer)
            }
            Op::Renew { seconds, .. } => {
                may(&["worker"])?;
                let seconds = seconds.unwrap_or(if record.task.lease > 0 {
                    record.task.lease
                } else {
                    UNIT
                });
                whole(seconds)?;
                fence(record)?;
                (record.task.lease, record.task.expires) = (seconds, (now.0 + seconds, now.1));
                Ok(
                    json!({"epoch": record.task.epoch, "lease_seconds": seconds, "owner": apikey(who)}),
                )
            }
            Op::Release { .. } => {
                may(&["worker"])?;
                fence(record)?;
                record.change(
                    "release",
                    Some("job"),
                    None,
                    who,
                    Some((record.task.epoch, None)),
                );
                record.free("released", now);
                Ok(json!({"epoch": record.task.epoch, "record_version": record.version}))
            }
            Op::Complete { .. } => {
                may(&["worker"])?;
                fence(record)?;
                let version = record.fields.get("job").map_or(0, |field| field.version) + 1;
                record.change(
                    "complete",
                    Some("job"),
                    Some(version),
                    who,
                    Some((record.task.epoch, None)),
                );
                record.set("job", Some(json!("done")), who);
                let queued = record.task.queued;
                record.free("completed", queued);
                record.task.state = "completed";
                Ok(
                    json!({"epoch": record.task.epoch, "version": version, "record_version": record.version}),
                )
            }
            Op::Reopen => {
                may(&["worker"])?;
                if record.task.state != "completed" {
                    return refuse("NOT_COMPLETED");
                }
                let version = record.fields["job"].version + 1;
                record.change(
                    "reopen",
                    Some("job"),
                    Some(version),
                    who,
                    Some((record.task.epoch, None)),
                );
                record.set("job", None, who);
                record.free("reopened", now);
                Ok(json!({"version": version, "record_version": record.version}))
            }
            Op::ForceRelease { .. } => {
                may(&["boss"])?;
                let epoch = record.task.epoch;
                if record.task.state != "claimed" || call.version != Some(epoch) {
                    return Err((
                        "VERSION_CONFLICT",
                        json!({"current_epoch": epoch, "expected_epoch": call.version}),
                    ));
                }
                let from = record.task.owner.map(apikey);
                record.change("force_release", Some("job"), None, who, Some((epoch, None)));
                record.free("force_released", now);
                Ok(json!({"released_from": from, "epoch": epoch, "record_version": record.version}))
            }
            Op::Save { whole, .. } => {
                fence(record)?;
                let at = call.version.unwrap_or(record.version);
                if at > record.version {
                    return refuse("MALFORMED");
                }
                if !whole {
                    return refuse("INVALID_CHECKPOINT");
                }
                record.checkpoints.push((role, at));
                Ok(
                    json!({"role": role, "checkpoint_id": record.checkpoints.len(), "record_version": at}),
                )
            }
            Op::Load => {
                let saved = record.checkpoints.iter().rev().find(|(of, _)| *of == role);
                let since = saved.map_or(-1, |(_, at)| *at);
                let mut changed: Vec<(i64, usize, Value)> = Vec::new();
                for (place, name) in ORDER.into_iter().enumerate() {
                    let Some(field) = record.fields.get(name) else {
                        continue;
                    };
                    if field.record_version > since && (name != "secret" || role == "boss") {
                        let told = json!([name, field.version, field.author]);
                        changed.push((field.record_version, place, told));
                    }
                }
                changed.sort_by_key(|(version, place, _)| (*version, *place));
                let changed: Vec<Value> = changed.into_iter().map(|(_, _, told)| told).collect();
                Ok(json!({"role": role, "record_version": since.max(0), "changed_fields": changed}))
            }
            Op::Create { .. } | Op::ClaimNext { .. } | Op::Tick { .. } => {
                unreachable!("they came first")
            }
        }
    }

    fn create(&mut self, key: usize, who: &str, values: bool, now: (i64, usize)) -> Answer {
        if let Some(record) = &self.records[key] {
            return if values {
                refuse("ALREADY_EXISTS")
            } else {
                Ok(json!({"created": false, "record_version": record.version}))
            };
        }
        let mut record = Record::default();
        (record.task.state, record.task.queued) = ("open", now);
        record.change("create", None, None, who, None);
        record.set("status", Some(json!("open")), who);
        if values {
            record.set("plan", Some(json!(1)), who);
        }
        self.records[key] = Some(record);
        Ok(json!({"created": true, "record_version": 0}))
    }

    /// The longest lapsed first, then who was queued first.
    fn claim_next(
        &mut self,
        who: &'static str,
        role: &str,
        seconds: i64,
        now: (i64, usize),
    ) -> Answer {
        if role != "worker" {
            return refuse("SCOPE_DENIED");
        }
        if seconds > 3 * UNIT {
            return refuse("MALFORMED");
        }
        let waiting = self.records.iter().enumerate().filter_map(|(key, record)| {
            let task = &record.as_ref()?.task;
            match task.state {
                "claimed" if task.expires.0 <= now.0 => Some((0, task.expires, key)),
                "open" => Some((1, task.queued, key)),
                _ => None,
            }
        });
        let Some((_, _, key)) = waiting.min() else {
            return Ok(Value::Null);
        };
        let number = self.grants.len();
        let record = self.records[key].as_mut().expect("it waits");
        let mut answer = record.grant(who, number, seconds, now);
        answer["key"] = json!(key);
        self.grants.push(key);
        Ok(answer)
    }

    /// What the tables must hold, as database.rs reads them.
    pub fn tables(&self) -> Value {
        let records = self.records.iter().enumerate().filter_map(|(key, record)| {
            let record = record.as_ref()?;
            let fields: Vec<Value> = record
                .fields
                .iter()
                .map(|(name, field)| {
                    json!([
                        name,
                        field.value,
                        field.version,
                        field.author,
                        field.role,
                        field.record_version
                    ])
                })
                .collect();
            let task = &record.task;
            let checkpoints: Vec<Value> = record
                .checkpoints
                .iter()
                .enumerate()
                .map(|(n, (role, at))| json!([n + 1, role, at]))
                .collect();
            let result = record.fields.get("job").map_or(0, |field| field.version);
            let claim = json!([
                task.state,
                task.owner.map(apikey),
                task.epoch,
                result,
                task.ended
            ]);
            Some(json!([
                key,
                record.version,
                fields,
                claim,
                checkpoints,
                record.history
            ]))
        });
        records.collect()
    }
}
