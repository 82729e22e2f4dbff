//! What a session has set changes no answer, and what our functions set is put back.

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};
use kslate_tests::until_async;

#[tokio::test]
async fn details_are_in_utc_and_answers_the_same_whatever_is_set() {
    let crew = Crew::new().await;
    for setting in [
        "timezone = 'Asia/Tokyo'",
        "datestyle = 'german'",
        "intervalstyle = 'sql_standard'",
        "bytea_output = 'escape'",
        "extra_float_digits = -15",
        "enable_seqscan = off",
        "plan_cache_mode = force_custom_plan",
        "row_security = off",
        "transform_null_equals = on",
        "array_nulls = off",
        "xmloption = document",
        "default_transaction_isolation = 'serializable'",
        "client_min_messages = debug1",
        "synchronous_commit = off",
        "jit = on",
        "backslash_quote = on",
        "quote_all_identifiers = on",
    ] {
        for session in [&crew.worker, &crew.other] {
            session.run(&format!("set {setting}")).await;
        }
        let granted = crew
            .worker
            .ok(
                "claim",
                "'incidents/inc-1', 'remediation', 60, idempotency_key => 'k'",
            )
            .await;
        let again = crew
            .worker
            .ok(
                "claim",
                "'incidents/inc-1', 'remediation', 60, idempotency_key => 'k'",
            )
            .await;
        assert_eq!(granted["claim_id"], again["claim_id"], "{setting}");
        let held = crew
            .other
            .refused("HELD", "claim", "'incidents/inc-1', 'remediation'")
            .await;
        let expires = held["expires_at"].as_str().expect("a time");
        assert!(
            expires.ends_with("+00:00") && expires.contains('T'),
            "{setting}: {held}"
        );
        crew.worker
            .ok(
                "append",
                "'incidents/inc-1', 'actions_taken', '{\"n\": 0.1234567890123456789}'",
            )
            .await;
        crew.worker
            .ok(
                "checkpoint_save",
                &format!("'incidents/inc-1', '{DOCUMENT}'"),
            )
            .await;
        crew.worker
            .ok(
                "release",
                &format!("'incidents/inc-1', 'remediation', {}", claim_id(&granted)),
            )
            .await;
        let name = setting.split(' ').next().expect("a name");
        for session in [&crew.worker, &crew.other] {
            session.run(&format!("reset {name}")).await;
        }
        crew.dba.run("select kslate_forget_keys('0')").await;
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_read_only_transaction_reads() {
    let crew = Crew::new().await;
    crew.worker.run("begin read only").await;
    crew.worker.ok("get", "'incidents/inc-1'").await;
    let refused = crew
        .worker
        .call("claim", "'incidents/inc-1', 'remediation'")
        .await
        .expect_err("it is read only");
    assert_eq!(
        (refused.sqlstate.as_str(), refused.error().as_str()),
        ("25006", "")
    );
    crew.worker.run("rollback").await;
    // A read takes no transaction id.
    crew.worker.run("begin").await;
    for (function, arguments) in [
        ("get", "'incidents/inc-1'"),
        ("history", "'incidents/inc-1'"),
        ("checkpoint_load", "'incidents/inc-1'"),
        ("whoami", ""),
    ] {
        crew.worker.rows(function, arguments).await.expect(function);
        assert_eq!(
            crew.worker
                .run("select pg_current_xact_id_if_assigned()")
                .await,
            "",
            "{function}"
        );
    }
    crew.worker.run("commit").await;
}

#[tokio::test]
async fn after_a_cancelled_wait_the_session_is_itself_again() {
    let crew = Crew::new().await;
    let who = "select current_user, session_user, current_setting('search_path'), current_setting('lock_timeout')";
    let before = crew.other.run(who).await;
    crew.worker.run("begin").await;
    crew.claim(60).await;
    for end in ["pg_cancel_backend", "lock_timeout", "statement_timeout"] {
        if end != "pg_cancel_backend" {
            crew.other.run(&format!("set {end} = '100ms'")).await;
        }
        let call = crew
            .other
            .begin("claim", "'incidents/inc-1', 'remediation'");
        if end == "pg_cancel_backend" {
            crew.dba.sees_waiting(&crew.other).await;
            crew.dba
                .run(&format!(
                    "select pg_cancel_backend({})",
                    crew.other.process()
                ))
                .await;
        }
        let refused = call.await.expect("no panic").expect_err("it waited");
        assert!(
            ["57014", "55P03"].contains(&refused.sqlstate.as_str()),
            "{end}: {refused:?}"
        );
        assert_eq!(refused.detail, None, "{end}");
        crew.other.run("reset all").await;
        assert_eq!(crew.other.run(who).await, before, "{end}");
        let denied = crew
            .other
            .sql("select from kslate.record")
            .await
            .expect_err("no rights left over");
        assert_eq!(denied.sqlstate, "42501");
    }
    // A holder whose backend is killed holds nothing: its transaction was not committed.
    crew.dba
        .run(&format!(
            "select pg_terminate_backend({})",
            crew.worker.process()
        ))
        .await;
    until_async("the backend is gone", || async {
        crew.dba
            .run(&format!(
                "select count(*) from pg_stat_activity where pid = {}",
                crew.worker.process()
            ))
            .await
            == "0"
    })
    .await;
    let granted = crew
        .other
        .ok("claim", "'incidents/inc-1', 'remediation'")
        .await;
    assert_eq!(granted["epoch"], 1);
    crew.consistent().await;
}

/// An ERROR in the middle of our own statements, caught or not, leaves no trace of our rights: a hand after it is a hand.
#[tokio::test]
async fn after_an_error_in_our_statements_a_hand_is_a_hand() {
    let crew = Crew::new().await;
    let gateway = "set role kslate_server";
    let diagnoser = "identity => 'apikey:diagnoser'";
    let fails = [
        // Refused by us; by a trigger below a statement of ours; by PostgreSQL below it; inside a trigger that a hand set off.
        format!("perform from public.kslate_write('incidents/inc-1', 'hypotheses', '1', 9, {diagnoser})"),
        format!("perform from public.kslate_write('incidents/inc-1', 'status', '\"resolved\"', 1, {diagnoser})"),
        "perform from public.kslate_append('incidents/inc-1', 'actions_taken', '1', identity => 'apikey:remediator/worker-1')".to_string(),
        "reset role; update kslate.field set value = '\"resolved\"' where field = 'status'".to_string(),
        "reset role; update kslate.claim set state = 'claimed', owner = null where record = 'incidents/inc-1'".to_string(),
        "reset role; insert into kslate.record (record) values ('incidents/inc-1')".to_string(),
    ];
    // Somebody holds the record when the append comes.
    for (n, fail) in fails.iter().enumerate() {
        let locked = fail.contains("kslate_append");
        if locked {
            crew.worker.run("begin").await;
            crew.claim(60).await;
        }
        crew.dba
            .run(&format!(
                "set lock_timeout = '50ms'; {gateway};
                 do $do$ begin begin {fail}; raise 'it did not fail'; exception when others then
                   if sqlerrm = 'it did not fail' then raise; end if; end; end $do$; reset role; set lock_timeout = 0"
            ))
            .await;
        if locked {
            crew.worker.run("rollback").await;
        }
        let version = crew.version().await;
        for forged in [
            "insert into kslate.history (record, record_version, op, author, changed_at, login) values ('incidents/inc-1', 99, 'write', 'x', now(), 'x')",
            "insert into kslate.checkpoint values ('incidents/inc-1', 9, 'remediator', '{}', 0, 'x', now())",
            "update kslate.record set version = 99",
            "delete from kslate.claim",
        ] {
            crew.dba.sql(forged).await.expect_err(forged).is("IMMUTABLE");
        }
        crew.dba
            .run(&format!(
                "insert into kslate.field (record, field, value, author, version) values ('incidents/inc-1', 'hypotheses', '{n}', 'apikey:x', 50)
                 on conflict (record, field) do update set value = '{n}', author = 'apikey:x'"
            ))
            .await;
        assert_eq!(crew.version().await, version + 1, "{fail}");
        assert_eq!(
            crew.history("author, role is null", 1).await,
            "pg:postgres|t",
            "{fail}"
        );
        assert_eq!(crew.dba.run("select current_user").await, "postgres");
    }
    crew.consistent().await;
}

/// Our own code is known by more than the owner's name: whoever takes it with SET ROLE is a hand still.
#[tokio::test]
async fn the_owner_role_by_hand_is_a_hand() {
    let crew = Crew::new().await;
    crew.dba.run("set role kslate_owner").await;
    for forged in [
        "insert into kslate.history (record, record_version, op, author, changed_at, login) values ('incidents/inc-1', 1, 'write', 'x', now(), 'x')",
        "insert into kslate.checkpoint values ('incidents/inc-1', 1, 'remediator', '{}', 0, 'x', now())",
        "update kslate.record set version = 99",
        "insert into kslate.class select class, version + 1, source, definition, applied_by, applied_at from kslate.class",
    ] {
        crew.dba.sql(forged).await.expect_err(forged).is("IMMUTABLE");
    }
    crew.dba
        .run("update kslate.field set value = '\"mitigating\"', author = 'apikey:x' where field = 'status'")
        .await;
    crew.dba.run("reset role").await;
    assert_eq!(
        crew.history("author, login", 1).await,
        "pg:kslate_owner|postgres"
    );
    crew.consistent().await;
}
