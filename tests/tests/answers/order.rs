//! A request with several faults is answered with the first of them, in the order of docs/errors.md.

use crate::{Stage, BOTH};
use serde_json::json;

#[test]
fn the_first_fault_is_the_answer() {
    let stage = Stage::new();
    let inc = "/v1/records/incidents/inc-1";
    stage.send("diag", "PUT", inc, "{}").expect(201);
    stage
        .send("admin", "PUT", "/v1/classes/both", BOTH)
        .expect(200);
    let both = "/v1/records/both/b-1";
    stage.send("both", "PUT", both, "{}").expect(201);
    let claim = stage
        .send("both", "POST", &format!("{both}/fields/task/claim"), "{}")
        .expect(200);
    let key = [("Idempotency-Key", "once")];
    let first =
        json!({"value": 1, "expected_version": 0, "claim_id": claim["claim_id"]}).to_string();
    let counted = format!("{both}/fields/counted");
    stage
        .api("both")
        .request("PUT", &counted, &key, first.as_bytes())
        .expect(200);

    let big = "x".repeat(2_000_000);
    let stale = r#"{"value": "closed", "expected_version": 7, "claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10"}"#;
    let text = [("Content-Type", "text/plain")];
    let none: [(&str, &str); 0] = [];
    let status = format!("{inc}/fields/status");
    for (token, method, path, headers, body, code, error) in [
        // Route and method, before the token.
        ("", "GET", "/v1/nothing", &none[..], "", 404, "NOT_FOUND"),
        ("", "DELETE", inc, &none, "", 405, "METHOD_NOT_ALLOWED"),
        // The token, before media type, size and JSON.
        ("", "PUT", inc, &text, "{", 401, "UNAUTHENTICATED"),
        ("", "PUT", inc, &none, big.as_str(), 401, "UNAUTHENTICATED"),
        ("", "PUT", inc, &none, "{", 401, "UNAUTHENTICATED"),
        // Media type, size, JSON, keys, before the class.
        (
            "diag",
            "PUT",
            "/v1/records/nope/x",
            &text,
            big.as_str(),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (
            "diag",
            "PUT",
            "/v1/records/nope/x",
            &none,
            big.as_str(),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            "diag",
            "PUT",
            "/v1/records/nope/x",
            &none,
            "{",
            400,
            "MALFORMED",
        ),
        (
            "diag",
            "PUT",
            "/v1/records/nope/x",
            &none,
            r#"{"nonsense": 1}"#,
            400,
            "MALFORMED",
        ),
        // The class, a role in it at all, the record, the field.
        (
            "stranger",
            "GET",
            "/v1/records/nope/x",
            &none,
            "",
            404,
            "NOT_FOUND",
        ),
        (
            "stranger",
            "GET",
            "/v1/records/incidents/inc-9",
            &none,
            "",
            403,
            "SCOPE_DENIED",
        ),
        (
            "stranger",
            "PUT",
            "/v1/records/incidents/inc-9/fields/nope",
            &none,
            stale,
            403,
            "SCOPE_DENIED",
        ),
        (
            "w1",
            "PUT",
            "/v1/records/incidents/inc-9/fields/nope",
            &none,
            stale,
            404,
            "NOT_FOUND",
        ),
        (
            "w1",
            "PUT",
            "/v1/records/incidents/inc-1/fields/nope",
            &none,
            stale,
            404,
            "NOT_FOUND",
        ),
        // The mode, before the role for the operation.
        (
            "diag",
            "PUT",
            "/v1/records/incidents/inc-1/fields/actions_taken",
            &none,
            stale,
            400,
            "MALFORMED",
        ),
        (
            "w1",
            "PUT",
            "/v1/records/incidents/inc-1/fields/hypotheses",
            &none,
            r#"{"value": 1}"#,
            400,
            "MALFORMED",
        ),
        // The role, before the claim; one of several, before the document.
        (
            "w1",
            "PUT",
            "/v1/records/incidents/inc-1/fields/planned_action",
            &none,
            stale,
            403,
            "SCOPE_DENIED",
        ),
        (
            "both",
            "PUT",
            "/v1/records/both/b-1/checkpoint",
            &key,
            r#"{"document": {}}"#,
            400,
            "MALFORMED",
        ),
        // The idempotency key, before the claim.
        (
            "both",
            "PUT",
            counted.as_str(),
            &key,
            stale,
            409,
            "IDEMPOTENCY_CONFLICT",
        ),
        // The claim, before versions; versions before evidence and values; values before the gate.
        (
            "both",
            "PUT",
            counted.as_str(),
            &none,
            stale,
            409,
            "LEASE_LOST",
        ),
        (
            "both",
            "PUT",
            counted.as_str(),
            &none,
            r#"{"value": 1, "expected_version": 7}"#,
            409,
            "LEASE_LOST",
        ),
        (
            "diag",
            "PUT",
            status.as_str(),
            &none,
            stale,
            409,
            "LEASE_LOST",
        ),
        (
            "diag",
            "PUT",
            status.as_str(),
            &none,
            r#"{"value": "closed", "expected_version": 7}"#,
            409,
            "VERSION_CONFLICT",
        ),
        (
            "diag",
            "PUT",
            status.as_str(),
            &none,
            r#"{"value": "resolved", "expected_version": 7}"#,
            409,
            "VERSION_CONFLICT",
        ),
        (
            "diag",
            "PUT",
            "/v1/records/incidents/inc-1/fields/planned_action",
            &none,
            r#"{"value": 1, "expected_version": 7}"#,
            409,
            "VERSION_CONFLICT",
        ),
        (
            "diag",
            "PUT",
            status.as_str(),
            &none,
            r#"{"value": "closed", "expected_version": 1}"#,
            422,
            "INVALID_VALUE",
        ),
    ] {
        let answer = stage
            .api(token)
            .request(method, path, headers, body.as_bytes());
        let start: String = body.chars().take(80).collect();
        let told = format!("{token} {method} {path} {start}");
        assert_eq!(
            (answer.status, answer.json()["error"].as_str()),
            (code, Some(error)),
            "{told}: {}",
            answer.text()
        );
    }
}
