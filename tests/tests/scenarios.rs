//! The numbered scenarios of what has gone wrong elsewhere with leases, each by its number. (8 is in pool.rs and rights.rs, 9 in
//! hang_ups.rs, 11 in dump_restore, 12 in rights.rs, 13 in owner.rs, 14 in standby.rs.)

use kslate_tests::crew::{Crew, DOCUMENT};
use kslate_tests::{bash, Refused, Session};
use serde_json::{json, Value};

const TASK: &str = "'incidents/inc-1', 'remediation'";

#[tokio::test]
async fn scenario_1_a_lease_is_counted_from_the_end_of_the_wait() {
    let crew = Crew::new().await;
    let old = crew.claim(1).await;
    crew.dba.sees_lapse("incidents/inc-1", "remediation").await;
    // Somebody holds the row for longer than the lease that is asked for.
    crew.dba
        .run("begin; select from kslate.record where record = 'incidents/inc-1' for update")
        .await;
    let begun: f64 = clock(&crew).await;
    let claim = crew.other.begin("claim", &format!("{TASK}, 2"));
    crew.dba.sees_waiting(&crew.other).await;
    crew.dba
        .run("do $$ begin while clock_timestamp() < to_timestamp(extract(epoch from now()) + 3) loop perform pg_sleep(0.05); end loop; end $$")
        .await;
    let freed = clock(&crew).await;
    assert!(freed - begun > 2.0, "the wait was longer than the lease");
    crew.dba.run("commit").await;
    let granted = claim.await.expect("no panic").expect("it had lapsed");
    let left: f64 = crew
        .dba
        .run(&format!(
            "select extract(epoch from timestamptz '{}')",
            granted["expires_at"].as_str().expect("a time")
        ))
        .await
        .parse()
        .expect("a number");
    assert!(left - freed >= 2.0, "it gets its full 2 s: {granted}");
    assert_eq!(granted["took_over_from"], "apikey:remediator/worker-1");
    // The late write of the first holder does not land.
    let lost = crew
        .worker
        .refused(
            "LEASE_LOST",
            "append",
            &format!("'incidents/inc-1', 'actions_taken', '1', claim_id => {old}"),
        )
        .await;
    assert_eq!(lost["reason"], "taken_over");
    crew.consistent().await;
}

async fn clock(crew: &Crew) -> f64 {
    crew.dba
        .run("select extract(epoch from clock_timestamp())")
        .await
        .parse()
        .expect("a number")
}

/// Scenario 2, one session each for as many as a test may open; the same with 200 over HTTP is in contention.rs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_2_of_500_claims_at_once_one_is_granted() {
    let crew = Crew::new().await;
    crew.dba
        .run("begin; select from kslate.record where record = 'incidents/inc-1' for update")
        .await;
    let mut sessions = Vec::new();
    for n in 0..100 {
        sessions.push(Session::agent(&crew.database, &format!("remediator/n-{n}")).await);
    }
    // Five calls are queued in each session: all 500 are asked for before one is answered.
    let calls: Vec<_> = sessions
        .iter()
        .flat_map(|session| (0..5).map(|_| session.begin("claim", TASK)))
        .collect();
    for session in &sessions {
        crew.dba.sees_waiting(session).await;
    }
    crew.dba.run("commit").await;
    let mut granted = Vec::new();
    let mut owners = Vec::new();
    for call in calls {
        match call.await.expect("no panic") {
            Ok(row) => granted.push(row["owner"].clone()),
            Err(refused) => owners.push(refused.is("HELD")["owner"].clone()),
        }
    }
    assert_eq!((granted.len(), owners.len()), (1, 499));
    assert!(owners.iter().all(|owner| *owner == granted[0]));
    assert_eq!(crew.version().await, 1);
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_3_asking_for_less_does_not_get_it_sooner() {
    let crew = Crew::new().await;
    crew.claim(600).await;
    // Five seconds of it are over: a lease of the second that is asked for would have run out.
    crew.dba
        .run("update kslate.claim set expires_at = expires_at - interval '5 s' where state = 'claimed'")
        .await;
    let held = crew
        .other
        .refused("HELD", "claim", &format!("{TASK}, 1"))
        .await;
    let seconds = held["retry_after_seconds"].as_i64().expect("a number");
    assert!((585..=595).contains(&seconds), "{held}");
    assert_eq!(held["owner"], "apikey:remediator/worker-1");
    let rows = crew
        .other
        .rows("fields", "'incidents/inc-1', array['remediation']")
        .await
        .expect("one row");
    let expires = crew
        .dba
        .run(&format!(
            "select timestamptz '{}' = timestamptz '{}'",
            rows[0]["claim"]["expires_at"].as_str().expect("a time"),
            held["expires_at"].as_str().expect("a time")
        ))
        .await;
    assert_eq!(expires, "t");
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_4_a_late_release_of_the_first_claim_has_no_effect() {
    let crew = Crew::new().await;
    let first = crew.claim(60).await;
    crew.lapse().await;
    let second = crew.claim(60).await;
    assert_ne!(first, second);
    for function in ["release", "complete", "renew"] {
        let detail = crew
            .worker
            .refused("LEASE_LOST", function, &format!("{TASK}, {first}"))
            .await;
        assert_eq!(
            (&detail["reason"], &detail["owner"]),
            (&json!("lapsed"), &json!("apikey:remediator/worker-1"))
        );
    }
    crew.worker.ok("renew", &format!("{TASK}, {second}")).await;
    assert_eq!(
        crew.history("op, epoch, coalesce(took_over_from, '-')", 1)
            .await,
        "claim|2|-",
        "one's own lapsed lease is not taken over"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_5_twenty_renewals_write_one_history_row_and_stay_hot() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    let history = crew.dba.run("select count(*) from kslate.history").await;
    let before = updates(&crew).await;
    for n in 1..=20 {
        let renewed = crew
            .worker
            .ok("renew", &format!("{TASK}, {id}, {}", 60 + n))
            .await;
        assert_eq!(
            (&renewed["epoch"], &renewed["lease_seconds"]),
            (&json!(1), &json!(60 + n))
        );
    }
    assert_eq!(
        crew.dba.run("select count(*) from kslate.history").await,
        history
    );
    assert_eq!(crew.version().await, 1);
    let after = updates(&crew).await;
    assert_eq!(
        (after.0 - before.0, after.1 - before.1),
        (20, 20),
        "updates, and HOT ones"
    );
    crew.consistent().await;
}

/// Updates of kslate.claim that the worker has made, and how many of them were HOT.
async fn updates(crew: &Crew) -> (i64, i64) {
    crew.worker.run("select pg_stat_force_next_flush()").await;
    let told = crew
        .dba
        .run("select n_tup_upd, n_tup_hot_upd from pg_stat_all_tables where relid = 'kslate.claim'::regclass")
        .await;
    let (all, hot) = told.split_once('|').expect("two numbers");
    (
        all.parse().expect("a number"),
        hot.parse().expect("a number"),
    )
}

#[tokio::test]
async fn scenario_6_a_lease_survives_a_restart_as_it_was() {
    let cluster = kslate_tests::Cluster::start();
    // A cluster of its own lives as long as the test; the harness hands out databases that live as long as their cluster.
    let cluster: &'static kslate_tests::Cluster = Box::leak(Box::new(cluster));
    let database = cluster.fresh_database();
    let crew = Crew::on(database).await;
    crew.diagnoser.ok("create", "'incidents/inc-1'").await;
    let id = crew.claim(600).await;
    let row = "select * from kslate.claim";
    let before = crew.dba.run(row).await;
    drop((crew.diagnoser, crew.worker, crew.other, crew.dba));
    cluster.restart();
    let crew = Crew::on(crew.database).await;
    assert_eq!(crew.dba.run(row).await, before);
    let held = crew.other.refused("HELD", "claim", TASK).await;
    assert_eq!(held["owner"], "apikey:remediator/worker-1");
    let renewed = crew.worker.ok("renew", &format!("{TASK}, {id}")).await;
    assert_eq!(renewed["lease_seconds"], 600);
    crew.consistent().await;
    cluster.kill9();
    cluster.start_again();
    let crew = Crew::on(crew.database).await;
    crew.worker.ok("release", &format!("{TASK}, {id}")).await;
    crew.consistent().await;
    cluster.stop();
}

#[tokio::test]
async fn scenario_7_nul_is_refused_and_its_literal_survives() {
    let crew = Crew::new().await;
    let document = DOCUMENT.replace(r#""g""#, r#""a\u0000b""#);
    let refused: Refused = crew
        .worker
        .call(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{document}'"),
        )
        .await
        .expect_err("jsonb has no NUL");
    assert_eq!(refused.sqlstate, "22P05", "from PostgreSQL: {refused:?}");
    let literal = DOCUMENT.replace(r#""g""#, r#""a\\u0000b""#);
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{literal}'"),
        )
        .await;
    let loaded = crew.worker.ok("checkpoint_load", "'incidents/inc-1'").await;
    assert_eq!(loaded["document"]["goal"], "a\\u0000b");
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_10_a_claim_rolled_back_leaves_the_task_to_who_waits() {
    let crew = Crew::new().await;
    crew.worker.run("begin").await;
    crew.claim(60).await;
    let waiting = crew.other.begin("claim", TASK);
    crew.dba.sees_waiting(&crew.other).await;
    crew.worker.run("rollback").await;
    let granted = waiting.await.expect("no panic").expect("nobody holds it");
    assert_eq!(
        (&granted["epoch"], &granted["took_over_from"]),
        (&json!(1), &Value::Null)
    );
    crew.consistent().await;
}

#[test]
fn each_of_the_fourteen_has_a_test() {
    let search = "grep -rhoE 'fn scenario_[0-9]+_' tests/tests | grep -oE '[0-9]+' | sort -nu";
    let named = String::from_utf8(bash(search, &[]).stdout).expect("text");
    let numbers: Vec<u32> = named
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert_eq!(numbers, (1..=14).collect::<Vec<_>>());
}
