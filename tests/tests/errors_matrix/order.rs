//! "Which comes first" of docs/errors.md: one request with every fault there is. Each is taken away in turn, and the answer is the first of those left.

use crate::without_seconds;
use kslate_tests::{refused_in_sql, Cluster, Shim};
use serde_json::json;

const CLASS: &str = r#"
class: steps
roles:
  doer: [apikey:doer]
  other: [apikey:other]
fields:
  status: { mode: cas, write: [doer], values: [open, resolved], evidence: required, requires_claim: task }
  log: { mode: append, write: [doer] }
  task: { mode: task, write: [doer] }
checkpoint: { required: [other], sections: [goal, progress], max_bytes: 1024 }
"#;

const KEYS: &str =
    "doer: doer\nother: other\nstranger: stranger\nadmin: { identity: admin, admin: true }\n";

/// A claim_id of no claim.
const NO: &str = "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10";

struct Step<'s> {
    what: &'s str,
    token: &'s str,
    method: &'s str,
    path: &'s str,
    media_type: &'s str,
    key: &'s str,
    body: String,
    /// The same in SQL, from the class on; without identity and key.
    call: String,
    status: u16,
    error: &'s str,
    /// What the message must say, so that it is this fault and not another of the same name.
    says: &'s str,
}

/// The body of a write, and the same as arguments.
fn write(value: &str, version: u32, evidence: bool, claim_id: &str) -> (String, String) {
    let reason = if evidence { "because" } else { "" };
    let mut body = json!({ "value": value, "expected_version": version, "claim_id": claim_id });
    if evidence {
        body["evidence"] = json!(reason);
    }
    (
        body.to_string(),
        format!("'\"{value}\"', {version}, '{reason}', '{claim_id}'"),
    )
}

fn check(shim: &Shim, database: &kslate_tests::Database, step: &Step) {
    let mut headers = vec![("Content-Type", step.media_type)];
    if !step.key.is_empty() {
        headers.push(("Idempotency-Key", step.key));
    }
    let api = match step.token {
        "" => shim.anonymous(),
        token => shim.api(token),
    };
    let answer = api.request(step.method, step.path, &headers, step.body.as_bytes());
    let about = format!("{}: {} {:.400}", step.what, answer.status, answer.text());
    if step.status == 200 {
        answer.expect(200);
        return;
    }
    assert_eq!(answer.status, step.status, "{about}");
    let body = answer.refused(step.status, step.error);
    assert!(
        body["message"]
            .as_str()
            .is_some_and(|message| message.contains(step.says)),
        "{about}"
    );
    if !step.call.is_empty() {
        let key = match step.key {
            "" => String::new(),
            key => format!("idempotency_key => '{key}', "),
        };
        let sql = format!(
            "select from {}, {key}identity => 'apikey:{}')",
            step.call, step.token
        );
        let refused = refused_in_sql(database, "kslate_server", &sql);
        assert_eq!(
            without_seconds(&refused.detail),
            without_seconds(&answer.text()),
            "{about}"
        );
    }
}

#[test]
fn the_first_fault_is_the_answer() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start_with(&database, KEYS, &[("KSLATE_MAX_BODY", "3000")]);
    shim.api("admin")
        .put("/v1/classes/steps", CLASS)
        .expect(200);
    let doer = shim.api("doer");
    let one = "/v1/records/steps/one";
    doer.put(one, "{}").expect(201);
    let claim = doer
        .post(
            &format!("{one}/fields/task/claim"),
            r#"{"lease_seconds": 3600}"#,
        )
        .expect(200);
    let id = claim["claim_id"].as_str().expect("a uuid").to_string();
    let key = [("Idempotency-Key", "used")];
    doer.request(
        "POST",
        &format!("{one}/fields/log/entries"),
        &key,
        br#"{"value": 1}"#,
    )
    .expect(201);

    let large = format!("{{\"value\": {}", "x".repeat(4_000));
    let nonsense = format!(
        r#"{{"value": "closed", "expected_version": 7, "claim_id": "{NO}", "nonsense": 1}}"#
    );
    let (stale, stale_call) = write("closed", 7, false, NO);
    let nowhere = "/v1/records/nope/none/fields/nope";
    let json = "application/json";
    let status = format!("{one}/fields/status");
    let step =
        |what, token, path: &'static str, body: &str, call: String, status, error, says| Step {
            what,
            token,
            method: "PUT",
            path,
            media_type: json,
            key: "used",
            body: body.to_string(),
            call,
            status,
            error,
            says,
        };
    let text = "text/plain";
    let mut steps = vec![
        Step {
            media_type: text,
            method: "DELETE",
            ..step(
                "route",
                "",
                "/v1/nothing/nope",
                &large,
                String::new(),
                404,
                "NOT_FOUND",
                "nothing at",
            )
        },
        Step {
            media_type: text,
            method: "DELETE",
            ..step(
                "method",
                "",
                nowhere,
                &large,
                String::new(),
                405,
                "METHOD_NOT_ALLOWED",
                "DELETE",
            )
        },
        Step {
            media_type: text,
            ..step(
                "token",
                "",
                nowhere,
                &large,
                String::new(),
                401,
                "UNAUTHENTICATED",
                "API key",
            )
        },
        Step {
            media_type: text,
            ..step(
                "media type",
                "stranger",
                nowhere,
                &large,
                String::new(),
                415,
                "UNSUPPORTED_MEDIA_TYPE",
                "application/json",
            )
        },
        step(
            "size",
            "stranger",
            nowhere,
            &large,
            String::new(),
            413,
            "PAYLOAD_TOO_LARGE",
            "larger",
        ),
        step(
            "JSON",
            "stranger",
            nowhere,
            "{\"value\":",
            String::new(),
            400,
            "MALFORMED",
            "",
        ),
        step(
            "keys",
            "stranger",
            nowhere,
            &nonsense,
            String::new(),
            400,
            "MALFORMED",
            "nonsense",
        ),
    ];
    let called = |record: &str, field: &str, rest: &str| {
        format!("kslate_write('{record}', '{field}', {rest}")
    };
    steps.extend([
        step(
            "class",
            "stranger",
            nowhere,
            &stale,
            called("nope/none", "nope", &stale_call),
            404,
            "NOT_FOUND",
            "no class nope",
        ),
        step(
            "a role at all",
            "stranger",
            "/v1/records/steps/none/fields/nope",
            &stale,
            called("steps/none", "nope", &stale_call),
            403,
            "SCOPE_DENIED",
            "holds no role",
        ),
        step(
            "record",
            "other",
            "/v1/records/steps/none/fields/nope",
            &stale,
            called("steps/none", "nope", &stale_call),
            404,
            "NOT_FOUND",
            "no record",
        ),
        step(
            "field",
            "other",
            "/v1/records/steps/one/fields/nope",
            &stale,
            called("steps/one", "nope", &stale_call),
            404,
            "NOT_FOUND",
            "no field nope",
        ),
        step(
            "mode",
            "other",
            "/v1/records/steps/one/fields/log",
            &stale,
            called("steps/one", "log", &stale_call),
            400,
            "MALFORMED",
            "mode append",
        ),
        step(
            "role",
            "other",
            "/v1/records/steps/one/fields/status",
            &stale,
            called("steps/one", "status", &stale_call),
            403,
            "SCOPE_DENIED",
            "writing status needs",
        ),
    ]);
    // From here on the same path: the key, the claim, the version, evidence, value, gate.
    let rest = [
        (
            "key",
            "used",
            write("closed", 7, false, NO),
            409,
            "IDEMPOTENCY_CONFLICT",
            "another request",
        ),
        (
            "claim",
            "",
            write("closed", 7, false, NO),
            409,
            "LEASE_LOST",
            "your claim on task",
        ),
        (
            "version",
            "",
            write("closed", 7, false, &id),
            409,
            "VERSION_CONFLICT",
            "you expected 7",
        ),
        (
            "evidence",
            "",
            write("closed", 0, false, &id),
            422,
            "EVIDENCE_REQUIRED",
            "must say why",
        ),
        (
            "value",
            "",
            write("closed", 0, true, &id),
            422,
            "INVALID_VALUE",
            "not allowed",
        ),
        (
            "gate",
            "",
            write("resolved", 0, true, &id),
            422,
            "INVALID_CHECKPOINT",
            "required role(s)",
        ),
        ("none", "", write("open", 0, true, &id), 200, "", ""),
    ];
    for (what, key, (body, call), code, error, says) in rest {
        let mut step = step(
            what,
            "doer",
            "",
            &body,
            called("steps/one", "status", &call),
            code,
            error,
            says,
        );
        (step.path, step.key) = (&status, key);
        steps.push(step);
    }
    for step in &steps {
        check(&shim, &database, step);
    }
}

/// A checkpoint: role, key, claim, version seen, size, sections.
#[test]
fn the_first_fault_of_a_checkpoint() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start(&database, &format!("{KEYS}two: two\n"));
    let class = CLASS.replace(
        "other: [apikey:other]",
        "other: [apikey:other, apikey:two]\n  third: [apikey:two]",
    );
    shim.api("admin")
        .put("/v1/classes/steps", class)
        .expect(200);
    let one = "/v1/records/steps/one";
    shim.api("doer").put(one, "{}").expect(201);
    let (two, path) = (shim.api("two"), format!("{one}/checkpoint"));
    let key = [("Idempotency-Key", "used")];
    let first = r#"{"document": {"goal": 1, "progress": 1}}"#;
    two.request("PUT", &format!("{path}?role=other"), &key, first.as_bytes())
        .expect(200);
    let long = "x".repeat(2_000);
    let faulty = |document: &str, seen: u32, claim: bool| {
        let claim_id = if claim {
            format!(r#", "claim_id": "{NO}""#)
        } else {
            String::new()
        };
        let call = if claim {
            format!(", claim_id => '{NO}'")
        } else {
            String::new()
        };
        (
            format!(r#"{{"document": {document}, "seen_version": {seen}{claim_id}}}"#),
            format!("'{document}', seen_version => {seen}{call}"),
        )
    };
    let large = format!(r#"{{"more": "{long}"}}"#);
    let (all, lost) = (faulty(&large, 9, true), "?role=other");
    for (what, query, key, (body, call), status, error, says) in [
        (
            "role unknown",
            "?role=nope",
            "used",
            all.clone(),
            403,
            "SCOPE_DENIED",
            "role nope",
        ),
        (
            "role not named",
            "",
            "used",
            all.clone(),
            400,
            "MALFORMED",
            "several roles",
        ),
        (
            "key",
            lost,
            "used",
            all.clone(),
            409,
            "IDEMPOTENCY_CONFLICT",
            "another request",
        ),
        ("claim", lost, "", all, 409, "LEASE_LOST", "claim"),
        (
            "version seen",
            lost,
            "",
            faulty(&large, 9, false),
            400,
            "MALFORMED",
            "seen_version",
        ),
        (
            "size",
            lost,
            "",
            faulty(&large, 0, false),
            413,
            "PAYLOAD_TOO_LARGE",
            "bytes",
        ),
        (
            "sections",
            lost,
            "",
            faulty(r#"{"more": 1}"#, 0, false),
            422,
            "INVALID_CHECKPOINT",
            "goal, progress",
        ),
        (
            "none",
            lost,
            "",
            faulty(r#"{"goal": 1, "progress": 1}"#, 0, false),
            200,
            "",
            "",
        ),
    ] {
        let role = match query.split_once('=') {
            Some((_, role)) => format!(", role => '{role}'"),
            None => String::new(),
        };
        let path = format!("{path}{query}");
        let step = Step {
            what,
            token: "two",
            method: "PUT",
            path: &path,
            media_type: "application/json",
            key,
            body,
            call: format!(
                "kslate_checkpoint_save('steps/one', {}",
                call.replacen(", seen", &format!("{role}, seen"), 1)
            ),
            status,
            error,
            says,
        };
        check(&shim, &database, &step);
    }
}
