//! Triggers that somebody else has hung on our tables: they fire, and a change is the same with them as without.
//!
//! kslate changes single rows without a statement where the tables have its own triggers only (kslate-pg/src/rows), and by
//! statements where they have others. Without `ours` in `rows::update`, the statement triggers here see nothing.
//!
//! Such a trigger may call kslate itself, on the record that is being changed: tests/mutants/versions_counted_in_memory shows that
//! the second change of a write_many then counts on from the row, not from its first.

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};

const TABLES: [&str; 4] = ["record", "field", "claim", "history"];

/// Every kind of change, on a record of its own; gives its history without what is new each time.
async fn work(crew: &Crew, record: &str) -> String {
    crew.diagnoser.ok("create", &format!("'{record}'")).await;
    let (diagnoser, worker) = (&crew.diagnoser, &crew.worker);
    diagnoser
        .ok(
            "write",
            &format!(r#"'{record}', 'planned_action', '"a"', 0, 'why'"#),
        )
        .await;
    diagnoser
        .ok(
            "write",
            &format!(r#"'{record}', 'planned_action', '"b"', 1, 'why'"#),
        )
        .await;
    diagnoser
        .refused(
            "VERSION_CONFLICT",
            "write",
            &format!(r#"'{record}', 'planned_action', '"c"', 1, 'why'"#),
        )
        .await;
    diagnoser
        .ok(
            "write_many",
            &format!(
                r#"'{record}', '[{{"field":"hypotheses","value":1,"expected_version":0}},
                   {{"field":"status","value":"mitigating","expected_version":1}}]'"#
            ),
        )
        .await;
    let task = format!("'{record}', 'remediation'");
    let claim = worker.ok("claim", &format!("{task}, 60")).await;
    let id = format!("'{}'", claim["claim_id"].as_str().expect("a claim_id"));
    worker.ok("renew", &format!("{task}, {id}, 90")).await;
    worker
        .ok(
            "append",
            &format!("'{record}', 'actions_taken', '1', claim_id => {id}"),
        )
        .await;
    worker
        .ok(
            "append",
            &format!("'{record}', 'actions_taken', '2', claim_id => {id}"),
        )
        .await;
    worker
        .ok("checkpoint_save", &format!("'{record}', '{DOCUMENT}'"))
        .await;
    worker
        .ok("release", &format!("{task}, {id}, 'a pause'"))
        .await;
    let claim = worker.ok("claim", &task).await;
    let id = format!("'{}'", claim["claim_id"].as_str().expect("a claim_id"));
    worker
        .ok("complete", &format!("{task}, {id}, '\"done\"'"))
        .await;
    worker.ok("reopen", &task).await;
    worker
        .ok(
            "write",
            &format!(r#"'{record}', 'status', '"resolved"', 2"#),
        )
        .await;
    crew.dba
        .run(&format!(
            "select record_version, op, field, version, value, author, role, evidence, epoch, took_over_from, reason, login
             from kslate.history where record = '{record}' order by record_version"
        ))
        .await
}

#[tokio::test]
async fn a_change_is_the_same_beside_them_and_they_see_it() {
    let crew = Crew::new().await;
    let alone = work(&crew, "incidents/alone").await;
    crew.dba
        .run(
            "create table public.seen (tab text, kind text, rows bigint);
             grant insert on public.seen to public;
             create function public.watch() returns trigger language plpgsql as $$
             begin
               if tg_level = 'STATEMENT' then
                 insert into public.seen values (tg_table_name, 'statement', (select count(*) from landed));
               else
                 insert into public.seen values (tg_table_name, 'column', 1);
               end if;
               return null;
             end $$",
        )
        .await;
    for table in TABLES {
        crew.dba
            .run(&format!(
                "create trigger zz_inserted after insert on kslate.{table} referencing new table as landed
                   for each statement execute function public.watch();
                 create trigger zz_updated after update on kslate.{table} referencing new table as landed
                   for each statement execute function public.watch()"
            ))
            .await;
    }
    crew.dba
        .run(
            "create trigger zz_value after update of value on kslate.field for each row execute function public.watch()",
        )
        .await;
    let beside = work(&crew, "incidents/beside").await;
    assert_eq!(alone, beside);
    let seen = crew
        .dba
        .run("select tab, kind, sum(rows) from public.seen group by 1, 2 order by 1, 2")
        .await;
    let history = beside.lines().count();
    assert!(history > 10, "{beside}");
    assert!(
        seen.contains(&format!("history|statement|{history}")),
        "{seen}"
    );
    for expected in [
        "claim|statement|",
        "field|column|",
        "field|statement|",
        "record|statement|",
    ] {
        assert!(seen.contains(expected), "{expected} in {seen}");
    }
    crew.consistent().await;
}

/// Hangs a superuser's trigger on history, `kind` as SQL, instead of the one before. `body` sees the new row as `new`.
async fn hang(crew: &Crew, kind: &str, rights: &str, body: &str) {
    let timing = if kind == "constraint trigger" {
        "deferrable initially deferred"
    } else {
        ""
    };
    crew.dba
        .run(&format!(
            "drop trigger if exists zz_scribe on kslate.history;
             create or replace function public.scribe() returns trigger language plpgsql {rights}
               set search_path = pg_catalog, public as $$ begin {body} return null; end $$;
             create {kind} zz_scribe after insert on kslate.history {timing} for each row execute function public.scribe()"
        ))
        .await;
}

/// An entry for each change of somebody else's.
const NOTE: &str =
    "if new.author <> 'apikey:remediator/scribe' then
       perform kslate_append(new.record, 'actions_taken', to_jsonb(new.record_version), identity => 'apikey:remediator/scribe');
     end if;";

/// The changes that are not the scribe's, less what counts.
async fn changes(crew: &Crew, record: &str) -> String {
    crew.dba
        .run(&format!(
            "select op, field, value, author, role, evidence, epoch, took_over_from, reason, login from kslate.history
             where record = '{record}' and author <> 'apikey:remediator/scribe' order by record_version"
        ))
        .await
}

#[tokio::test]
async fn a_trigger_on_history_may_append_to_the_record() {
    let crew = Crew::new().await;
    work(&crew, "incidents/alone").await;
    let alone = changes(&crew, "incidents/alone").await;
    for (kind, record) in [
        ("trigger", "incidents/at-once"),
        ("constraint trigger", "incidents/at-commit"),
    ] {
        hang(&crew, kind, "security definer", NOTE).await;
        work(&crew, record).await;
        assert_eq!(changes(&crew, record).await, alone, "{kind}");
        let noted = crew
            .dba
            .run(&format!(
                "select count(*), count(*) filter (where noted.record_version is not null) from kslate.history told
                 left join kslate.history noted on noted.record = told.record and noted.op = 'append'
                   and noted.author = 'apikey:remediator/scribe' and noted.value = to_jsonb(told.record_version)
                   and noted.record_version > told.record_version
                 where told.record = '{record}' and told.author <> 'apikey:remediator/scribe'"
            ))
            .await;
        let all = alone.lines().count();
        assert_eq!(noted, format!("{all}|{all}"), "{kind}");
    }
    crew.consistent().await;
}

#[tokio::test]
async fn each_answer_is_about_the_change_that_was_asked_for() {
    let crew = Crew::new().await;
    hang(&crew, "trigger", "security definer", NOTE).await;
    let made = crew
        .diagnoser
        .ok(
            "write_many",
            r#"'incidents/inc-1', '[{"field":"hypotheses","value":1,"expected_version":0},
               {"field":"status","value":"mitigating","expected_version":1}]'"#,
        )
        .await;
    let appended = crew
        .worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '\"mine\"'")
        .await;
    let told = [
        ("hypotheses", &made["changes"][0]),
        ("status", &made["changes"][1]),
        ("actions_taken", &appended),
    ]
    .map(|(field, row)| format!("{}|{field}|{}", row["record_version"], row["version"]));
    assert_eq!(
        crew.dba
            .run(
                "select record_version, field, version from kslate.history
                 where record = 'incidents/inc-1' and record_version > 0 and author <> 'apikey:remediator/scribe'
                 order by record_version"
            )
            .await,
        told.join("\n")
    );
    crew.consistent().await;
}

#[tokio::test]
async fn a_trigger_on_history_may_change_what_has_just_changed() {
    let crew = Crew::new().await;
    hang(
        &crew,
        "trigger",
        "security definer",
        "if new.field = 'planned_action' and new.author = 'apikey:diagnoser' then
           perform kslate_write(new.record, new.field, '\"better\"', new.version, 'why', identity => 'apikey:diagnoser/scribe');
         elsif new.op = 'claim' then
           perform kslate_release(new.record, new.field, k.claim_id, identity => new.author)
             from kslate.claim k where k.record = new.record and k.field = new.field;
         end if;",
    )
    .await;
    let planned = "'incidents/inc-1', 'planned_action', '\"good\"'";
    let made = crew
        .diagnoser
        .ok("write", &format!("{planned}, 0, 'why'"))
        .await;
    assert_eq!(
        (&made["version"], &made["record_version"]),
        (&1.into(), &1.into())
    );
    let conflict = crew
        .diagnoser
        .refused("VERSION_CONFLICT", "write", &format!("{planned}, 1, 'why'"))
        .await;
    assert_eq!(conflict["current_version"], 2, "{conflict}");
    assert_eq!(conflict["value"], "better", "{conflict}");
    // A claim that was over before its answer came.
    let task = "'incidents/inc-1', 'remediation'";
    let claim = crew.worker.ok("claim", task).await;
    crew.worker
        .refused(
            "LEASE_LOST",
            "renew",
            &format!("{task}, {}", claim_id(&claim)),
        )
        .await;
    assert_eq!(crew.history("op", 4).await, "release\nclaim\nwrite\nwrite");
    crew.consistent().await;
}

#[tokio::test]
async fn a_trigger_on_history_that_fails_takes_the_change_with_it() {
    let crew = Crew::new().await;
    let write = r#"'incidents/inc-1', '[{"field":"hypotheses","value":1,"expected_version":0},
        {"field":"status","value":"mitigating","expected_version":1}]'"#;
    let calls_itself =
        "perform kslate_append(new.record, 'actions_taken', '1', identity => 'apikey:remediator/scribe');";
    let takes_the_next_version =
        "if new.field = 'hypotheses' then
           perform kslate_write(new.record, 'status', '\"mitigating\"', 1, identity => 'apikey:remediator/scribe');
         end if;";
    let before = crew.history("*", 100).await;
    for (rights, body, sqlstate, says) in [
        // Without rights of its own it has those of the tables' owner, who may not call the functions.
        (
            "security invoker",
            NOTE,
            "42501",
            "permission denied for function kslate_append",
        ),
        (
            "security definer",
            calls_itself,
            "54001",
            "stack depth limit exceeded",
        ),
        (
            "security definer",
            takes_the_next_version,
            "55000",
            "status is at version 2",
        ),
    ] {
        hang(&crew, "trigger", rights, body).await;
        for _ in 0..2 {
            let refused = crew
                .diagnoser
                .call("write_many", write)
                .await
                .expect_err(says);
            assert_eq!(refused.sqlstate, sqlstate, "{refused:?}");
            assert!(refused.message.contains(says), "{refused:?}");
            assert_eq!(crew.history("*", 100).await, before, "{body}");
        }
    }
    // Who catches what fails has undone that alone.
    hang(
        &crew,
        "trigger",
        "security definer",
        &format!("begin {NOTE} raise 'no'; exception when others then null; end;"),
    )
    .await;
    crew.diagnoser.ok("write_many", write).await;
    assert_eq!(
        crew.history("op, field", 2).await,
        "write|status\nwrite|hypotheses"
    );
    assert_eq!(crew.version().await, 2);
    // The session is what it was.
    crew.dba
        .run("drop trigger zz_scribe on kslate.history")
        .await;
    assert_eq!(
        crew.diagnoser
            .run("select current_user, current_setting('search_path'), current_setting('enable_seqscan')")
            .await,
        "kslate_server|\"$user\", public|on"
    );
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'hypotheses', '2', 1")
        .await;
    crew.consistent().await;
}
