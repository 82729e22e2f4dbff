//! This library on what an older version left behind: it works, or each call says what to run, and a backend lives through both. The
//! other way round, an older library on a newer storage, is played by this one on a storage of a version that is still to come.

use crate::released::{self, SETUP, UPDATE};
use kslate_tests::{assert_consistent, checksum, Cluster, Database, Session, Shim, KEYS};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The version of this library.
const NOW: &str = env!("CARGO_PKG_VERSION");

/// A call of each function, good in itself.
const CALLS: &[(&str, &str)] = &[
    ("create", "'incidents/new'"),
    ("write", "'incidents/inc-1', 'hypotheses', '1', 2"),
    (
        "write_many",
        r#"'incidents/inc-1', '[{"field": "hypotheses", "value": 1, "expected_version": 2}]'"#,
    ),
    ("append", "'deploys/live', 'log', '1'"),
    ("claim", "'incidents/inc-3', 'remediation'"),
    ("claim_next", "'incidents', 'remediation'"),
    (
        "renew",
        "'deploys/live', 'rollout', '00000000-0000-4000-8000-000000000000'",
    ),
    (
        "release",
        "'deploys/live', 'rollout', '00000000-0000-4000-8000-000000000000'",
    ),
    (
        "complete",
        "'deploys/live', 'rollout', '00000000-0000-4000-8000-000000000000'",
    ),
    ("reopen", "'deploys/completed', 'rollout'"),
    ("force_release", "'deploys/live', 'rollout', 1, 'stuck'"),
    (
        "checkpoint_save",
        r#"'incidents/inc-1', '{"goal": 1, "decisions": 1, "progress": 1, "open_questions": 1}'"#,
    ),
    ("checkpoint_load", "'incidents/inc-1'"),
    ("checkpoint_list", "'incidents/inc-1'"),
    ("get", "'incidents/inc-1'"),
    ("fields", "'incidents/inc-1'"),
    ("field_at", "'incidents/inc-1', 'hypotheses', 1"),
    ("entries", "'incidents/inc-1', 'actions_taken'"),
    ("list", "'incidents'"),
    ("history", "'incidents/inc-1'"),
    ("blame", "'incidents/inc-1'"),
    (
        "class_apply",
        "(select source from kslate.class where class = 'deploys')",
    ),
    ("class", "'incidents'"),
    ("class_list", ""),
    ("whoami", ""),
    ("forget_keys", "'1 day'"),
];
/// They tell what is wrong, or put it right.
const FOR_THE_DBA: [&str; 3] = ["doctor", "setup", "version"];

/// What is written past the functions.
const BY_HAND: [&str; 4] = [
    "update kslate.field set value = '1' where record = 'incidents/inc-1' and field = 'hypotheses'",
    "update kslate.claim set expires_at = expires_at + '1 hour' where record = 'deploys/live'",
    "insert into kslate.record (record, class, key, created_by, created_at) values ('incidents/new', 'incidents', 'new', 'me', now())",
    "insert into kslate.field (record, field, value) values ('incidents/inc-4', 'hypotheses', '1')",
];

/// A DBA who also speaks for the diagnoser.
async fn dba(database: &Database<'_>) -> Arc<Session> {
    let identity = Some("apikey:diagnoser".to_string());
    Session::over(database.connect("kslate").await, identity).await
}

/// Every call is refused as UNAVAILABLE with a message that says this, on one connection that lives on, and nothing is changed.
async fn all_refused(database: &Database<'_>, session: &Session, saying: &str) {
    let before = checksum(database);
    let backend = session.run("select pg_backend_pid()").await;
    for (function, arguments) in CALLS {
        let refused = if *function == "forget_keys" {
            let call = format!("select kslate_{function}({arguments})");
            session.sql(&call).await.err()
        } else {
            session.rows(function, arguments).await.err()
        };
        let refused = refused.unwrap_or_else(|| panic!("kslate_{function} was accepted"));
        refused.is("UNAVAILABLE");
        assert!(
            refused.message.contains(saying),
            "kslate_{function}: {refused:?}"
        );
    }
    for statement in BY_HAND {
        let refused = session.sql(statement).await;
        let refused = refused.expect_err(statement);
        assert!(refused.message.contains(saying), "{statement}: {refused:?}");
    }
    assert_eq!(session.run("select pg_backend_pid()").await, backend);
    assert_eq!(checksum(database), before);
}

/// Calls work: a change of each kind.
async fn all_works(database: &Database<'_>, session: &Session) {
    let w1 = Session::agent(database, "remediator/worker-1").await;
    for (function, arguments) in CALLS {
        match *function {
            "renew" | "release" | "complete" | "checkpoint_save" | "checkpoint_load"
            | "checkpoint_list" | "claim_next" | "claim" | "reopen" | "write_many"
            | "forget_keys" => continue,
            _ => session
                .rows(function, arguments)
                .await
                .map(drop)
                .unwrap_or_else(|refused| panic!("kslate_{function}: {refused:?}")),
        }
    }
    let granted = w1
        .ok("claim", "'deploys/lapsed-taken-over', 'rollout', 60")
        .await;
    assert_eq!(granted["took_over_from"], "apikey:remediator/worker-2");
    let claim = format!(
        "'deploys/lapsed-taken-over', 'rollout', '{}'",
        granted["claim_id"].as_str().expect("a claim_id")
    );
    w1.ok("renew", &claim).await;
    w1.ok("complete", &claim).await;
    w1.ok("reopen", "'deploys/lapsed-taken-over', 'rollout'")
        .await;
    w1.ok("checkpoint_save", CALLS[11].1).await;
    w1.ok("checkpoint_load", "'incidents/inc-1'").await;
    session.run(BY_HAND[0]).await;
    let findings = session.run("select * from kslate_doctor()").await;
    assert_eq!(findings, "");
    assert_consistent(database).await;
}

#[tokio::test]
async fn scenario_b1_the_library_refuses_an_older_storage_and_works_on_older_functions() {
    let cluster = Cluster::shared();
    for version in released::all() {
        // Neither step is done; only the functions are; only the storage is.
        let database = released::database(cluster, &version);
        let session = dba(&database).await;
        let functions = session
            .run("select substr(p.proname, 8) from pg_proc p where p.proname like 'kslate\\_%' and p.prorettype <> 'trigger'::regtype")
            .await;
        let known: BTreeSet<&str> = CALLS
            .iter()
            .map(|(name, _)| *name)
            .chain(FOR_THE_DBA)
            .collect();
        assert_eq!(functions.lines().collect::<BTreeSet<_>>(), known);
        let todo = "run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()";
        all_refused(&database, &session, todo).await;
        assert_eq!(session.run("select kslate_version()").await, NOW);
        let findings = session
            .run("select area, finding from kslate_doctor()")
            .await;
        assert!(
            findings.contains("storage|version 1, the library needs"),
            "{findings}"
        );
        session.run(UPDATE).await;
        all_refused(&database, &session, todo).await;
        session.run(SETUP).await;
        all_works(&database, &session).await;

        let database = released::database(cluster, &version);
        let session = dba(&database).await;
        session.run(SETUP).await;
        let has = session
            .run("select extversion from pg_extension where extname = 'kslate'")
            .await;
        assert_eq!(has, version);
        all_works(&database, &session).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_b1_the_server_says_so_and_goes_on_without_a_restart() {
    let database = released::database(Cluster::shared(), &released::all()[0]);
    let shim = Shim::start(&database, KEYS);
    let api = shim.api("diag-token");
    let record = "/v1/records/incidents/inc-1";
    for path in ["/readyz", record, "/v1/classes", "/v1/whoami"] {
        let refused = api.get(path).refused(503, "UNAVAILABLE");
        let message = refused["message"].as_str().expect("a message");
        assert!(
            message.contains("SELECT kslate_setup()"),
            "{path}: {refused}"
        );
    }
    api.put("/v1/records/incidents/new", "{}")
        .refused(503, "UNAVAILABLE");
    assert_eq!(api.get("/healthz").expect(200)["status"], "ok");
    database.psql("kslate", UPDATE);
    api.get("/readyz").refused(503, "UNAVAILABLE");
    database.psql("kslate", SETUP);
    let ready = api.get("/readyz").expect(200);
    assert_eq!(
        (&ready["version"], &ready["storage_version"]),
        (&NOW.into(), &2.into())
    );
    api.get(record).expect(200);
    api.put("/v1/records/incidents/new", "{}").expect(201);
}

/// What `kslate_setup()` of a later version does: what it always does, and another version.
const NEWER: &str =
    "begin; select kslate_setup(); insert into kslate.storage (version) values (99); commit";

#[tokio::test]
async fn an_older_library_refuses_a_newer_storage_at_its_next_call() {
    let database = released::database(Cluster::shared(), &released::all()[0]);
    let (session, fresh) = (dba(&database).await, dba(&database).await);
    session.run(SETUP).await;
    session.ok("get", "'incidents/inc-1'").await;
    let inside = dba(&database).await;
    inside.run("begin isolation level repeatable read").await;
    // It holds no lock that kslate_setup() would wait for.
    inside.ok("whoami", "").await;
    session.run(NEWER).await;
    let todo = "install the newer kslate, whose storage this is";
    for session in [&session, &fresh] {
        all_refused(&database, session, todo).await;
        let refused = session.sql(SETUP).await.expect_err("an older library");
        assert!(
            refused.message.contains("install the newer kslate"),
            "{refused:?}"
        );
    }
    inside
        .refused("UNAVAILABLE", "get", "'incidents/inc-1'")
        .await;
    let findings = session.run("select finding from kslate_doctor()").await;
    assert_eq!(
        findings,
        "version 99, the library needs 2: install the newer kslate"
    );
}
