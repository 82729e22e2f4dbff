//! Claim next: lapsed first, then in the order of queueing; never waits, never grants twice.

use kslate_tests::crew::{claim_id, Crew};
use kslate_tests::{until_async, Refused, Session};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const NEXT: &str = "'incidents', 'remediation'";

/// The record that was granted, None where nothing was free.
fn granted(rows: Result<Vec<Value>, Refused>) -> Option<String> {
    let rows = rows.expect("an answer");
    assert!(rows.len() <= 1, "{rows:?}");
    Some(rows.first()?["record"].as_str()?.to_string())
}

/// Records inc-1 … inc-<n>; the first is there already.
async fn records(n: u32) -> Crew {
    let crew = Crew::new().await;
    for number in 2..=n {
        crew.diagnoser
            .ok("create", &format!("'incidents/inc-{number}'"))
            .await;
    }
    crew
}

#[tokio::test]
async fn lapsed_comes_first_the_longest_lapsed_first_then_who_queued_first() {
    let crew = records(5).await;
    let next = || crew.other.rows("claim_next", NEXT);
    let claim = |number: u32| format!("'incidents/inc-{number}', 'remediation'");
    // 4 lapsed before 3; 2 is renewed past its first expiry and lives; 1 was released after 5 was made.
    for number in [2, 3, 4] {
        let row = crew
            .worker
            .ok("claim", &format!("{}, 1", claim(number)))
            .await;
        if number == 2 {
            crew.worker
                .ok("renew", &format!("{}, {}, 600", claim(2), claim_id(&row)))
                .await;
        }
    }
    let row = crew.worker.ok("claim", &claim(1)).await;
    crew.worker
        .ok("release", &format!("{}, {}", claim(1), claim_id(&row)))
        .await;
    for number in [4, 3] {
        crew.dba
            .lapse(&format!("incidents/inc-{number}"), "remediation")
            .await;
    }
    until_async("the database's clock has passed the first leases", || async {
        crew.dba.run("select bool_and(recheck_at < clock_timestamp()) from kslate.claim where state = 'claimed'").await == "t"
    })
    .await;
    let mut order = Vec::new();
    while let Some(record) = granted(next().await) {
        order.push(record.replace("incidents/", ""));
    }
    assert_eq!(order, ["inc-4", "inc-3", "inc-5", "inc-1"]);
    assert_eq!(
        crew.dba
            .run("select record, op, took_over_from from kslate.history where op = 'takeover' order by record")
            .await,
        "incidents/inc-3|takeover|apikey:remediator/worker-1\nincidents/inc-4|takeover|apikey:remediator/worker-1"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn a_filter_leaves_the_others_and_completed_is_not_queued() {
    let crew = records(4).await;
    for (number, value) in [(2, "mitigating"), (3, "mitigating")] {
        crew.diagnoser
            .ok(
                "write",
                &format!("'incidents/inc-{number}', 'status', '\"{value}\"', 1"),
            )
            .await;
    }
    let with = |filter: &str| format!("{NEXT}, filter => '{filter}'");
    let mitigating = with(r#"{"status": "mitigating"}"#);
    assert_eq!(
        granted(crew.worker.rows("claim_next", &mitigating).await).as_deref(),
        Some("incidents/inc-2")
    );
    assert_eq!(
        granted(crew.worker.rows("claim_next", &mitigating).await).as_deref(),
        Some("incidents/inc-3")
    );
    assert_eq!(
        granted(crew.worker.rows("claim_next", &mitigating).await),
        None
    );
    assert_eq!(
        granted(
            crew.worker
                .rows(
                    "claim_next",
                    &with(r#"{"status": ["resolved", "open"], "hypotheses": null}"#)
                )
                .await
        )
        .as_deref(),
        Some("incidents/inc-1")
    );
    let last = crew.worker.ok("claim_next", NEXT).await;
    crew.worker
        .ok(
            "complete",
            &format!("'incidents/inc-4', 'remediation', {}", claim_id(&last)),
        )
        .await;
    assert_eq!(granted(crew.worker.rows("claim_next", NEXT).await), None);
    crew.worker
        .refused("NOT_FOUND", "claim_next", &with(r#"{"nothing": 1}"#))
        .await;
    crew.worker
        .refused("MALFORMED", "claim_next", &with("[]"))
        .await;
    crew.worker
        .refused("MALFORMED", "claim_next", "'incidents', 'status'")
        .await;
    crew.worker
        .refused("NOT_FOUND", "claim_next", "'nowhere', 'remediation'")
        .await;
    crew.diagnoser
        .refused("SCOPE_DENIED", "claim_next", NEXT)
        .await;
    crew.consistent().await;
}

#[tokio::test]
async fn it_never_waits_for_a_record_that_another_has_locked() {
    let crew = records(3).await;
    crew.dba
        .run(
            "begin; select from kslate.record where record = 'incidents/inc-1' for update;
              select from kslate.claim where record = 'incidents/inc-2' for update",
        )
        .await;
    // A wait would end in an error, and not in another record.
    crew.worker.run("set lock_timeout = '1ms'").await;
    for (filter, want) in [("", Some("incidents/inc-3")), ("", None)] {
        let begun = Instant::now();
        let record = granted(
            crew.worker
                .rows("claim_next", &format!("{NEXT}{filter}"))
                .await,
        );
        assert_eq!(record.as_deref(), want);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
    let filtered = format!("{NEXT}, filter => '{{\"status\": \"open\"}}'");
    assert_eq!(
        granted(crew.worker.rows("claim_next", &filtered).await),
        None
    );
    crew.dba.run("rollback").await;
    assert_eq!(
        granted(crew.worker.rows("claim_next", &filtered).await).as_deref(),
        Some("incidents/inc-1")
    );
    crew.consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_workers_drain_the_queue_and_each_task_is_granted_once() {
    let crew = Crew::new().await;
    crew.dba
        .run("insert into kslate.record (record) select 'incidents/n-' || n from generate_series(1, 399) n")
        .await;
    let mut workers = Vec::new();
    for n in 0..50 {
        let session = Session::agent(&crew.database, &format!("remediator/n-{n}")).await;
        workers.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            while let Some(record) = granted(session.rows("claim_next", NEXT).await) {
                mine.push(record);
            }
            mine
        }));
    }
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.expect("no panic"));
    }
    let different: BTreeSet<&String> = all.iter().collect();
    // A worker may find nothing while others hold the last ones locked; what is left is granted now.
    let mut left = 0;
    while granted(crew.worker.rows("claim_next", NEXT).await).is_some() {
        left += 1;
    }
    assert_eq!(different.len(), all.len(), "each once");
    assert_eq!(all.len() + left, 400);
    assert_eq!(
        crew.dba
            .run("select min(epoch), max(epoch), count(*) from kslate.claim")
            .await,
        "1|1|400"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn a_key_belongs_to_identity_and_class() {
    let crew = records(3).await;
    let keyed = format!("{NEXT}, idempotency_key => 'k'");
    let first = crew.worker.ok("claim_next", &keyed).await;
    let again = crew.worker.ok("claim_next", &keyed).await;
    assert_eq!(first.to_string(), again.to_string());
    let other = crew.other.ok("claim_next", &keyed).await;
    assert_ne!(first["record"], other["record"]);
    let conflict = crew
        .worker
        .refused(
            "IDEMPOTENCY_CONFLICT",
            "claim_next",
            &format!("{NEXT}, 7, idempotency_key => 'k'"),
        )
        .await;
    assert_eq!(
        conflict["record"],
        Value::Null,
        "it is about no record: {conflict}"
    );
    // Nothing free is no accepted change: it is not remembered.
    crew.worker.ok("claim_next", NEXT).await;
    let late = format!("{NEXT}, idempotency_key => 'late'");
    assert_eq!(granted(crew.worker.rows("claim_next", &late).await), None);
    crew.dba.lapse("incidents/inc-1", "remediation").await;
    assert!(granted(crew.worker.rows("claim_next", &late).await).is_some());
    crew.consistent().await;
}

#[tokio::test]
async fn two_sessions_with_one_key_get_one_task() {
    for level in ["read committed", "repeatable read", "serializable"] {
        for end in ["commit", "rollback"] {
            let crew = records(3).await;
            let twin = Session::agent(&crew.database, "remediator/worker-1").await;
            let keyed = format!("{NEXT}, idempotency_key => 'k'");
            for session in [&crew.worker, &twin] {
                session
                    .run(&format!("begin isolation level {level}; select 1"))
                    .await;
            }
            let first = crew.worker.ok("claim_next", &keyed).await;
            let second = twin.begin("claim_next", &keyed);
            crew.dba.sees_waiting(&twin).await;
            crew.worker.run(end).await;
            let second = match second.await.expect("no panic") {
                Ok(row) => match twin.sql("commit").await {
                    Ok(_) => row,
                    Err(refused) => {
                        assert_eq!(refused.sqlstate, "40001", "{level}, {end}");
                        twin.ok("claim_next", &keyed).await
                    }
                },
                Err(refused) => {
                    assert_eq!(refused.sqlstate, "40001", "{level}, {end}: {refused:?}");
                    twin.run("rollback").await;
                    twin.ok("claim_next", &keyed).await
                }
            };
            if end == "commit" {
                assert_eq!(first.to_string(), second.to_string(), "{level}");
            }
            assert_eq!(
                crew.dba
                    .run("select count(*) from kslate.claim where state = 'claimed'")
                    .await,
                "1",
                "{level}, {end}"
            );
            crew.consistent().await;
        }
    }
}

#[tokio::test]
async fn an_old_snapshot_grants_nothing_twice() {
    let crew = records(2).await;
    for level in ["repeatable read", "serializable"] {
        crew.other
            .run(&format!("begin isolation level {level}; select 1"))
            .await;
        let taken = crew.worker.ok("claim_next", NEXT).await;
        match crew.other.rows("claim_next", NEXT).await {
            Ok(rows) => assert!(
                rows.iter().all(|row| row["record"] != taken["record"]),
                "{rows:?}"
            ),
            Err(refused) => assert_eq!(
                (refused.sqlstate.as_str(), refused.error().as_str()),
                ("40001", "")
            ),
        }
        crew.other.run("rollback").await;
        crew.worker
            .ok(
                "release",
                &format!(
                    "'{}', 'remediation', {}",
                    taken["record"].as_str().expect("a record"),
                    claim_id(&taken)
                ),
            )
            .await;
    }
    assert_eq!(
        crew.dba.run("select max(epoch) from kslate.claim").await,
        json!(1).to_string()
    );
    crew.consistent().await;
}
