//! A commit that waits for its synchronous standby, and a wait that is given up: the change is there and seen, PostgreSQL answers
//! as if all was well, and the primary's loss would take it along. That is no acknowledgement.

use crate::{signal, synchronous, waiting};
use kslate_tests::{until, Cluster, Shim, KEYS};
use serde_json::json;

#[test]
fn a_wait_for_the_standby_that_is_given_up_is_an_unknown_outcome() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let standby = synchronous(&cluster, &database, "on");
    let shim = Shim::start(&database, KEYS);
    let diagnoser = shim.api("diag-token");
    diagnoser
        .put("/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let field = "/v1/records/incidents/inc-1/fields/hypotheses";
    let write = |version: i64| {
        let key = format!("step-{version}");
        let body = json!({"value": version, "expected_version": version}).to_string();
        diagnoser
            .another()
            .request("PUT", field, &[("Idempotency-Key", &key)], body.as_bytes())
    };
    // Cancelled by hand, and ended: PostgreSQL answers the first with success and the second not at all.
    for (version, how) in [(0, "pg_cancel_backend"), (1, "pg_terminate_backend")] {
        let receiver = standby.receiver(&database).expect("it follows");
        signal("STOP", &receiver);
        let again = std::thread::scope(|scope| {
            let first = scope.spawn(|| write(version));
            until("the commit waits for the standby", || {
                !waiting(&database).is_empty()
            });
            let sql = format!("select {how}({})", waiting(&database));
            assert_eq!(database.psql("postgres", &sql), "t");
            let first = first.join().expect("an answer");
            first.refused(503, "UNAVAILABLE");
            assert!(
                first
                    .text()
                    .contains("whether the change was made is unknown"),
                "{how}: {}",
                first.text()
            );
            assert!(first.header("retry-after").is_some());
            // It is there, and seen; and the same request is not answered before the standby has it.
            assert_eq!(
                diagnoser.get(field).expect(200)["version"],
                version + 1,
                "{how}"
            );
            let again = scope.spawn(|| write(version));
            until("the same request waits for the standby", || {
                !waiting(&database).is_empty()
            });
            assert!(!again.is_finished());
            signal("CONT", &receiver);
            again.join().expect("an answer")
        });
        assert_eq!(again.expect(200)["version"], version + 1, "{how}");
    }
    cluster.kill9_all();
    standby.promote(&cluster);
    let kept = standby.database(&database).psql(
        "postgres",
        "select string_agg(value::text, ' ' order by version) from kslate.history where field = 'hypotheses'",
    );
    assert_eq!(kept, "0 1");
}
