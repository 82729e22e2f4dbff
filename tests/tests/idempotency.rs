//! Idempotency keys: the same request gives the first answer again and changes nothing; another request is a conflict.

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};
use kslate_tests::{assert_consistent, Cluster, Database, Session};
use serde_json::{json, Value};

/// Everything that a replay must leave as it is.
async fn state(dba: &Session) -> String {
    let mut all = String::new();
    for table in [
        "class",
        "record",
        "field",
        "claim",
        "checkpoint",
        "history",
        "idempotency",
    ] {
        all += &dba
            .run(&format!("select * from kslate.{table} t order by t::text"))
            .await;
    }
    all
}

/// Sends a request with a key, then again, then others under its key.
async fn replays(
    database: &Database<'_>,
    who: &Session,
    function: &str,
    arguments: &str,
    others: &[&str],
) -> Value {
    let dba = Session::login(database, "postgres").await;
    let key = format!("idempotency_key => 'key of {function}'");
    let first = who.ok(function, &format!("{arguments}, {key}")).await;
    let before = state(&dba).await;
    let again = who.ok(function, &format!("{arguments}, {key}")).await;
    assert_eq!(
        first.to_string(),
        again.to_string(),
        "{function}: byte for byte"
    );
    for other in others {
        let conflict = who
            .refused("IDEMPOTENCY_CONFLICT", function, &format!("{other}, {key}"))
            .await;
        let keys: Vec<&String> = conflict.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["error", "message", "record"], "{function}");
    }
    assert_eq!(state(&dba).await, before, "{function} left something");
    first
}

#[tokio::test]
async fn the_first_answer_again_for_each_operation() {
    let crew = Crew::new().await;
    let db = &crew.database;
    let task = "'incidents/inc-2', 'remediation'";
    replays(
        db,
        &crew.diagnoser,
        "create",
        r#"'incidents/inc-2', '{"hypotheses": [1]}', 'e'"#,
        &[
            r#"'incidents/inc-2', '{"hypotheses": [2]}', 'e'"#,
            r#"'incidents/inc-2', '{"hypotheses": [1]}', 'f'"#,
            r#"'incidents/inc-2'"#,
        ],
    )
    .await;
    replays(
        db,
        &crew.diagnoser,
        "write",
        r#"'incidents/inc-2', 'planned_action', '{"a": 1, "b": 1.0}', 0, 'e'"#,
        &[
            r#"'incidents/inc-2', 'planned_action', '{"a": 1, "b": 2}', 0, 'e'"#,
            r#"'incidents/inc-2', 'planned_action', '{"a": 1, "b": 1.0}', 1, 'e'"#,
            r#"'incidents/inc-2', 'planned_action', '{"a": 1, "b": 1.0}', 0, 'f'"#,
            r#"'incidents/inc-2', 'hypotheses', '{"a": 1, "b": 1.0}', 0, 'e'"#,
        ],
    )
    .await;
    replays(
        db,
        &crew.worker,
        "append",
        r#"'incidents/inc-2', 'actions_taken', '"one"'"#,
        &[
            r#"'incidents/inc-2', 'actions_taken', '"two"'"#,
            r#"'incidents/inc-2', 'actions_taken', '"one"', 'e'"#,
            r#"'incidents/inc-2', 'actions_taken', '"one"', expected_version => 0"#,
        ],
    )
    .await;
    replays(
        db,
        &crew.diagnoser,
        "write_many",
        r#"'incidents/inc-2', '[{"field":"hypotheses","value":1,"expected_version":1},{"field":"status","value":"mitigating","expected_version":1}]'"#,
        &[
            r#"'incidents/inc-2', '[{"field":"hypotheses","value":1,"expected_version":1}]'"#,
            r#"'incidents/inc-2', '[{"field":"status","value":"mitigating","expected_version":1},{"field":"hypotheses","value":1,"expected_version":1}]'"#,
        ],
    )
    .await;
    replays(
        db,
        &crew.worker,
        "checkpoint_save",
        &format!("'incidents/inc-2', '{DOCUMENT}'"),
        &[
            &format!("'incidents/inc-2', '{DOCUMENT}', seen_version => 0"),
            &format!("'incidents/inc-2', '{DOCUMENT}', 'remediator'"),
            &format!(
                "'incidents/inc-2', '{}'",
                DOCUMENT.replace("\"p\"", "\"q\"")
            ),
        ],
    )
    .await;
    let claimed = replays(
        db,
        &crew.worker,
        "claim",
        &format!("{task}, 600"),
        &[task, &format!("{task}, 601"), &format!("{task}, 600, true")],
    )
    .await;
    let id = claim_id(&claimed);
    // Not another grant: the claim of the first answer is the live one.
    crew.worker.ok("renew", &format!("{task}, {id}")).await;
    replays(
        db,
        &crew.worker,
        "release",
        &format!("{task}, {id}"),
        &[&format!("{task}, {id}, 'r'")],
    )
    .await;
    let id = claim_id(&crew.worker.ok("claim", task).await);
    replays(
        db,
        &crew.worker,
        "complete",
        &format!("{task}, {id}, '1'"),
        &[
            &format!("{task}, {id}, '2'"),
            &format!("{task}, {id}, '1', 'e'"),
            &format!("{task}, '00000000-0000-4000-8000-000000000000', '1'"),
        ],
    )
    .await;
    replays(
        db,
        &crew.worker,
        "reopen",
        &format!("{task}, 'r'"),
        &[task, &format!("{task}, 's'")],
    )
    .await;
    crew.consistent().await;
}

#[tokio::test]
async fn the_first_answer_again_for_a_forced_release() {
    let database = Cluster::shared().fresh_database();
    let operator = Session::agent(&database, "operator").await;
    let migrator = Session::agent(&database, "migrator").await;
    operator.ok("create", "'migrations/m-1'").await;
    migrator.ok("claim", "'migrations/m-1', 'move'").await;
    let task = "'migrations/m-1', 'move'";
    replays(
        &database,
        &operator,
        "force_release",
        &format!("{task}, 1, 'r'"),
        &[&format!("{task}, 1, 's'"), &format!("{task}, 2, 'r'")],
    )
    .await;
    // Also when the task was claimed anew since.
    migrator.ok("claim", task).await;
    let again = operator
        .ok(
            "force_release",
            &format!("{task}, 1, 'r', idempotency_key => 'key of force_release'"),
        )
        .await;
    assert_eq!(
        (&again["epoch"], &again["released_from"]),
        (&json!(1), &json!("apikey:migrator"))
    );
    assert_consistent(&database).await;
}

#[tokio::test]
async fn an_operation_is_part_of_the_request() {
    let crew = Crew::new().await;
    let task = "'incidents/inc-1', 'remediation'";
    let id = crew.claim(60).await;
    crew.worker
        .ok("release", &format!("{task}, {id}, idempotency_key => 'k'"))
        .await;
    for (function, arguments) in [
        ("complete", format!("{task}, {id}")),
        ("claim", task.to_string()),
        (
            "append",
            "'incidents/inc-1', 'actions_taken', '1'".to_string(),
        ),
        (
            "checkpoint_save",
            format!("'incidents/inc-1', '{DOCUMENT}'"),
        ),
    ] {
        crew.worker
            .refused(
                "IDEMPOTENCY_CONFLICT",
                function,
                &format!("{arguments}, idempotency_key => 'k'"),
            )
            .await;
    }
    crew.consistent().await;
}

/// The same value is the same request, however it was written.
#[tokio::test]
async fn a_body_is_compared_as_a_json_value() {
    let crew = Crew::new().await;
    let first = crew
        .diagnoser
        .ok(
            "write",
            r#"'incidents/inc-1', 'hypotheses', '{"a": 1, "b": [1, 2]}', 0, idempotency_key => 'k'"#,
        )
        .await;
    for same in [r#"{ "b" : [1,2], "a" : 1 }"#, r#"{"a":9,"b":[1,2],"a":1}"#] {
        let again = crew
            .diagnoser
            .ok(
                "write",
                &format!("'incidents/inc-1', 'hypotheses', '{same}', 0, idempotency_key => 'k'"),
            )
            .await;
        assert_eq!(again.to_string(), first.to_string());
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_refused_request_is_not_remembered() {
    let crew = Crew::new().await;
    let write = |value: &str, version: u32| {
        format!("'incidents/inc-1', 'status', '\"{value}\"', {version}, idempotency_key => 'k'")
    };
    crew.diagnoser
        .refused("VERSION_CONFLICT", "write", &write("mitigating", 7))
        .await;
    crew.diagnoser
        .refused("INVALID_VALUE", "write", &write("odd", 1))
        .await;
    crew.diagnoser
        .refused("INVALID_CHECKPOINT", "write", &write("resolved", 1))
        .await;
    assert_eq!(
        crew.dba
            .run("select count(*) from kslate.idempotency")
            .await,
        "0"
    );
    // The gate opens, the same request under the same key goes through.
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    crew.diagnoser.ok("write", &write("resolved", 1)).await;
    // And so does what was rolled back.
    crew.diagnoser.run("begin").await;
    let rolled_back = crew
        .diagnoser
        .ok(
            "write",
            "'incidents/inc-1', 'hypotheses', '1', 0, idempotency_key => 'r'",
        )
        .await;
    crew.diagnoser.run("rollback").await;
    let other = crew
        .diagnoser
        .ok(
            "write",
            "'incidents/inc-1', 'hypotheses', '2', 0, idempotency_key => 'r'",
        )
        .await;
    assert_eq!(rolled_back["version"], other["version"]);
    crew.consistent().await;
}

#[tokio::test]
async fn a_key_belongs_to_an_identity_and_a_record() {
    let crew = Crew::new().await;
    crew.diagnoser.ok("create", "'incidents/inc-2'").await;
    let append = |record: &str, value: u32| {
        format!("'incidents/{record}', 'actions_taken', '{value}', idempotency_key => 'k'")
    };
    crew.worker.ok("append", &append("inc-1", 1)).await;
    crew.other.ok("append", &append("inc-1", 2)).await;
    crew.worker.ok("append", &append("inc-2", 3)).await;
    crew.other.ok("append", &append("inc-2", 4)).await;
    for (who, record, value, version) in [
        (&crew.worker, "inc-1", 1, 1),
        (&crew.other, "inc-1", 2, 2),
        (&crew.worker, "inc-2", 3, 1),
        (&crew.other, "inc-2", 4, 2),
    ] {
        let again = who.ok("append", &append(record, value)).await;
        assert_eq!(again["version"], version);
    }
    assert_eq!(
        crew.dba
            .run("select count(*) from kslate.history where op = 'append'")
            .await,
        "4"
    );
    crew.consistent().await;
}

/// A replay is an answer to somebody who still may ask.
#[tokio::test]
async fn a_replay_needs_the_right_still() {
    let crew = Crew::new().await;
    let write = "'incidents/inc-1', 'hypotheses', '1', 0, idempotency_key => 'k'";
    crew.diagnoser.ok("write", write).await;
    let source = crew
        .dba
        .run("select source from kslate.class where class = 'incidents'")
        .await
        .replace(
            "hypotheses:     { mode: cas, write: [diagnoser] }",
            "hypotheses:     { mode: cas, write: [remediator] }",
        );
    crew.dba
        .ok("class_apply", &format!("$yaml${source}$yaml$"))
        .await;
    crew.diagnoser.refused("SCOPE_DENIED", "write", write).await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_key_has_1_to_128_printable_characters() {
    let crew = Crew::new().await;
    let append =
        |key: &str| format!("'incidents/inc-1', 'actions_taken', '1', idempotency_key => {key}");
    for wrong in [
        "''",
        "repeat('k', 129)",
        "E'a\\nb'",
        "'schlüssel'",
        "E'\\x7f'",
    ] {
        crew.worker
            .refused("MALFORMED", "append", &append(wrong))
            .await;
    }
    for right in ["'k'", "repeat('k', 128)", "' ~'"] {
        let first = crew.worker.ok("append", &append(right)).await;
        let again = crew.worker.ok("append", &append(right)).await;
        assert_eq!(first.to_string(), again.to_string());
    }
    crew.worker.ok("append", &append("null")).await;
    crew.worker.ok("append", &append("null")).await;
    assert_eq!(crew.version().await, 5);
    crew.consistent().await;
}

#[tokio::test]
async fn two_sessions_with_one_key_make_one_change() {
    let crew = Crew::new().await;
    let twin = Session::agent(&crew.database, "remediator/worker-1").await;
    for level in ["read committed", "repeatable read", "serializable"] {
        for (n, (function, arguments)) in [
            (
                "append",
                "'incidents/inc-1', 'actions_taken', '1'".to_string(),
            ),
            ("claim", "'incidents/inc-1', 'remediation', 1".to_string()),
            (
                "checkpoint_save",
                format!("'incidents/inc-1', '{DOCUMENT}'"),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let arguments = format!("{arguments}, idempotency_key => '{level} {n}'");
            for session in [&crew.worker, &twin] {
                session
                    .run(&format!("begin isolation level {level}; select 1"))
                    .await;
            }
            let first = crew.worker.ok(function, &arguments).await;
            let second = twin.begin(function, &arguments);
            crew.dba.sees_waiting(&twin).await;
            crew.worker.run("commit").await;
            match second.await.expect("no panic") {
                Ok(row) => {
                    assert_eq!(row.to_string(), first.to_string());
                    twin.run("commit").await;
                }
                Err(refused) => {
                    assert_eq!(refused.sqlstate, "40001", "{refused:?}");
                    assert_ne!(level, "read committed");
                    twin.run("rollback").await;
                    let again = twin.ok(function, &arguments).await;
                    assert_eq!(again.to_string(), first.to_string());
                }
            }
            if function == "claim" {
                crew.lapse().await;
            }
        }
    }
    crew.consistent().await;
}

#[tokio::test]
async fn keys_are_forgotten_by_age_only() {
    let crew = Crew::new().await;
    let append = "'incidents/inc-1', 'actions_taken', '1', idempotency_key => 'k'";
    crew.worker.ok("append", append).await;
    assert_eq!(
        crew.dba.run("select kslate_forget_keys('1 hour')").await,
        "0"
    );
    crew.dba
        .run("update kslate.idempotency set created_at = created_at - interval '49 hours'")
        .await;
    assert_eq!(
        crew.dba.run("select kslate_forget_keys('48 hours')").await,
        "1"
    );
    let second = crew.worker.ok("append", append).await;
    assert_eq!(second["version"], 2);
    for wrong in ["null", "'-1 hour'"] {
        crew.dba
            .sql(&format!("select kslate_forget_keys({wrong})"))
            .await
            .expect_err(wrong)
            .is("MALFORMED");
    }
    crew.consistent().await;
}
