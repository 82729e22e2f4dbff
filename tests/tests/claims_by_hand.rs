//! Claims changed by hand: epochs, claim_ids and history are made by the triggers, and a thief's grant fences the holder out.

use kslate_tests::crew::{role, Crew};
use kslate_tests::Session;
use serde_json::{json, Value};

const TASK: &str = "record = 'incidents/inc-1' and field = 'remediation'";

/// Runs `update kslate.claim set <change>` on the task.
async fn set(crew: &Crew, change: &str) {
    crew.dba
        .run(&format!("update kslate.claim set {change} where {TASK}"))
        .await;
}

/// The columns that a hand must not be able to make up.
async fn claim(crew: &Crew) -> Value {
    let row = crew
        .dba
        .run(&format!(
            "select row_to_json(c) from (select state, owner, epoch, version, record_version from kslate.claim where {TASK}) c"
        ))
        .await;
    serde_json::from_str(&row).expect("JSON")
}

const NEWEST: &str =
    "op, author, coalesce(role, '-'), epoch, coalesce(took_over_from, '-'), login, coalesce(value::text, '-')";

#[tokio::test]
async fn a_grant() {
    let crew = Crew::new().await;
    set(
        &crew,
        "state = 'claimed', owner = 'apikey:remediator/worker-1', expires_at = clock_timestamp() + interval '1 hour'",
    )
    .await;
    assert_eq!(
        claim(&crew).await,
        json!({"state": "claimed", "owner": "apikey:remediator/worker-1", "epoch": 1, "version": 0, "record_version": 1})
    );
    assert_eq!(
        crew.history(NEWEST, 1).await,
        "claim|pg:postgres|-|1|-|postgres|-"
    );
    let held = crew
        .other
        .refused("HELD", "claim", "'incidents/inc-1', 'remediation'")
        .await;
    assert_eq!(held["owner"], "apikey:remediator/worker-1");
    // The holder may go on under the claim_id that the trigger made, and knows its lease by renewing.
    let id = crew
        .dba
        .run(&format!("select claim_id from kslate.claim where {TASK}"))
        .await;
    crew.worker
        .ok(
            "renew",
            &format!("'incidents/inc-1', 'remediation', '{id}'"),
        )
        .await;
    crew.consistent().await;
}

/// As `kslate_claim` has it: what is said, else what the class says.
#[tokio::test]
async fn a_grant_that_does_not_say_until_when() {
    let crew = Crew::new().await;
    crew.dba
        .run(
            "select from kslate_class_apply(replace((select source from kslate_class('incidents')), 'default_seconds: 60', 'default_seconds: 300'))",
        )
        .await;
    for (said, seconds) in [("", 300), (", lease_seconds = 20", 20)] {
        set(
            &crew,
            &format!("state = 'claimed', owner = 'apikey:remediator/worker-1'{said}"),
        )
        .await;
        let lasts = crew
            .dba
            .run(&format!(
                "select extract(epoch from expires_at - changed_at)::int from kslate.claim where {TASK}"
            ))
            .await;
        assert_eq!(lasts, seconds.to_string(), "{said}");
        set(&crew, "state = 'open'").await;
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_grant_needs_an_owner_and_a_known_state() {
    let crew = Crew::new().await;
    for change in [
        "state = 'claimed'",
        "state = 'claimed', owner = null",
        "state = 'lost'",
        "state = null",
        "record = 'incidents/inc-2'",
        "field = 'status'",
        "class = 'migrations'",
    ] {
        let refused = crew
            .dba
            .sql(&format!("update kslate.claim set {change} where {TASK}"))
            .await
            .expect_err(change);
        assert!(
            ["22023", "23514", "23502", "42501"].contains(&refused.sqlstate.as_str()),
            "{change}: {refused:?}"
        );
    }
    let insert = crew
        .dba
        .sql("insert into kslate.claim (record, field, class, queued_at) values ('incidents/inc-1', 'x', 'incidents', now())")
        .await
        .expect_err("a claim is made with its record");
    insert.is("IMMUTABLE");
    assert_eq!(crew.version().await, 0);
    crew.consistent().await;
}

#[tokio::test]
async fn an_expiry_moved_by_hand_is_a_renewal() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    for (change, live) in [
        ("expires_at = expires_at + interval '1 day'", true),
        ("expires_at = clock_timestamp() + interval '30 s'", true),
        ("expires_at = clock_timestamp()", false),
    ] {
        let before = crew.version().await;
        set(&crew, change).await;
        assert_eq!(crew.version().await, before + 1, "{change}");
        assert_eq!(
            crew.history(NEWEST, 1).await,
            "renew|pg:postgres|-|1|-|postgres|-",
            "{change}"
        );
        let claimed = crew
            .other
            .call("claim", "'incidents/inc-1', 'remediation'")
            .await;
        match claimed {
            Err(refused) if live => {
                refused.is("HELD");
            }
            Ok(row) if !live => assert_eq!(row["took_over_from"], "apikey:remediator/worker-1"),
            other => panic!("{change}: {other:?}"),
        }
    }
    let lost = crew
        .worker
        .refused(
            "LEASE_LOST",
            "renew",
            &format!("'incidents/inc-1', 'remediation', {id}"),
        )
        .await;
    assert_eq!(lost["reason"], "taken_over");
    crew.consistent().await;
}

#[tokio::test]
async fn stealing_a_live_claim_is_a_takeover() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    set(&crew, "owner = 'apikey:remediator/worker-2'").await;
    assert_eq!(
        claim(&crew).await,
        json!({"state": "claimed", "owner": "apikey:remediator/worker-2", "epoch": 2, "version": 0, "record_version": 2})
    );
    assert_eq!(
        crew.history(NEWEST, 1).await,
        "takeover|pg:postgres|-|2|apikey:remediator/worker-1|postgres|-"
    );
    let lost = crew
        .worker
        .refused(
            "LEASE_LOST",
            "complete",
            &format!("'incidents/inc-1', 'remediation', {id}"),
        )
        .await;
    assert_eq!(
        (&lost["reason"], &lost["owner"]),
        (&json!("taken_over"), &json!("apikey:remediator/worker-2"))
    );
    // A claim_id of the thief's own choice is a grant too, even to the same owner.
    set(&crew, "claim_id = '00000000-0000-4000-8000-000000000001'").await;
    assert_eq!(claim(&crew).await["epoch"], 3);
    assert_eq!(crew.history("op", 1).await, "reattach");
    crew.consistent().await;
}

#[tokio::test]
async fn opening_a_claim_by_hand_is_a_forced_release() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    set(&crew, "state = 'open', reason = 'worker hangs'").await;
    assert_eq!(
        claim(&crew).await,
        json!({"state": "open", "owner": null, "epoch": 1, "version": 0, "record_version": 2})
    );
    assert_eq!(
        crew.history("op, author, epoch, reason", 1).await,
        "force_release|pg:postgres|1|worker hangs"
    );
    let lost = crew
        .worker
        .refused(
            "LEASE_LOST",
            "renew",
            &format!("'incidents/inc-1', 'remediation', {id}"),
        )
        .await;
    assert_eq!(
        (&lost["reason"], &lost["owner"]),
        (&json!("force_released"), &Value::Null)
    );
    let next = crew
        .other
        .ok("claim", "'incidents/inc-1', 'remediation'")
        .await;
    assert_eq!(
        (&next["epoch"], &next["took_over_from"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(
        crew.history("op, coalesce(reason, '-')", 1).await,
        "claim|-",
        "the reason was that of the release"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn completing_and_reopening_by_hand_count() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    set(&crew, "state = 'completed'").await;
    assert_eq!(
        claim(&crew).await,
        json!({"state": "completed", "owner": null, "epoch": 1, "version": 1, "record_version": 2})
    );
    assert_eq!(
        crew.history("op, version, value, author", 1).await,
        "complete|1|null|pg:postgres"
    );
    let lost = crew
        .worker
        .refused(
            "LEASE_LOST",
            "renew",
            &format!("'incidents/inc-1', 'remediation', {id}"),
        )
        .await;
    assert_eq!(lost["reason"], "completed");
    let done = crew
        .other
        .refused("COMPLETED", "claim", "'incidents/inc-1', 'remediation'")
        .await;
    assert_eq!(
        (&done["author"], &done["version"]),
        (&json!("pg:postgres"), &json!(1))
    );
    let jump = crew
        .dba
        .sql(&format!(
            "update kslate.claim set state = 'claimed', owner = 'apikey:x' where {TASK}"
        ))
        .await
        .expect_err("it is completed");
    jump.is("MALFORMED");
    set(&crew, "state = 'open'").await;
    assert_eq!(claim(&crew).await["version"], 2);
    assert_eq!(crew.history("op, version", 1).await, "reopen|2");
    crew.claim(60).await;
    crew.consistent().await;
}

#[tokio::test]
async fn epochs_and_versions_cannot_be_made_up() {
    let crew = Crew::new().await;
    for claimed in [false, true] {
        if claimed {
            crew.claim(60).await;
        }
        for change in [
            "epoch = 99",
            "epoch = 0",
            "version = 7",
            "record_version = 99",
            "claimed_at = '2001-01-01'",
            "recheck_at = 'infinity'",
            "changed_by = 'apikey:diagnoser', changed_role = 'diagnoser'",
            "ended = 'released'",
            "queued_at = '-infinity'",
        ] {
            let before = claim(&crew).await;
            // Either refused or set right; never believed.
            let _ = crew
                .dba
                .sql(&format!("update kslate.claim set {change} where {TASK}"))
                .await;
            let after = claim(&crew).await;
            for column in ["state", "owner", "epoch", "version"] {
                assert_eq!(before[column], after[column], "{change}");
            }
            crew.consistent().await;
        }
    }
    // An epoch given along with a theft is refused, and the theft with it.
    let theft = crew
        .dba
        .sql(&format!(
            "update kslate.claim set owner = 'apikey:remediator/worker-2', epoch = 50 where {TASK}"
        ))
        .await;
    theft.expect_err("an epoch of its own").is("IMMUTABLE");
    assert_eq!(claim(&crew).await["epoch"], 1);
    crew.consistent().await;
}

#[tokio::test]
async fn a_later_trigger_cannot_make_up_a_claim() {
    let crew = Crew::new().await;
    crew.claim(60).await;
    let mut accepted = Vec::new();
    for change in [
        "new.epoch := new.epoch + 1",
        "new.epoch := 0",
        "new.version := new.version + 1",
        "new.record_version := new.record_version + 5",
        "new.field := 'status'",
        "new.changed_by := 'apikey:diagnoser'",
        "new.changed_role := 'diagnoser'",
    ] {
        crew.dba
            .run(&format!(
                "create or replace function public.later() returns trigger language plpgsql as $$ begin {change}; return new; end $$;
                 create or replace trigger zz_later before update on kslate.claim for each row execute function public.later()"
            ))
            .await;
        crew.dba.run("begin").await;
        let sql = format!("update kslate.claim set owner = 'apikey:thief' where {TASK}");
        match crew.dba.sql(&sql).await {
            Ok(_) => accepted.push(change),
            Err(refused) => {
                refused.is("IMMUTABLE");
            }
        }
        crew.dba.run("rollback").await;
    }
    assert_eq!(accepted, [""; 0]);
    crew.consistent().await;
}

#[tokio::test]
async fn a_plain_dba_and_a_statement_of_many_rows() {
    let crew = Crew::new().await;
    crew.diagnoser.ok("create", "'incidents/inc-2'").await;
    crew.claim(60).await;
    role(&crew.database, "claims_dba", "login", "");
    crew.dba
        .run("grant usage on schema kslate to claims_dba; grant select, update on kslate.claim to claims_dba")
        .await;
    let plain = Session::login(&crew.database, "claims_dba").await;
    plain
        .run("update kslate.claim set state = 'claimed', owner = 'apikey:remediator/worker-2', expires_at = clock_timestamp() + interval '1 min'")
        .await;
    assert_eq!(
        crew.dba
            .run("select record, op, epoch, author, login from kslate.history where author = 'pg:claims_dba' order by record")
            .await,
        "incidents/inc-1|takeover|2|pg:claims_dba|claims_dba\nincidents/inc-2|claim|1|pg:claims_dba|claims_dba"
    );
    // A change that changes nothing is none.
    let before = crew.version().await;
    plain.run("update kslate.claim set owner = owner").await;
    assert_eq!(crew.version().await, before);
    crew.consistent().await;
}

/// A hand may set any timestamp that PostgreSQL knows; everything that shows it goes on.
#[tokio::test]
async fn times_far_away_break_no_answer() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    for (expires, live) in [
        ("infinity", true),
        ("290000-01-01", true),
        ("-infinity", false),
        ("4000-01-01 BC", false),
    ] {
        set(&crew, &format!("expires_at = '{expires}'")).await;
        for view in ["claims_now", "lapsed", "gates", "timeline"] {
            crew.dba.run(&format!("select * from kslate.{view}")).await;
        }
        let rows = crew
            .other
            .rows("fields", "'incidents/inc-1', array['remediation']")
            .await
            .expect("one row");
        assert_eq!(rows[0]["claim"]["live"], live, "{expires}");
        if live {
            let held = crew
                .other
                .refused("HELD", "claim", "'incidents/inc-1', 'remediation'")
                .await;
            assert!(held["retry_after_seconds"].as_i64() > Some(60), "{held}");
        } else {
            crew.worker
                .refused(
                    "LEASE_LOST",
                    "renew",
                    &format!("'incidents/inc-1', 'remediation', {id}"),
                )
                .await;
        }
        crew.consistent().await;
    }
    let taken = crew
        .other
        .ok("claim", "'incidents/inc-1', 'remediation'")
        .await;
    assert_eq!(taken["took_over_from"], "apikey:remediator/worker-1");
    crew.consistent().await;
}
