//! History is the whole truth: replaying it must give the state that the tables hold.

use crate::database::Database;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;

/// What replaying a record's history gives.
#[derive(Default)]
struct Replayed {
    version: i64,
    fields: BTreeMap<String, Value>,
    claims: BTreeMap<String, Claim>,
}

#[derive(Clone)]
struct Claim {
    state: &'static str,
    /// Not known after a grant by hand: its history names the hand, not the holder.
    owner: Option<String>,
    took_over_from: Value,
    epoch: i64,
    record_version: i64,
}

impl Default for Claim {
    fn default() -> Self {
        Claim {
            state: "open",
            owner: None,
            took_over_from: Value::Null,
            epoch: 0,
            record_version: 0,
        }
    }
}

/// Fails where a record's version is not the number of its history rows after `create`, or where replaying history gives
/// another state than the tables have (the expiry of leases excepted). Every test that changes data ends with it.
pub async fn assert_consistent(database: &Database<'_>) {
    let client = database.connect("postgres").await;
    let table = |sql: &'static str| {
        let client = &client;
        async move {
            let row = client
                .query_one(
                    &format!("select coalesce(json_agg(t), '[]')::text from ({sql}) t"),
                    &[],
                )
                .await
                .expect("the tables can be read");
            let rows: Vec<Value> = serde_json::from_str(row.get(0)).expect("JSON");
            rows
        }
    };
    let mut replayed: BTreeMap<String, Replayed> = BTreeMap::new();
    for row in table("select * from kslate.history order by record, record_version").await {
        let record = text(&row, "record");
        replay(&row, replayed.entry(record).or_default());
    }
    let records = table("select * from kslate.record").await;
    assert_eq!(records.len(), replayed.len(), "records and their histories");
    for record in &records {
        let name = text(record, "record");
        assert_eq!(
            record["version"], replayed[&name].version,
            "version of {name}"
        );
        assert_eq!(
            name,
            format!("{}/{}", text(record, "class"), text(record, "key"))
        );
    }
    let mut seen = 0;
    for field in table("select * from kslate.field").await {
        let (record, name) = (text(&field, "record"), text(&field, "field"));
        let Some(want) = replayed[&record].fields.get(&name).cloned() else {
            panic!("{record} {name} is in no history: {field}");
        };
        let mut have = field.as_object().expect("a row").clone();
        have.remove("record");
        have.remove("field");
        assert_eq!(Value::Object(have), want, "{record} {name}");
        seen += 1;
    }
    let all: usize = replayed.values().map(|record| record.fields.len()).sum();
    assert_eq!(seen, all, "written fields, and those in history");
    for claim in table("select *, recheck_at <= expires_at as queued from kslate.claim").await {
        let (record, name) = (text(&claim, "record"), text(&claim, "field"));
        let want = replayed[&record]
            .claims
            .get(&name)
            .cloned()
            .unwrap_or_default();
        let about = format!("claim on {record} {name}: {claim}");
        assert_eq!(claim["state"], want.state, "{about}");
        assert_eq!(claim["epoch"], want.epoch, "{about}");
        assert_eq!(claim["took_over_from"], want.took_over_from, "{about}");
        assert_eq!(claim["record_version"], want.record_version, "{about}");
        if want.owner.is_some() {
            assert_eq!(claim["owner"], json!(want.owner), "{about}");
        }
        assert_ne!(claim["queued"], false, "{about}");
        let result = replayed[&record].fields.get(&name);
        let version = result.map_or(0, |field| number(field, "version"));
        assert_eq!(
            claim["version"], version,
            "the version of a task's value: {about}"
        );
    }
    let missing = table(
        "select r.record, f.key from kslate.record r
           join (select distinct on (class) class, definition from kslate.class order by class, version desc) c using (class),
           jsonb_each(c.definition -> 'fields') f
         where f.value ->> 'mode' = 'task'
           and not exists (select from kslate.claim k where k.record = r.record and k.field = f.key)",
    )
    .await;
    assert!(missing.is_empty(), "tasks without a claim row: {missing:?}");
    let holes = table(
        "select record, count(*), max(checkpoint_id), max(c.record_version), r.version
         from kslate.checkpoint c join kslate.record r using (record) group by record, r.version
         having count(*) <> max(checkpoint_id) or max(c.record_version) > r.version or min(c.record_version) < 0",
    )
    .await;
    assert!(
        holes.is_empty(),
        "checkpoints count without holes: {holes:?}"
    );
}

/// Takes one history row further.
fn replay(row: &Value, record: &mut Replayed) {
    let (op, record_version) = (text(row, "op"), number(row, "record_version"));
    assert!(!text(row, "login").is_empty(), "{row}");
    assert_eq!(
        op == "create",
        record.fields.is_empty() && record.claims.is_empty() && record_version == 0,
        "create comes first, and once: {row}"
    );
    if op == "create" {
        for (name, value) in row["value"].as_object().expect("the first values") {
            record
                .fields
                .insert(name.clone(), field(row, value.clone(), 1));
        }
        // Marks that the creation was seen, where no field has a first value.
        record.claims.entry(String::new()).or_default();
        return;
    }
    assert_eq!(record_version, record.version + 1, "no holes: {row}");
    record.version = record_version;
    let name = text(row, "field");
    let claim = record.claims.entry(name.clone()).or_default();
    let epoch = row["epoch"].as_i64();
    match op.as_str() {
        "claim" | "takeover" | "reattach" => {
            assert_eq!(epoch, Some(claim.epoch + 1), "epochs only grow: {row}");
            assert_ne!(claim.state, "completed", "{row}");
            if op != "claim" {
                assert_eq!(claim.state, "claimed", "{row}");
            }
            assert_eq!(op == "takeover", !row["took_over_from"].is_null(), "{row}");
            if op == "takeover" && claim.owner.is_some() {
                assert_eq!(row["took_over_from"], json!(claim.owner), "{row}");
            }
            claim.epoch += 1;
            claim.state = "claimed";
            claim.owner = row["role"].as_str().map(|_| text(row, "author"));
            claim.took_over_from = row["took_over_from"].clone();
        }
        "release" | "force_release" => {
            assert_eq!(
                (claim.state, epoch),
                ("claimed", Some(claim.epoch)),
                "{row}"
            );
            claim.state = "open";
            claim.owner = None;
            claim.took_over_from = Value::Null;
        }
        "renew" => assert_eq!(epoch, Some(claim.epoch), "{row}"),
        "complete" | "reopen" => {
            assert_eq!(op == "reopen", claim.state == "completed", "{row}");
            assert_eq!(epoch, Some(claim.epoch), "{row}");
            claim.state = if op == "complete" {
                "completed"
            } else {
                "open"
            };
            claim.owner = None;
            claim.took_over_from = Value::Null;
        }
        "write" | "append" => {}
        other => panic!("unknown op {other}: {row}"),
    }
    if matches!(op.as_str(), "write" | "append" | "complete" | "reopen") {
        let before = record
            .fields
            .get(&name)
            .map_or(0, |field| number(field, "version"));
        assert_eq!(number(row, "version"), before + 1, "no holes: {row}");
        record
            .fields
            .insert(name, field(row, row["value"].clone(), before + 1));
        if matches!(op.as_str(), "write" | "append") {
            return;
        }
    }
    claim.record_version = record_version;
}

/// A row of kslate.field as history tells it.
fn field(row: &Value, value: Value, version: i64) -> Value {
    let mut field = Map::new();
    field.insert("value".into(), value);
    field.insert("version".into(), version.into());
    for key in ["author", "role", "evidence", "record_version", "changed_at"] {
        field.insert(key.into(), row[key].clone());
    }
    Value::Object(field)
}

fn text(row: &Value, key: &str) -> String {
    row[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {row}"))
        .to_string()
}

fn number(row: &Value, key: &str) -> i64 {
    row[key]
        .as_i64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}
