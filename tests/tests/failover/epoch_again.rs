//! Without synchronous replication the last commits may be lost with the primary, a claim among them. Its epoch is then given
//! out a second time; the `claim_id` is not, and that is what fences.

use crate::both;
use kslate_tests::{assert_consistent, until, Cluster, Shim, Standby, KEYS};
use serde_json::json;

const TASK: &str = "/v1/records/incidents/inc-1/fields/remediation";
const ENTRIES: &str = "/v1/records/incidents/inc-1/fields/actions_taken/entries";

#[test]
fn an_epoch_comes_back_after_a_lost_commit_and_its_claim_id_is_fenced() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let standby = Standby::start(&cluster);
    let copy = standby.database(&database);
    let url = both(&database, &standby);
    let shim = Shim::start_with(&database, KEYS, &[("DATABASE_URL", &url)]);
    let (diagnoser, w1, w2) = (
        shim.api("diag-token"),
        shim.api("w1-token"),
        shim.api("w2-token"),
    );
    diagnoser
        .put("/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let records = "select count(*) from kslate.record";
    until("the standby has the record", || {
        copy.psql("postgres", records) == "1"
    });
    // The standby falls behind.
    for sql in [
        "alter system set primary_conninfo = ''",
        "select pg_reload_conf()",
    ] {
        copy.psql("postgres", sql);
    }
    until("the standby follows no more", || {
        standby.receiver(&database).is_none()
    });
    let lost = w1
        .post(&format!("{TASK}/claim"), r#"{"lease_seconds": 600}"#)
        .expect(200);
    let entry = json!({"value": "before", "claim_id": lost["claim_id"]}).to_string();
    w1.post(ENTRIES, &entry).expect(201);
    cluster.kill9_all();
    standby.promote(&cluster);

    let claim = || w2.post(&format!("{TASK}/claim"), r#"{"lease_seconds": 600}"#);
    let mut granted = claim();
    until("the server has found the new primary", || {
        if granted.status == 503 {
            granted = claim();
        }
        granted.status != 503
    });
    let granted = granted.expect(200);
    assert_eq!(
        granted["epoch"], lost["epoch"],
        "the epoch was handed out before"
    );
    assert_ne!(granted["claim_id"], lost["claim_id"]);

    // Whatever the worker of before does under its claim is refused, and it learns who holds the task.
    let named = |claim_id: &serde_json::Value| json!({ "claim_id": claim_id }).to_string();
    let entry = json!({"value": "late", "claim_id": lost["claim_id"]}).to_string();
    for (path, body) in [
        (ENTRIES.to_string(), entry),
        (format!("{TASK}/renew"), named(&lost["claim_id"])),
        (format!("{TASK}/complete"), named(&lost["claim_id"])),
        (format!("{TASK}/release"), named(&lost["claim_id"])),
    ] {
        let refused = w1.post(&path, body).refused(409, "LEASE_LOST");
        assert_eq!(refused["owner"], "apikey:remediator/worker-2", "{path}");
    }
    // Its own identity is no help either, and the new holder works on undisturbed.
    let mine = json!({"value": "mine", "claim_id": granted["claim_id"]}).to_string();
    w1.post(ENTRIES, &mine).refused(409, "LEASE_LOST");
    w2.post(ENTRIES, &mine).expect(201);
    w2.post(&format!("{TASK}/renew"), named(&granted["claim_id"]))
        .expect(200);
    let kept = copy.psql(
        "postgres",
        "select string_agg(value::text, ' ' order by seq) from kslate.entry",
    );
    assert_eq!(kept, r#""mine""#);
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(assert_consistent(&copy));
}
