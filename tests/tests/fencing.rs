//! Fields and checkpoints that belong to a claim, force release, and what a checkpoint has seen. Class migrations has them all.

use kslate_tests::crew::{claim_id, role, Crew, DOCUMENT};
use kslate_tests::{assert_consistent, Cluster, Database, Session};
use serde_json::{json, Value};
use std::sync::Arc;

const MOVE: &str = "'migrations/m-1', 'move'";
const BATCH: &str = r#"'migrations/m-1', 'batches', '{"first":1,"last":9,"rows":9}'"#;
const PLACE: &str = r#"{"goal":"g","progress":"p","next_step":"n"}"#;

struct Movers {
    database: Database<'static>,
    planner: Arc<Session>,
    migrator: Arc<Session>,
    second: Arc<Session>,
    operator: Arc<Session>,
    verifier: Arc<Session>,
    dba: Arc<Session>,
}

async fn movers() -> Movers {
    let database = Cluster::shared().fresh_database();
    let movers = Movers {
        planner: Session::agent(&database, "planner").await,
        migrator: Session::agent(&database, "migrator").await,
        second: Session::agent(&database, "migrator/2").await,
        operator: Session::agent(&database, "operator").await,
        verifier: Session::agent(&database, "verifier").await,
        dba: Session::login(&database, "postgres").await,
        database,
    };
    movers.planner.ok("create", "'migrations/m-1'").await;
    movers
}

/// Who holds a task is told to those who may read it.
#[tokio::test]
async fn a_lost_claim_does_not_tell_who_holds_a_task_that_is_not_yours_to_read() {
    const CLASS: &str = "class: hidden
roles: { doer: [apikey:doer], guest: [apikey:guest] }
create: [doer]
fields:
  task: { mode: task, write: [doer], read: [doer] }
  note: { mode: lww, write: [doer, guest] }";
    let database = Cluster::shared().fresh_database();
    let dba = Session::login(&database, "postgres").await;
    let doer = Session::agent(&database, "doer").await;
    let guest = Session::agent(&database, "guest").await;
    dba.ok("class_apply", &format!("$${CLASS}$$")).await;
    doer.ok("create", "'hidden/one'").await;
    doer.ok("claim", "'hidden/one', 'task'").await;
    let write = "'hidden/one', 'note', '1', claim_id => 'a0000000-0000-0000-0000-000000000000'";
    let lost = guest.refused("LEASE_LOST", "write", write).await;
    assert_eq!(
        (&lost["owner"], &lost["reason"]),
        (&Value::Null, &json!("not_claimed"))
    );
    assert!(!lost.to_string().contains("apikey:doer"), "{lost}");
    let lost = doer.refused("LEASE_LOST", "write", write).await;
    assert_eq!(lost["owner"], "apikey:doer");
}

/// What has become of the newest claim is no news of an older one, which was somebody else's.
#[tokio::test]
async fn a_zombie_is_told_that_another_has_the_task_whatever_that_one_did_since() {
    let crew = Crew::new().await;
    let task = "'incidents/inc-1', 'remediation'";
    let zombie = crew.claim(600).await;
    crew.lapse().await;
    crew.other.ok("claim", task).await;
    for again in ["reattached", "lapsed"] {
        let other = if again == "lapsed" {
            crew.lapse().await;
            crew.other.ok("claim", task).await
        } else {
            crew.other
                .ok("claim", &format!("{task}, reattach => true"))
                .await
        };
        assert_eq!(other["took_over_from"], Value::Null, "{other}");
        let lost = crew
            .worker
            .refused("LEASE_LOST", "release", &format!("{task}, {zombie}"))
            .await;
        assert_eq!(
            (&lost["owner"], &lost["reason"]),
            (&json!("apikey:remediator/worker-2"), &json!("taken_over")),
            "{again}"
        );
        let told = lost["message"].as_str().unwrap_or_default();
        assert!(told.contains("claimed the task since"), "{told}");
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_field_that_requires_a_claim_takes_the_live_holders_writes_only() {
    let all = movers().await;
    let cursor = r#"'migrations/m-1', 'cursor', '{"after":9,"rows":9}', 1"#;
    for (function, arguments) in [("append", BATCH), ("write", cursor)] {
        let lost = all
            .migrator
            .refused("LEASE_LOST", function, arguments)
            .await;
        assert_eq!(
            (&lost["reason"], &lost["owner"]),
            (&json!("not_claimed"), &Value::Null)
        );
        assert!(
            lost["message"]
                .as_str()
                .is_some_and(|text| text.contains("claim move")),
            "{lost}"
        );
    }
    let id = claim_id(&all.migrator.ok("claim", MOVE).await);
    all.migrator.refused("LEASE_LOST", "append", BATCH).await;
    all.second
        .refused(
            "LEASE_LOST",
            "append",
            &format!("{BATCH}, claim_id => {id}"),
        )
        .await;
    all.migrator
        .ok("append", &format!("{BATCH}, claim_id => {id}"))
        .await;
    all.migrator
        .ok("write", &format!("{cursor}, claim_id => {id}"))
        .await;
    let many = r#"'migrations/m-1', '[{"field":"cursor","value":{"after":18,"rows":18},"expected_version":2},{"field":"rate_limit","value":100}]'"#;
    all.migrator.refused("LEASE_LOST", "write_many", many).await;
    all.migrator
        .ok("write_many", &format!("{many}, claim_id => {id}"))
        .await;
    // The claim of another task of the record does not do.
    let verifying = claim_id(
        &all.verifier
            .ok("claim", "'migrations/m-1', 'verification'")
            .await,
    );
    all.migrator
        .refused(
            "LEASE_LOST",
            "append",
            &format!("{BATCH}, claim_id => {verifying}"),
        )
        .await;
    // Where no claim is required, any of the record's may fence a write.
    all.verifier
        .ok(
            "append",
            &format!("'migrations/m-1', 'findings', '1', evidence => 'e', claim_id => {verifying}"),
        )
        .await;
    all.dba.lapse("migrations/m-1", "move").await;
    let lost = all
        .migrator
        .refused(
            "LEASE_LOST",
            "append",
            &format!("{BATCH}, claim_id => {id}"),
        )
        .await;
    assert_eq!(lost["reason"], "lapsed");
    let taken = all.second.ok("claim", MOVE).await;
    let lost = all
        .migrator
        .refused(
            "LEASE_LOST",
            "append",
            &format!("{BATCH}, claim_id => {id}"),
        )
        .await;
    assert_eq!(
        (&lost["reason"], &lost["owner"]),
        (&json!("taken_over"), &json!("apikey:migrator/2"))
    );
    all.second
        .ok(
            "append",
            &format!("{BATCH}, claim_id => {}", claim_id(&taken)),
        )
        .await;
    assert_consistent(&all.database).await;
}

#[tokio::test]
async fn a_checkpoint_that_requires_a_claim_is_the_live_holders_alone() {
    let all = movers().await;
    let save = format!("'migrations/m-1', '{PLACE}'");
    let lost = all
        .migrator
        .refused("LEASE_LOST", "checkpoint_save", &save)
        .await;
    assert_eq!(
        (&lost["reason"], &lost["owner"]),
        (&json!("not_claimed"), &Value::Null)
    );
    let id = claim_id(&all.migrator.ok("claim", MOVE).await);
    all.migrator
        .ok("checkpoint_save", &format!("{save}, claim_id => {id}"))
        .await;
    all.second
        .refused(
            "LEASE_LOST",
            "checkpoint_save",
            &format!("{save}, claim_id => {id}"),
        )
        .await;
    all.dba.lapse("migrations/m-1", "move").await;
    all.second.ok("claim", MOVE).await;
    let lost = all
        .migrator
        .refused(
            "LEASE_LOST",
            "checkpoint_save",
            &format!("{save}, claim_id => {id}"),
        )
        .await;
    assert_eq!(lost["reason"], "taken_over");
    assert_eq!(
        all.dba.run("select count(*) from kslate.checkpoint").await,
        "1",
        "a worker that lost the move does not overwrite its successor's account"
    );
    assert_consistent(&all.database).await;
}

#[tokio::test]
async fn force_release_is_for_override_roles_and_names_the_epoch() {
    let all = movers().await;
    let id = claim_id(&all.migrator.ok("claim", MOVE).await);
    for (who, needs) in [
        (&all.migrator, "operator"),
        (&all.planner, "operator"),
        (&all.verifier, "operator"),
    ] {
        let denied = who
            .refused(
                "SCOPE_DENIED",
                "force_release",
                &format!("{MOVE}, 1, 'stuck'"),
            )
            .await;
        assert_eq!(denied["needs_one_of"], json!([needs]));
    }
    for epoch in [0, 2, 99] {
        let other = all
            .operator
            .refused(
                "VERSION_CONFLICT",
                "force_release",
                &format!("{MOVE}, {epoch}, 'stuck'"),
            )
            .await;
        assert_eq!(
            (&other["expected_epoch"], &other["current_epoch"]),
            (&json!(epoch), &json!(1))
        );
    }
    for wrong in [
        "null, 'stuck'",
        "1, null",
        "1, ''",
        "1, '  '",
        "-1, 'stuck'",
    ] {
        all.operator
            .refused("MALFORMED", "force_release", &format!("{MOVE}, {wrong}"))
            .await;
    }
    let freed = all
        .operator
        .ok("force_release", &format!("{MOVE}, 1, 'stuck for an hour'"))
        .await;
    assert_eq!(
        (
            &freed["released_from"],
            &freed["epoch"],
            &freed["record_version"]
        ),
        (&json!("apikey:migrator"), &json!(1), &json!(2))
    );
    assert_eq!(
        all.dba
            .run("select op, author, role, reason, epoch from kslate.history order by record_version desc limit 1")
            .await,
        "force_release|apikey:operator|operator|stuck for an hour|1"
    );
    let lost = all
        .migrator
        .refused("LEASE_LOST", "renew", &format!("{MOVE}, {id}"))
        .await;
    assert_eq!(
        (&lost["reason"], &lost["owner"]),
        (&json!("force_released"), &Value::Null)
    );
    let none = all
        .operator
        .refused(
            "VERSION_CONFLICT",
            "force_release",
            &format!("{MOVE}, 1, 'again'"),
        )
        .await;
    assert_eq!(none["current_epoch"], 1);
    let next = all.second.ok("claim", MOVE).await;
    assert_eq!(next["epoch"], 2);
    // Each task has override roles of its own; incidents' has none.
    all.verifier
        .ok("claim", "'migrations/m-1', 'verification'")
        .await;
    all.planner
        .ok("force_release", "'migrations/m-1', 'verification', 1, 'r'")
        .await;
    assert_consistent(&all.database).await;
}

#[tokio::test]
async fn a_result_has_its_values_and_evidence_too() {
    let all = movers().await;
    let task = "'migrations/m-1', 'verification'";
    let id = claim_id(&all.verifier.ok("claim", task).await);
    all.verifier
        .refused(
            "EVIDENCE_REQUIRED",
            "complete",
            &format!("{task}, {id}, '\"same\"'"),
        )
        .await;
    all.verifier
        .refused(
            "INVALID_VALUE",
            "complete",
            &format!("{task}, {id}, '\"odd\"', 'e'"),
        )
        .await;
    all.verifier
        .refused(
            "INVALID_VALUE",
            "complete",
            &format!("{task}, {id}, evidence => 'e'"),
        )
        .await;
    all.verifier
        .ok("complete", &format!("{task}, {id}, '\"same\"', 'e'"))
        .await;
    assert_consistent(&all.database).await;
}

/// The field names of `changed_fields` in the checkpoint that the worker loads, and their versions.
async fn changed(crew: &Crew) -> Vec<String> {
    let loaded = crew.worker.ok("checkpoint_load", "'incidents/inc-1'").await;
    loaded["changed_fields"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|field| {
            format!(
                "{}@{}",
                field["field"].as_str().unwrap_or("?"),
                field["version"]
            )
        })
        .collect()
}

#[tokio::test]
async fn changed_fields_misses_nothing_since_the_version_seen() {
    let crew = Crew::new().await;
    let save = format!("'incidents/inc-1', '{DOCUMENT}'");
    assert_eq!(changed(&crew).await, ["status@1"], "nothing saved yet");
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await;
    // The worker has read the record at version 1; a change comes before it saves.
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'planned_action', '1', 0, 'e'")
        .await;
    let saved = crew
        .worker
        .ok("checkpoint_save", &format!("{save}, seen_version => 1"))
        .await;
    assert_eq!(saved["record_version"], 1);
    assert_eq!(changed(&crew).await, ["planned_action@1"]);
    let saved = crew.worker.ok("checkpoint_save", &save).await;
    assert_eq!(
        (&saved["record_version"], &saved["checkpoint_id"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(changed(&crew).await, [""; 0]);
    // The latest is the highest id, not the highest record version.
    crew.worker
        .ok("checkpoint_save", &format!("{save}, seen_version => 0"))
        .await;
    assert_eq!(changed(&crew).await, ["hypotheses@1", "planned_action@1"]);
    // In the order of the changes; claims are none; one's own writes are.
    crew.claim(60).await;
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'hypotheses', '2', 1")
        .await;
    crew.worker
        .ok("append", "'incidents/inc-1', 'actions_taken', '1'")
        .await;
    assert_eq!(
        changed(&crew).await,
        ["planned_action@1", "hypotheses@2", "actions_taken@1"]
    );
    for wrong in [-1, 6, 99] {
        let detail = crew
            .worker
            .refused(
                "MALFORMED",
                "checkpoint_save",
                &format!("{save}, seen_version => {wrong}"),
            )
            .await;
        assert_eq!(detail["record"], "incidents/inc-1");
    }
    assert_eq!(
        crew.dba.run("select count(*) from kslate.checkpoint").await,
        "3"
    );
    crew.consistent().await;
}

/// Without seen_version a change that another has made and not committed is above the checkpoint's version in every order.
#[tokio::test]
async fn a_change_under_way_is_never_below_the_checkpoint() {
    let crew = Crew::new().await;
    crew.diagnoser.run("begin").await;
    crew.diagnoser
        .ok("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await;
    let save = crew.worker.begin(
        "checkpoint_save",
        &format!("'incidents/inc-1', '{DOCUMENT}'"),
    );
    crew.dba.sees_waiting(&crew.worker).await;
    crew.diagnoser.run("commit").await;
    let saved = save.await.expect("no panic").expect("saved");
    // It waited for the change: that one is below, and was visible to whoever reads now.
    assert_eq!(saved["record_version"], 1);
    // With the version that the agent really read, the change is in changed_fields.
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}', seen_version => 0"),
        )
        .await;
    assert_eq!(changed(&crew).await, ["hypotheses@1"]);
    crew.consistent().await;
}

#[tokio::test]
async fn database_roles_hold_class_roles_as_agents_do() {
    let all = movers().await;
    role(
        &all.database,
        "migration_operator",
        "login",
        "grant kslate_user to migration_operator",
    );
    let operator = Session::login(&all.database, "migration_operator").await;
    all.migrator.ok("claim", MOVE).await;
    operator
        .ok("force_release", &format!("{MOVE}, 1, 'by hand'"))
        .await;
    assert_eq!(
        all.dba
            .run("select author, role, login from kslate.history order by record_version desc limit 1")
            .await,
        "pg:migration_operator|operator|migration_operator"
    );
    assert_consistent(&all.database).await;
}
