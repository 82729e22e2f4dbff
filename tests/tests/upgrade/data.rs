//! What an older version stored is there after the upgrade, right, and goes on. `tests/upgrade/fill.sql` says what was stored.

use crate::released::{self, SETUP, UPDATE};
use kslate_tests::{assert_consistent, Cluster, Database, Session, Shim, KEYS};
use serde_json::json;

/// Every row of every table, with the columns that 0.1.0 had.
fn contents(database: &Database) -> String {
    database.psql(
        "postgres",
        "select format('select %L, t::text from (select %s from kslate.%I) t order by 2', c.relname,
             (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
              where attrelid = c.oid and attnum > 0 and (c.relname, attname) <> ('claim', 'took_over_from')), c.relname)
         from pg_class c where c.relnamespace = 'kslate'::regnamespace and c.relkind = 'r' and c.relname <> 'storage'
         order by c.relname \\gexec",
    )
}

/// `kslate.claim.took_over_from` of every task that has it.
const TAKEN_OVER: &str = "deploys/hand-renewed|apikey:remediator/worker-1
deploys/lapsed-taken-over|apikey:remediator/worker-1
deploys/taken-over|apikey:remediator/worker-1
deploys/twice|apikey:remediator/worker-2";
const WHO_TOOK_OVER: &str =
    "select record, took_over_from from kslate.claim where took_over_from is not null order by record collate \"C\"";

fn task(record: &str, rest: &str) -> String {
    format!("/v1/records/deploys/{record}/fields/rollout/{rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_b2_old_data_are_there_right_and_go_on() {
    for version in released::all() {
        let database = released::database(Cluster::shared(), &version);
        let held = contents(&database);
        assert!(held.contains("123456789012345678901234567890.10"), "{held}");
        let file = "select pg_relation_filenode('kslate.claim')";
        let place = database.psql("postgres", file);
        database.psql("kslate", UPDATE);
        assert_eq!(database.psql("kslate", SETUP), "2");

        assert_eq!(contents(&database), held, "no value of before has changed");
        assert_eq!(
            database.psql("postgres", file),
            place,
            "nothing was rewritten"
        );
        assert_eq!(database.psql("postgres", WHO_TOOK_OVER), TAKEN_OVER);
        assert_eq!(database.psql("kslate", "select * from kslate_doctor()"), "");
        assert_consistent(&database).await;
        goes_on(&database);
        assert_consistent(&database).await;
    }
}

/// Reads what was there and changes it, over HTTP.
fn goes_on(database: &Database) {
    let shim = Shim::start(database, KEYS);
    let (diagnoser, w1, w2) = (
        shim.api("diag-token"),
        shim.api("w1-token"),
        shim.api("w2-token"),
    );
    // Values, evidence, entries, checkpoints, an older class.
    let record = "/v1/records/incidents/inc-1";
    let first = diagnoser.get(&format!("{record}/history?field=hypotheses"));
    assert!(
        first.text().contains("123456789012345678901234567890.10"),
        "{}",
        first.text()
    );
    let entries = diagnoser
        .get(&format!("{record}/fields/actions_taken/entries"))
        .expect(200);
    assert_eq!(entries["entries"].as_array().map(Vec::len), Some(25));
    let loaded = w1.get(&format!("{record}/checkpoint")).expect(200);
    assert_eq!(loaded["record_version"], 3);
    assert_eq!(loaded["changed_fields"][0]["field"], "planned_action");
    let blame = diagnoser
        .get(&format!("{record}/blame?field=planned_action"))
        .expect(200);
    assert_eq!(blame["blame"][0]["points_to"]["value"], "replica lag");
    let classes = diagnoser.get("/v1/classes/incidents?version=1").expect(200);
    assert_eq!(classes["version"], 1);
    // A request that was answered before the upgrade is answered the same.
    let keyed = [("Idempotency-Key", "step-7")];
    let entry = r#"{"value": {"step": 7, "cost": 1.10}, "evidence": "planned_action@3"}"#;
    let path = format!("{record}/fields/actions_taken/entries");
    let again = w1
        .request("POST", &path, &keyed, entry.as_bytes())
        .expect(201);
    assert_eq!(again["version"], 7);
    let keyed = [("Idempotency-Key", "claim-1")];
    let path = format!("{record}/fields/remediation/claim");
    let again = w1
        .request("POST", &path, &keyed, br#"{"lease_seconds": 60}"#)
        .expect(200);
    assert_eq!(
        (&again["epoch"], &again["took_over_from"]),
        (&json!(1), &json!(null))
    );
    let lost = json!({ "claim_id": again["claim_id"] }).to_string();
    let lost = w1
        .post(&format!("{record}/fields/remediation/renew"), lost)
        .refused(409, "LEASE_LOST");
    assert_eq!(lost["reason"], "released");

    // Leases that were live still are, and go on; a renewal keeps who was taken over, an end forgets it.
    let claim_id = |record: &str| {
        let asked = format!("select claim_id from kslate.claim where record = 'deploys/{record}'");
        json!({ "claim_id": database.psql("postgres", &asked) }).to_string()
    };
    let taken_over = |record: &str| {
        let asked = format!(
            "select took_over_from from kslate.claims_now where record = 'deploys/{record}'"
        );
        database.psql("postgres", &asked)
    };
    for record in [
        "live",
        "taken-over",
        "reattached",
        "hand-renewed",
        "twice",
        "again",
        "hand-granted",
    ] {
        w1.post(&task(record, "claim"), "{}").refused(409, "HELD");
    }
    for record in ["live", "taken-over"] {
        let before = taken_over(record);
        w2.post(&task(record, "renew"), claim_id(record))
            .expect(200);
        assert_eq!(taken_over(record), before, "{record}");
    }
    assert_eq!(taken_over("taken-over"), "apikey:remediator/worker-1");
    w2.post(&task("live", "complete"), claim_id("live"))
        .expect(200);
    w2.post(&task("taken-over", "release"), claim_id("taken-over"))
        .expect(200);
    assert_eq!(
        w1.post(&task("taken-over", "claim"), "{}").expect(200)["epoch"],
        3
    );
    assert_eq!(taken_over("taken-over"), "");
    let body = r#"{"expected_epoch": 3, "reason": "stuck"}"#;
    diagnoser
        .post(&task("twice", "force-release"), body)
        .expect(200);
    w1.post(&task("completed", "claim"), "{}")
        .refused(409, "COMPLETED");
    // Lapsed ones are taken over, the longest lapsed first.
    for record in ["lapsed", "lapsed-taken-over"] {
        let next = w2
            .post("/v1/classes/deploys/claim", r#"{"field": "rollout"}"#)
            .expect(200);
        assert_eq!(next["record"], format!("deploys/{record}"));
    }
    assert_eq!(taken_over("lapsed"), "apikey:remediator/worker-1");
    assert_eq!(
        taken_over("lapsed-taken-over"),
        "",
        "its own lease had lapsed"
    );
    // The gate.
    let status = r#"{"value": "resolved"}"#;
    diagnoser
        .put("/v1/records/deploys/live/fields/status", status)
        .refused(422, "INVALID_CHECKPOINT");
    diagnoser
        .put("/v1/records/deploys/taken-over/fields/status", status)
        .expect(200);
}

#[tokio::test]
async fn a_migration_waits_for_writers_no_longer_than_it_may_and_then_leaves_all_as_it_was() {
    let database = released::database(Cluster::shared(), &released::all()[0]);
    let (idle, setup) = (
        Session::login(&database, "kslate").await,
        Session::login(&database, "kslate").await,
    );
    for lock in ["row exclusive mode", "access share mode"] {
        idle.run(&format!(
            "begin; lock table kslate.record, kslate.claim in {lock}"
        ))
        .await;
        setup.run("set lock_timeout = '200ms'").await;
        let refused = setup.sql(SETUP).await.expect_err("somebody has written");
        assert_eq!(refused.sqlstate, "55P03", "{refused:?}");
        let version = setup.run("select max(version) from kslate.storage").await;
        assert_eq!(version, "1");
        idle.run("rollback").await;
    }
    // Who gave no lock_timeout has a bound all the same: 8 s.
    setup.run("reset lock_timeout").await;
    idle.run("begin; lock table kslate.record in row exclusive mode")
        .await;
    let waiting = setup.begin_sql(SETUP);
    idle.sees_waiting(&setup).await;
    let begun = std::time::Instant::now();
    let refused = waiting
        .await
        .expect("no panic")
        .expect_err("it waits for 8 s");
    assert_eq!(refused.sqlstate, "55P03", "{refused:?}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    idle.run("rollback").await;
    assert_eq!(setup.run(SETUP).await, "2");
    assert_eq!(setup.run(WHO_TOOK_OVER).await, TAKEN_OVER);
}
