//! Leases: what is granted, what is over, and what a holder that was fenced out is told.

use kslate_tests::crew::{claim_id, Crew};
use serde_json::{json, Value};

const TASK: &str = "'incidents/inc-1', 'remediation'";

/// The LEASE_LOST that the worker's old claim meets, at a renewal and at a fenced write alike: reason and owner.
async fn lost(crew: &Crew, id: &str) -> (String, Value) {
    let at_renewal = crew
        .worker
        .refused("LEASE_LOST", "renew", &format!("{TASK}, {id}"))
        .await;
    let version = crew.version().await;
    let at_write = crew
        .worker
        .refused(
            "LEASE_LOST",
            "append",
            &format!("'incidents/inc-1', 'actions_taken', '1', claim_id => {id}"),
        )
        .await;
    assert_eq!(
        crew.version().await,
        version,
        "a fenced write leaves nothing"
    );
    for key in ["owner", "reason"] {
        assert_eq!(at_renewal[key], at_write[key], "{at_renewal} {at_write}");
    }
    let reason = at_renewal["reason"].as_str().expect("a reason").to_string();
    (reason, at_renewal["owner"].clone())
}

#[tokio::test]
async fn the_same_owner_is_held_too_until_it_reattaches() {
    let crew = Crew::new().await;
    let old = crew.claim(60).await;
    let held = crew.worker.refused("HELD", "claim", TASK).await;
    assert_eq!(held["owner"], "apikey:remediator/worker-1");
    let message = held["message"].as_str().expect("a message");
    assert!(
        message.contains("held by you (apikey:remediator/worker-1)")
            && message.contains("reattach"),
        "{message}"
    );
    let stranger = crew
        .other
        .refused("HELD", "claim", &format!("{TASK}, reattach => true"))
        .await;
    let message = stranger["message"].as_str().expect("a message");
    assert!(!message.contains("reattach"), "{message}");
    let new = crew.worker.ok("claim", &format!("{TASK}, 60, true")).await;
    assert_eq!(
        (&new["epoch"], &new["took_over_from"]),
        (&json!(2), &Value::Null)
    );
    assert_ne!(claim_id(&new), old);
    assert_eq!(crew.history("op, epoch", 1).await, "reattach|2");
    assert_eq!(
        lost(&crew, &old).await,
        (
            "reattached".to_string(),
            json!("apikey:remediator/worker-1")
        )
    );
    crew.worker
        .ok("renew", &format!("{TASK}, {}", claim_id(&new)))
        .await;
    // On a free task it is an ordinary claim.
    crew.worker
        .ok("release", &format!("{TASK}, {}", claim_id(&new)))
        .await;
    crew.other
        .ok("claim", &format!("{TASK}, reattach => true"))
        .await;
    assert_eq!(crew.history("op, epoch", 1).await, "claim|3");
    crew.consistent().await;
}

#[tokio::test]
async fn a_lost_lease_says_why_and_to_whom() {
    let crew = Crew::new().await;
    let nobody = Value::Null;
    let (me, other) = (
        json!("apikey:remediator/worker-1"),
        json!("apikey:remediator/worker-2"),
    );
    let never = "'00000000-0000-4000-8000-000000000000'".to_string();
    assert_eq!(
        lost(&crew, &never).await,
        ("not_claimed".into(), nobody.clone())
    );

    let id = crew.claim(60).await;
    assert_eq!(
        lost(&crew, &never).await,
        ("not_claimed".into(), me.clone()),
        "a made-up id while one's own claim is live"
    );
    crew.lapse().await;
    assert_eq!(lost(&crew, &id).await, ("lapsed".into(), nobody.clone()));

    let taken = crew.other.ok("claim", TASK).await;
    assert_eq!(lost(&crew, &id).await, ("taken_over".into(), other.clone()));
    crew.lapse().await;
    assert_eq!(
        lost(&crew, &id).await,
        ("taken_over".into(), nobody.clone()),
        "the thief's lease is over too"
    );
    let thief = crew
        .other
        .refused(
            "LEASE_LOST",
            "renew",
            &format!("{TASK}, {}", claim_id(&taken)),
        )
        .await;
    assert_eq!(thief["reason"], "lapsed");

    let id = crew.claim(60).await;
    let again = crew.worker.ok("claim", &format!("{TASK}, 60, true")).await;
    assert_eq!(lost(&crew, &id).await, ("reattached".into(), me.clone()));

    let id = claim_id(&again);
    crew.worker.ok("release", &format!("{TASK}, {id}")).await;
    assert_eq!(lost(&crew, &id).await, ("released".into(), nobody.clone()));
    crew.other.ok("claim", TASK).await;
    assert_eq!(lost(&crew, &id).await, ("released".into(), other.clone()));
    crew.lapse().await;

    let id = crew.claim(60).await;
    crew.worker
        .ok("complete", &format!("{TASK}, {id}, '\"done\"'"))
        .await;
    assert_eq!(lost(&crew, &id).await, ("completed".into(), nobody.clone()));
    crew.worker.ok("reopen", TASK).await;
    assert_eq!(lost(&crew, &id).await, ("reopened".into(), nobody.clone()));
    crew.other.ok("claim", TASK).await;
    assert_eq!(lost(&crew, &id).await, ("reopened".into(), other.clone()));
    crew.lapse().await;

    let id = crew.claim(60).await;
    crew.dba
        .run("update kslate.claim set state = 'open' where record = 'incidents/inc-1'")
        .await;
    assert_eq!(lost(&crew, &id).await, ("force_released".into(), nobody));
    crew.consistent().await;
}

#[tokio::test]
async fn the_claim_id_of_another_does_not_help() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    for (function, more) in [("renew", ""), ("release", ""), ("complete", "")] {
        let detail = crew
            .other
            .refused("LEASE_LOST", function, &format!("{TASK}, {id}{more}"))
            .await;
        assert_eq!(
            (&detail["reason"], &detail["owner"]),
            (&json!("not_claimed"), &json!("apikey:remediator/worker-1"))
        );
    }
    crew.other
        .refused(
            "LEASE_LOST",
            "append",
            &format!("'incidents/inc-1', 'actions_taken', '1', claim_id => {id}"),
        )
        .await;
    crew.diagnoser
        .refused("SCOPE_DENIED", "renew", &format!("{TASK}, {id}"))
        .await;
    crew.consistent().await;
}

#[tokio::test]
async fn an_expiry_of_now_is_free() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    // The lease ends at the very microsecond that the claim is decided at, or before it; clock_timestamp() only grows.
    crew.lapse().await;
    let rows = crew
        .other
        .rows("fields", "'incidents/inc-1', array['remediation']")
        .await
        .expect("one row");
    assert_eq!(
        (&rows[0]["claim"]["state"], &rows[0]["claim"]["live"]),
        (&json!("claimed"), &json!(false))
    );
    // The database's own comparison, at equality: free.
    assert_eq!(
        crew.dba
            .run("select count(*) from kslate.lapsed where expires_at <= clock_timestamp()")
            .await,
        "1"
    );
    assert_eq!(lost(&crew, &id).await.0, "lapsed");
    let granted = crew.other.ok("claim", TASK).await;
    assert_eq!(granted["took_over_from"], "apikey:remediator/worker-1");
    crew.consistent().await;
}

#[tokio::test]
async fn a_lease_may_be_renewed_shorter_and_keeps_its_length() {
    let crew = Crew::new().await;
    let id = crew.claim(600).await;
    let same = crew.worker.ok("renew", &format!("{TASK}, {id}")).await;
    assert_eq!(same["lease_seconds"], 600, "the claim's own last");
    let short = crew.worker.ok("renew", &format!("{TASK}, {id}, 1")).await;
    assert_eq!(short["lease_seconds"], 1);
    assert_eq!(
        crew.dba
            .run("select recheck_at <= expires_at from kslate.claim")
            .await,
        "t"
    );
    crew.dba.sees_lapse("incidents/inc-1", "remediation").await;
    assert_eq!(lost(&crew, &id).await, ("lapsed".into(), Value::Null));
    crew.other.ok("claim", TASK).await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_lease_has_bounds_and_is_never_clamped() {
    let crew = Crew::new().await;
    let seconds = [
        "0",
        "-1",
        "0.5",
        "1.5",
        "3601",
        "1e18",
        "'NaN'",
        "'infinity'",
        "'-infinity'",
        "1e300",
        "-0.0",
        "2147483648",
    ];
    for wrong in seconds {
        let detail = crew
            .worker
            .refused("MALFORMED", "claim", &format!("{TASK}, {wrong}"))
            .await;
        assert_eq!(detail["path"], "/lease_seconds", "{wrong}");
    }
    let id = crew.claim(3600).await;
    for wrong in seconds {
        crew.worker
            .refused("MALFORMED", "renew", &format!("{TASK}, {id}, {wrong}"))
            .await;
    }
    crew.worker.ok("release", &format!("{TASK}, {id}")).await;
    let default = crew.worker.ok("claim", TASK).await;
    assert_eq!(default["lease_seconds"], 60, "the class's");
    let span = crew
        .dba
        .run("select extract(epoch from expires_at - claimed_at)::int from kslate.claim")
        .await;
    assert_eq!(span, "60");
    for null in ["null, 'remediation'", "'incidents/inc-1', null"] {
        crew.worker.refused("MALFORMED", "claim", null).await;
    }
    crew.worker
        .refused("MALFORMED", "renew", &format!("{TASK}, null"))
        .await;
    crew.consistent().await;
}

#[tokio::test]
async fn completed_is_told_with_its_result_and_reopen_needs_one() {
    let crew = Crew::new().await;
    let not = crew.worker.refused("NOT_COMPLETED", "reopen", TASK).await;
    assert_eq!((&not["author"], &not["version"]), (&Value::Null, &json!(0)));
    let id = crew.claim(60).await;
    crew.worker.refused("NOT_COMPLETED", "reopen", TASK).await;
    let done = crew
        .worker
        .ok("complete", &format!("{TASK}, {id}, '\"ok\"', 'seen'"))
        .await;
    assert_eq!((&done["version"], &done["epoch"]), (&json!(1), &json!(1)));
    for function in ["claim"] {
        let detail = crew.other.refused("COMPLETED", function, TASK).await;
        let keys: Vec<&String> = detail.as_object().expect("an object").keys().collect();
        assert_eq!(
            keys,
            [
                "error",
                "field",
                "message",
                "record",
                "author",
                "version",
                "completed_at"
            ]
        );
        assert_eq!(
            (&detail["author"], &detail["version"]),
            (&json!("apikey:remediator/worker-1"), &json!(1))
        );
    }
    let rows = crew
        .other
        .rows("fields", "'incidents/inc-1', array['remediation']")
        .await
        .expect("one row");
    assert_eq!(
        (&rows[0]["value"], &rows[0]["claim"]["state"]),
        (&json!("ok"), &json!("completed"))
    );
    let open = crew
        .other
        .ok("reopen", &format!("{TASK}, 'it came back'"))
        .await;
    assert_eq!(
        (&open["version"], &open["record_version"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(
        crew.history("op, coalesce(value::text, '-'), reason", 1)
            .await,
        "reopen|-|it came back"
    );
    let next = crew.other.ok("claim", TASK).await;
    assert_eq!(
        (&next["epoch"], &next["took_over_from"]),
        (&json!(2), &Value::Null)
    );
    crew.consistent().await;
}

#[tokio::test]
async fn a_fenced_write_never_lands_under_a_takeover_that_waits() {
    let crew = Crew::new().await;
    let old = crew.claim(60).await;
    let write = format!("'incidents/inc-1', 'actions_taken', '1', claim_id => {old}");
    for keep in [true, false] {
        crew.lapse().await;
        // The takeover is done and not committed yet when the old holder writes.
        crew.other.run("begin").await;
        crew.other.ok("claim", TASK).await;
        let late = crew.worker.begin("append", &write);
        crew.dba.sees_waiting(&crew.worker).await;
        crew.other
            .run(if keep { "commit" } else { "rollback" })
            .await;
        let refused = late
            .await
            .expect("no panic")
            .expect_err("its lease was over");
        let detail = refused.is("LEASE_LOST");
        assert_eq!(detail["reason"], "taken_over");
    }
    // The other way round: a holder whose lease is live writes first, the takeover waits and is HELD.
    crew.lapse().await;
    let id = crew.claim(60).await;
    crew.worker.run("begin").await;
    crew.worker
        .ok(
            "append",
            &format!("'incidents/inc-1', 'actions_taken', '1', claim_id => {id}"),
        )
        .await;
    let takeover = crew.other.begin("claim", TASK);
    crew.dba.sees_waiting(&crew.other).await;
    crew.worker.run("commit").await;
    takeover
        .await
        .expect("no panic")
        .expect_err("the lease is live")
        .is("HELD");
    crew.consistent().await;
}
