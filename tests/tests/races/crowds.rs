//! Three sessions. One holds the record's rows, two call and are both seen waiting; then both are let go at once, and end in one
//! order or the other.

use crate::operations::{Operation, OPERATIONS};
use crate::pairs::{begin, end};
use crate::rounds;
use crate::scenes::{word, Outcome, Scene, Stage, Theatre, SCENES};
use kslate_tests::assert_consistent;

/// Calls in a transaction of its own; gives what it was told in the end.
fn call(
    theatre: &Theatre,
    side: usize,
    stage: &Stage,
    operation: &'static Operation,
) -> tokio::task::JoinHandle<String> {
    let caller = theatre.caller(side, operation);
    let arguments = stage.arguments(operation);
    tokio::spawn(async move {
        let called = caller.call(operation.function, &arguments).await;
        let refused = end(&caller, called.is_ok()).await;
        refused.unwrap_or_else(|| word(&called))
    })
}

async fn let_go(
    theatre: &Theatre,
    scene: &Scene,
    pair: [&'static Operation; 2],
    level: &str,
) -> Outcome {
    let stage = theatre.stage(scene).await;
    for (side, operation) in pair.iter().enumerate() {
        begin(&theatre.caller(side, operation), level).await;
    }
    let record = &stage.record;
    theatre
        .dba
        .run(&format!(
            "begin; select from kslate.record where record = '{record}' for update;
             select from kslate.claim where record = '{record}' for update"
        ))
        .await;
    let mut calls = Vec::new();
    for (side, operation) in pair.iter().enumerate() {
        calls.push(call(theatre, side, &stage, operation));
        theatre
            .dba
            .sees_waiting(&theatre.caller(side, operation))
            .await;
    }
    theatre.dba.run("commit").await;
    let mut words = Vec::new();
    for call in calls {
        words.push(call.await.expect("no panic"));
    }
    let state = theatre.state(&stage).await;
    Outcome { words, state }
}

/// Both orders, and above READ COMMITTED those in which one of the two was told to try again.
async fn allowed(
    theatre: &Theatre,
    scene: &'static Scene,
    [one, other]: [&'static Operation; 2],
    level: &str,
) -> Vec<Outcome> {
    let mut all = vec![theatre.serial(scene, &[one, other]).await];
    let mut turned = theatre.serial(scene, &[other, one]).await;
    turned.words.reverse();
    all.push(turned);
    if level != "read committed" {
        for (n, survivor) in [one, other].into_iter().enumerate() {
            let mut alone = theatre.serial(scene, &[survivor]).await;
            // Only beside an accepted change does anything fail to serialize.
            if alone.words[0] == "ok" {
                alone.words.insert(1 - n, "40001".into());
                all.push(alone);
            }
        }
    }
    all
}

async fn every_pair_let_go(level: &'static str) {
    let theatre = Theatre::open().await;
    let mut faults = Vec::new();
    for scene in SCENES.iter().cycle().take(rounds() * SCENES.len()) {
        for (n, one) in OPERATIONS.iter().enumerate() {
            for other in &OPERATIONS[n..] {
                let pair = [one, other];
                let allowed = allowed(&theatre, scene, pair, level).await;
                let came = let_go(&theatre, scene, pair, level).await;
                if !allowed.contains(&came) {
                    faults.push(format!(
                        "{}: {}, {}:\n  came    {came:?}\n  allowed {allowed:?}",
                        scene.name, one.name, other.name
                    ));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{level}: {}\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert_consistent(&theatre.database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_let_go_at_once_under_read_committed() {
    every_pair_let_go("read committed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_let_go_at_once_under_repeatable_read() {
    every_pair_let_go("repeatable read").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_let_go_at_once_under_serializable() {
    every_pair_let_go("serializable").await;
}
