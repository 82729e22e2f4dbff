//! Random operations of several identities, on the database and on a pure model of it: the same answers, the same tables.
//!
//! `KSLATE_MODEL_SEQUENCES` says how many sequences (2000), `KSLATE_MODEL_SEED` which (a number; the same number runs the same
//! ones). `make soak` runs many more, of a new seed that it prints.
//!
//! Red without, in kslate-pg/src: `&& now < expires_at` in lease.rs (a lease never runs out); the step of the epoch in
//! `lease::grant`; `fence::check(…)?` in write.rs and checkpoint.rs; `gate(…)?` in triggers/field.rs; in store.rs
//! `and record_version > $2` of CHANGED_SINCE, the statement of RECHECK, and either `order by` of NEXT_LAPSED and NEXT_OPEN.

mod database;
mod invariants;
mod model;
mod record;
mod settle;
mod steps;
mod tally;

use database::{changed_fields, Real};
use invariants::Invariants;
use kslate_tests::{assert_consistent, Cluster};
use model::Model;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{json, Value};
use settle::Call;
use std::cell::RefCell;
use std::env;
use std::time::Instant;
use steps::{sequence, Op, Step};
use tally::Tally;

/// Connections that run sequences side by side.
const LANES: usize = 2;
/// After so many sequences the tables are held against history, and a new database is taken.
const BATCH: usize = 4_000;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

/// A runner of so many cases. Nothing is written to a file: the seed says it all.
fn runner(cases: usize, seed: u64) -> TestRunner {
    let config = Config {
        cases: cases as u32,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// The name of an operation in the table.
fn name(op: &Op) -> &'static str {
    match op {
        Op::Create { .. } => "create",
        Op::Write {
            field: "rate" | "secret",
            ..
        } => "write lww",
        Op::Write { .. } => "write cas",
        Op::Append { .. } => "append",
        Op::Claim {
            reattach: false, ..
        } => "claim",
        Op::Claim { .. } => "reattach",
        Op::ClaimNext { .. } => "claim next",
        Op::Renew { .. } => "renew",
        Op::Release { .. } => "release",
        Op::Complete { .. } => "complete",
        Op::Reopen => "reopen",
        Op::ForceRelease { .. } => "force release",
        Op::Save { .. } => "save",
        Op::Load => "load",
        Op::Tick { .. } => "tick",
    }
}

/// Does the answer say all that the model's says?
fn agrees(said: &Value, wanted: &Value) -> bool {
    match wanted.as_object() {
        Some(keys) => keys
            .iter()
            .all(|(key, value)| key == "key" || said[key] == *value),
        None => said == wanted,
    }
}

/// One step on both; what it came to, for the table.
fn step(
    real: &mut Real,
    model: &mut Model,
    seen: &mut Invariants,
    call: &Call,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.steps += 1;
    let wanted = model.call(call);
    if let Op::Tick { .. } = call.op {
        real.clock(model.now);
        tally.accepted += 1;
        tally.count("tick", "ok");
        return Ok(());
    }
    let (outcome, said) = match real.call(call) {
        Ok(mut row) => {
            if call.op == Op::Load {
                let since = if row["document"].is_null() {
                    -1
                } else {
                    row["record_version"].as_i64().unwrap_or(-1)
                };
                let history = real.changed_since(call.key, since, call.who);
                row["changed_fields"] = changed_fields(&row);
                if row["changed_fields"] != history {
                    return Err(format!("changed_fields {row}, history says {history}"));
                }
            }
            let key = if row.is_null() {
                None
            } else {
                real.key(&row["record"])
            };
            if let Some(key) = key {
                seen.accepted(call, key, &row, model.now)?;
                if wanted.as_ref().is_ok_and(|wanted| {
                    wanted["key"]
                        .as_u64()
                        .is_some_and(|wanted| wanted != key as u64)
                }) {
                    return Err(format!(
                        "another came first: {row}, the model says {wanted:?}"
                    ));
                }
            }
            let outcome = match &row {
                row if row.is_null() => "none",
                row if row["created"] == false => "existed",
                row if row["took_over_from"].is_string() => "takeover",
                _ => "ok",
            };
            tally.accepted += 1;
            (outcome.to_string(), Ok(row))
        }
        Err(refused) => {
            let error = refused.error();
            let body = if error.is_empty() {
                json!({})
            } else {
                refused.is(&error)
            };
            if error == "LEASE_LOST" {
                tally.count("LEASE_LOST:", body["reason"].as_str().unwrap_or("none"));
            }
            (error.clone(), Err((error, body)))
        }
    };
    tally.count(name(&call.op), &outcome);
    let right = match (&said, &wanted) {
        (Ok(said), Ok(wanted)) => agrees(said, wanted),
        (Err((error, body)), Err((wanted, parts))) => error == wanted && agrees(body, parts),
        _ => false,
    };
    if right {
        return Ok(());
    }
    Err(format!(
        "{call:?}\n  the database: {said:?}\n  the model:    {wanted:?}"
    ))
}

/// A sequence on both.
fn run(real: &mut Real, steps: &[Step], tally: &mut Tally) -> Result<(), String> {
    real.begin();
    let (mut model, mut seen) = (Model::default(), Invariants::default());
    for one in steps {
        let call = model.settle(one);
        step(real, &mut model, &mut seen, &call, tally)?;
    }
    let (tables, wanted) = (real.tables(), model.tables());
    if tables != wanted {
        return Err(format!("the tables: {tables}\n  the model:  {wanted}"));
    }
    tally.sequences += 1;
    Ok(())
}

/// So many sequences on a connection; a failure is told as its shortest form.
fn lane(database: &kslate_tests::Database<'_>, lane: usize, cases: usize, seed: u64) -> Tally {
    let both = RefCell::new((Real::connect(database, lane), Tally::default()));
    let outcome = runner(cases, seed).run(&sequence(), |steps| {
        let (real, tally) = &mut *both.borrow_mut();
        run(real, &steps, tally).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => both.into_inner().1,
        Err(TestError::Fail(reason, steps)) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
            panic!(
                "seed {seed}, at its shortest:\n{}\n{reason}",
                steps.join("\n")
            )
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// This cluster is not to survive anything: nothing waits for the disk, and refusals are not logged.
fn hasten() {
    Cluster::shared().empty_database().psql(
        "postgres",
        "alter system set fsync = off; alter system set full_page_writes = off; alter system set log_min_messages = fatal;
         select pg_reload_conf()",
    );
}

#[test]
fn the_database_does_what_the_model_does() {
    let sequences = number("KSLATE_MODEL_SEQUENCES", 2_000) as usize;
    let seed = number("KSLATE_MODEL_SEED", 1);
    hasten();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (mut all, begun) = (Tally::default(), Instant::now());
    for (batch, first) in (0..sequences).step_by(BATCH).enumerate() {
        let database = Cluster::shared().fresh_database();
        let cases = BATCH.min(sequences - first) / LANES;
        let tallies: Vec<Tally> = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..LANES)
                .map(|n| {
                    let seed = seed + (batch * LANES + n) as u64;
                    let database = &database;
                    scope.spawn(move || lane(database, n, cases, seed))
                })
                .collect();
            lanes
                .into_iter()
                .map(|lane| {
                    lane.join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        runtime.block_on(assert_consistent(&database));
        tallies.into_iter().for_each(|tally| all.add(tally));
    }
    let took = begun.elapsed().as_secs_f64();
    println!("seed {seed}, {took:.1} s: {all}");
    assert!(all.steps >= 20 * all.sequences, "{all}");
    assert!(10 * all.accepted >= 3 * all.steps, "{all}");
    all.check(100);
}

/// A model that takes a live claim from its own holder without `reattach` is caught, and by the three steps that show it.
#[test]
fn a_wrong_model_is_caught_and_the_sequence_shrinks() {
    let outcome = runner(1_000, 1).run(&sequence(), |steps| {
        let mut right = Model::default();
        let mut wrong = Model::default();
        wrong.forgetful = true;
        for step in &steps {
            let call = right.settle(step);
            let (one, other) = (right.call(&call), wrong.call(&call));
            if one != other {
                return Err(TestCaseError::fail(format!("{one:?} is not {other:?}")));
            }
        }
        Ok(())
    });
    let Err(TestError::Fail(_, shortest)) = outcome else {
        panic!("not caught: {outcome:?}")
    };
    let names: Vec<&str> = shortest.iter().map(|step| name(&step.op)).collect();
    assert_eq!(names, ["create", "claim", "claim"], "{shortest:?}");
}
