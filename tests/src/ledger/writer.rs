//! One writer: an endless row of requests, each under an idempotency key of its own, and what became of each.

use super::load::Counts;
use crate::http::{Answer, Api};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A change that was asked for. `tag` is in its evidence or reason and nowhere else; a claim can carry none.
#[derive(Clone, Debug)]
pub struct Change {
    pub record: String,
    pub field: &'static str,
    pub ops: &'static [&'static str],
    pub value: Option<Value>,
    pub tag: Option<String>,
}

/// Where history must have an acknowledged change.
#[derive(Clone, Debug)]
pub struct Place {
    pub record_version: i64,
    pub version: Option<i64>,
    pub epoch: Option<i64>,
    pub claim_id: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Acknowledged(Vec<Place>),
    /// Nothing was changed: a refusal, and no sending before it whose fate is unknown.
    Refused,
    /// Nobody knows, until history is read.
    Unknown,
}

/// One request, sent once or several times under one key.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub author: String,
    pub changes: Vec<Change>,
    pub outcome: Outcome,
    /// How many of its sendings had an unknown outcome.
    pub unknown: usize,
}

/// What a writer does about an unknown outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Sends the same request with the same key until it is told.
    Always,
    /// The same, but leaves every third alone for good.
    Tries,
}

pub struct Writer<'a> {
    number: usize,
    api: Api,
    counts: &'a Counts,
    records: Vec<String>,
    patience: Patience,
    pub attempts: Vec<Attempt>,
    pub answers: BTreeMap<String, usize>,
    pub wrong: Vec<String>,
    plan_version: BTreeMap<String, i64>,
    claim: Option<(String, Value)>,
}

/// What one sending came to.
enum Sent {
    Done(Answer),
    Refused(Answer),
    /// It never left, or the server says that it changed nothing and to come back.
    Later,
    Unknown,
}

const GIVE_UP: Duration = Duration::from_secs(60);

impl<'a> Writer<'a> {
    pub fn new(
        number: usize,
        api: Api,
        records: Vec<String>,
        patience: Patience,
        counts: &'a Counts,
    ) -> Self {
        Writer {
            number,
            api,
            counts,
            records,
            patience,
            attempts: Vec::new(),
            answers: BTreeMap::new(),
            wrong: Vec::new(),
            plan_version: BTreeMap::new(),
            claim: None,
        }
    }

    /// Until the counts say stop.
    pub fn run(mut self) -> Self {
        for step in self.number.. {
            if self.counts.stop.load(Ordering::Relaxed) {
                break;
            }
            let record = self.records[step % self.records.len()].clone();
            let tag = format!("w{}-{step}", self.number);
            match step % 7 {
                0 => self.write_plan(record, tag),
                1 => self.append(record, tag),
                2 => self.write_note(record, tag),
                3 => self.write_both(record, &tag),
                4 => self.claim(record, tag),
                5 => self.step(tag),
                _ => self.release(tag),
            }
        }
        self
    }

    /// Sends a request, again where its fate is unknown, and writes down what it asked for and what came of it.
    fn send(
        &mut self,
        (method, path): (&str, &str),
        body: &Value,
        key: &str,
        changes: Vec<Change>,
        places: impl Fn(&Value) -> Vec<Place>,
    ) -> Option<Answer> {
        let body = body.to_string();
        let begun = Instant::now();
        let (mut unknown, mut last) = (0, None);
        let outcome = loop {
            match self.send_once(method, path, body.as_bytes(), key) {
                Sent::Done(answer) => {
                    let places = places(&answer.json());
                    last = Some(answer);
                    break Outcome::Acknowledged(places);
                }
                // What was sent before may still land.
                Sent::Refused(answer) => {
                    last = Some(answer);
                    break if unknown > 0 {
                        Outcome::Unknown
                    } else {
                        Outcome::Refused
                    };
                }
                Sent::Later if unknown == 0 => break Outcome::Refused,
                Sent::Later => {}
                Sent::Unknown => unknown += 1,
            }
            let leave = self.patience == Patience::Tries && self.attempts.len().is_multiple_of(3);
            if leave || begun.elapsed() > GIVE_UP {
                break Outcome::Unknown;
            }
        };
        self.attempts.push(Attempt {
            author: format!("apikey:writer/{}", self.number),
            changes,
            outcome,
            unknown,
        });
        last
    }

    fn send_once(&mut self, method: &str, path: &str, body: &[u8], key: &str) -> Sent {
        let headers = [("Idempotency-Key", key)];
        let answer = match self.api.try_request(method, path, &headers, body) {
            Ok(answer) => answer,
            Err(error) => {
                self.count("no answer");
                std::thread::sleep(Duration::from_millis(20));
                if error.kind() == ErrorKind::ConnectionRefused {
                    return Sent::Later;
                }
                self.counts.unknown.fetch_add(1, Ordering::Relaxed);
                return Sent::Unknown;
            }
        };
        let (status, text) = (answer.status, answer.text());
        if status < 300 {
            self.count(&status.to_string());
            self.counts.acknowledged.fetch_add(1, Ordering::Relaxed);
            return Sent::Done(answer);
        }
        let error = answer.json()["error"].as_str().unwrap_or("?").to_string();
        self.count(&format!("{status} {error}"));
        if status == 503 && answer.header("retry-after").is_none() {
            self.wrong.push(format!("503 without Retry-After: {text}"));
        }
        match status {
            409 => Sent::Refused(answer),
            503 | 504 => {
                // No flood of refusals while the database is away.
                std::thread::sleep(Duration::from_millis(20));
                if text.contains("whether the change was made is unknown") {
                    self.counts.unknown.fetch_add(1, Ordering::Relaxed);
                    return Sent::Unknown;
                }
                if text.contains("at work on as much as it can") {
                    self.counts.crowded.fetch_add(1, Ordering::Relaxed);
                }
                Sent::Later
            }
            _ => {
                self.wrong.push(format!("{method} {path}: {status} {text}"));
                Sent::Unknown
            }
        }
    }

    fn count(&mut self, answer: &str) {
        *self.answers.entry(answer.to_string()).or_default() += 1;
    }

    fn path(record: &str, rest: &str) -> String {
        format!("/v1/records/{record}{rest}")
    }

    fn write_plan(&mut self, record: String, tag: String) {
        let value = json!({ "plan": tag });
        let expected = self.plan_version.get(&record).copied().unwrap_or(0);
        let body = json!({"value": value, "expected_version": expected, "evidence": tag});
        let path = Self::path(&record, "/fields/plan");
        let change = Change {
            record: record.clone(),
            field: "plan",
            ops: &["write"],
            value: Some(value),
            tag: Some(tag.clone()),
        };
        let answer = self.send(("PUT", &path), &body, &tag, vec![change], one);
        self.learn(record, answer);
    }

    fn write_note(&mut self, record: String, tag: String) {
        let value = json!(format!("note of {tag}"));
        let body = json!({"value": value, "evidence": tag});
        let path = Self::path(&record, "/fields/note");
        let change = Change {
            record,
            field: "note",
            ops: &["write"],
            value: Some(value),
            tag: Some(tag.clone()),
        };
        self.send(("PUT", &path), &body, &tag, vec![change], one);
    }

    fn append(&mut self, record: String, tag: String) {
        let value = json!([tag]);
        let body = json!({"value": value, "evidence": tag});
        let path = Self::path(&record, "/fields/log/entries");
        let change = Change {
            record,
            field: "log",
            ops: &["append"],
            value: Some(value),
            tag: Some(tag.clone()),
        };
        self.send(("POST", &path), &body, &tag, vec![change], one);
    }

    /// Two fields at once: both or none.
    fn write_both(&mut self, record: String, tag: &str) {
        let expected = self.plan_version.get(&record).copied().unwrap_or(0);
        let changes: Vec<Change> = ["note", "plan"]
            .into_iter()
            .map(|field| Change {
                record: record.clone(),
                field,
                ops: &["write"],
                value: Some(json!({ "both": tag })),
                tag: Some(format!("{tag}-{field}")),
            })
            .collect();
        let body = json!({"changes": [
            {"field": "note", "value": {"both": tag}, "evidence": format!("{tag}-note")},
            {"field": "plan", "value": {"both": tag}, "evidence": format!("{tag}-plan"), "expected_version": expected},
        ]});
        let path = Self::path(&record, "");
        let answer = self.send(("PATCH", &path), &body, tag, changes, |answered| {
            let changes = answered["changes"].as_array();
            changes.into_iter().flatten().flat_map(one).collect()
        });
        self.learn(record, answer);
    }

    /// What the plan's version is now, out of an answer or a conflict.
    fn learn(&mut self, record: String, answer: Option<Answer>) {
        let Some(body) = answer.map(|answer| answer.json()) else {
            return;
        };
        let version = body["version"]
            .as_i64()
            .or(body["changes"][1]["version"].as_i64())
            .or(body["current_version"].as_i64());
        if let Some(version) = version {
            self.plan_version.insert(record, version);
        }
    }

    fn claim(&mut self, record: String, tag: String) {
        // After a claim of unknown outcome it may be ours already.
        let body = json!({"lease_seconds": 3600, "reattach": true});
        let path = Self::path(&record, "/fields/job/claim");
        let change = Change {
            record: record.clone(),
            field: "job",
            ops: &["claim", "reattach"],
            value: None,
            tag: None,
        };
        let answer = self.send(("POST", &path), &body, &tag, vec![change], one);
        self.claim = answer
            .filter(|answer| answer.status == 200)
            .map(|answer| (record, answer.json()["claim_id"].clone()));
    }

    /// A write that only the holder may do.
    fn step(&mut self, tag: String) {
        let Some((record, claim_id)) = self.claim.clone() else {
            return;
        };
        let value = json!(tag);
        let body = json!({"value": value, "claim_id": claim_id, "evidence": tag});
        let path = Self::path(&record, "/fields/step");
        let change = Change {
            record,
            field: "step",
            ops: &["write"],
            value: Some(value),
            tag: Some(tag.clone()),
        };
        self.send(("PUT", &path), &body, &tag, vec![change], one);
    }

    fn release(&mut self, tag: String) {
        let Some((record, claim_id)) = self.claim.take() else {
            return;
        };
        let body = json!({"claim_id": claim_id, "reason": tag});
        let path = Self::path(&record, "/fields/job/release");
        let change = Change {
            record,
            field: "job",
            ops: &["release"],
            value: None,
            tag: Some(tag.clone()),
        };
        self.send(("POST", &path), &body, &tag, vec![change], one);
    }
}

fn one(answered: &Value) -> Vec<Place> {
    vec![Place {
        record_version: answered["record_version"].as_i64().unwrap_or(-1),
        version: answered["version"].as_i64(),
        epoch: answered["epoch"].as_i64(),
        claim_id: answered["claim_id"].as_str().map(str::to_string),
    }]
}
