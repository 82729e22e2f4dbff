//! A hot standby answers every read, and refuses every change as read-only.

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};
use kslate_tests::{until_async, Session, Standby};
use std::sync::Arc;

const READS: &[(&str, &str)] = &[
    ("get", "'incidents/inc-1'"),
    ("fields", "'incidents/inc-1'"),
    ("fields", "'incidents/inc-1', array['remediation']"),
    ("field_at", "'incidents/inc-1', 'status', 1"),
    ("entries", "'incidents/inc-1', 'actions_taken'"),
    ("history", "'incidents/inc-1'"),
    ("history", "'incidents/inc-1', newest_first => true"),
    ("blame", "'incidents/inc-1'"),
    ("checkpoint_load", "'incidents/inc-1'"),
    ("checkpoint_list", "'incidents/inc-1'"),
    (
        "list",
        "'incidents', '{\"status\": \"open\"}', array['hypotheses']",
    ),
    ("class", "'incidents'"),
    ("class_list", ""),
    ("whoami", ""),
];

async fn on_standby(
    standby: &Standby,
    crew: &Crew,
    role: &str,
    name: Option<&str>,
) -> Arc<Session> {
    let client = standby.connect(role, &crew.database).await;
    Session::over(client, name.map(|name| format!("apikey:{name}"))).await
}

/// Returns when the standby has replayed what the primary has committed.
async fn caught_up(crew: &Crew, watcher: &Session) {
    let place = crew.dba.run("select pg_current_wal_insert_lsn()").await;
    let sql = format!("select pg_last_wal_replay_lsn() >= '{place}'");
    until_async("the standby catches up", || async {
        watcher.run(&sql).await == "t"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_14_a_standby_reads_and_takes_over() {
    let crew = Crew::new().await;
    crew.diagnoser
        .ok(
            "write",
            "'incidents/inc-1', 'hypotheses', '{\"a\": 1}', 0, 'status@1'",
        )
        .await;
    crew.worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    let id = crew.claim(600).await;
    let standby = Standby::start(crew.database.cluster());
    let worker = on_standby(
        &standby,
        &crew,
        "kslate_server",
        Some("remediator/worker-1"),
    )
    .await;
    let watcher = on_standby(&standby, &crew, "postgres", None).await;
    assert_eq!(watcher.run("select pg_is_in_recovery()").await, "t");
    caught_up(&crew, &watcher).await;

    for level in ["read committed", "repeatable read"] {
        for (function, arguments) in READS {
            let here = crew.worker.rows(function, arguments).await.expect(function);
            worker.run(&format!("begin isolation level {level}")).await;
            let there = worker
                .rows(function, arguments)
                .await
                .unwrap_or_else(|refused| {
                    panic!("{function}({arguments}) on the standby: {refused:?}")
                });
            worker.run("commit").await;
            assert!(!there.is_empty(), "{function}");
            assert_eq!(here, there, "{function}({arguments})");
        }
    }
    watcher.run("select kslate_version()").await;
    watcher.run("select * from kslate_doctor()").await;
    for view in ["claims_now", "lapsed", "gates", "timeline", "entry"] {
        watcher.run(&format!("select * from kslate.{view}")).await;
    }

    let changes = [
        ("create", "'incidents/inc-2'".to_string()),
        (
            "write",
            "'incidents/inc-1', 'hypotheses', '1', 1".to_string(),
        ),
        (
            "write_many",
            r#"'incidents/inc-1', '[{"field":"hypotheses","value":1,"expected_version":1}]'"#
                .to_string(),
        ),
        (
            "append",
            "'incidents/inc-1', 'actions_taken', '1'".to_string(),
        ),
        ("claim", "'incidents/inc-1', 'remediation'".to_string()),
        ("claim_next", "'incidents', 'remediation'".to_string()),
        ("renew", format!("'incidents/inc-1', 'remediation', {id}")),
        ("release", format!("'incidents/inc-1', 'remediation', {id}")),
        (
            "complete",
            format!("'incidents/inc-1', 'remediation', {id}"),
        ),
        ("reopen", "'incidents/inc-1', 'remediation'".to_string()),
        (
            "checkpoint_save",
            format!("'incidents/inc-1', '{DOCUMENT}'"),
        ),
        (
            "class_apply",
            "$$class: t\nroles: { a: [apikey:a] }\nfields: { note: { mode: lww, write: [a] } }\n$$"
                .to_string(),
        ),
    ];
    let diagnoser = on_standby(&standby, &crew, "kslate_server", Some("diagnoser")).await;
    for (function, arguments) in &changes {
        let who = if ["create", "write", "write_many"].contains(function) {
            &diagnoser
        } else {
            &worker
        };
        let refused = who.call(function, arguments).await.expect_err(function);
        assert_eq!(
            (refused.sqlstate.as_str(), refused.error().as_str()),
            ("25006", ""),
            "{function}: {refused:?}"
        );
    }

    // A class that changes on the primary changes in a standby's backend that has it cached.
    let source = crew
        .dba
        .run("select source from kslate.class where class = 'incidents'")
        .await
        .replace(
            "hypotheses:     { mode: cas, write: [diagnoser] }",
            "hypotheses: { mode: cas, write: [diagnoser], read: [diagnoser] }",
        );
    crew.dba
        .ok("class_apply", &format!("$yaml${source}$yaml$"))
        .await;
    caught_up(&crew, &watcher).await;
    let shown = worker.ok("get", "'incidents/inc-1'").await.to_string();
    assert!(!shown.contains("hypotheses"), "{shown}");

    // The primary is gone, the standby takes over: the lease is as it was, and the next epoch is one higher.
    standby.promote(crew.database.cluster());
    let other = on_standby(
        &standby,
        &crew,
        "kslate_server",
        Some("remediator/worker-2"),
    )
    .await;
    other
        .refused("HELD", "claim", "'incidents/inc-1', 'remediation'")
        .await;
    // A backend of before the promotion works on, and so do its plans.
    worker
        .ok("renew", &format!("'incidents/inc-1', 'remediation', {id}"))
        .await;
    worker
        .ok(
            "release",
            &format!("'incidents/inc-1', 'remediation', {id}"),
        )
        .await;
    let granted = other.ok("claim", "'incidents/inc-1', 'remediation'").await;
    assert_eq!(granted["epoch"], 2);
    assert_ne!(claim_id(&granted), id);
    crew.consistent().await;
}
