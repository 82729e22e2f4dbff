//! The owner of schema kslate is nobody: our statements run with its rights, so it must have none but over its schema.

use kslate_tests::crew::Crew;
use kslate_tests::{Cluster, Refused, Session};

/// Roles belong to the whole cluster, so this test has one of its own.
fn own_cluster() -> &'static Cluster {
    // It ends with the process: see `Cluster`.
    Box::leak(Box::new(Cluster::start()))
}

/// What every way in says; each must say the same.
async fn ways_in(crew: &Crew) -> Vec<Refused> {
    let mut refused = Vec::new();
    for sql in [
        "select from kslate_get('incidents/inc-1', identity => 'apikey:diagnoser')",
        "select from kslate_whoami(identity => 'apikey:diagnoser')",
        "select from kslate_write('incidents/inc-1', 'hypotheses', '1', 0, identity => 'apikey:diagnoser')",
    ] {
        if let Err(error) = crew.diagnoser.sql(sql).await {
            refused.push(error);
        }
    }
    for sql in [
        "update kslate.field set value = '\"mitigating\"' where field = 'status'",
        "insert into kslate.field (record, field, value) values ('incidents/inc-1', 'hypotheses', '1')",
        "select kslate_setup()",
    ] {
        if let Err(error) = crew.dba.sql(sql).await {
            refused.push(error);
        }
    }
    refused
}

#[tokio::test]
async fn an_owner_that_could_be_somebody_is_refused() {
    let cluster = own_cluster();
    let crew = Crew::on(cluster.fresh_database()).await;
    crew.diagnoser.ok("create", "'incidents/inc-1'").await;
    // Another database of the cluster, with a schema that is somebody else's from the start.
    let foreign = cluster.empty_database();
    let dba = Session::login(&foreign, "postgres").await;
    dba.run("create extension kslate; create schema kslate")
        .await;
    let refused = dba
        .sql("select kslate_setup()")
        .await
        .expect_err("the schema is postgres's");
    refused.is("UNAVAILABLE");
    assert!(refused.message.contains("kslate_owner"), "{refused:?}");

    let mut faults = Vec::new();
    for (spoil, mend) in [
        (
            "alter role kslate_owner login",
            "alter role kslate_owner nologin",
        ),
        (
            "alter role kslate_owner superuser",
            "alter role kslate_owner nosuperuser",
        ),
        (
            "grant pg_read_all_data to kslate_owner",
            "revoke pg_read_all_data from kslate_owner",
        ),
        (
            "grant kslate_reader to kslate_owner",
            "revoke kslate_reader from kslate_owner",
        ),
        (
            "alter schema kslate owner to postgres",
            "alter schema kslate owner to kslate_owner",
        ),
    ] {
        crew.dba.run(spoil).await;
        let before = crew.version().await;
        let refused = ways_in(&crew).await;
        let clear = refused.iter().filter(|refused| {
            refused.error() == "UNAVAILABLE"
                && refused.sqlstate == "57P03"
                && refused.message.contains("owner")
                && refused
                    .body()
                    .is_some_and(|body| body["retry_after_seconds"] == 1)
        });
        if clear.count() != 6 {
            faults.push(format!("{spoil}: {refused:#?}"));
        }
        assert_eq!(crew.version().await, before, "{spoil}");
        crew.dba.run(mend).await;
        crew.diagnoser.ok("get", "'incidents/inc-1'").await;
    }
    // The schema's owner exchanged for another harmless role: setup refuses, since it is not kslate_owner.
    crew.dba
        .run("create role somebody nologin; alter schema kslate owner to somebody")
        .await;
    crew.dba
        .sql("select kslate_setup()")
        .await
        .expect_err("it is not kslate_owner's")
        .is("UNAVAILABLE");
    crew.dba
        .run("alter schema kslate owner to kslate_owner")
        .await;
    assert_eq!(crew.dba.run("select kslate_setup()").await, "2");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_13_what_is_set_up_and_rolled_back_leaves_nothing() {
    let cluster = own_cluster();
    let database = cluster.empty_database();
    let dba = Session::login(&database, "postgres").await;
    let there = "select (select count(*) from pg_namespace where nspname = 'kslate'), (select count(*) from pg_extension where extname = 'kslate'),
                        (select count(*) from pg_proc where proname like 'kslate\\_%'), (select count(*) from pg_roles where rolname like 'kslate\\_%' and rolname <> 'kslate_server')";
    assert_eq!(dba.run(there).await, "0|0|0|0");
    dba.run("begin; create extension kslate; select kslate_setup()")
        .await;
    assert_ne!(dba.run(there).await, "0|0|0|0");
    dba.run("rollback").await;
    assert_eq!(dba.run(there).await, "0|0|0|0");
    // Nothing sticks in the backend either: the same session sets up for good.
    dba.run("create extension kslate").await;
    let early = dba
        .sql("select * from kslate_class_list()")
        .await
        .expect_err("no storage yet");
    early.is("UNAVAILABLE");
    assert!(early.message.contains("kslate_setup()"), "{early:?}");
    assert_eq!(dba.run("select kslate_setup()").await, "2");
    dba.run("create role plain login").await;
    dba.run("grant execute on function kslate_setup() to plain")
        .await;
    let plain = Session::login(&database, "plain").await;
    plain
        .sql("select kslate_setup()")
        .await
        .expect_err("it needs a superuser")
        .is("SCOPE_DENIED");
}

/// CREATE EXTENSION may choose any schema, and its owner may give it any name: none of them is read as SQL.
#[tokio::test]
async fn odd_schema_names_are_only_names() {
    let cluster = own_cluster();
    for name in [
        "x\n; create table public.injected (); --",
        "it's \"quoted\"",
        "$$; create table public.injected (); --",
        "@extension@",
        "UPPER case",
    ] {
        let database = cluster.empty_database();
        let dba = Session::login(&database, "postgres").await;
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        dba.run(&format!(
            "create schema {quoted}; create extension kslate schema {quoted}"
        ))
        .await;
        let setup = dba.sql(&format!("select {quoted}.kslate_setup()")).await;
        assert_eq!(
            dba.run("select count(*) from pg_class where relname = 'injected'")
                .await,
            "0",
            "{name:?}"
        );
        assert_eq!(setup.expect("it is set up"), "2", "{name:?}");
        dba.run(&format!(
            "select {quoted}.kslate_setup();
             select from {quoted}.kslate_class_apply(e'class: t\\nroles: {{ a: [pg:postgres] }}\\nfields: {{ note: {{ mode: lww, write: [a] }} }}');
             select from {quoted}.kslate_create('t/x');
             update kslate.field set value = '1'"
        ))
        .await;
        let told = dba
            .sql(&format!("select * from {quoted}.kslate_doctor()"))
            .await
            .expect("the doctor answers");
        assert_eq!(told, "", "{name:?}");
        kslate_tests::assert_consistent(&database).await;
    }
}

#[tokio::test]
async fn a_database_that_is_not_in_utf_8_is_refused() {
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = own_cluster().empty_database_in(encoding);
        let dba = Session::login(&database, "postgres").await;
        dba.run("create extension kslate").await;
        let refused = dba.sql("select kslate_setup()").await;
        let refused = refused.expect_err("no UTF-8").is("UNAVAILABLE");
        let told = refused["message"].as_str().unwrap_or_default();
        assert!(
            told.contains(encoding) && told.contains("ENCODING 'UTF8'"),
            "{told}"
        );
        assert_eq!(dba.run("select to_regnamespace('kslate')").await, "");
    }
}
