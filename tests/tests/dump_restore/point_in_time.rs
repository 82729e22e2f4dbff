//! A base backup and the archive of what came after, recovered to a point in between: a claim of after that point is gone, its
//! epoch is handed out again, and its `claim_id` is not.

use crate::filled::{fill, works};
use kslate_tests::{assert_consistent, checksum, until, Cluster, Shim, Standby, KEYS};
use serde_json::json;

const RECORD: &str = "/v1/records/incidents/later";

#[test]
fn a_point_in_time_is_as_it_was_and_fences_what_came_after() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let archive = Standby::archive(&cluster);
    let shim = Shim::start(&database, KEYS);
    let copy = Standby::back_up(&cluster);
    // Between the backup and the point: it comes out of the archive.
    let before = fill(&database);
    shim.api("diag-token").put(RECORD, "{}").expect(201);
    let then = checksum(&database);
    database.psql("postgres", "select pg_create_restore_point('then')");
    // After the point: all of it is lost.
    let task = format!("{RECORD}/fields/remediation");
    let lost = shim
        .api("w1-token")
        .post(&format!("{task}/claim"), r#"{"lease_seconds": 600}"#)
        .expect(200);
    let wal = database.psql("postgres", "select pg_walfile_name(pg_switch_wal())");
    until("the archive has it all", || archive.join(&wal).exists());
    assert!(shim.terminate());
    cluster.kill9_all();

    copy.recover(&cluster, &archive, "then");
    let restored = copy.database(&database);
    until("the recovery is over", || {
        restored.psql("postgres", "select pg_is_in_recovery()") == "f"
    });
    assert_eq!(checksum(&restored), then);
    let findings = restored.psql("kslate", "select * from kslate_doctor()");
    assert_eq!(findings, "");
    let shim = Shim::start(&restored, KEYS);
    let granted = shim
        .api("w2-token")
        .post(&format!("{task}/claim"), r#"{"lease_seconds": 600}"#)
        .expect(200);
    assert_eq!(granted["epoch"], lost["epoch"], "handed out before");
    let late = json!({ "claim_id": lost["claim_id"] }).to_string();
    for what in ["renew", "complete", "release"] {
        let path = format!("{task}/{what}");
        for token in ["w1-token", "w2-token"] {
            shim.api(token)
                .post(&path, &late)
                .refused(409, "LEASE_LOST");
        }
    }
    let live = json!({ "claim_id": granted["claim_id"] }).to_string();
    shim.api("w2-token")
        .post(&format!("{task}/renew"), live)
        .expect(200);
    works(&restored, &before);
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(assert_consistent(&restored));
}
