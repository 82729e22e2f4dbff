//! The judge is shown histories that were tampered with, one way each, and must not let one pass.

use kslate_tests::ledger::{self, judge, Attempt, Load, Outcome, Patience};
use kslate_tests::{until, Cluster, Shim};
use serde_json::{json, Value};

/// A history of four writers on two records, without a fault, and what they know.
fn sound() -> (Vec<Value>, Vec<Attempt>) {
    let database = Cluster::shared().fresh_database();
    ledger::prepare(&database, &["ledger/a", "ledger/b"]);
    let shim = Shim::start(&database, &ledger::keys(4));
    let both = |_| vec!["ledger/a".to_string(), "ledger/b".to_string()];
    let told = Load::new(shim.address(), 4, both, Patience::Tries).run(|counts| {
        until("enough is written", || counts.acknowledged() > 300);
    });
    assert!(told.wrong.is_empty(), "{:?}", told.wrong);
    (ledger::history(&database), told.attempts)
}

/// The place of the first row of which that is true.
fn find(history: &[Value], what: impl Fn(&Value) -> bool) -> usize {
    history.iter().position(what).expect("such a row")
}

/// An acknowledged attempt at that field.
fn acknowledged<'a>(attempts: &'a mut [Attempt], field: &str) -> &'a mut Attempt {
    attempts
        .iter_mut()
        .find(|attempt| {
            attempt.changes[0].field == field && matches!(attempt.outcome, Outcome::Acknowledged(_))
        })
        .expect("such an attempt")
}

type Doctoring = fn(&mut Vec<Value>, &mut Vec<Attempt>);

#[test]
fn no_doctored_history_passes() {
    let (history, attempts) = sound();
    let summary = judge(&history, &attempts).expect("it is sound");
    println!("{summary}");
    assert!(
        summary.acknowledged > 300 && summary.refused > 0,
        "{summary}"
    );

    let doctorings: &[(&str, Doctoring)] = &[
        ("acknowledged and lost", |history, _| {
            history.remove(find(history, |row| row["op"] == "append"));
        }),
        ("there twice", |history, _| {
            let mut row = history[find(history, |row| row["op"] == "append")].clone();
            row["record_version"] = json!(1_000_000);
            history.push(row);
        }),
        ("two rows in one place", |history, _| {
            history.push(history[find(history, |row| row["op"] == "append")].clone());
        }),
        ("in history, but refused", |_, attempts| {
            acknowledged(attempts, "log").outcome = Outcome::Refused;
        }),
        ("given to two requests", |_, attempts| {
            let second = acknowledged(attempts, "log").clone();
            attempts.push(second);
        }),
        ("acknowledged as", |history, _| {
            let row = find(history, |row| row["op"] == "append");
            history[row]["value"] = json!("another");
        }),
        ("acknowledged as", |history, _| {
            let row = find(history, |row| row["op"] == "append");
            history[row]["author"] = json!("apikey:writer/9");
        }),
        ("acknowledged as", |_, attempts| {
            if let Outcome::Acknowledged(places) = &mut acknowledged(attempts, "log").outcome {
                places[0].version = places[0].version.map(|version| version + 1);
            }
        }),
        ("half of a PATCH", |history, attempts| {
            let attempt = attempts
                .iter_mut()
                .find(|attempt| {
                    attempt.changes.len() == 2
                        && matches!(attempt.outcome, Outcome::Acknowledged(_))
                })
                .expect("a PATCH");
            attempt.outcome = Outcome::Unknown;
            let tag = attempt.changes[0].tag.clone();
            history.remove(find(history, |row| row["evidence"] == json!(tag)));
        }),
        ("an epoch handed out twice", |_, attempts| {
            let mut second = acknowledged(attempts, "job").clone();
            if let Outcome::Acknowledged(places) = &mut second.outcome {
                places[0].claim_id = Some("another".into());
            }
            attempts.push(second);
        }),
        ("a claim_id handed out twice", |_, attempts| {
            let mut second = acknowledged(attempts, "job").clone();
            if let Outcome::Acknowledged(places) = &mut second.outcome {
                places[0].epoch = Some(1_000_000);
            }
            attempts.push(second);
        }),
        ("a fenced write landed", |history, _| {
            let step = find(history, |row| row["field"] == "step");
            let (record, author) = (
                history[step]["record"].clone(),
                history[step]["author"].clone(),
            );
            let claim = (0..step)
                .rev()
                .find(|place| {
                    let row = &history[*place];
                    row["record"] == record && row["author"] == author && row["field"] == "job"
                })
                .expect("its claim");
            history[claim]["op"] = json!("release");
        }),
        ("claimed while it was held", |history, _| {
            let release = find(history, |row| row["op"] == "release");
            history[release]["op"] = json!("create");
        }),
        ("record version", |history, _| {
            history.remove(find(history, |row| row["record_version"] == 3));
        }),
        ("field version", |history, _| {
            let row = find(history, |row| row["op"] == "append" && row["version"] == 2);
            history[row]["version"] = json!(7);
        }),
        ("epoch 2 expected", |history, _| {
            let row = find(history, |row| row["op"] == "claim" && row["epoch"] == 2);
            history[row]["epoch"] = json!(3);
        }),
        ("an op of nobody's", |history, _| {
            let row = find(history, |row| row["op"] == "append");
            history[row]["op"] = json!("renew");
        }),
    ];
    for (number, (violation, doctor)) in doctorings.iter().enumerate() {
        let (mut history, mut attempts) = (history.clone(), attempts.clone());
        doctor(&mut history, &mut attempts);
        let violations = judge(&history, &attempts).expect_err(violation);
        assert!(
            violations.iter().any(|told| told.contains(violation)),
            "{number} {violation}: {violations:?}"
        );
    }
}

/// An unknown outcome may have landed or not, and neither is a violation.
#[test]
fn an_unknown_outcome_may_be_either() {
    let (history, mut attempts) = sound();
    acknowledged(&mut attempts, "log").outcome = Outcome::Unknown;
    let refused = attempts
        .iter_mut()
        .find(|attempt| matches!(attempt.outcome, Outcome::Refused))
        .expect("a refused one");
    refused.outcome = Outcome::Unknown;
    let summary = judge(&history, &attempts).expect("no violation");
    assert_eq!((summary.landed, summary.lost), (1, 1), "{summary}");
}
