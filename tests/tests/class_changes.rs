//! A class changes while others work by it: every backend goes by the class that is committed, none by one rolled back.

use kslate_tests::crew::{claim_id, Crew};
use kslate_tests::{Called, Session};

/// The source of class incidents in force, with a part replaced, quoted for SQL.
async fn changed(crew: &Crew, part: &str, by: &str) -> String {
    let source = crew
        .dba
        .run("select source from kslate.class where class = 'incidents' order by version desc limit 1")
        .await;
    assert!(source.contains(part), "{part} in {source}");
    format!("$yaml${}$yaml$", source.replace(part, by))
}

const DIAGNOSERS: &str = "hypotheses:     { mode: cas, write: [diagnoser] }";
const REMEDIATORS: &str = "hypotheses:     { mode: cas, write: [remediator] }";
const NO_FIELD: &str = "";
const TASK: &str = "hypotheses:     { mode: cas, write: [diagnoser] }\n  review: { mode: task, write: [diagnoser] }";

const WRITE: &str = "'incidents/inc-1', 'hypotheses', '1'";

/// Who may write hypotheses now, told by refusals that change nothing.
async fn writer(session: &Session) -> bool {
    match session.call("write", &format!("{WRITE}, 99")).await {
        Ok(row) => panic!("it is not at version 99: {row}"),
        Err(refused) if refused.error() == "VERSION_CONFLICT" => true,
        Err(refused) => {
            refused.is("SCOPE_DENIED");
            false
        }
    }
}

#[tokio::test]
async fn a_class_applied_elsewhere_is_in_force_at_once() {
    let crew = Crew::new().await;
    assert!(writer(&crew.diagnoser).await && !writer(&crew.worker).await);
    for turn in 0..4 {
        let (from, to) = if turn % 2 == 0 {
            (DIAGNOSERS, REMEDIATORS)
        } else {
            (REMEDIATORS, DIAGNOSERS)
        };
        let source = changed(&crew, from, to).await;
        let row = crew.dba.ok("class_apply", &source).await;
        assert_eq!(row["version"], turn + 2);
        for session in [&crew.diagnoser, &crew.worker, &crew.other, &crew.dba] {
            let told = session.rows("class", "'incidents'").await.expect("a class");
            assert_eq!(told[0]["version"], turn + 2);
        }
        assert_eq!(writer(&crew.diagnoser).await, turn % 2 == 1);
        assert_eq!(writer(&crew.worker).await, turn % 2 == 0);
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_class_rolled_back_was_never_there() {
    let crew = Crew::new().await;
    let source = changed(&crew, DIAGNOSERS, REMEDIATORS).await;
    let apply = format!("select from kslate_class_apply({source})");
    let in_force = |crew: &Crew| {
        let sessions = [
            crew.diagnoser.clone(),
            crew.worker.clone(),
            crew.other.clone(),
        ];
        async move {
            assert!(writer(&sessions[0]).await);
            assert!(!writer(&sessions[1]).await && !writer(&sessions[2]).await);
        }
    };
    in_force(&crew).await;
    // The worker's own backend applies, works by the new class, and rolls back: whole, to a savepoint, by an error.
    let probe = format!("{WRITE}, 0");
    crew.worker.run("begin").await;
    crew.worker.run(&apply).await;
    crew.worker.ok("write", &probe).await;
    crew.worker.run("rollback").await;
    in_force(&crew).await;

    crew.worker.run("begin; savepoint s").await;
    crew.worker.run(&apply).await;
    crew.worker.ok("write", &probe).await;
    crew.worker.run("rollback to s").await;
    crew.worker.refused("SCOPE_DENIED", "write", &probe).await;
    crew.worker.run("rollback to s").await;
    crew.worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await;
    crew.worker.run("commit").await;
    in_force(&crew).await;

    crew.worker.run("begin; savepoint s").await;
    crew.worker.run(&apply).await;
    crew.worker.run("release s").await;
    crew.worker.ok("write", &probe).await;
    crew.worker
        .sql("select 1 / 0")
        .await
        .expect_err("it aborts the transaction");
    crew.worker.run("rollback").await;
    in_force(&crew).await;

    let swallowed = format!(
        "do $do$ begin begin perform from kslate_class_apply({source}); raise 'no'; exception when raise_exception then null; end; end $do$"
    );
    crew.worker.run(&swallowed).await;
    in_force(&crew).await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_dry_run_changes_nothing_for_anybody() {
    let crew = Crew::new().await;
    let source = changed(&crew, DIAGNOSERS, REMEDIATORS).await;
    let row = crew
        .worker
        .ok("class_apply", &format!("{source}, true"))
        .await;
    assert_eq!(
        (&row["changed"], &row["dry_run"]),
        (&true.into(), &true.into())
    );
    assert!(!row["changes"].as_array().expect("an array").is_empty());
    assert!(writer(&crew.diagnoser).await && !writer(&crew.worker).await);
    assert_eq!(
        crew.dba
            .run("select count(*) from kslate.class where class = 'incidents'")
            .await,
        "1"
    );
}

#[tokio::test]
async fn a_write_that_waits_for_a_class_is_judged_by_it() {
    for (end, error) in [("commit", "SCOPE_DENIED"), ("rollback", "")] {
        let crew = Crew::new().await;
        assert!(writer(&crew.diagnoser).await);
        let source = changed(&crew, DIAGNOSERS, REMEDIATORS).await;
        crew.worker.run("begin").await;
        crew.worker.ok("class_apply", &source).await;
        let write = crew.diagnoser.begin("write", &format!("{WRITE}, 0"));
        crew.dba.sees_waiting(&crew.diagnoser).await;
        // Reading does not wait.
        crew.other.ok("get", "'incidents/inc-1'").await;
        crew.worker.run(end).await;
        match write.await.expect("no panic") {
            Ok(_) => assert_eq!(error, ""),
            Err(refused) => {
                refused.is(error);
            }
        }
        crew.consistent().await;
    }
}

/// Something is done in the first transaction, the class is applied in the second. Levels and schedules as in isolation.rs.
async fn race(level: &str, waits: bool, first: (&str, &str), by: &str) -> (Crew, Called) {
    let crew = Crew::new().await;
    let source = changed(&crew, DIAGNOSERS, by).await;
    let applier = Session::agent(&crew.database, "admin").await;
    applier
        .run(&format!("begin isolation level {level}; select 1"))
        .await;
    crew.diagnoser.run("begin").await;
    crew.diagnoser.ok(first.0, first.1).await;
    let called = if waits {
        let call = applier.begin("class_apply", &source);
        crew.dba.sees_waiting(&applier).await;
        crew.diagnoser.run("commit").await;
        call.await.expect("no panic")
    } else {
        crew.diagnoser.run("commit").await;
        applier.call("class_apply", &source).await
    };
    let called = match applier.sql("commit").await {
        Ok(_) => called,
        Err(refused) => called.and(Err(refused)),
    };
    (crew, called)
}

#[tokio::test]
async fn a_class_never_orphans_what_its_snapshot_does_not_show() {
    let mut faults = Vec::new();
    for level in ["read committed", "repeatable read", "serializable"] {
        for waits in [true, false] {
            let (crew, called) =
                race(level, waits, ("write", &format!("{WRITE}, 0")), NO_FIELD).await;
            match called {
                Err(refused) if refused.sqlstate == "40001" && level != "read committed" => {}
                Err(refused) if refused.error() == "INVALID_CLASS" => {}
                other => faults.push(format!("{level}, waits {waits}: {other:?}")),
            }
            crew.consistent().await;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_new_task_comes_to_every_record_that_its_snapshot_does_not_show() {
    let mut faults = Vec::new();
    for level in ["read committed", "repeatable read", "serializable"] {
        for waits in [true, false] {
            let (crew, called) = race(level, waits, ("create", "'incidents/inc-2'"), TASK).await;
            match called {
                Err(refused) if refused.sqlstate == "40001" && level != "read committed" => {
                    continue
                }
                Ok(_) => {}
                other => {
                    faults.push(format!("{level}, waits {waits}: {other:?}"));
                    continue;
                }
            }
            for record in ["inc-1", "inc-2"] {
                let claimed = crew
                    .diagnoser
                    .call("claim", &format!("'incidents/{record}', 'review'"))
                    .await;
                if let Err(refused) = claimed {
                    faults.push(format!("{level}, waits {waits}, {record}: {refused:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn two_classes_applied_at_once_are_two_versions() {
    let mut faults = Vec::new();
    for level in ["read committed", "repeatable read", "serializable"] {
        for waits in [true, false] {
            let crew = Crew::new().await;
            let one = changed(&crew, DIAGNOSERS, REMEDIATORS).await;
            let two = changed(&crew, DIAGNOSERS, TASK).await;
            let applier = Session::agent(&crew.database, "admin").await;
            applier
                .run(&format!("begin isolation level {level}; select 1"))
                .await;
            crew.worker.run("begin").await;
            crew.worker.ok("class_apply", &one).await;
            let called = if waits {
                let call = applier.begin("class_apply", &two);
                crew.dba.sees_waiting(&applier).await;
                crew.worker.run("commit").await;
                call.await.expect("no panic")
            } else {
                crew.worker.run("commit").await;
                applier.call("class_apply", &two).await
            };
            match called {
                Ok(row) if row["version"] == 3 => {
                    applier.run("commit").await;
                }
                Err(refused) if refused.sqlstate == "40001" && level != "read committed" => {}
                other => faults.push(format!("{level}, waits {waits}: {other:?}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A transaction whose snapshot is older than a task: its claim says "try again", not that the storage is broken.
#[tokio::test]
async fn a_task_that_the_snapshot_does_not_show_is_a_serialization_failure() {
    let crew = Crew::new().await;
    for level in ["repeatable read", "serializable"] {
        crew.diagnoser
            .run(&format!("begin isolation level {level}; select 1"))
            .await;
        let task = format!("task_{}", level.replace(' ', "_"));
        let source = changed(
            &crew,
            "fields:\n",
            &format!("fields:\n  {task}: {{ mode: task, write: [diagnoser] }}\n"),
        )
        .await;
        crew.worker.ok("class_apply", &source).await;
        let refused = crew
            .diagnoser
            .call("claim", &format!("'incidents/inc-1', '{task}'"))
            .await
            .expect_err("the row is not there for this snapshot");
        assert_eq!(refused.sqlstate, "40001", "{refused:?}");
        crew.diagnoser.run("rollback").await;
        let granted = crew
            .diagnoser
            .ok("claim", &format!("'incidents/inc-1', '{task}'"))
            .await;
        crew.diagnoser
            .ok(
                "release",
                &format!("'incidents/inc-1', '{task}', {}", claim_id(&granted)),
            )
            .await;
    }
    crew.consistent().await;
}

/// What a caller may no longer read is in no answer, also not in a transaction that has read before.
#[tokio::test]
async fn a_right_taken_away_is_gone_in_an_open_transaction_too() {
    let crew = Crew::new().await;
    crew.diagnoser.ok("write", &format!("{WRITE}, 0")).await;
    crew.worker.run("begin").await;
    let fields = |rows: &[serde_json::Value]| {
        rows.iter()
            .filter_map(|row| row["field"].as_str().map(str::to_string))
            .collect::<Vec<_>>()
    };
    let before = crew
        .worker
        .rows("fields", "'incidents/inc-1'")
        .await
        .expect("rows");
    assert!(fields(&before).contains(&"hypotheses".to_string()));
    let source = changed(
        &crew,
        DIAGNOSERS,
        "hypotheses: { mode: cas, write: [diagnoser], read: [diagnoser] }",
    )
    .await;
    crew.dba.ok("class_apply", &source).await;
    let after = crew
        .worker
        .rows("fields", "'incidents/inc-1'")
        .await
        .expect("rows");
    assert!(
        !fields(&after).contains(&"hypotheses".to_string()),
        "READ COMMITTED reads anew"
    );
    crew.worker.run("commit").await;
}

/// History is what a hand has left as well, on a task that was never claimed.
#[tokio::test]
async fn a_field_whose_only_history_is_a_hands_stays() {
    let crew = Crew::new().await;
    let task = changed(&crew, DIAGNOSERS, TASK).await;
    crew.dba.ok("class_apply", &task).await;
    crew.dba
        .run("update kslate.claim set queued_at = queued_at - interval '1 hour' where field = 'review'")
        .await;
    let without = changed(&crew, TASK, DIAGNOSERS).await;
    let refused = crew
        .dba
        .refused("INVALID_CLASS", "class_apply", &without)
        .await;
    assert_eq!(
        refused["faults"][0]["message"],
        "removed, but 1 record has history of it"
    );
    crew.consistent().await;
}
