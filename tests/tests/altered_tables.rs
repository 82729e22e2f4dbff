//! What whoever owns our tables can make of them. kslate reads and writes them by place and past the executor, so in each state it
//! either does what a statement would, or refuses; it never misreads a row, leaves a row that breaks a constraint, or brings the
//! server down.
//!
//! Each test is red without its line in kslate-pg/src/rows/layout.rs, index.rs or strangers.rs.

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};

const PLAN: &str = "'incidents/inc-1', 'planned_action'";
const TASK: &str = "'incidents/inc-1', 'remediation'";

impl Plans for Crew {
    async fn plan(&self, value: &str, version: u32) -> Result<(), String> {
        let arguments = format!("{PLAN}, '{value}', {version}, 'because'");
        let done = self.diagnoser.call("write", &arguments).await;
        done.map(drop)
            .map_err(|refused| format!("{} {}", refused.sqlstate, refused.message))
    }

    async fn is_refused(&self, saying: &str) {
        let refused = self
            .diagnoser
            .refused("UNAVAILABLE", "write", &format!("{PLAN}, '2', 1, 'why'"))
            .await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(saying), "{message}");
        let findings = self
            .dba
            .run("select finding from kslate_doctor() where area = 'table'")
            .await;
        assert!(findings.contains(saying), "{findings}");
    }
}

/// Writes of `planned_action`, for which the value is JSON.
trait Plans {
    async fn plan(&self, value: &str, version: u32) -> Result<(), String>;
    /// A write is refused, and the doctor says why as well.
    async fn is_refused(&self, saying: &str);
}

#[tokio::test]
async fn something_else_in_a_tables_place() {
    for (table, what, made) in [
        (
            "history",
            "partitioned",
            "create table kslate.history (like kslate.former including defaults, primary key (record, record_version))
             partition by hash (record);
             create table kslate.history_0 partition of kslate.history for values with (modulus 1, remainder 0)",
        ),
        (
            "field",
            "partitioned",
            "create table kslate.field (like kslate.former including defaults, primary key (record, field))
             partition by hash (record);
             create table kslate.field_0 partition of kslate.field for values with (modulus 1, remainder 0)",
        ),
        ("history", "a view", "create view kslate.history as select * from kslate.former"),
        ("field", "a view", "create view kslate.field as select * from kslate.former"),
    ] {
        let crew = Crew::new().await;
        crew.plan("1", 0).await.expect("a plain table");
        crew.dba
            .run(&format!(
                "alter table kslate.{table} rename to former; {made};
                 alter table kslate.{table} owner to kslate_owner"
            ))
            .await;
        crew.is_refused(&format!("kslate.{table} is {what}: "))
            .await;
        if table == "field" {
            crew.diagnoser
                .refused("UNAVAILABLE", "get", "'incidents/inc-1'")
                .await;
        }
    }
}

#[tokio::test]
async fn columns_of_other_types() {
    for (altered, saying) in [
        (
            "alter table kslate.field alter record_version type numeric",
            "column record_version of kslate.field has type numeric, this library needs bigint: ",
        ),
        (
            "alter table kslate.history alter login type name",
            "column login of kslate.history has type name, this library needs text: ",
        ),
        (
            "alter table kslate.history alter login type varchar(3) using left(login, 3)",
            "column login of kslate.history has type character varying(3), this library needs text: ",
        ),
        (
            "alter table kslate.history alter changed_at type timestamptz(0)",
            "column changed_at of kslate.history has type timestamp(0) with time zone, this library needs timestamp with time zone: ",
        ),
        (
            "alter table kslate.history alter value type json",
            "column value of kslate.history has type json, this library needs jsonb: ",
        ),
    ] {
        let crew = Crew::new().await;
        crew.plan("1", 0).await.expect("as it was made");
        let views = "drop view kslate.timeline, kslate.entry, kslate.gates, kslate.claims_now, kslate.lapsed";
        crew.dba.run(&format!("{views}; {altered}")).await;
        let refused = crew
            .diagnoser
            .refused("UNAVAILABLE", "write", &format!("{PLAN}, '2', 1, 'why'"))
            .await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(saying), "{message}");
    }
}

#[tokio::test]
async fn other_primary_keys() {
    for (table, altered, saying) in [
        (
            "field",
            "add primary key (field, record)",
            "(record, field)",
        ),
        (
            "field",
            "add primary key (record, field) deferrable",
            "(record, field)",
        ),
        ("field", "add unique (record, field)", "(record, field)"),
        (
            "checkpoint",
            "add primary key (record, role, checkpoint_id)",
            "(record, checkpoint_id)",
        ),
    ] {
        let crew = Crew::new().await;
        crew.plan("1", 0).await.expect("as it was made");
        let drop = format!("alter table kslate.{table} drop constraint {table}_pkey");
        crew.dba.run(&format!("{drop}, {altered}")).await;
        let saying = format!("the primary key of kslate.{table} is not {saying}: ");
        if table == "field" {
            crew.is_refused(&saying).await;
        } else {
            let refused = crew
                .worker
                .refused(
                    "UNAVAILABLE",
                    "checkpoint_save",
                    &format!("'incidents/inc-1', '{DOCUMENT}'"),
                )
                .await;
            let message = refused["message"].as_str().unwrap_or_default();
            assert!(message.starts_with(&saying), "{message}");
        }
    }
}

#[tokio::test]
async fn an_index_of_the_same_name_is_not_the_same_index() {
    for columns in [
        "(record, role, checkpoint_id desc)",
        "(record, role, checkpoint_id) where checkpoint_id < 2",
        "(record, role, (checkpoint_id + 0))",
        "(role, record, checkpoint_id)",
    ] {
        let crew = Crew::new().await;
        crew.dba
            .run(&format!(
                "drop index kslate.checkpoint_role; create index checkpoint_role on kslate.checkpoint {columns}"
            ))
            .await;
        let resolve = "'incidents/inc-1', 'status', '\"resolved\"', 1";
        crew.diagnoser
            .refused("INVALID_CHECKPOINT", "write", resolve)
            .await;
        crew.diagnoser
            .run("begin isolation level repeatable read; select 1")
            .await;
        for goal in ["first", "last"] {
            let document = DOCUMENT.replace("\"g\"", &format!("\"{goal}\""));
            crew.worker
                .ok(
                    "checkpoint_save",
                    &format!("'incidents/inc-1', '{document}'"),
                )
                .await;
        }
        let loaded = crew.worker.ok("checkpoint_load", "'incidents/inc-1'").await;
        assert_eq!(loaded["document"]["goal"], "last", "{columns}");
        crew.diagnoser.ok("write", resolve).await;
        crew.diagnoser.run("commit").await;
        crew.consistent().await;
    }
}

#[tokio::test]
async fn a_column_that_must_have_a_value() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("with evidence");
    crew.dba
        .run(
            "update kslate.field set evidence = 'x' where evidence is null;
             alter table kslate.field alter evidence set not null",
        )
        .await;
    let refused = crew
        .diagnoser
        .call("write", "'incidents/inc-1', 'status', '\"mitigating\"', 2")
        .await
        .expect_err("no evidence");
    assert_eq!(refused.sqlstate, "23502", "{}", refused.message);
    let more = crew
        .diagnoser
        .call("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await;
    assert_eq!(more.expect_err("no evidence").sqlstate, "23502");
    crew.plan("2", 1).await.expect("with evidence");
    crew.consistent().await;
}

#[tokio::test]
async fn checks_that_take_the_place_of_ours() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "alter table kslate.claim drop constraint claim_state_check,
               add constraint mine check (lease_seconds < 100)",
        )
        .await;
    let refused = crew.worker.call("claim", &format!("{TASK}, 100")).await;
    assert_eq!(refused.expect_err("it is long").sqlstate, "23514");
    crew.worker.ok("claim", &format!("{TASK}, 99")).await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_table_that_is_somebodys_partition() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("a plain table");
    crew.dba
        .run(
            "create table public.parent (like kslate.field) partition by list (author);
             alter table public.parent attach partition kslate.field for values in ('apikey:diagnoser')",
        )
        .await;
    crew.plan("2", 1).await.expect("the diagnoser's");
    let refused = crew
        .worker
        .call("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await;
    assert_eq!(refused.expect_err("the worker's").sqlstate, "23514");
    crew.consistent().await;
}

#[tokio::test]
async fn columns_that_are_added_and_dropped() {
    let crew = Crew::new().await;
    let mut version = 0;
    for altered in [
        "alter table kslate.history add note text default 'noted'",
        "alter table kslate.field add note text default 'noted'",
        "alter table kslate.claim add note text default 'noted'",
        "alter table kslate.checkpoint add note text default 'noted'",
        "alter table kslate.record add note text default 'noted'",
        "alter table kslate.history drop note",
        "alter table kslate.field drop note",
        "alter table kslate.claim drop note",
        "alter table kslate.checkpoint drop note",
        "alter table kslate.record drop note",
    ] {
        crew.dba.run(altered).await;
        crew.plan("1", version).await.expect(altered);
        version += 1;
        let id = crew.claim(60).await;
        crew.worker.ok("renew", &format!("{TASK}, {id}, 90")).await;
        crew.worker
            .ok(
                "checkpoint_save",
                &format!("'incidents/inc-1', '{DOCUMENT}'"),
            )
            .await;
        crew.worker
            .ok("complete", &format!("{TASK}, {id}, '1'"))
            .await;
        crew.worker.ok("reopen", TASK).await;
        let record = format!("'incidents/beside-{version}'");
        crew.diagnoser.ok("create", &record).await;
        crew.diagnoser
            .ok(
                "write",
                &format!("{record}, 'planned_action', '1', 0, 'why'"),
            )
            .await;
        if altered.contains(" add ") {
            let table = altered.split(' ').nth(2).expect("a table");
            let noted = format!("select count(*) > 0 and bool_and(note = 'noted') from {table}");
            assert_eq!(crew.dba.run(&noted).await, "t", "{altered}");
        }
    }
    crew.consistent().await;
}

#[tokio::test]
async fn triggers_of_our_names_that_are_not_ours() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "create function public.no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
             create trigger z_history after insert on kslate.history for each row execute function public.no()",
        )
        .await;
    let refused = crew.plan("1", 0).await.expect_err("it fires");
    assert_eq!(refused, "P0001 no");
    crew.dba
        .run(
            "drop trigger z_history on kslate.history;
             create or replace trigger a_version before insert or update on kslate.field
               for each row execute function public.no()",
        )
        .await;
    let refused = crew.plan("1", 0).await.expect_err("it fires");
    assert_eq!(refused, "P0001 no");
}

#[tokio::test]
async fn rules_and_policies() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("nothing is in the way");
    crew.dba
        .run(
            "create table public.shipped (like kslate.history);
             grant insert on public.shipped to kslate_owner;
             create rule ship as on insert to kslate.history do also insert into public.shipped values (new.*)",
        )
        .await;
    crew.plan("2", 1).await.expect("it is shipped as well");
    assert_eq!(
        crew.dba
            .run("select value from public.shipped order by record_version")
            .await,
        "2"
    );
    crew.dba
        .run(
            "drop rule ship on kslate.history;
             alter table kslate.field enable row level security, force row level security;
             create policy others on kslate.field using (field <> 'planned_action')",
        )
        .await;
    crew.plan("3", 2).await.expect_err("it is hidden");
    crew.dba
        .run("alter table kslate.field disable row level security, no force row level security")
        .await;
    crew.plan("3", 2).await.expect("nothing was changed");
    crew.consistent().await;
}

#[tokio::test]
async fn a_trigger_that_holds_changes_back() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("nothing is in the way");
    let id = crew.claim(60).await;
    crew.dba
        .run("create function public.nothing() returns trigger language plpgsql as 'begin return null; end'")
        .await;
    for table in ["record", "field", "claim", "history"] {
        crew.dba
            .run(&format!(
                "create trigger zz before insert or update on kslate.{table} for each row execute function public.nothing()"
            ))
            .await;
        let beside = format!("'incidents/{table}', '{{\"planned_action\": 1}}', 'why'");
        crew.diagnoser
            .refused("UNAVAILABLE", "create", &beside)
            .await;
        let (before, rows) = (
            crew.version().await,
            crew.history("count(*) over ()", 1).await,
        );
        if table != "claim" {
            let write = format!("{PLAN}, '2', 1, 'because'");
            crew.diagnoser.refused("UNAVAILABLE", "write", &write).await;
            let complete = format!("{TASK}, {id}, '1'");
            crew.worker
                .refused("UNAVAILABLE", "complete", &complete)
                .await;
        } else {
            let renew = format!("{TASK}, {id}, 90");
            crew.worker.refused("UNAVAILABLE", "renew", &renew).await;
            crew.worker
                .refused("UNAVAILABLE", "release", &format!("{TASK}, {id}"))
                .await;
        }
        crew.dba
            .run(&format!("drop trigger zz on kslate.{table}"))
            .await;
        assert_eq!(crew.version().await, before, "{table}");
        assert_eq!(crew.history("count(*) over ()", 1).await, rows, "{table}");
        crew.diagnoser.ok("create", &beside).await;
        crew.consistent().await;
    }
    crew.plan("2", 1).await.expect("nothing was changed");
    crew.worker.ok("release", &format!("{TASK}, {id}")).await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_trigger_that_counts_for_itself() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "create function public.twice() returns trigger language plpgsql as
               'begin new.version := new.version + 1; return new; end';
             create trigger zz before update on kslate.record for each row execute function public.twice()",
        )
        .await;
    let write = format!("{PLAN}, '1', 0, 'because'");
    crew.diagnoser.refused("UNAVAILABLE", "write", &write).await;
    crew.worker.refused("UNAVAILABLE", "claim", TASK).await;
    crew.dba.run("drop trigger zz on kslate.record").await;
    crew.plan("1", 0).await.expect("nothing was changed");
    crew.consistent().await;
}

#[tokio::test]
async fn a_trigger_on_the_record_that_changes_what_is_being_changed() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("nothing is in the way");
    crew.dba
        .run(
            "create function public.again() returns trigger language plpgsql security definer as $$
             begin
               if pg_trigger_depth() = 1 then
                 perform public.kslate_write(new.record, 'hypotheses', to_jsonb(new.version),
                   coalesce((select version from kslate.field where record = new.record and field = 'hypotheses'), 0),
                   'why', identity => 'apikey:diagnoser');
               end if;
               return null;
             end $$;
             create trigger zz after update on kslate.record for each row execute function public.again()",
        )
        .await;
    // By one statement, which sees the row as it was when it began: either is right, a row that was changed in between is not.
    let done = crew
        .diagnoser
        .call(
            "write",
            "'incidents/inc-1', 'hypotheses', '\"mine\"', 0, 'why'",
        )
        .await;
    if let Err(refused) = done {
        assert_ne!(refused.sqlstate, "55000", "{}", refused.message);
    }
    crew.plan("2", 1).await.expect("another field");
    crew.dba.run("drop trigger zz on kslate.record").await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_row_that_got_another_key_while_it_was_waited_for() {
    let crew = Crew::new().await;
    crew.plan("1", 0).await.expect("nothing is in the way");
    let hand = kslate_tests::Session::login(&crew.database, "postgres").await;
    hand.run(
        "begin; set local session_replication_role = replica;
         update kslate.field set field = 'renamed' where field = 'planned_action'",
    )
    .await;
    let waiting = crew
        .diagnoser
        .begin("write", &format!("{PLAN}, '2', 1, 'why'"));
    crew.dba.sees_waiting(&crew.diagnoser).await;
    hand.run("commit").await;
    let refused = waiting.await.expect("no panic").expect_err("it is gone");
    refused.is("VERSION_CONFLICT");
    assert_eq!(
        crew.dba
            .run("select value from kslate.field where field = 'renamed'")
            .await,
        "1"
    );
    let claim = crew.worker.ok("claim", TASK).await;
    crew.worker
        .ok("release", &format!("{TASK}, {}", claim_id(&claim)))
        .await;
}

#[tokio::test]
async fn a_trigger_that_changes_first_values() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "create function public.seven() returns trigger language plpgsql as
               $$ begin new.value := '7.10'; return new; end $$;
             create trigger zz before insert on kslate.field for each row
               when (new.field = 'planned_action') execute function public.seven()",
        )
        .await;
    let first = r#"'incidents/beside', '{"planned_action": 1, "hypotheses": [2.50]}', 'why'"#;
    crew.diagnoser.ok("create", first).await;
    let created = "select value from kslate.history where record = 'incidents/beside'";
    assert_eq!(
        crew.dba.run(created).await,
        r#"{"status": "open", "hypotheses": [2.50], "planned_action": 7.10}"#
    );
    crew.consistent().await;
}
