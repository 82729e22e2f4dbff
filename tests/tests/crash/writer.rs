//! One of the eight writers, and what it writes down.

use kslate_tests::{Answer, Api};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Few records, so that the writers wait for each other's locks when the end comes.
pub const RECORDS: [&str; 2] = ["crash/a", "crash/b"];

/// A change that was asked for. `tag` is in its evidence or reason and nowhere else; a claim can carry none.
#[derive(Clone)]
pub struct Change {
    pub record: &'static str,
    pub field: &'static str,
    pub ops: &'static [&'static str],
    pub value: Option<Value>,
    pub tag: Option<String>,
}

/// Where history must have an acknowledged change.
pub struct Place {
    pub record_version: i64,
    pub version: Option<i64>,
    pub epoch: Option<i64>,
}

pub enum Outcome {
    Acknowledged(Vec<Place>),
    Refused,
    /// Nobody knows, until history is read.
    Unanswered,
}

pub struct Attempt {
    pub author: String,
    pub changes: Vec<Change>,
    pub outcome: Outcome,
}

#[derive(Default)]
pub struct Counts {
    pub stop: AtomicBool,
    pub acknowledged: AtomicUsize,
    pub unanswered: AtomicUsize,
}

/// One of the eight: an endless row of requests and what became of each.
pub struct Writer<'a> {
    number: usize,
    api: Api,
    counts: &'a Counts,
    pub attempts: Vec<Attempt>,
    /// Answers that must never come; told at the end, when all threads are through.
    pub wrong: Vec<String>,
    plan_version: BTreeMap<&'static str, i64>,
    claim: Option<(&'static str, Value)>,
}

impl<'a> Writer<'a> {
    pub fn new(number: usize, api: Api, counts: &'a Counts) -> Self {
        Writer {
            number,
            api,
            counts,
            attempts: Vec::new(),
            wrong: Vec::new(),
            plan_version: BTreeMap::new(),
            claim: None,
        }
    }

    /// Until the counts say stop.
    pub fn run(mut self) -> Self {
        for step in 0.. {
            if self.counts.stop.load(Ordering::Relaxed) {
                break;
            }
            let record = RECORDS[(self.number + step) % RECORDS.len()];
            let tag = format!("w{}-{step}", self.number);
            match self.number {
                0 | 1 => self.write_plan(record, tag),
                2 | 3 => self.append(record, tag),
                4 => self.write_note(record, tag),
                5 | 6 => self.write_both(record, &tag),
                _ => self.claim_or_release(record, tag),
            }
        }
        self
    }

    fn path(record: &str, rest: &str) -> String {
        format!("/v1/records/{record}{rest}")
    }

    /// Sends a request and writes down what it asked for and what came back.
    fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
        changes: Vec<Change>,
        places: impl Fn(&Value) -> Vec<Place>,
    ) -> Option<Answer> {
        let answer = self
            .api
            .try_request(method, path, &[], body.to_string().as_bytes())
            .ok();
        let outcome = match &answer {
            Some(answer) if answer.status < 300 => {
                self.counts.acknowledged.fetch_add(1, Ordering::Relaxed);
                Outcome::Acknowledged(places(&answer.json()))
            }
            Some(answer)
                if matches!(answer.status, 503 | 504)
                    && !answer.text().contains("the change was made is unknown") =>
            {
                Outcome::Refused
            }
            Some(answer) if matches!(answer.status, 400..=499) => Outcome::Refused,
            other => {
                self.counts.unanswered.fetch_add(1, Ordering::Relaxed);
                if let Some(answer) = other.as_ref().filter(|answer| answer.status == 500) {
                    self.wrong
                        .push(format!("{method} {path}: {}", answer.text()));
                }
                Outcome::Unanswered
            }
        };
        if answer.as_ref().is_none_or(|answer| answer.status >= 500) {
            // No flood of refusals while the database is away.
            std::thread::sleep(Duration::from_millis(20));
        }
        self.attempts.push(Attempt {
            author: format!("apikey:writer/{}", self.number),
            changes,
            outcome,
        });
        answer
    }

    fn write_plan(&mut self, record: &'static str, tag: String) {
        let value = json!({ "plan": tag });
        let expected = self.plan_version.get(record).copied().unwrap_or(0);
        let body = json!({"value": value, "expected_version": expected, "evidence": tag});
        let change = Change {
            record,
            field: "plan",
            ops: &["write"],
            value: Some(value),
            tag: Some(tag),
        };
        let path = Self::path(record, "/fields/plan");
        let answer = self.send("PUT", &path, &body, vec![change], one);
        self.learn(record, answer);
    }

    fn write_note(&mut self, record: &'static str, tag: String) {
        let value = json!(format!("note of {tag}"));
        let body = json!({"value": value, "evidence": tag});
        let change = Change {
            record,
            field: "note",
            ops: &["write"],
            value: Some(value),
            tag: Some(tag),
        };
        self.send(
            "PUT",
            &Self::path(record, "/fields/note"),
            &body,
            vec![change],
            one,
        );
    }

    fn append(&mut self, record: &'static str, tag: String) {
        let value = json!([tag]);
        let body = json!({"value": value, "evidence": tag});
        let change = Change {
            record,
            field: "log",
            ops: &["append"],
            value: Some(value),
            tag: Some(tag),
        };
        self.send(
            "POST",
            &Self::path(record, "/fields/log/entries"),
            &body,
            vec![change],
            one,
        );
    }

    /// Two fields at once: both or none.
    fn write_both(&mut self, record: &'static str, tag: &str) {
        let expected = self.plan_version.get(record).copied().unwrap_or(0);
        let changes: Vec<Change> = ["note", "plan"]
            .into_iter()
            .map(|field| Change {
                record,
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
        let answer = self.send(
            "PATCH",
            &Self::path(record, ""),
            &body,
            changes,
            |answered| {
                let changes = answered["changes"].as_array();
                changes.into_iter().flatten().flat_map(one).collect()
            },
        );
        self.learn(record, answer);
    }

    /// What the plan's version is now, out of an answer or a conflict.
    fn learn(&mut self, record: &'static str, answer: Option<Answer>) {
        let Some(body) = answer
            .filter(|answer| answer.status < 500)
            .map(|a| a.json())
        else {
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

    fn claim_or_release(&mut self, record: &'static str, tag: String) {
        let Some((record, claim_id)) = self.claim.take() else {
            // After an unanswered claim it may be ours already.
            let body = json!({"lease_seconds": 3600, "reattach": true});
            let change = Change {
                record,
                field: "job",
                ops: &["claim", "reattach"],
                value: None,
                tag: None,
            };
            let path = Self::path(record, "/fields/job/claim");
            let answer = self.send("POST", &path, &body, vec![change], one);
            self.claim = answer
                .filter(|answer| answer.status == 200)
                .map(|answer| (record, answer.json()["claim_id"].clone()));
            return;
        };
        let change = Change {
            record,
            field: "job",
            ops: &["release"],
            value: None,
            tag: Some(tag.clone()),
        };
        let body = json!({"claim_id": claim_id, "reason": tag});
        let path = Self::path(record, "/fields/job/release");
        self.send("POST", &path, &body, vec![change], one);
    }
}

fn one(answered: &Value) -> Vec<Place> {
    vec![Place {
        record_version: answered["record_version"].as_i64().unwrap_or(-1),
        version: answered["version"].as_i64(),
        epoch: answered["epoch"].as_i64(),
    }]
}
