//! Two hundred connections claim one task at once, through two servers on one database: one is granted, all others are told
//! who has it.

use kslate_tests::{Answer, Api, Cluster, Shim};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Barrier, Mutex};

const CONNECTIONS: usize = 200;
const ROUNDS: usize = 50;
const RECORD: &str = "/v1/records/incidents/inc-1";

/// A token for each connection, so that an owner tells which connection was granted.
fn keys() -> String {
    (0..CONNECTIONS)
        .map(|number| format!("t{number}: remediator/worker-{number}\n"))
        .chain(["diag-token: diagnoser\n".to_string()])
        .collect()
}

fn owner(number: usize) -> String {
    format!("apikey:remediator/worker-{number}")
}

/// What a round brought: each connection's answer, then that of the release.
struct Round {
    claims: Vec<(usize, io::Result<Answer>)>,
    release: Option<Answer>,
}

/// All connections claim at the same moment, round after round; the one that is granted releases before the next.
fn play(callers: &[Api]) -> Vec<Round> {
    let gate = Barrier::new(CONNECTIONS + 1);
    let answers = Mutex::new(Vec::new());
    let body = json!({"lease_seconds": 600}).to_string();
    let mut rounds = Vec::new();
    // Nothing in here panics, or the others would wait at the gate for ever: answers are judged at the end.
    std::thread::scope(|scope| {
        for (number, caller) in callers.iter().enumerate() {
            let (gate, answers, body) = (&gate, &answers, &body);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    // A connection that is there already: what is timed is the claim, not the dial.
                    let dialled = caller.try_request("GET", "/healthz", &[], b"");
                    gate.wait();
                    let path = format!("{RECORD}/fields/remediation/claim");
                    let answer = dialled
                        .and_then(|_| caller.try_request("POST", &path, &[], body.as_bytes()));
                    if let Ok(mut answers) = answers.lock() {
                        answers.push((number, answer));
                    }
                    gate.wait();
                }
            });
        }
        for _ in 0..ROUNDS {
            gate.wait();
            gate.wait();
            let claims = answers
                .lock()
                .map(|mut all| std::mem::take(&mut *all))
                .unwrap_or_default();
            let granted = claims.iter().find_map(|(number, answer)| {
                let answer = answer.as_ref().ok().filter(|answer| answer.status == 200)?;
                let body: Value = serde_json::from_slice(&answer.body).ok()?;
                Some((*number, body["claim_id"].clone()))
            });
            let release = granted.and_then(|(number, claim_id)| {
                let path = format!("{RECORD}/fields/remediation/release");
                let body = json!({ "claim_id": claim_id }).to_string();
                callers[number]
                    .try_request("POST", &path, &[], body.as_bytes())
                    .ok()
            });
            rounds.push(Round { claims, release });
        }
    });
    rounds
}

#[test]
fn two_hundred_claim_at_once_and_one_is_granted() {
    let database = Cluster::shared().fresh_database();
    // As many sessions as connections: the claims meet in the database, not in a queue for a session.
    let pool = (CONNECTIONS / 2).to_string();
    let shims = [(); 2].map(|()| {
        Shim::start_with(
            &database,
            &keys(),
            &[("KSLATE_POOL", &pool), ("KSLATE_LOG", "warn")],
        )
    });
    let diagnoser = shims[0].api("diag-token");
    diagnoser.put(RECORD, "{}").expect(201);
    let callers: Vec<Api> = (0..CONNECTIONS)
        .map(|number| shims[number % 2].api(&format!("t{number}")))
        .collect();

    let rounds = play(&callers);

    assert_eq!(rounds.len(), ROUNDS);
    let mut claim_ids = BTreeSet::new();
    let mut owners = Vec::new();
    for (index, round) in rounds.into_iter().enumerate() {
        let (granted, held): (Vec<_>, Vec<_>) = round
            .claims
            .into_iter()
            .map(|(number, answer)| {
                let answer =
                    answer.unwrap_or_else(|error| panic!("round {index}: no answer: {error}"));
                (number, answer)
            })
            .partition(|(_, answer)| answer.status == 200);
        let told: Vec<String> = granted.iter().map(|(_, answer)| answer.text()).collect();
        assert_eq!(
            (granted.len(), held.len()),
            (1, CONNECTIONS - 1),
            "round {index}: {told:?}"
        );
        let (winner, granted) = (granted[0].0, granted[0].1.json());
        assert_eq!(granted["owner"], owner(winner), "round {index}");
        assert_eq!(granted["epoch"], index + 1, "round {index}");
        assert_eq!(granted["took_over_from"], Value::Null, "round {index}");
        assert_eq!(granted["record_version"], 2 * index + 1, "round {index}");
        assert!(
            claim_ids.insert(granted["claim_id"].to_string()),
            "{granted}"
        );
        for (_, answer) in held {
            let body = answer.refused(409, "HELD");
            assert_eq!(body["owner"], granted["owner"], "round {index}");
            assert_eq!(body["expires_at"], granted["expires_at"], "round {index}");
            assert_eq!(
                answer.header("retry-after").map(str::to_string),
                Some(body["retry_after_seconds"].to_string())
            );
        }
        let release = round.release.expect("the release is answered").expect(200);
        assert_eq!(release["epoch"], index + 1, "round {index}");
        owners.push(owner(winner));
    }

    let history = diagnoser.get(&format!("{RECORD}/history?page_size=1000"));
    let history = history.expect(200);
    let rows = history["history"].as_array().expect("rows");
    assert_eq!(rows.len(), 1 + 2 * ROUNDS, "create, claims, releases");
    let claims: Vec<(String, i64)> = rows
        .iter()
        .filter(|row| row["op"] == "claim")
        .map(|row| {
            (
                row["author"].as_str().unwrap_or_default().to_string(),
                row["epoch"].as_i64().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(claims, owners.into_iter().zip(1..).collect::<Vec<_>>());
    let releases = rows.iter().filter(|row| row["op"] == "release").count();
    assert_eq!(releases, ROUNDS);
}
