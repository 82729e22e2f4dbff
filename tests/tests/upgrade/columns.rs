//! Rows are read and written by the places of their columns: a table that somebody has altered is refused, never misread.

use crate::released::{self, SETUP, UPDATE};
use kslate_tests::{bash, checksum, postgres_program, Cluster, Database, Session};

/// A change of a table, a call that reads or writes it by place, and what is said.
const ALTERED: &[(&str, &str, &str, &str)] = &[
    (
        "record drop column created_by cascade",
        "get",
        "'incidents/inc-1'",
        "column 5 of kslate.record is not created_by",
    ),
    (
        "field rename column role to part",
        "get",
        "'incidents/inc-1'",
        "column 6 of kslate.field is not role",
    ),
    (
        "field drop column evidence",
        "write",
        "'incidents/inc-1', 'hypotheses', '1', 2",
        "column 7 of kslate.field is not evidence",
    ),
    (
        "claim drop column took_over_from cascade",
        "claim",
        "'deploys/lapsed', 'rollout'",
        "column 21 of kslate.claim is not took_over_from",
    ),
    (
        "claim rename column reason to why",
        "force_release",
        "'deploys/live', 'rollout', 1, 'stuck'",
        "column 19 of kslate.claim is not reason",
    ),
    (
        "claim rename column owner to holder",
        "get",
        "'deploys/live'",
        "column 5 of kslate.claim is not owner",
    ),
    (
        "checkpoint rename column author to saved_by",
        "checkpoint_save",
        r#"'deploys/live', '{"goal": 1, "progress": 1}'"#,
        "column 6 of kslate.checkpoint is not author",
    ),
    (
        "history drop column login",
        "write",
        "'incidents/inc-1', 'hypotheses', '1', 2",
        "column 14 of kslate.history is not login",
    ),
];

async fn worker(database: &Database<'_>, call: &str) -> std::sync::Arc<Session> {
    let name = match call {
        "claim" | "checkpoint_save" => "remediator/worker-2",
        _ => "diagnoser",
    };
    Session::agent(database, name).await
}

#[tokio::test]
async fn a_table_that_was_altered_is_refused_by_sessions_that_knew_it_and_by_new_ones() {
    let source = released::database(Cluster::shared(), &released::all()[0]);
    source.psql("kslate", SETUP);
    for (change, call, arguments, saying) in ALTERED {
        let database = Cluster::shared().copy_of(&source);
        let session = worker(&database, call).await;
        session.ok("get", "'deploys/live'").await;
        session.ok("get", "'incidents/inc-1'").await.to_string();
        database.psql("postgres", &format!("alter table kslate.{change}"));
        let held = checksum(&database);
        for session in [session, worker(&database, call).await] {
            let refused = session.call(call, arguments).await.expect_err(change);
            refused.is("UNAVAILABLE");
            assert!(refused.message.contains(saying), "{change}: {refused:?}");
        }
        let findings = database.psql(
            "kslate",
            "select object || ': ' || finding from kslate_doctor()",
        );
        assert!(findings.contains(saying), "{change}: {findings}");
        assert_eq!(checksum(&database), held, "{change}");
    }
}

#[tokio::test]
async fn a_table_without_the_column_says_what_to_run() {
    let database = released::database(Cluster::shared(), "0.1.0");
    // As if somebody had helped the version along.
    database.psql(
        "postgres",
        "insert into kslate.storage (version) values (2)",
    );
    let worker = Session::agent(&database, "remediator/worker-2").await;
    let refused = worker
        .refused("UNAVAILABLE", "claim", "'deploys/lapsed', 'rollout'")
        .await;
    assert_eq!(
        refused["message"],
        "kslate.claim has no column took_over_from: run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()"
    );
}

#[test]
fn a_column_of_somebody_elses_stops_a_migration_that_would_be_misread() {
    let cluster = Cluster::shared();
    let database = released::database(cluster, "0.1.0");
    database.psql(
        "postgres",
        "alter table kslate.claim add column mine text default 'mine'",
    );
    database.psql("kslate", UPDATE);
    let held = checksum(&database);
    for change in ["select", "alter table kslate.claim drop column mine"] {
        database.psql("postgres", change);
        let told = database.try_psql("kslate", SETUP).expect_err(change);
        let saying = "column 21 of kslate.claim is not took_over_from, as this library needs it: drop columns that are not kslate's, then dump and restore the database";
        assert!(told.contains(saying), "{change}: {told}");
        assert_eq!(
            database.psql("postgres", "select max(version) from kslate.storage"),
            "1"
        );
    }
    assert_ne!(checksum(&database), held, "the column is gone");
    // What it says helps.
    let restored = cluster.empty_database();
    let output = bash(
        "\"$PG_DUMP\" -d \"$FROM\" | \"$PSQL\" -X -q --single-transaction -v ON_ERROR_STOP=1 -d \"$TO\"",
        &[
            ("PG_DUMP", &postgres_program("pg_dump")),
            ("PSQL", &postgres_program("psql")),
            ("FROM", &database.url("kslate")),
            ("TO", &restored.url("kslate")),
        ],
    );
    assert!(output.status.success(), "{output:?}");
    restored.psql("kslate", SETUP);
    assert_eq!(restored.psql("kslate", "select * from kslate_doctor()"), "");
}
