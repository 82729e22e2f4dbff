//! A database with something of everything, and the questions that it must answer the same when it has been somewhere.

use kslate_tests::{refused_in_sql, until, Api, Database, Shim, KEYS};
use serde_json::{json, Value};

const RECORD: &str = "/v1/records/incidents/inc-1";

/// What the checks after the restore need to know.
pub struct Before {
    live: Value,
    fenced: Value,
    epoch: i64,
}

/// A task of a record, each in a state of its own.
fn task(record: &str, rest: &str) -> String {
    format!("/v1/records/incidents/{record}/fields/remediation/{rest}")
}

/// Something of everything: values, entries, evidence, claims that are live, fenced, lapsed, completed and reopened, checkpoints,
/// idempotency keys, an older version of a class, a change by hand, digits and characters that a dump could lose.
pub fn fill(database: &Database) -> Before {
    let shim = Shim::start(database, KEYS);
    let (diagnoser, w1, w2) = (
        shim.api("diag-token"),
        shim.api("w1-token"),
        shim.api("w2-token"),
    );
    for record in ["inc-1", "inc-2", "inc-3", "inc-4"] {
        let path = format!("/v1/records/incidents/{record}");
        diagnoser.put(&path, "{}").expect(201);
    }
    let value = r#"{"value": {"n": 123456789012345678901234567890.10, "s": "\\N tab\t quote' \u00e9 \\u0000"},
                    "expected_version": 0, "evidence": "line one\nline two"}"#;
    diagnoser
        .put(&format!("{RECORD}/fields/hypotheses"), value)
        .expect(200);
    let plan = format!("{RECORD}/fields/planned_action");
    for version in 0..3 {
        let body = json!({"value": format!("plan {version}"), "expected_version": version, "evidence": "hypotheses@1"});
        diagnoser.put(&plan, body.to_string()).expect(200);
    }
    let claim = |api: &Api, record: &str, seconds: u32| {
        let body = json!({ "lease_seconds": seconds }).to_string();
        api.post(&task(record, "claim"), body).expect(200)
    };
    // inc-1: worker 1 is fenced out by a release, worker 2 holds it.
    let fenced = claim(&w1, "inc-1", 600);
    let body = json!({"claim_id": fenced["claim_id"], "reason": "shift ends"}).to_string();
    w1.post(&task("inc-1", "release"), body).expect(200);
    let live = claim(&w2, "inc-1", 3600);
    let keyed = [("Idempotency-Key", "step-1")];
    let entry = json!({"value": [1, null, {"a": []}], "claim_id": live["claim_id"]}).to_string();
    let path = format!("{RECORD}/fields/actions_taken/entries");
    w2.request("POST", &path, &keyed, entry.as_bytes())
        .expect(201);
    // inc-2: completed and opened again. inc-3: completed. inc-4: its lease runs out by itself.
    for record in ["inc-2", "inc-3"] {
        let held = claim(&w1, record, 600);
        let body =
            json!({"claim_id": held["claim_id"], "value": {"done": true}, "evidence": "looked"});
        w1.post(&task(record, "complete"), body.to_string())
            .expect(200);
    }
    w1.post(&task("inc-2", "reopen"), r#"{"reason": "not quite"}"#)
        .expect(200);
    claim(&w1, "inc-4", 1);
    // As text: `json!` would lose a digit.
    let document = r#"{"document": {"goal": "g", "decisions": [], "progress": null, "open_questions": "none", "more": 1.10}}"#;
    w1.put("/v1/records/incidents/inc-2/checkpoint", document)
        .expect(200);
    database.psql(
        "kslate",
        "update kslate.field set value = '\"mitigating\"', evidence = 'by hand' where record = 'incidents/inc-3' and field = 'status';
         select from kslate_class_apply((select replace(source, 'worked by', 'worked by both,') from kslate.class where class = 'incidents'))",
    );
    until("the lease on inc-4 has run out", || {
        database.psql(
            "kslate",
            "select expires_at <= clock_timestamp() from kslate.claim where record = 'incidents/inc-4'",
        ) == "t"
    });
    Before {
        live,
        fenced,
        epoch: 2,
    }
}

/// The database works, and knows all that it knew.
pub fn works(database: &Database, before: &Before) {
    let shim = Shim::start(database, KEYS);
    let (diagnoser, w1, w2) = (
        shim.api("diag-token"),
        shim.api("w1-token"),
        shim.api("w2-token"),
    );
    let record = diagnoser.get(RECORD);
    assert!(
        record.text().contains("123456789012345678901234567890.10"),
        "{}",
        record.text()
    );
    let record = record.expect(200);
    let before_version = record["record_version"].as_i64().expect("a number");

    // Versions.
    let stale = json!({"value": "late", "expected_version": 2, "evidence": "none"}).to_string();
    let plan = format!("{RECORD}/fields/planned_action");
    let conflict = diagnoser.put(&plan, stale).refused(409, "VERSION_CONFLICT");
    assert_eq!(conflict["current_version"], 3);
    assert_eq!(conflict["value"], "plan 2");

    // The gate, through the functions and by hand, and once it is open.
    let resolve = r#"{"value": "resolved", "expected_version": 1}"#;
    let status = format!("{RECORD}/fields/status");
    let gate = diagnoser
        .put(&status, resolve)
        .refused(422, "INVALID_CHECKPOINT");
    assert_eq!(gate["field"], "status");
    let by_hand =
        "update kslate.field set value = '\"resolved\"' where field = 'status' and record = 'incidents/inc-1'";
    let refusal = refused_in_sql(database, "kslate", by_hand);
    assert_eq!(refusal.sqlstate, "23514", "{refusal:?}");
    diagnoser
        .put("/v1/records/incidents/inc-2/fields/status", resolve)
        .expect(200);

    // Leases.
    let held = w1.post(&task("inc-1", "claim"), "{}").refused(409, "HELD");
    assert_eq!(held["owner"], "apikey:remediator/worker-2");
    assert_eq!(held["expires_at"], before.live["expires_at"]);
    let fenced = json!({"value": "late", "claim_id": before.fenced["claim_id"]}).to_string();
    let entries = format!("{RECORD}/fields/actions_taken/entries");
    let lost = w1.post(&entries, fenced).refused(409, "LEASE_LOST");
    assert_eq!(lost["reason"], "released");
    let claim_id = json!({"claim_id": before.live["claim_id"]}).to_string();
    w2.post(&task("inc-1", "renew"), &claim_id).expect(200);
    w2.post(&task("inc-1", "release"), &claim_id).expect(200);
    let next = w1.post(&task("inc-1", "claim"), "{}").expect(200);
    assert_eq!(next["epoch"], before.epoch + 1);
    w1.post(&task("inc-3", "claim"), "{}")
        .refused(409, "COMPLETED");
    let reopened = w1.post(&task("inc-2", "claim"), "{}").expect(200);
    assert_eq!(reopened["epoch"], 2);
    let lapsed = w2.post(&task("inc-4", "claim"), "{}").expect(200);
    assert_eq!(lapsed["took_over_from"], "apikey:remediator/worker-1");

    // Checkpoints count on, and what was saved is told digit for digit.
    let checkpoint = "/v1/records/incidents/inc-2/checkpoint";
    let loaded = w1.get(checkpoint);
    assert!(
        loaded.text().contains("\"more\": 1.10"),
        "{}",
        loaded.text()
    );
    assert_eq!(loaded.expect(200)["role"], "remediator");
    let document =
        r#"{"document": {"goal": "g", "decisions": [], "progress": 2, "open_questions": []}}"#;
    assert_eq!(w1.put(checkpoint, document).expect(200)["checkpoint_id"], 2);
    assert_eq!(w1.get(checkpoint).expect(200)["document"]["progress"], 2);

    // A request that was answered before is answered the same.
    let again = json!({"value": [1, null, {"a": []}], "claim_id": before.live["claim_id"]});
    let keyed = [("Idempotency-Key", "step-1")];
    let answer = w2
        .request("POST", &entries, &keyed, again.to_string().as_bytes())
        .expect(201);
    assert_eq!(answer["version"], 1);

    // History goes on where it was, and a change by hand still leaves its row.
    let after = diagnoser.get(RECORD).expect(200);
    assert_eq!(
        after["record_version"],
        before_version + 2,
        "release, claim"
    );
    database.psql(
        "kslate",
        "update kslate.field set value = '\"by hand\"' where field = 'planned_action' and record = 'incidents/inc-1'",
    );
    let last = diagnoser
        .get(&format!("{RECORD}/history?newest_first=true&page_size=1"))
        .expect(200);
    assert_eq!(last["history"][0]["author"], "pg:kslate", "{last}");
    assert_eq!(last["history"][0]["version"], 4, "{last}");
    for change in [
        "delete from kslate.history",
        "truncate kslate.field",
        "update kslate.checkpoint set document = '{}'",
    ] {
        let refusal = refused_in_sql(database, "kslate", change);
        assert_eq!(refusal.sqlstate, "42501", "{change}: {refusal:?}");
    }
}
