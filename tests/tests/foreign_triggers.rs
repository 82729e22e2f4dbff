//! Triggers that somebody else has hung on our tables: they fire, and a change is the same with them as without.
//!
//! kslate changes single rows without a statement where the tables have its own triggers only (kslate-pg/src/rows), and by
//! statements where they have others. Without `has_only_own_triggers` in `rows::update`, the statement triggers here see nothing.

use kslate_tests::crew::{Crew, DOCUMENT};

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
