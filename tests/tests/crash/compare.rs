//! History against what the writers know.

use crate::writer::{Attempt, Change, Outcome};
use kslate_tests::Database;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a query gives, a JSON object a row.
pub fn rows(database: &Database, sql: &str) -> Vec<Value> {
    let printed = database.psql("kslate", sql);
    printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Each acknowledged change stands in history where its answer said; nothing else does, but unanswered ones, at most once.
pub fn compare(history: &[Value], attempts: &[Attempt]) {
    let at = |row: &Value| {
        (
            row["record"].as_str().unwrap_or_default().to_string(),
            row["record_version"].as_i64().unwrap_or(-1),
        )
    };
    let mut left: BTreeMap<(String, i64), &Value> =
        history.iter().map(|row| (at(row), row)).collect();
    assert_eq!(left.len(), history.len());
    for attempt in attempts {
        let Outcome::Acknowledged(places) = &attempt.outcome else {
            continue;
        };
        assert_eq!(places.len(), attempt.changes.len());
        for (change, place) in attempt.changes.iter().zip(places) {
            let key = (change.record.to_string(), place.record_version);
            let row = left.remove(&key).unwrap_or_else(|| {
                panic!(
                    "acknowledged and lost, or twice: {key:?} {:?} by {}",
                    change.tag, attempt.author
                )
            });
            must_be(row, change, &attempt.author);
            assert_eq!(row["epoch"].as_i64(), place.epoch, "{row}");
            assert_eq!(row["version"].as_i64(), place.version, "{row}");
        }
    }
    let mut open: Vec<(&Attempt, BTreeSet<usize>)> = attempts
        .iter()
        .filter(|attempt| matches!(attempt.outcome, Outcome::Unanswered))
        .map(|attempt| (attempt, BTreeSet::new()))
        .collect();
    for row in left.into_values() {
        if row["op"] == "create" {
            assert_eq!(row["record_version"], 0);
            continue;
        }
        if row["field"] == "kept" && row["op"] == "claim" {
            continue;
        }
        let tag = tag_of(row);
        // A claim has no tag: any unanswered one of its author will do, each once.
        let found = open.iter_mut().find_map(|(attempt, seen)| {
            let number = attempt.changes.iter().position(|change| {
                change.tag == tag && change.record == row["record"] && change.field == row["field"]
            })?;
            (row["author"] == attempt.author && seen.insert(number))
                .then(|| (&attempt.changes[number], &attempt.author))
        });
        let (change, author) =
            found.unwrap_or_else(|| panic!("in history, but refused or there twice: {row}"));
        must_be(row, change, author);
    }
    for (attempt, seen) in open {
        let whole = seen.is_empty() || seen.len() == attempt.changes.len();
        assert!(whole, "half of a PATCH: {:?}", attempt.changes[0].tag);
    }
}

fn tag_of(row: &Value) -> Option<String> {
    let tag = row["evidence"].as_str().or(row["reason"].as_str());
    tag.map(str::to_string)
}

fn must_be(row: &Value, change: &Change, author: &str) {
    assert_eq!(row["field"], change.field, "{row}");
    assert_eq!(row["author"], author, "{row}");
    assert_eq!(
        row["value"],
        change.value.clone().unwrap_or(Value::Null),
        "{row}"
    );
    assert_eq!(tag_of(row), change.tag, "{row}");
    let op = row["op"].as_str().unwrap_or_default();
    assert!(change.ops.contains(&op), "{row}");
}

/// Record versions, field versions and epochs count without holes, and the present state is what history ends in.
pub fn consistent(database: &Database, history: &[Value]) {
    let mut records: BTreeMap<&str, i64> = BTreeMap::new();
    let mut fields: BTreeMap<(&str, &str), (i64, &Value)> = BTreeMap::new();
    let mut epochs: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in history {
        let record = row["record"].as_str().unwrap_or_default();
        let next = records.get(record).map_or(0, |version| version + 1);
        assert_eq!(row["record_version"], next, "{row}");
        records.insert(record, next);
        let field = row["field"].as_str().unwrap_or_default();
        match row["op"].as_str().unwrap_or_default() {
            "write" | "append" => {
                let next = fields.get(&(record, field)).map_or(1, |(v, _)| v + 1);
                assert_eq!(row["version"], next, "{row}");
                fields.insert((record, field), (next, &row["value"]));
            }
            "claim" | "reattach" => {
                let next = epochs.get(&(record, field)).map_or(1, |epoch| epoch + 1);
                assert_eq!(row["epoch"], next, "{row}");
                epochs.insert((record, field), next);
            }
            _ => {}
        }
    }
    for row in rows(database, "select row_to_json(r) from kslate.record r") {
        let record = row["record"].as_str().unwrap_or_default();
        assert_eq!(records.remove(record), row["version"].as_i64(), "{row}");
    }
    assert!(records.is_empty(), "history without a record: {records:?}");
    let present = rows(database, "select row_to_json(f) from kslate.field f");
    for row in &present {
        let key = (
            row["record"].as_str().unwrap_or_default(),
            row["field"].as_str().unwrap_or_default(),
        );
        let (version, value) = fields.remove(&key).expect("a field has history");
        assert_eq!(row["version"], version, "{row}");
        assert_eq!(&row["value"], value, "{row}");
    }
    assert!(fields.is_empty(), "history without a field: {fields:?}");
    for row in rows(database, "select row_to_json(c) from kslate.claim c") {
        let key = (
            row["record"].as_str().unwrap_or_default(),
            row["field"].as_str().unwrap_or_default(),
        );
        let epoch = epochs.get(&key).copied().unwrap_or(0);
        assert_eq!(row["epoch"], epoch, "{row}");
    }
}
