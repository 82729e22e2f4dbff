//! Constraints and indexes that somebody else has put on our tables: they hold for our changes, and what they call looks
//! names up where our statements do, not where the caller does.
//!
//! A row of a plain table is changed past all of that (kslate-pg/src/rows/strangers.rs). With `none_in_constraints` always true the
//! checks here are not made; without `pin_path` in `rows::Table::update` the caller's function runs with the rights of the tables'
//! owner.

use kslate_tests::crew::Crew;

/// Writes of `planned_action` one after the other, for which the value is SQL text.
async fn write(crew: &Crew, version: u32, value: &str) -> Result<(), String> {
    let arguments =
        format!("'incidents/inc-1', 'planned_action', '\"{value}\"', {version}, 'because'");
    let done = crew.diagnoser.call("write", &arguments).await;
    done.map(drop)
        .map_err(|refused| format!("{} {}", refused.sqlstate, refused.message))
}

#[tokio::test]
async fn a_check_of_somebody_elses_holds() {
    let crew = Crew::new().await;
    write(&crew, 0, "before them").await.expect("it is free");
    crew.dba
        .run(
            "alter table kslate.field add constraint short check (length(value::text) < 20);
             alter table kslate.claim add constraint brief check (lease_seconds < 100)",
        )
        .await;
    write(&crew, 1, "short").await.expect("it is short");
    let refused = write(&crew, 2, "much too long for somebody").await;
    let refused = refused.expect_err("it is long");
    assert!(
        refused.starts_with("23514 ") && refused.contains("\"short\""),
        "{refused}"
    );
    let task = "'incidents/inc-1', 'remediation'";
    let refused = crew.worker.call("claim", &format!("{task}, 100")).await;
    assert_eq!(refused.expect_err("it is long").sqlstate, "23514");
    crew.worker.ok("claim", &format!("{task}, 99")).await;
    write(&crew, 2, "short too")
        .await
        .expect("nothing was changed");
    crew.consistent().await;
}

#[tokio::test]
async fn what_an_index_calls_is_not_the_callers() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "create function kslate.mark() returns text language sql immutable as $$ select 'ours' $$;
             create schema callers;
             create function callers.mark() returns text language plpgsql immutable as $$
             begin raise exception 'the caller''s function ran as %', current_user; end $$;
             grant usage on schema callers to public;
             create function public.marked(jsonb) returns text language plpgsql immutable as $$
             begin
               -- From PostgreSQL 17 on an index is built where no name of ours is found.
               if to_regprocedure('mark()') is null then return 'built'; end if;
               return mark() || $1::text;
             end $$;
             set search_path = kslate, public;
             create index marks on kslate.field (public.marked(value));
             reset search_path",
        )
        .await;
    crew.diagnoser
        .run("set search_path = callers, public, pg_catalog")
        .await;
    for version in 0..3 {
        let written = write(&crew, version, &format!("value {version}")).await;
        written.expect("the index finds our function");
    }
    assert_eq!(
        crew.dba
            .run(
                "set search_path = kslate, public; set enable_seqscan = off;
                 select count(*) from kslate.field where public.marked(value) = 'ours\"value 2\"'"
            )
            .await,
        "1"
    );
    crew.consistent().await;
}
