//! Bad input: each is refused with its own error, never with a 500, and leaves no trace in any table. What is odd but good
//! is kept digit for digit.

mod digits;
mod everywhere;
mod particular;
mod sql;

use kslate_tests::{checksum, Answer, Cluster, Database, Shim, KEYS};
use serde_json::{json, Value};

const RECORD: &str = "/v1/records/incidents/inc-1";
/// Another record, whose task worker 1 holds.
const HELD: &str = "/v1/records/incidents/inc-2";

/// A server on a database with two records, and the claim_id of the one that is held.
struct Stage {
    database: Database<'static>,
    shim: Shim,
    claim_id: String,
}

impl Stage {
    fn new() -> Stage {
        let database = Cluster::shared().fresh_database();
        // Known, and of no role in any class.
        let keys = format!("{KEYS}stranger-token: stranger\n");
        let shim = Shim::start(&database, &keys);
        let diagnoser = shim.api("diag-token");
        for record in [RECORD, HELD] {
            diagnoser.put(record, "{}").expect(201);
            let first = r#"{"value": "replica lag", "expected_version": 0}"#;
            diagnoser
                .put(&format!("{record}/fields/hypotheses"), first)
                .expect(200);
        }
        let path = format!("{HELD}/fields/remediation/claim");
        let claim = shim
            .api("w1-token")
            .post(&path, r#"{"lease_seconds": 3600}"#)
            .expect(200);
        Stage {
            database,
            shim,
            claim_id: claim["claim_id"].as_str().expect("a uuid").to_string(),
        }
    }

    fn api(&self, token: &str) -> kslate_tests::Api {
        match token {
            "" => self.shim.anonymous(),
            token => self.shim.api(token),
        }
    }

    /// Runs some requests and fails the test where the storage is not the same afterwards.
    #[track_caller]
    fn without_trace(&self, what: &str, requests: impl FnOnce()) {
        let before = checksum(&self.database);
        requests();
        assert_eq!(checksum(&self.database), before, "{what} left a trace");
    }

    /// The refusal must be this one, with the keys of every error first and in order.
    #[track_caller]
    fn refused(&self, what: &str, answer: &Answer, status: u16, error: &str) {
        let text = answer.text();
        let body: Value = serde_json::from_slice(&answer.body)
            .unwrap_or_else(|fault| panic!("{what}: {fault}: {} {text}", answer.status));
        assert_eq!(
            (answer.status, body["error"].as_str()),
            (status, Some(error)),
            "{what}: {text}"
        );
        assert!(
            !body["message"].as_str().unwrap_or_default().is_empty(),
            "{what}: {text}"
        );
    }
}

/// A route that takes a body, with one that is good.
struct Route {
    method: &'static str,
    /// Behind `/v1/records/{class}/{key}`, or the whole path where it begins with /v1.
    path: &'static str,
    token: &'static str,
    body: Value,
}

/// Every route of a record that changes something; the bodies are good ones.
fn routes() -> Vec<Route> {
    let id = "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10";
    let document = json!({"goal": 1, "decisions": 2, "progress": 3, "open_questions": 4});
    let route = |method, path, token, body| Route {
        method,
        path,
        token,
        body,
    };
    vec![
        route(
            "PUT",
            "",
            "diag-token",
            json!({"fields": {"hypotheses": 1}}),
        ),
        route(
            "PATCH",
            "",
            "diag-token",
            json!({"changes": [{"field": "hypotheses", "value": 1, "expected_version": 1}]}),
        ),
        route(
            "PUT",
            "/fields/hypotheses",
            "diag-token",
            json!({"value": 1, "expected_version": 1}),
        ),
        route(
            "POST",
            "/fields/actions_taken/entries",
            "w1-token",
            json!({"value": 1}),
        ),
        route(
            "POST",
            "/fields/remediation/claim",
            "w1-token",
            json!({"lease_seconds": 60}),
        ),
        route(
            "POST",
            "/fields/remediation/renew",
            "w1-token",
            json!({ "claim_id": id }),
        ),
        route(
            "POST",
            "/fields/remediation/release",
            "w1-token",
            json!({ "claim_id": id }),
        ),
        route(
            "POST",
            "/fields/remediation/complete",
            "w1-token",
            json!({ "claim_id": id }),
        ),
        route(
            "POST",
            "/fields/remediation/reopen",
            "w1-token",
            json!({"reason": "why"}),
        ),
        route(
            "POST",
            "/fields/remediation/force-release",
            "w1-token",
            json!({"expected_epoch": 1, "reason": "why"}),
        ),
        route(
            "PUT",
            "/checkpoint",
            "w1-token",
            json!({ "document": document }),
        ),
    ]
}

/// Every route of a record that only reads.
const READS: [&str; 7] = [
    "",
    "/fields/hypotheses",
    "/fields/actions_taken/entries",
    "/checkpoint",
    "/checkpoints",
    "/history",
    "/blame",
];

/// `{"key": [[[…]]]}` with that many brackets.
fn nested(key: &str, levels: usize) -> String {
    format!(
        "{{\"{key}\": {}{}}}",
        "[".repeat(levels),
        "]".repeat(levels)
    )
}
