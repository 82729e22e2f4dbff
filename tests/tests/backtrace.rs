//! DETAIL is our JSON and nothing else, also where the server runs with RUST_BACKTRACE set; a backtrace is no part of an error.

use kslate_tests::crew::{Crew, DOCUMENT};
use kslate_tests::{Cluster, Session};

#[tokio::test]
async fn detail_is_json_whatever_the_servers_environment() {
    // The only test of this file: nothing else reads the environment meanwhile. The server inherits it.
    std::env::set_var("RUST_BACKTRACE", "1");
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start()));
    let crew = Crew::on(cluster.fresh_database()).await;
    crew.dba
        .run(
            "create temp table told (value text); copy told from program 'printenv RUST_BACKTRACE'",
        )
        .await;
    assert_eq!(crew.dba.run("select value from told").await, "1");
    crew.diagnoser.ok("create", "'incidents/inc-1'").await;

    // Ours: from a function; from a trigger below a statement of a function; from triggers below a hand's statement, and below
    // PL/pgSQL and SQL functions on top of that.
    let held = {
        crew.claim(60).await;
        crew.other
            .call("claim", "'incidents/inc-1', 'remediation'")
            .await
            .expect_err("it is held")
    };
    held.is("HELD");
    let gate = r#"{"error":"INVALID_CHECKPOINT","field":"status","message":"required role(s) have not checkpointed this record yet: remediator","record":"incidents/inc-1"}"#;
    let resolve = r#"update kslate.field set value = '"resolved"' where field = 'status'"#;
    let call = r#"kslate_write('incidents/inc-1', 'status', '"resolved"', 1, identity => 'apikey:diagnoser')"#;
    for (session, sql) in [
        (&crew.diagnoser, format!("select from {call}")),
        (&crew.dba, resolve.to_string()),
        (&crew.dba, format!("do $$ begin {resolve}; end $$")),
        (&crew.diagnoser, format!("do $$ begin perform from {call}; end $$")),
        (&crew.dba, format!("create function public.resolve() returns void language sql as $$ {resolve} $$; select public.resolve()")),
    ] {
        let refused = session.sql(&sql).await.expect_err(&sql);
        assert_eq!(refused.detail.as_deref(), Some(gate), "{sql}");
        assert_eq!(refused.sqlstate, "23514", "{sql}");
    }
    for sql in [
        "delete from kslate.history",
        "truncate kslate.field",
        "update kslate.record set version = 1",
    ] {
        crew.dba.sql(sql).await.expect_err(sql).is("IMMUTABLE");
    }
    crew.dba
        .sql("select from kslate_class_apply('class: [')")
        .await
        .expect_err("it is no class")
        .is("INVALID_CLASS");

    // PostgreSQL's own, through our functions: with its DETAIL or none, never with a backtrace.
    crew.worker.run("begin").await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    crew.other.run("set lock_timeout = '50ms'").await;
    let busy = crew
        .other
        .call("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await
        .expect_err("the record is locked");
    assert_eq!((busy.sqlstate.as_str(), &busy.detail), ("55P03", &None));
    crew.other
        .run("set lock_timeout = 0; set statement_timeout = '50ms'")
        .await;
    let late = crew
        .other
        .call("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await
        .expect_err("the record is locked");
    assert_eq!((late.sqlstate.as_str(), &late.detail), ("57014", &None));
    let plain = Session::login(&crew.database, "postgres").await;
    let by_hand =
        plain.begin_sql("update kslate.field set value = '\"mitigating\"' where field = 'status'");
    crew.dba.sees_waiting(&plain).await;
    let by_call = crew
        .worker
        .call("write", "'incidents/inc-1', 'status', '\"mitigating\"', 1")
        .await
        .err();
    crew.worker.run("rollback").await;
    let deadlock = by_hand
        .await
        .expect("no panic")
        .err()
        .or(by_call)
        .expect("one of them is the victim");
    assert_eq!(deadlock.sqlstate, "40P01");
    let detail = deadlock
        .detail
        .expect("PostgreSQL tells who waits for whom");
    for line in detail.lines() {
        assert!(line.starts_with("Process "), "{detail}");
    }
    crew.diagnoser
        .run("begin isolation level repeatable read; select 1")
        .await;
    crew.dba
        .run("update kslate.field set value = '\"mitigating\"' where field = 'status'")
        .await;
    let stale = crew
        .diagnoser
        .call("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await
        .expect_err("the snapshot is too old");
    assert_eq!((stale.sqlstate.as_str(), &stale.detail), ("40001", &None));
    crew.diagnoser.run("rollback").await;
    crew.consistent().await;
}
