//! History against what the writers know.

use super::writer::{Attempt, Change, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What was found where nothing was wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows of history, those of `create` left out.
    pub rows: usize,
    pub acknowledged: usize,
    pub refused: usize,
    /// Requests of unknown outcome that changed something, and that did not.
    pub landed: usize,
    pub lost: usize,
    /// Requests that were told their outcome after it had been unknown: the idempotency key's work.
    pub resolved: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} rows: {} requests acknowledged ({} of them after an unknown outcome), {} refused, {} left unknown ({} landed)",
            self.rows, self.acknowledged, self.resolved, self.refused, self.landed + self.lost, self.landed
        )
    }
}

/// Each acknowledged change stands in history exactly once, where its answer said; a refused one does not, an unknown one at most
/// once, a PATCH whole or not at all; and nothing else does. Versions and epochs count without holes, no epoch or `claim_id` was
/// handed out twice, and what needs a claim was written by its holder.
pub fn judge(history: &[Value], attempts: &[Attempt]) -> Result<Summary, Vec<String>> {
    let mut court = Court::default();
    let left = court.acknowledged(history, attempts);
    court.unknown(left, attempts);
    court.grants(attempts);
    court.order(history);
    if !court.violations.is_empty() {
        return Err(court.violations);
    }
    let rows = history.iter().filter(|row| row["op"] != "create").count();
    Ok(Summary {
        rows,
        ..court.summary
    })
}

#[derive(Default)]
struct Court {
    violations: Vec<String>,
    summary: Summary,
}

type Place = (String, i64);

impl Court {
    fn against(&mut self, fits: bool, violation: impl FnOnce() -> String) {
        if !fits {
            self.violations.push(violation());
        }
    }

    /// Takes the rows of acknowledged changes away and gives the rest.
    fn acknowledged<'h>(
        &mut self,
        history: &'h [Value],
        attempts: &[Attempt],
    ) -> BTreeMap<Place, &'h Value> {
        let mut left: BTreeMap<Place, &Value> = BTreeMap::new();
        for row in history {
            let place = (text(row, "record"), number(row, "record_version"));
            let before = left.insert(place, row);
            self.against(before.is_none(), || format!("two rows in one place: {row}"));
        }
        for attempt in attempts {
            match &attempt.outcome {
                Outcome::Acknowledged(places) => {
                    self.summary.acknowledged += 1;
                    self.summary.resolved += usize::from(attempt.unknown > 0);
                    self.against(places.len() == attempt.changes.len(), || {
                        format!("an answer for another number of changes: {attempt:?}")
                    });
                    for (change, place) in attempt.changes.iter().zip(places) {
                        let key = (change.record.clone(), place.record_version);
                        let Some(row) = left.remove(&key) else {
                            self.violations
                                .push(format!("acknowledged and lost, or given to two requests: {key:?} {change:?}"));
                            continue;
                        };
                        let same = is(row, change, &attempt.author)
                            && row["version"].as_i64() == place.version
                            && (place.epoch.is_none() || row["epoch"].as_i64() == place.epoch);
                        self.against(same, || {
                            format!("acknowledged as {change:?} {place:?}, in history as {row}")
                        });
                    }
                }
                Outcome::Refused => self.summary.refused += 1,
                Outcome::Unknown => {}
            }
        }
        left.retain(|_, row| row["op"] != "create");
        left
    }

    /// What is left must be of requests whose outcome nobody knew.
    fn unknown(&mut self, left: BTreeMap<Place, &Value>, attempts: &[Attempt]) {
        let mut open: Vec<(&Attempt, BTreeSet<usize>)> = attempts
            .iter()
            .filter(|attempt| matches!(attempt.outcome, Outcome::Unknown))
            .map(|attempt| (attempt, BTreeSet::new()))
            .collect();
        for row in left.into_values() {
            // A claim has no tag: any of its author that is still open will do.
            let found = open.iter_mut().any(|(attempt, seen)| {
                let mut changes = attempt.changes.iter().enumerate();
                changes
                    .any(|(number, change)| is(row, change, &attempt.author) && seen.insert(number))
            });
            self.against(found, || {
                format!("in history, but refused, or there twice, or nobody's: {row}")
            });
        }
        for (attempt, seen) in open {
            match seen.len() {
                0 => self.summary.lost += 1,
                all if all == attempt.changes.len() => self.summary.landed += 1,
                _ => self
                    .violations
                    .push(format!("half of a PATCH: {attempt:?}")),
            }
        }
    }

    /// Over all answers, whatever became of the database that gave them.
    fn grants(&mut self, attempts: &[Attempt]) {
        let (mut epochs, mut claims) = (BTreeSet::new(), BTreeSet::new());
        for attempt in attempts {
            let Outcome::Acknowledged(places) = &attempt.outcome else {
                continue;
            };
            for (change, place) in attempt.changes.iter().zip(places) {
                if !change.ops.contains(&"claim") {
                    continue;
                }
                self.against(epochs.insert((&change.record, place.epoch)), || {
                    format!("an epoch handed out twice: {change:?} {place:?}")
                });
                self.against(claims.insert(&place.claim_id), || {
                    format!("a claim_id handed out twice: {change:?} {place:?}")
                });
            }
        }
    }

    /// Record versions, field versions and epochs count without holes; `step` is written by the holder of `job` alone.
    fn order(&mut self, history: &[Value]) {
        let mut records: BTreeMap<String, i64> = BTreeMap::new();
        let mut fields: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut claims: BTreeMap<String, (i64, Option<String>)> = BTreeMap::new();
        for row in history {
            let (record, field, op) = (text(row, "record"), text(row, "field"), text(row, "op"));
            let next = records.get(&record).map_or(0, |version| version + 1);
            self.against(number(row, "record_version") == next, || {
                format!("record version {next} expected: {row}")
            });
            records.insert(record.clone(), next);
            let claim = claims.entry(record.clone()).or_default();
            match op.as_str() {
                "write" | "append" => {
                    let version = fields.entry((record, field.clone())).or_default();
                    *version += 1;
                    let next = *version;
                    self.against(number(row, "version") == next, || {
                        format!("field version {next} expected: {row}")
                    });
                    let holder = claim.1.as_deref();
                    let may = field != "step" || holder == Some(text(row, "author").as_str());
                    self.against(may, || {
                        format!("a fenced write landed, {holder:?} holds the claim: {row}")
                    });
                }
                "claim" | "reattach" => {
                    let next = claim.0 + 1;
                    let free = op == "reattach" || claim.1.is_none();
                    *claim = (next, Some(text(row, "author")));
                    self.against(number(row, "epoch") == next, || {
                        format!("epoch {next} expected: {row}")
                    });
                    self.against(free, || format!("claimed while it was held: {row}"));
                }
                "release" => claim.1 = None,
                "create" => {}
                _ => self.violations.push(format!("an op of nobody's: {row}")),
            }
        }
    }
}

fn is(row: &Value, change: &Change, author: &str) -> bool {
    let tag = row["evidence"].as_str().or(row["reason"].as_str());
    row["record"] == change.record.as_str()
        && row["field"] == change.field
        && row["author"] == author
        && row["value"] == change.value.clone().unwrap_or(Value::Null)
        && tag == change.tag.as_deref()
        && change.ops.contains(&text(row, "op").as_str())
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_string()
}

fn number(row: &Value, key: &str) -> i64 {
    row[key].as_i64().unwrap_or(-1)
}
