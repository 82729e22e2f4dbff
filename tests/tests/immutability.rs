//! What nobody may change: history, checkpoints, classes, the rows of the state tables, a record's version.

use kslate_tests::crew::{role, Crew, DOCUMENT};
use kslate_tests::Session;

/// A record with a row in every table.
async fn furnished() -> Crew {
    let crew = Crew::new().await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    let claim = crew.claim(60).await;
    crew.worker
        .ok(
            "release",
            &format!("'incidents/inc-1', 'remediation', {claim}"),
        )
        .await;
    crew
}

const STATEMENTS: &[&str] = &[
    "update kslate.history set author = 'apikey:somebody'",
    "update kslate.history set author = author where false",
    "delete from kslate.history",
    "delete from kslate.history where false",
    "truncate kslate.history",
    "insert into kslate.history select record, record_version + 1000, op, field, version, value, author, role, evidence,
       changed_at, epoch, took_over_from, reason, login from kslate.history",
    "insert into kslate.history select * from kslate.history on conflict do nothing",
    "merge into kslate.history h using (select 1) v on true when matched then update set author = 'apikey:somebody'",
    "merge into kslate.history h using (select 1) v on true when matched then delete",
    "update kslate.checkpoint set document = '{}'",
    "update kslate.checkpoint set record_version = 0",
    "delete from kslate.checkpoint",
    "truncate kslate.checkpoint",
    "insert into kslate.checkpoint select record, checkpoint_id + 1, role, document, record_version, author, saved_at from kslate.checkpoint",
    "insert into kslate.checkpoint values ('incidents/inc-1', 9, 'remediator', '{}', 0, 'apikey:x', now()) on conflict do nothing",
    "update kslate.class set source = ''",
    "delete from kslate.class",
    "truncate kslate.class",
    "insert into kslate.class select class, version + 1, source, definition, applied_by, applied_at from kslate.class",
    "delete from kslate.field",
    "truncate kslate.field",
    "delete from kslate.claim",
    "truncate kslate.claim",
    "delete from kslate.record",
    "truncate kslate.record",
    "truncate kslate.record, kslate.field, kslate.claim, kslate.history cascade",
    "merge into kslate.field f using (select 1) v on true when matched then delete",
    "update kslate.record set version = 99",
    "update kslate.record set version = version",
    "update kslate.record set record = 'incidents/other', key = 'other'",
    "update kslate.record set created_by = 'apikey:somebody'",
    "insert into kslate.record (record, class, key, created_by, created_at) values ('incidents/inc-1', 'x', 'x', 'x', now())
       on conflict (record) do update set version = 99",
    // Through a view that can be updated.
    "update kslate.entry set author = 'apikey:somebody'",
    "delete from kslate.entry",
    "delete from kslate.lapsed",
];

#[tokio::test]
async fn nobody_changes_what_is_kept() {
    let crew = furnished().await;
    role(&crew.database, "keeper_dba", "login", "");
    crew.dba
        .run("grant usage on schema kslate to keeper_dba; grant all on all tables in schema kslate to keeper_dba")
        .await;
    let plain = Session::login(&crew.database, "keeper_dba").await;
    let before = everything(&crew).await;
    for session in [&crew.dba, &plain] {
        for sql in STATEMENTS {
            let refused = session.sql(sql).await.expect_err(sql);
            assert_eq!(refused.error(), "IMMUTABLE", "{sql}: {refused:?}");
            assert_eq!(refused.sqlstate, "42501", "{sql}");
        }
    }
    assert_eq!(everything(&crew).await, before);
    crew.consistent().await;
}

async fn everything(crew: &Crew) -> String {
    let mut all = String::new();
    for table in ["class", "record", "field", "claim", "checkpoint", "history"] {
        all += &crew
            .dba
            .run(&format!("select * from kslate.{table} t order by t::text"))
            .await;
    }
    all
}

#[tokio::test]
async fn triggers_that_a_session_switches_off_are_the_superusers_alone() {
    let crew = furnished().await;
    role(&crew.database, "replica_dba", "login", "");
    crew.dba
        .run("grant usage on schema kslate to replica_dba; grant all on all tables in schema kslate to replica_dba")
        .await;
    let plain = Session::login(&crew.database, "replica_dba").await;
    for sql in [
        "set session_replication_role = replica",
        "alter table kslate.history disable trigger all",
        "drop trigger a_keep on kslate.history",
        "create rule r as on delete to kslate.history do instead nothing",
    ] {
        assert_eq!(
            plain.sql(sql).await.expect_err(sql).sqlstate,
            "42501",
            "{sql}"
        );
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_record_inserted_by_hand_is_a_whole_one() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "insert into kslate.record (record, class, key, version, created_by, created_at)
             values ('incidents/by-hand', 'migrations', 'other', 42, 'apikey:diagnoser', '2001-01-01')",
        )
        .await;
    crew.dba
        .run("insert into kslate.record (record) values ('incidents/short') on conflict do nothing")
        .await;
    crew.dba
        .run("insert into kslate.record (record) values ('incidents/short') on conflict do nothing")
        .await;
    assert_eq!(
        crew.dba
            .run(
                "select record, class, key, version, created_by, created_at > '2002-01-01' from kslate.record
                 where record <> 'incidents/inc-1' order by record",
            )
            .await,
        "incidents/by-hand|incidents|by-hand|0|pg:postgres|t\nincidents/short|incidents|short|0|pg:postgres|t"
    );
    assert_eq!(
        crew.dba
            .run("select op, value, author, login from kslate.history where record = 'incidents/by-hand'")
            .await,
        r#"create|{"status": "open"}|pg:postgres|postgres"#
    );
    crew.worker
        .ok("claim", "'incidents/by-hand', 'remediation'")
        .await;
    crew.diagnoser
        .ok(
            "write",
            r#"'incidents/by-hand', 'status', '"mitigating"', 1"#,
        )
        .await;
    for (name, error) in [
        ("nowhere/x", "NOT_FOUND"),
        ("incidents", "MALFORMED"),
        ("incidents/", "MALFORMED"),
        ("incidents/a/b", "MALFORMED"),
        ("incidents/a b", "MALFORMED"),
    ] {
        crew.dba
            .sql(&format!(
                "insert into kslate.record (record) values ('{name}')"
            ))
            .await
            .expect_err(name)
            .is(error);
    }
    crew.consistent().await;
}
