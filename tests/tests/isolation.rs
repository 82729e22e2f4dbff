//! Two sessions at one record, under each isolation level: what the second is told is true, or "try again".

use kslate_tests::crew::{claim_id, Crew, DOCUMENT};
use kslate_tests::{until_async, Called, Session};
use std::sync::Arc;
use std::time::Instant;

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// Who calls what; `{r}` stands for the record, `{id}` for the claim_id of the worker's claim.
type Call = (&'static str, &'static str, &'static str);

/// `first` is in its transaction when `second` calls. What the second may be told, where the first commits and where it rolls
/// back; above READ COMMITTED a serialization failure may take the place of the answer to a committed first.
struct Race {
    name: &'static str,
    given: &'static [Call],
    first: Call,
    second: Call,
    committed: &'static [&'static str],
    rolled_back: &'static [&'static str],
}

const WORKER: &str = "remediator/worker-1";
const OTHER: &str = "remediator/worker-2";
const CLAIM: Call = (WORKER, "claim", "'{r}', 'remediation', 600");
const TAKE: Call = (OTHER, "claim", "'{r}', 'remediation', 600");
const RENEW: Call = (WORKER, "renew", "'{r}', 'remediation', {id}, 900");
const RELEASE: Call = (WORKER, "release", "'{r}', 'remediation', {id}");
const COMPLETE: Call = (WORKER, "complete", "'{r}', 'remediation', {id}, '1'");
const SAVE: Call = (WORKER, "checkpoint_save", "'{r}', '{document}'");
const RESOLVE: Call = ("diagnoser", "write", "'{r}', 'status', '\"resolved\"', 1");
const WRITE: Call = ("diagnoser", "write", "'{r}', 'hypotheses', '1', 0");
const APPEND: Call = (WORKER, "append", "'{r}', 'actions_taken', '1'");
const FENCED: Call = (
    WORKER,
    "append",
    "'{r}', 'actions_taken', '1', claim_id => {id}",
);
const CREATE: Call = ("diagnoser", "create", "'{r}-new'");
const CREATE_WITH: Call = ("diagnoser", "create", "'{r}-new', '{\"hypotheses\": 1}'");
/// The worker's lease runs out.
const LAPSE: Call = ("", "lapse", "");

#[rustfmt::skip]
const RACES: &[Race] = &[
    Race { name: "write, write", given: &[], first: WRITE, second: WRITE, committed: &["VERSION_CONFLICT"], rolled_back: &["ok"] },
    Race { name: "append, append", given: &[], first: APPEND, second: APPEND, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "write, append", given: &[], first: WRITE, second: APPEND, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "claim, claim", given: &[], first: CLAIM, second: TAKE, committed: &["HELD"], rolled_back: &["ok"] },
    Race { name: "claim, write", given: &[], first: CLAIM, second: WRITE, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "renew, claim", given: &[CLAIM], first: RENEW, second: TAKE, committed: &["HELD"], rolled_back: &["HELD"] },
    Race { name: "takeover, renew", given: &[CLAIM, LAPSE], first: TAKE, second: RENEW, committed: &["LEASE_LOST"], rolled_back: &["LEASE_LOST"] },
    Race { name: "takeover, fenced write", given: &[CLAIM, LAPSE], first: TAKE, second: FENCED, committed: &["LEASE_LOST"], rolled_back: &["LEASE_LOST"] },
    Race { name: "takeover, complete", given: &[CLAIM, LAPSE], first: TAKE, second: COMPLETE, committed: &["LEASE_LOST"], rolled_back: &["LEASE_LOST"] },
    Race { name: "release, claim", given: &[CLAIM], first: RELEASE, second: TAKE, committed: &["ok"], rolled_back: &["HELD"] },
    Race { name: "release, fenced write", given: &[CLAIM], first: RELEASE, second: FENCED, committed: &["LEASE_LOST"], rolled_back: &["ok"] },
    Race { name: "release, release", given: &[CLAIM], first: RELEASE, second: RELEASE, committed: &["LEASE_LOST"], rolled_back: &["ok"] },
    Race { name: "complete, claim", given: &[CLAIM], first: COMPLETE, second: TAKE, committed: &["COMPLETED"], rolled_back: &["HELD"] },
    Race { name: "complete, renew", given: &[CLAIM], first: COMPLETE, second: RENEW, committed: &["LEASE_LOST"], rolled_back: &["ok"] },
    Race { name: "save, save", given: &[], first: SAVE, second: SAVE, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "save, resolve", given: &[], first: SAVE, second: RESOLVE, committed: &["ok"], rolled_back: &["INVALID_CHECKPOINT"] },
    Race { name: "resolve, save", given: &[SAVE], first: RESOLVE, second: SAVE, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "create, create", given: &[], first: CREATE, second: CREATE, committed: &["ok"], rolled_back: &["ok"] },
    Race { name: "create, create with values", given: &[], first: CREATE, second: CREATE_WITH, committed: &["ALREADY_EXISTS"], rolled_back: &["ok"] },
];

/// The answer in a word: `ok`, the error, or PostgreSQL's SQLSTATE where the refusal is not ours.
fn word(called: &Called) -> String {
    match called {
        Ok(_) => "ok".to_string(),
        Err(refused) if refused.error().is_empty() => {
            assert!(
                refused.sqlstate != "55P03" || refused.detail.is_none(),
                "{refused:?}"
            );
            refused.sqlstate.clone()
        }
        Err(refused) => {
            let error = refused.error();
            refused.is(&error);
            error
        }
    }
}

struct Stage<'c> {
    crew: &'c Crew,
    record: String,
    id: String,
}

impl Stage<'_> {
    fn arguments(&self, call: Call) -> String {
        call.2
            .replace("{r}", &self.record)
            .replace("{id}", &self.id)
            .replace("{document}", DOCUMENT)
    }

    async fn give(&mut self, call: Call) {
        if call.1 == "lapse" {
            return self.crew.dba.lapse(&self.record, "remediation").await;
        }
        let session = Session::agent(&self.crew.database, call.0).await;
        let row = session.ok(call.1, &self.arguments(call)).await;
        if call.1 == "claim" {
            self.id = claim_id(&row);
        }
    }

    async fn session(&self, call: Call, level: &str) -> Arc<Session> {
        let session = Session::agent(&self.crew.database, call.0).await;
        // A snapshot that is older than anything the other one does.
        session
            .run(&format!("begin isolation level {level}; select 1"))
            .await;
        session
    }

    /// HELD is true: there is a committed, live claim of the owner that was told.
    async fn held_is_true(&self, called: &Called) {
        let Err(refused) = called else { return };
        if refused.error() != "HELD" {
            return;
        }
        let told = refused.is("HELD");
        let truth = self
            .crew
            .dba
            .run(&format!(
                "select owner, expires_at = '{}' and expires_at > clock_timestamp() from kslate.claim where record = '{}'",
                told["expires_at"].as_str().expect("a time"),
                self.record
            ))
            .await;
        assert_eq!(
            truth,
            format!("{}|t", told["owner"].as_str().expect("an owner"))
        );
    }
}

#[tokio::test]
async fn the_second_of_two_is_told_the_truth() {
    let crew = Crew::new().await;
    let mut faults = Vec::new();
    for (n, race) in RACES.iter().enumerate() {
        for (m, level) in LEVELS.iter().enumerate() {
            for schedule in ["first commits", "first rolls back", "first has committed"] {
                let mut stage = Stage {
                    crew: &crew,
                    record: format!("incidents/{n}-{m}-{}", schedule.replace(' ', "-")),
                    id: "null".into(),
                };
                crew.diagnoser
                    .ok("create", &format!("'{}'", stage.record))
                    .await;
                for call in race.given {
                    stage.give(*call).await;
                }
                let first = stage.session(race.first, level).await;
                let second = stage.session(race.second, level).await;
                first.ok(race.first.1, &stage.arguments(race.first)).await;
                let called = if schedule == "first has committed" {
                    first.run("commit").await;
                    second
                        .call(race.second.1, &stage.arguments(race.second))
                        .await
                } else {
                    let call = second.begin(race.second.1, &stage.arguments(race.second));
                    crew.dba.sees_waiting(&second).await;
                    let end = if schedule == "first commits" {
                        "commit"
                    } else {
                        "rollback"
                    };
                    first.run(end).await;
                    call.await.expect("no panic")
                };
                let mut told = word(&called);
                stage.held_is_true(&called).await;
                if called.is_ok() {
                    if let Err(refused) = second.sql("commit").await {
                        told = refused.sqlstate;
                    }
                }
                let mut may: Vec<&str> = match schedule {
                    "first rolls back" => race.rolled_back.to_vec(),
                    _ => race.committed.to_vec(),
                };
                if *level != "read committed" {
                    may.push("40001");
                }
                if !may.contains(&told.as_str()) {
                    faults.push(format!(
                        "{}, {level}, {schedule}: {called:?} then {told}, not one of {may:?}",
                        race.name
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    crew.consistent().await;
}

#[tokio::test]
async fn what_a_transaction_has_seen_is_no_reason_for_held() {
    let crew = Crew::new().await;
    for level in ["repeatable read", "serializable"] {
        let id = crew.claim(600).await;
        crew.other
            .run(&format!("begin isolation level {level}; select 1"))
            .await;
        // Still held, and seen as held by the snapshot.
        crew.other.run("savepoint s").await;
        crew.other
            .refused("HELD", "claim", "'incidents/inc-1', 'remediation'")
            .await;
        crew.other.run("rollback to s").await;
        crew.worker
            .ok(
                "release",
                &format!("'incidents/inc-1', 'remediation', {id}"),
            )
            .await;
        let refused = crew
            .other
            .call("claim", "'incidents/inc-1', 'remediation'")
            .await
            .expect_err("the snapshot is too old");
        assert_eq!(
            (refused.sqlstate.as_str(), refused.error().as_str()),
            ("40001", "")
        );
        crew.other.run("rollback").await;
    }
    crew.consistent().await;
}

/// A renewal, which touches no record, is not passed over either: neither one that has cut the lease short since the snapshot,
/// nor one that has kept it alive.
#[tokio::test]
async fn a_renewal_since_the_snapshot_is_no_reason_to_write_or_not_to() {
    let crew = Crew::new().await;
    let elsewhere = Session::agent(&crew.database, WORKER).await;
    for level in ["repeatable read", "serializable"] {
        for (granted, renewed) in [(600, 1), (1, 600)] {
            let id = crew.claim(granted).await;
            let until = crew
                .dba
                .run("select expires_at from kslate.claim where field = 'remediation'")
                .await;
            crew.worker
                .run(&format!("begin isolation level {level}; select 1"))
                .await;
            let renew = format!("'incidents/inc-1', 'remediation', {id}, {renewed}");
            elsewhere.ok("renew", &renew).await;
            if renewed == 1 {
                crew.dba.sees_lapse("incidents/inc-1", "remediation").await;
            } else {
                let past = format!("select clock_timestamp() > '{until}'");
                until_async("the first lease's end", || async {
                    crew.dba.run(&past).await == "t"
                })
                .await;
            }
            for (function, arguments) in [
                (
                    "append",
                    "'incidents/inc-1', 'actions_taken', '1'".to_owned(),
                ),
                (
                    "checkpoint_save",
                    format!("'incidents/inc-1', '{DOCUMENT}'"),
                ),
            ] {
                crew.worker.run("savepoint s").await;
                let told = crew
                    .worker
                    .call(function, &format!("{arguments}, claim_id => {id}"))
                    .await;
                let about = format!("{level}, {granted} s renewed for {renewed} s: {function}");
                match told {
                    Err(lost) if renewed == 1 => {
                        assert_eq!(lost.is("LEASE_LOST")["reason"], "lapsed", "{about}");
                    }
                    Ok(_) if renewed != 1 => {}
                    other => panic!("{about}: {other:?}"),
                }
                crew.worker.run("rollback to s").await;
            }
            crew.worker.run("rollback").await;
            elsewhere
                .call(
                    "release",
                    &format!("'incidents/inc-1', 'remediation', {id}"),
                )
                .await
                .ok();
        }
    }
    crew.consistent().await;
}

#[tokio::test]
async fn a_holder_that_idles_in_its_transaction_makes_others_busy_not_held() {
    let crew = Crew::new().await;
    crew.worker.run("begin").await;
    crew.claim(600).await;
    let begun = Instant::now();
    let refused = crew
        .other
        .call("claim", "'incidents/inc-1', 'remediation'")
        .await
        .expect_err("nobody commits");
    let waited = begun.elapsed().as_secs_f64();
    assert_eq!(
        (refused.sqlstate.as_str(), &refused.detail),
        ("55P03", &None)
    );
    assert!((7.9..10.0).contains(&waited), "waited {waited} s");
    // A shorter bound of the caller's own holds.
    crew.other.run("set lock_timeout = '50ms'").await;
    let begun = Instant::now();
    let refused = crew
        .other
        .call("claim", "'incidents/inc-1', 'remediation'")
        .await
        .expect_err("nobody commits");
    assert_eq!(
        (refused.sqlstate.as_str(), &refused.detail),
        ("55P03", &None)
    );
    assert!(begun.elapsed().as_secs_f64() < 5.0);
    // A longer one does not make the wait longer, and the caller's setting is put back.
    assert_eq!(crew.other.run("show lock_timeout").await, "50ms");
    crew.worker.run("rollback").await;
    crew.consistent().await;
}

#[tokio::test]
async fn a_deadlock_with_a_plain_update_ends_in_40p01_for_one() {
    let crew = Crew::new().await;
    crew.worker.run("begin").await;
    crew.worker
        .ok(
            "checkpoint_save",
            &format!("'incidents/inc-1', '{DOCUMENT}'"),
        )
        .await;
    let plain = Session::login(&crew.database, "postgres").await;
    let by_hand = plain.begin_sql(
        "update kslate.field set value = '\"mitigating\"' where record = 'incidents/inc-1' and field = 'status'",
    );
    crew.dba.sees_waiting(&plain).await;
    let by_call = crew
        .worker
        .call("write", "'incidents/inc-1', 'status', '\"mitigating\"', 1")
        .await;
    if by_call.is_ok() {
        crew.worker.run("commit").await;
    } else {
        crew.worker.run("rollback").await;
    }
    let states: Vec<String> = [by_call.err(), by_hand.await.expect("no panic").err()]
        .into_iter()
        .flatten()
        .map(|refused| {
            assert!(refused.error().is_empty(), "{refused:?}");
            refused.sqlstate
        })
        .collect();
    assert_eq!(states, ["40P01"], "one fails, one succeeds");
    crew.consistent().await;
}

#[tokio::test]
async fn three_sessions_grow_the_epoch_by_one_each() {
    let crew = Crew::new().await;
    for round in 1..=10 {
        crew.diagnoser.run("begin").await;
        crew.diagnoser
            .ok(
                "write",
                &format!("'incidents/inc-1', 'hypotheses', '{round}', {}", round - 1),
            )
            .await;
        let calls = [
            crew.worker
                .begin("claim", "'incidents/inc-1', 'remediation'"),
            crew.other
                .begin("claim", "'incidents/inc-1', 'remediation'"),
        ];
        crew.dba.sees_waiting(&crew.worker).await;
        crew.dba.sees_waiting(&crew.other).await;
        crew.diagnoser.run("commit").await;
        let mut granted = Vec::new();
        for call in calls {
            if let Ok(row) = call.await.expect("no panic") {
                granted.push(row);
            }
        }
        assert_eq!(granted.len(), 1);
        assert_eq!(granted[0]["epoch"], round);
        crew.lapse().await;
    }
    crew.consistent().await;
}
