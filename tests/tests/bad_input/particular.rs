//! What is refused on one route for its own reason.

use crate::{Stage, HELD, RECORD};
use serde_json::json;

/// Plays a table, a request a line: `TOKEN METHOD PATH BODY => STATUS ERROR`. A path that does not begin with /v1 lies behind
/// the first record, one that begins with HELD behind the second; `$id` is the live claim_id there; the body may be missing.
fn play(stage: &Stage, what: &str, table: &str) {
    stage.without_trace(what, || {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let told: String = line.chars().take(300).collect();
            let (request, answer) = line.rsplit_once(" => ").expect("=> in the line");
            let mut parts = request.splitn(4, ' ');
            let mut part = || parts.next().unwrap_or_default();
            let (token, method, path, body) = (part(), part(), part(), part());
            let path = match path.strip_prefix("HELD") {
                Some(rest) => format!("{HELD}{rest}"),
                None if path.starts_with("/v1") => path.to_string(),
                None => format!("{RECORD}{}", path.trim_start_matches('.')),
            };
            let body = body.replace("$id", &stage.claim_id);
            let token = format!("{token}-token");
            let came = stage
                .api(&token)
                .request(method, &path, &[], body.as_bytes());
            let (status, error) = answer.split_once(' ').expect("status and error");
            let status = status.parse().expect("a status");
            stage.refused(&told, &came, status, error);
        }
    });
}

#[test]
fn leases() {
    let stage = Stage::new();
    for lease in [
        "0",
        "-1",
        "-0",
        "0.0",
        "1.5",
        "0.999",
        "1e-5",
        "3601",
        "1e18",
        "1e400",
        "-1e400",
        "9223372036854775808",
        r#""x""#,
        r#""60""#,
        r#""""#,
        "true",
        "false",
        "[]",
        "[60]",
        "{}",
    ] {
        let table = r#"
            w2 POST /fields/remediation/claim {"lease_seconds": $l} => 400 MALFORMED
            w2 POST /v1/classes/incidents/claim {"field": "remediation", "lease_seconds": $l} => 400 MALFORMED
            w1 POST HELD/fields/remediation/renew {"claim_id": "$id", "lease_seconds": $l} => 400 MALFORMED"#;
        play(&stage, lease, &table.replace("$l", lease));
    }
    for reattach in ["1", "0", r#""true""#, "[]", r#""""#] {
        let table = r#"w2 POST /fields/remediation/claim {"reattach": $r} => 400 MALFORMED"#;
        play(&stage, reattach, &table.replace("$r", reattach));
    }
}

#[test]
fn expected_versions() {
    let stage = Stage::new();
    let everywhere = r#"
        diag PUT /fields/hypotheses {"value": 1, "expected_version": $v} => $e
        diag PATCH . {"changes": [{"field": "hypotheses", "value": 1, "expected_version": $v}]} => $e
        w1 POST /fields/actions_taken/entries {"value": 1, "expected_version": $v} => $e"#;
    for (expected, error) in [
        ("2", "409 VERSION_CONFLICT"),
        ("9007199254740991", "409 VERSION_CONFLICT"),
        ("-1", "400 MALFORMED"),
        ("1.0", "400 MALFORMED"),
        ("1.5", "400 MALFORMED"),
        (r#""1""#, "400 MALFORMED"),
        (r#""one""#, "400 MALFORMED"),
        ("true", "400 MALFORMED"),
        ("[1]", "400 MALFORMED"),
        ("{}", "400 MALFORMED"),
        ("123456789012345678901234567890", "400 MALFORMED"),
    ] {
        let table = everywhere.replace("$v", expected).replace("$e", error);
        play(&stage, expected, &table);
    }
    play(
        &stage,
        "missing or old",
        r#"
        diag PUT /fields/hypotheses {"value": 1} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": null} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 0} => 409 VERSION_CONFLICT
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1e0} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 9007199254740992} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1e18} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "value": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "value": 1, "expected_version": null}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "value": 1, "expected_version": 0}]} => 409 VERSION_CONFLICT
        "#,
    );
}

#[test]
fn modes_roles_and_values() {
    let stage = Stage::new();
    play(
        &stage,
        "modes",
        r#"
        w1 PUT /fields/actions_taken {"value": 1, "expected_version": 0} => 400 MALFORMED
        w1 PUT /fields/remediation {"value": 1, "expected_version": 0} => 400 MALFORMED
        diag POST /fields/hypotheses/entries {"value": 1} => 400 MALFORMED
        w1 POST /fields/remediation/entries {"value": 1} => 400 MALFORMED
        w1 GET /fields/status/entries => 400 MALFORMED
        w1 POST /fields/status/claim {} => 400 MALFORMED
        w1 POST /fields/status/renew {"claim_id": "$id"} => 400 MALFORMED
        w1 POST /fields/status/release {"claim_id": "$id"} => 400 MALFORMED
        w1 POST /fields/status/complete {"claim_id": "$id"} => 400 MALFORMED
        w1 POST /fields/status/reopen {} => 400 MALFORMED
        w1 POST /fields/actions_taken/claim {} => 400 MALFORMED
        w1 POST /v1/classes/incidents/claim {"field": "status"} => 400 MALFORMED
        w1 POST /v1/classes/incidents/claim {"field": "nope"} => 404 NOT_FOUND
        w1 POST /v1/classes/incidents/claim {"field": 1} => 400 MALFORMED
        w1 POST /v1/classes/incidents/claim {} => 400 MALFORMED
        w1 POST /v1/classes/incidents/claim {"field": "remediation", "filter": []} => 400 MALFORMED
        w1 POST /v1/classes/incidents/claim {"field": "remediation", "filter": {"nope": 1}} => 404 NOT_FOUND
        w1 POST /v1/classes/incidents/claim {"field": "remediation", "filter": {"actions_taken": 1}} => 400 MALFORMED
        "#,
    );
    play(
        &stage,
        "roles",
        r#"
        w1 PUT /fields/hypotheses {"value": 1, "expected_version": 1} => 403 SCOPE_DENIED
        diag POST /fields/actions_taken/entries {"value": 1} => 403 SCOPE_DENIED
        diag POST /fields/remediation/claim {} => 403 SCOPE_DENIED
        diag POST HELD/fields/remediation/renew {"claim_id": "$id"} => 403 SCOPE_DENIED
        diag POST HELD/fields/remediation/release {"claim_id": "$id"} => 403 SCOPE_DENIED
        diag POST HELD/fields/remediation/complete {"claim_id": "$id"} => 403 SCOPE_DENIED
        diag POST /v1/classes/incidents/claim {"field": "remediation"} => 403 SCOPE_DENIED
        w1 PUT /v1/records/incidents/inc-9 {} => 403 SCOPE_DENIED
        w1 PATCH . {"changes": [{"field": "hypotheses", "value": 1, "expected_version": 1}]} => 403 SCOPE_DENIED
        w1 POST /fields/remediation/force-release {"expected_epoch": 0, "reason": "x"} => 403 SCOPE_DENIED
        "#,
    );
    let table = r#"
        diag PUT /fields/status {"value": "closed", "expected_version": 1} => 422 INVALID_VALUE
        diag PUT /fields/status {"value": ["open"], "expected_version": 1} => 422 INVALID_VALUE
        diag PUT /fields/status {"value": null, "expected_version": 1} => 422 INVALID_VALUE
        diag PUT /fields/status {"value": "resolved", "expected_version": 1} => 422 INVALID_CHECKPOINT
        diag PUT /fields/planned_action {"value": 1, "expected_version": 0} => 422 EVIDENCE_REQUIRED
        diag PUT /fields/planned_action {"value": 1, "expected_version": 0, "evidence": " \n"} => 422 EVIDENCE_REQUIRED
        diag PUT /fields/hypotheses {"expected_version": 1} => 400 MALFORMED
        diag PUT /fields/hypotheses => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1, "evidence": 1} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1, "evidence": ["x"]} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1, "evidence": {}} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": 1, "expected_version": 1, "evidence": "$long"} => 400 MALFORMED
        diag PUT /fields/hypotheses {"value": $deep, "expected_version": 1} => 400 MALFORMED
        w1 POST /fields/actions_taken/entries {"value": $deep} => 400 MALFORMED
        w1 POST HELD/fields/remediation/complete {"claim_id": "$id", "value": $deep} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "value": $deep, "expected_version": 1}]} => 400 MALFORMED
        diag PUT /v1/records/incidents/inc-9 {"fields": {"hypotheses": $deep}} => 400 MALFORMED
        "#;
    let deep = format!("{}1{}", "[".repeat(101), "]".repeat(101));
    let table = table
        .replace("$long", &"x".repeat(65_537))
        .replace("$deep", &deep);
    play(&stage, "values", &table);
}

#[test]
fn claim_ids() {
    let stage = Stage::new();
    for (id, error) in [
        (r#""x""#, "400 MALFORMED"),
        (r#""""#, "400 MALFORMED"),
        ("1", "400 MALFORMED"),
        ("true", "400 MALFORMED"),
        ("[]", "400 MALFORMED"),
        (r#""0b9a3d6e2f0e4f3e9d0a5c1f8c1d7a10""#, "400 MALFORMED"),
        (r#""0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a1g""#, "400 MALFORMED"),
        (
            r#""0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10""#,
            "409 LEASE_LOST",
        ),
        (
            r#""00000000-0000-0000-0000-000000000000""#,
            "409 LEASE_LOST",
        ),
    ] {
        let table = r#"
            w1 POST HELD/fields/remediation/renew {"claim_id": $c} => $e
            w1 POST HELD/fields/remediation/release {"claim_id": $c} => $e
            w1 POST HELD/fields/remediation/complete {"claim_id": $c} => $e
            w1 POST HELD/fields/actions_taken/entries {"value": 1, "claim_id": $c} => $e
            diag PATCH HELD {"changes": [{"field": "hypotheses", "value": 1, "expected_version": 1}], "claim_id": $c} => $e
            w1 PUT HELD/checkpoint {"document": {"goal": 1, "decisions": 1, "progress": 1, "open_questions": 1}, "claim_id": $c} => $e"#;
        play(&stage, id, &table.replace("$c", id).replace("$e", error));
    }
    // The right one, from somebody else; none at all; reasons that are no text; tasks that are not in that state.
    for verb in ["renew", "release", "complete"] {
        let table = r#"
            w2 POST HELD/fields/remediation/$verb {"claim_id": "$id"} => 409 LEASE_LOST
            w1 POST HELD/fields/remediation/$verb {} => 400 MALFORMED
            w1 POST HELD/fields/remediation/$verb {"claim_id": null} => 400 MALFORMED
            w1 POST /fields/remediation/$verb {"claim_id": "$id"} => 409 LEASE_LOST"#;
        play(&stage, verb, &table.replace("$verb", verb));
    }
    play(
        &stage,
        "tasks",
        r#"
        w1 POST HELD/fields/remediation/release {"claim_id": "$id", "reason": 1} => 400 MALFORMED
        w1 POST HELD/fields/remediation/release {"claim_id": "$id", "reason": []} => 400 MALFORMED
        w1 POST HELD/fields/remediation/reopen {"reason": {}} => 400 MALFORMED
        w1 POST HELD/fields/remediation/reopen {} => 409 NOT_COMPLETED
        w1 POST HELD/fields/remediation/force-release {} => 400 MALFORMED
        w1 POST HELD/fields/remediation/force-release {"expected_epoch": 1} => 400 MALFORMED
        w1 POST HELD/fields/remediation/force-release {"expected_epoch": -1, "reason": "x"} => 400 MALFORMED
        w1 POST HELD/fields/remediation/force-release {"expected_epoch": 1, "reason": " "} => 400 MALFORMED
        w2 POST HELD/fields/remediation/claim {} => 409 HELD
        w1 POST HELD/fields/remediation/claim {} => 409 HELD
        w2 POST HELD/fields/remediation/claim {"reattach": true} => 409 HELD
        "#,
    );
}

#[test]
fn checkpoints() {
    let stage = Stage::new();
    let mut table = r#"
        w1 PUT /checkpoint {"document": null} => 400 MALFORMED
        w1 PUT /checkpoint {"document": []} => 400 MALFORMED
        w1 PUT /checkpoint {"document": "x"} => 400 MALFORMED
        w1 PUT /checkpoint {"document": 1} => 400 MALFORMED
        w1 PUT /checkpoint {"document": true} => 400 MALFORMED
        w1 PUT /checkpoint {"document": [{$sections}]} => 400 MALFORMED
        w1 PUT /checkpoint => 400 MALFORMED
        w1 PUT /checkpoint {} => 400 MALFORMED
        w1 PUT /checkpoint {"document": {}} => 422 INVALID_CHECKPOINT
        w1 PUT /checkpoint {"document": {"Goal": 1, "decisions": 2, "progress": 3, "open_questions": 4}} => 422 INVALID_CHECKPOINT
        w1 PUT /checkpoint {"document": {$sections, "more": "$large"}} => 413 PAYLOAD_TOO_LARGE
        w1 PUT /checkpoint {"document": {$sections, "more": $deep}} => 400 MALFORMED
        w1 GET /checkpoint?checkpoint_id=1 => 404 NOT_FOUND
        w1 GET /checkpoint?checkpoint_id=-1 => 400 MALFORMED
        w1 GET /checkpoint?checkpoint_id=x => 400 MALFORMED
        w1 GET /checkpoint?checkpoint_id= => 400 MALFORMED
        w1 GET /checkpoints?role=diagnoser => 403 SCOPE_DENIED
        w1 GET /checkpoints?page_size=0 => 400 MALFORMED
        w1 GET /checkpoints?after=x => 400 MALFORMED
        "#
    .to_string();
    for seen in ["-1", "2", "1.0", r#""1""#, "true", "[]", "9007199254740992"] {
        table += &format!("w1 PUT /checkpoint {{\"document\": {{$sections}}, \"seen_version\": {seen}}} => 400 MALFORMED\n");
    }
    for role in ["nope", "diagnoser", "Remediator", "", "%27%3B--"] {
        table += &format!(
            "w1 PUT /checkpoint?role={role} {{\"document\": {{$sections}}}} => 403 SCOPE_DENIED\n"
        );
        table += &format!("w1 GET /checkpoint?role={role} => 403 SCOPE_DENIED\n");
    }
    let sections = r#""goal": 1, "decisions": 2, "progress": 3, "open_questions": 4"#;
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let table = table
        .replace("$sections", sections)
        .replace("$large", &"x".repeat(262_144))
        .replace("$deep", &deep);
    play(&stage, "checkpoints", &table);
}

#[test]
fn several_fields_and_creation() {
    let stage = Stage::new();
    let table = r#"
        diag PATCH . {} => 400 MALFORMED
        diag PATCH . {"changes": []} => 400 MALFORMED
        diag PATCH . {"changes": {}} => 400 MALFORMED
        diag PATCH . {"changes": null} => 400 MALFORMED
        diag PATCH . {"changes": "x"} => 400 MALFORMED
        diag PATCH . {"changes": [1]} => 400 MALFORMED
        diag PATCH . {"changes": [null]} => 400 MALFORMED
        diag PATCH . {"changes": [[]]} => 400 MALFORMED
        diag PATCH . {"changes": [["hypotheses", 1, 1, null]]} => 400 MALFORMED
        diag PATCH . {"changes": [$many]} => 400 MALFORMED
        diag PATCH . {"changes": [$good, $good]} => 400 MALFORMED
        diag PATCH . {"changes": [{"value": 1, "expected_version": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "expected_version": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": 1, "value": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "hypotheses", "value": 1, "expected_version": 1, "more": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "nope", "value": 1}]} => 404 NOT_FOUND
        diag PATCH . {"changes": [{"field": "actions_taken", "value": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [{"field": "remediation", "value": 1}]} => 400 MALFORMED
        diag PATCH . {"changes": [$good, {"field": "status", "value": "closed", "expected_version": 1}]} => 422 INVALID_VALUE
        diag PATCH . {"changes": [$good, {"field": "status", "value": "open", "expected_version": 7}]} => 409 VERSION_CONFLICT
        diag PATCH . {"changes": [$good, {"field": "status", "value": "resolved", "expected_version": 1}]} => 422 INVALID_CHECKPOINT
        diag PATCH . {"changes": [$good, {"field": "planned_action", "value": 1, "expected_version": 0}]} => 422 EVIDENCE_REQUIRED
        diag PUT $new {"fields": []} => 400 MALFORMED
        diag PUT $new {"fields": "x"} => 400 MALFORMED
        diag PUT $new {"fields": {"nope": 1}} => 404 NOT_FOUND
        diag PUT $new {"fields": {"": 1}} => 404 NOT_FOUND
        diag PUT $new {"fields": {"actions_taken": []}} => 400 MALFORMED
        diag PUT $new {"fields": {"remediation": null}} => 400 MALFORMED
        diag PUT $new {"fields": {"status": "closed"}} => 422 INVALID_VALUE
        diag PUT $new {"fields": {"status": "resolved"}} => 422 INVALID_CHECKPOINT
        diag PUT $new {"fields": {"planned_action": "x"}} => 422 EVIDENCE_REQUIRED
        diag PUT $new {"evidence": 1} => 400 MALFORMED
        diag PUT . {"fields": {}} => 409 ALREADY_EXISTS
        "#;
    let good = json!({"field": "hypotheses", "value": 1, "expected_version": 1}).to_string();
    let table = table
        .replace("$many", &vec!["$good"; 65].join(", "))
        .replace("$good", &good)
        .replace("$new", "/v1/records/incidents/inc-9");
    play(&stage, "several fields and creation", &table);
}

#[test]
fn reading() {
    let stage = Stage::new();
    play(
        &stage,
        "reading",
        r#"
        diag GET .?fields=nope => 404 NOT_FOUND
        diag GET .?fields= => 400 MALFORMED
        diag GET .?fields=status, => 400 MALFORMED
        diag GET /history?field=nope => 404 NOT_FOUND
        diag GET /history?after=-1 => 400 MALFORMED
        diag GET /history?after=1.5 => 400 MALFORMED
        diag GET /history?after=99999999999999999999 => 400 MALFORMED
        diag GET /history?page_size=0 => 400 MALFORMED
        diag GET /history?page_size=1001 => 400 MALFORMED
        diag GET /history?page_size=ten => 400 MALFORMED
        diag GET /history?page_size= => 400 MALFORMED
        diag GET /history?newest_first=1 => 400 MALFORMED
        diag GET /history?with_values= => 400 MALFORMED
        diag GET /fields/actions_taken/entries?after=x => 400 MALFORMED
        diag GET /blame?field=nope => 404 NOT_FOUND
        diag GET /v1/records/incidents?filter= => 400 MALFORMED
        diag GET /v1/records/incidents?filter=[] => 400 MALFORMED
        diag GET /v1/records/incidents?filter=%7B => 400 MALFORMED
        diag GET /v1/records/incidents?filter=%7B%22nope%22:1%7D => 404 NOT_FOUND
        diag GET /v1/records/incidents?filter=%7B%22actions_taken%22:1%7D => 400 MALFORMED
        diag GET /v1/records/incidents?filter=%7B%22status%22:1,%22status%22:2%7D => 400 MALFORMED
        diag GET /v1/records/incidents?filter=%7B%22status%22:%22%5Cu0000%22%7D => 400 MALFORMED
        diag GET /v1/records/incidents?fields=nope => 404 NOT_FOUND
        diag GET /v1/records/incidents?page_size=-5 => 400 MALFORMED
        diag GET /v1/classes/incidents?version=99 => 404 NOT_FOUND
        diag GET /v1/classes/incidents?version=x => 400 MALFORMED
        "#,
    );
}

#[test]
fn definitions() {
    let stage = Stage::new();
    let good =
        "class: things\nroles: { a: [apikey:a] }\nfields: { x: { mode: lww, write: [a] } }\n";
    let bomb: String = (0..40)
        .map(|n| format!("k{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1))
        .collect();
    let class = "/v1/classes/things";
    let long = format!("{good}# {}", "x".repeat(300_000));
    stage.without_trace("definitions", || {
        for (token, path, source, status, error) in [
            ("w1-token", class, good, 403, "SCOPE_DENIED"),
            ("admin-token", "/v1/classes/other", good, 400, "MALFORMED"),
            ("admin-token", "/v1/classes/Things", good, 400, "MALFORMED"),
            (
                "admin-token",
                "/v1/classes/things?dry_run=maybe",
                good,
                400,
                "MALFORMED",
            ),
            ("admin-token", class, "", 422, "INVALID_CLASS"),
            ("admin-token", class, "[]", 422, "INVALID_CLASS"),
            ("admin-token", class, r#"{"class": "#, 400, "MALFORMED"),
            (
                "admin-token",
                class,
                r#"{"class": "things", "class": "things"}"#,
                400,
                "MALFORMED",
            ),
            (
                "admin-token",
                class,
                "a: &x [1]\nb: *x\n",
                422,
                "INVALID_CLASS",
            ),
            ("admin-token", class, &bomb, 422, "INVALID_CLASS"),
            (
                "admin-token",
                class,
                &good.replace("lww", "csa"),
                422,
                "INVALID_CLASS",
            ),
            ("admin-token", class, "a: \0", 400, "MALFORMED"),
            ("admin-token", class, &long, 422, "INVALID_CLASS"),
        ] {
            let answer = stage.api(token).put(path, source);
            let start: String = source.chars().take(80).collect();
            stage.refused(&format!("{path} {start:?}"), &answer, status, error);
        }
    });
}
