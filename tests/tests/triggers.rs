//! Whoever reaches the tables: a hand's change of a value has versions, history and the gate, like the API's.

use kslate_tests::crew::{role, Crew, DOCUMENT};
use kslate_tests::{Database, Session};
use std::sync::Arc;

const STATUS: &str = "record = 'incidents/inc-1' and field = 'status'";

/// A login that may do with the tables what a DBA grants, and holds no role of kslate.
async fn plain_dba(database: &Database<'_>) -> Arc<Session> {
    role(database, "plain_dba", "login", "");
    database.psql(
        "postgres",
        "grant usage on schema kslate to plain_dba;
         grant select, insert, update, delete, truncate on all tables in schema kslate to plain_dba",
    );
    Session::login(database, "plain_dba").await
}

/// The columns of kslate.field that a hand must not be able to make up.
async fn field(crew: &Crew, field: &str) -> String {
    crew.dba
        .run(&format!(
            "select value, version, author, coalesce(role, '-'), coalesce(evidence, '-'), record_version from kslate.field
             where record = 'incidents/inc-1' and field = '{field}'"
        ))
        .await
}

#[tokio::test]
async fn an_update_by_hand_is_a_change_like_any_other() {
    let crew = Crew::new().await;
    let plain = plain_dba(&crew.database).await;
    for (hand, name) in [(&crew.dba, "postgres"), (&plain, "plain_dba")] {
        let before = crew.version().await;
        hand.run(&format!(
            r#"update kslate.field set value = '"mitigating"', evidence = 'seen by {name}' where {STATUS}"#
        ))
        .await;
        let version = before + 1;
        assert_eq!(crew.version().await, version);
        assert_eq!(
            field(&crew, "status").await,
            format!(
                r#""mitigating"|{}|pg:{name}|-|seen by {name}|{version}"#,
                version + 1
            )
        );
        assert_eq!(
            crew.history("record_version, op, field, version, value, author, coalesce(role, '-'), evidence, login", 1).await,
            format!(r#"{version}|write|status|{}|"mitigating"|pg:{name}|-|seen by {name}|{name}"#, version + 1)
        );
    }
    // What the hand says about version, author, role, record version and time is not believed; old evidence does not stay.
    crew.dba
        .run(&format!(
            r#"update kslate.field set value = '"open"', version = 77, author = 'apikey:diagnoser', role = 'diagnoser',
               record_version = 77, changed_at = '2001-01-01' where {STATUS}"#
        ))
        .await;
    assert_eq!(
        field(&crew, "status").await,
        r#""open"|4|pg:postgres|-|-|3"#
    );
    assert_eq!(
        crew.history("changed_at > now() - interval '1 hour'", 1)
            .await,
        "t"
    );
    crew.diagnoser
        .refused(
            "VERSION_CONFLICT",
            "write",
            r#"'incidents/inc-1', 'status', '"open"', 1"#,
        )
        .await;
    crew.diagnoser
        .ok("write", r#"'incidents/inc-1', 'status', '"mitigating"', 4"#)
        .await;
    crew.consistent().await;
}

#[tokio::test]
async fn the_person_behind_set_role_stays_in_history() {
    let crew = Crew::new().await;
    plain_dba(&crew.database).await;
    crew.dba
        .run(&format!(
            r#"set role plain_dba; update kslate.field set value = '"mitigating"' where {STATUS}; reset role"#
        ))
        .await;
    assert_eq!(
        crew.history("author, login", 1).await,
        "pg:plain_dba|postgres"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn an_insert_by_hand_is_version_1() {
    let crew = Crew::new().await;
    let plain = plain_dba(&crew.database).await;
    plain
        .run(
            r#"insert into kslate.field (record, field, value, version, author, record_version, changed_at, evidence)
               values ('incidents/inc-1', 'hypotheses', '["disk"]', 9, 'apikey:x', 9, now(), 'e')"#,
        )
        .await;
    assert_eq!(
        field(&crew, "hypotheses").await,
        r#"["disk"]|1|pg:plain_dba|-|e|1"#
    );
    assert_eq!(
        crew.history("op, field, version, author", 1).await,
        "write|hypotheses|1|pg:plain_dba"
    );
    let nowhere = plain
        .sql("insert into kslate.field (record, field, value) values ('incidents/none', 'hypotheses', '1')")
        .await
        .expect_err("no such record");
    nowhere.is("NOT_FOUND");
    let nothing = plain
        .sql("insert into kslate.field (record, field, value) values ('incidents/inc-1', 'nothing', '1')")
        .await
        .expect_err("no such field");
    nothing.is("NOT_FOUND");
    crew.consistent().await;
}

#[tokio::test]
async fn on_conflict_counts_once_or_not_at_all() {
    let crew = Crew::new().await;
    let insert =
        "insert into kslate.field (record, field, value) values ('incidents/inc-1', 'hypotheses',";
    for n in 1..=3 {
        crew.dba
            .run(&format!(
                "{insert} '{n}') on conflict (record, field) do update set value = excluded.value"
            ))
            .await;
        assert_eq!(crew.version().await, n);
        assert_eq!(
            field(&crew, "hypotheses").await,
            format!("{n}|{n}|pg:postgres|-|-|{n}")
        );
    }
    crew.dba
        .run(&format!("{insert} '9') on conflict do nothing"))
        .await;
    assert_eq!(crew.version().await, 3, "nothing was done");
    crew.dba
        .run("insert into kslate.field (record, field, value) values ('incidents/inc-1', 'planned_action', '1') on conflict do nothing")
        .await;
    assert_eq!(crew.version().await, 4, "something was done");
    crew.dba
        .run(&format!(
            "{insert} '9') on conflict (record, field) do update set value = '9' where false"
        ))
        .await;
    assert_eq!(crew.version().await, 4, "the condition does not hold");
    crew.consistent().await;
}

#[tokio::test]
async fn merge_and_multi_row_statements_count_each_row() {
    let crew = Crew::new().await;
    crew.diagnoser.ok("create", "'incidents/inc-2'").await;
    crew.dba
        .run(
            "merge into kslate.field f
             using (values ('incidents/inc-1', 'status', '\"mitigating\"'), ('incidents/inc-1', 'hypotheses', '1'),
                           ('incidents/inc-2', 'planned_action', '2')) v (record, field, value)
             on f.record = v.record and f.field = v.field
             when matched then update set value = v.value::jsonb
             when not matched then insert (record, field, value) values (v.record, v.field, v.value::jsonb)",
        )
        .await;
    assert_eq!(crew.version().await, 2);
    crew.dba
        .run("update kslate.field set value = value where record like 'incidents/%'")
        .await;
    crew.dba
        .run(
            "insert into kslate.field (record, field, value)
             values ('incidents/inc-1', 'planned_action', '1'), ('incidents/inc-2', 'hypotheses', '1')",
        )
        .await;
    assert_eq!(crew.version().await, 5);
    assert_eq!(
        crew.dba
            .run("select record, version from kslate.record order by 1")
            .await,
        "incidents/inc-1|5\nincidents/inc-2|4"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn copy_is_an_insert() {
    let crew = Crew::new().await;
    crew.dba
        .run("copy kslate.field (record, field, value) from program 'printf \"incidents/inc-1\\thypotheses\\t[1]\\nincidents/inc-1\\tplanned_action\\t2\\n\"'")
        .await;
    assert_eq!(field(&crew, "hypotheses").await, "[1]|1|pg:postgres|-|-|1");
    assert_eq!(crew.version().await, 2);
    crew.consistent().await;
}

#[tokio::test]
async fn entries_added_by_hand_are_counted() {
    let crew = Crew::new().await;
    crew.worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '\"one\"'")
        .await;
    crew.dba
        .run("update kslate.field set value = '\"two\"' where field = 'actions_taken'")
        .await;
    let third = crew
        .worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '\"three\"'")
        .await;
    assert_eq!(third["version"], 3);
    let entries = crew
        .worker
        .rows("entries", "'incidents/inc-1', 'actions_taken'")
        .await
        .expect("entries");
    let told: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {} {}", entry["seq"], entry["value"], entry["author"]))
        .collect();
    assert_eq!(
        told,
        [
            r#"1 "one" "apikey:remediator/worker-1""#,
            r#"2 "two" "pg:postgres""#,
            r#"3 "three" "apikey:remediator/worker-1""#
        ]
    );
    crew.consistent().await;
}

#[tokio::test]
async fn the_gate_holds_whoever_writes_and_however() {
    let crew = Crew::new().await;
    let plain = plain_dba(&crew.database).await;
    let update = format!(r#"update kslate.field set value = '"resolved"' where {STATUS}"#);
    let upsert = r#"insert into kslate.field (record, field, value) values ('incidents/inc-1', 'status', '"resolved"')
                    on conflict (record, field) do update set value = excluded.value"#;
    let merge = r#"merge into kslate.field f using (select 'incidents/inc-1' as record) v
                   on f.record = v.record and f.field = 'status' when matched then update set value = '"resolved"'"#;
    for hand in [&crew.dba, &plain] {
        for sql in [update.as_str(), upsert, merge] {
            let refused = hand.sql(sql).await.expect_err(sql);
            let detail = refused.is("INVALID_CHECKPOINT");
            assert_eq!(
                detail.to_string(),
                r#"{"error":"INVALID_CHECKPOINT","field":"status","message":"required role(s) have not checkpointed this record yet: remediator","record":"incidents/inc-1"}"#
            );
        }
    }
    crew.diagnoser
        .refused(
            "INVALID_CHECKPOINT",
            "write",
            r#"'incidents/inc-1', 'status', '"resolved"', 1"#,
        )
        .await;
    assert_eq!(crew.version().await, 0, "a refusal leaves nothing");
    // Other fields may say what they like, and status may say other things.
    plain
        .run(
            r#"insert into kslate.field (record, field, value) values ('incidents/inc-1', 'hypotheses', '"resolved"')"#,
        )
        .await;
    plain
        .run(&format!(
            r#"update kslate.field set value = '{{"is": "resolved"}}' where {STATUS}"#
        ))
        .await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    plain.run(&update).await;
    assert_eq!(
        crew.history("op, value, author", 1).await,
        r#"write|"resolved"|pg:plain_dba"#
    );
    crew.consistent().await;
}

#[tokio::test]
async fn the_gate_holds_for_an_insert() {
    let crew = Crew::new().await;
    // A class whose status has no initial value: its row is inserted.
    let class = "class: plain\nroles: { a: [apikey:diagnoser], b: [apikey:b] }\nfields:\n  \
                 status: { mode: lww, write: [a] }\ncheckpoint: { required: [b, a] }\n";
    crew.dba
        .run(&format!("select from kslate_class_apply('{class}')"))
        .await;
    crew.diagnoser.ok("create", "'plain/x'").await;
    for sql in [
        r#"insert into kslate.field (record, field, value) values ('plain/x', 'status', '"resolved"')"#,
        r#"insert into kslate.field (record, field, value) values ('plain/x', 'status', '"resolved"') on conflict do nothing"#,
        r#"select from kslate_write('plain/x', 'status', '"resolved"', identity => 'apikey:diagnoser')"#,
        r#"select from kslate_create('plain/y', '{"status":"resolved"}', identity => 'apikey:diagnoser')"#,
        r#"select from kslate_write_many('plain/x', '[{"field":"status","value":"resolved"}]', identity => 'apikey:diagnoser')"#,
    ] {
        let session = if sql.starts_with("insert") {
            &crew.dba
        } else {
            &crew.diagnoser
        };
        let detail = session
            .sql(sql)
            .await
            .expect_err(sql)
            .is("INVALID_CHECKPOINT");
        let message = detail["message"].as_str().expect("a message");
        assert!(
            message.ends_with(": b, a"),
            "in the class's order: {message}"
        );
    }
    assert_eq!(
        crew.dba
            .run("select record, version from kslate.record where class = 'plain'")
            .await,
        "plain/x|0"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn what_is_resolved_already_does_not_meet_the_gate_again() {
    let crew = Crew::new().await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    crew.diagnoser
        .ok("write", r#"'incidents/inc-1', 'status', '"resolved"', 1"#)
        .await;
    // The class asks for more from now on.
    let source = crew
        .dba
        .run("select source from kslate.class where class = 'incidents' order by version desc limit 1")
        .await
        .replace("required: [remediator]", "required: [remediator, diagnoser]");
    crew.dba
        .run(&format!(
            "select from kslate_class_apply($yaml${source}$yaml$)"
        ))
        .await;
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await;
    crew.dba
        .run(&format!(
            "update kslate.field set evidence = 'still' where {STATUS}"
        ))
        .await;
    crew.dba
        .run("update kslate.field set value = '2' where field = 'hypotheses'")
        .await;
    crew.diagnoser
        .ok("write", r#"'incidents/inc-1', 'status', '"open"', 3"#)
        .await;
    crew.diagnoser
        .refused(
            "INVALID_CHECKPOINT",
            "write",
            r#"'incidents/inc-1', 'status', '"resolved"', 4"#,
        )
        .await;
    crew.consistent().await;
}

/// A trigger of somebody else's, on kslate.field, that sorts after ours.
async fn later_trigger(crew: &Crew, change: &str) {
    crew.dba
        .run(&format!(
            "create or replace function public.later() returns trigger language plpgsql as $$ begin {change}; return new; end $$;
             create or replace trigger zz_later before insert or update on kslate.field for each row execute function public.later()"
        ))
        .await;
}

#[tokio::test]
async fn a_later_trigger_cannot_walk_around_the_gate() {
    let crew = Crew::new().await;
    later_trigger(
        &crew,
        r#"if new.field = 'status' then new.value := '"resolved"'; end if"#,
    )
    .await;
    let by_hand = format!(r#"update kslate.field set value = '"mitigating"' where {STATUS}"#);
    crew.dba
        .sql(&by_hand)
        .await
        .expect_err("the final row is resolved")
        .is("INVALID_CHECKPOINT");
    crew.diagnoser
        .refused(
            "INVALID_CHECKPOINT",
            "write",
            r#"'incidents/inc-1', 'status', '"mitigating"', 1"#,
        )
        .await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_later_trigger_cannot_make_up_versions_keys_or_authors() {
    let crew = Crew::new().await;
    crew.diagnoser.ok("create", "'incidents/inc-2'").await;
    let by_hand = format!(r#"update kslate.field set value = '"mitigating"' where {STATUS}"#);
    let mut accepted = Vec::new();
    for change in [
        "new.version := new.version + 1",
        "new.version := new.version - 1",
        "new.record_version := new.record_version + 5",
        "new.record := 'incidents/inc-2'; new.field := 'hypotheses'",
        "new.field := 'hypotheses'",
        "new.author := 'apikey:diagnoser'",
        "new.role := 'diagnoser'",
    ] {
        later_trigger(&crew, change).await;
        crew.dba.run("begin").await;
        match crew.dba.sql(&by_hand).await {
            Ok(_) => accepted.push(change),
            Err(refused) => {
                refused.is("IMMUTABLE");
            }
        }
        crew.dba.run("rollback").await;
    }
    assert_eq!(accepted, [""; 0]);
    assert_eq!(crew.version().await, 0);
    crew.consistent().await;
}

#[tokio::test]
async fn keys_do_not_change_and_values_keep_their_limits() {
    let crew = Crew::new().await;
    for change in [
        "record = 'incidents/inc-2'",
        "field = 'hypotheses'",
        "field = 'status2'",
    ] {
        crew.dba
            .sql(&format!("update kslate.field set {change} where {STATUS}"))
            .await
            .expect_err(change)
            .is("IMMUTABLE");
    }
    crew.dba
        .sql(&format!(
            "update kslate.field set value = (repeat('[', 101) || repeat(']', 101))::jsonb where {STATUS}"
        ))
        .await
        .expect_err("too deep")
        .is("MALFORMED");
    crew.dba
        .sql(&format!(
            "update kslate.field set value = to_jsonb(repeat('x', 1048577)) where {STATUS}"
        ))
        .await
        .expect_err("too large")
        .is("PAYLOAD_TOO_LARGE");
    crew.consistent().await;
}

/// A task's value belongs to its claim: changed by hand, it must not leave the task unusable.
#[tokio::test]
async fn the_value_of_a_task_cannot_run_away_from_its_claim() {
    let crew = Crew::new().await;
    crew.dba
        .run("insert into kslate.field (record, field, value) values ('incidents/inc-1', 'remediation', '1')")
        .await;
    crew.consistent().await;
    let claim = crew.claim(60).await;
    crew.worker
        .ok(
            "complete",
            &format!("'incidents/inc-1', 'remediation', {claim}, '\"done\"'"),
        )
        .await;
    crew.dba
        .run("update kslate.field set value = '2' where field = 'remediation'")
        .await;
    crew.consistent().await;
    crew.worker
        .ok("reopen", "'incidents/inc-1', 'remediation'")
        .await;
    crew.consistent().await;
}
