//! Every refusal: its status, its keys in order, its headers; in SQL its SQLSTATE, MESSAGE, and DETAIL, which is the body.

use crate::{shape, Stage, BOTH};
use kslate_tests::{bash, refused_in_sql, Cluster, Database, Shim};
use serde_json::{json, Value};

const INC: &str = "incidents/inc-1";

/// A refusal a line: the request, the same as an SQL call, status, SQLSTATE, error and the keys behind it. `$inc` is the record,
/// `$lost` a claim_id that is lost, `$long` a text of 256 KiB.
const REFUSALS: &str = r#"
w1 PUT $inc/fields/actions_taken {"value": 1} || kslate_write('$inc', 'actions_taken', '1' || 400 22023 MALFORMED field,message,record
w1 POST $inc/fields/remediation/claim {"lease_seconds": 3601} || kslate_claim('$inc', 'remediation', 3601 || 400 22023 MALFORMED field,message,record,path
both PUT both/b-1/checkpoint {"document": {}} || kslate_checkpoint_save('both/b-1', '{}' || 400 22023 MALFORMED message,record
w1 PUT $inc/fields/planned_action {"value": 1, "expected_version": 1} || kslate_write('$inc', 'planned_action', '1', 1 || 403 42501 SCOPE_DENIED field,message,record,needs_one_of[],roles_held[]
w1 GET $inc/checkpoint?role=diagnoser || kslate_checkpoint_load('$inc', 'diagnoser' || 403 42501 SCOPE_DENIED message,record,needs_one_of[],roles_held[]
w1 PUT incidents/inc-9 {} || kslate_create('incidents/inc-9' || 403 42501 SCOPE_DENIED message,record,needs_one_of[],roles_held[]
stranger GET $inc || kslate_get('$inc' || 403 42501 SCOPE_DENIED message,record,needs_one_of[],roles_held[]
both GET both/b-1/fields/hidden || kslate_fields('both/b-1', array['hidden'] || 403 42501 SCOPE_DENIED field,message,record,needs_one_of[],roles_held[]
w1 GET nope/x || kslate_get('nope/x' || 404 P0002 NOT_FOUND message,record
w1 GET incidents/inc-999 || kslate_get('incidents/inc-999' || 404 P0002 NOT_FOUND message,record
w1 GET $inc/fields/plan || kslate_fields('$inc', array['plan'] || 404 P0002 NOT_FOUND field,message,record
w1 GET $inc/checkpoint?checkpoint_id=9 || kslate_checkpoint_load('$inc', checkpoint_id => 9 || 404 P0002 NOT_FOUND message,record
diag PUT $inc {"fields": {}} || kslate_create('$inc', '{}' || 409 23505 ALREADY_EXISTS message,record,record_version
diag PUT $inc/fields/planned_action {"value": 1, "expected_version": 7} || kslate_write('$inc', 'planned_action', '1', 7 || 409 55000 VERSION_CONFLICT field,message,record,expected_version,current_version,value,author,evidence
diag PATCH $inc {"changes": $changes} || kslate_write_many('$inc', '$changes' || 409 55000 VERSION_CONFLICT field,message,record,expected_version,current_version,value,author,evidence,conflicts[{field,expected_version,current_version,value,author,evidence}]
op POST migrations/m-1/fields/move/force-release {"expected_epoch": 3, "reason": "x"} || kslate_force_release('migrations/m-1', 'move', 3, 'x' || 409 55000 VERSION_CONFLICT field,message,record,expected_epoch,current_epoch
w1 POST $inc/fields/remediation/claim || kslate_claim('$inc', 'remediation' || 409 55P03 HELD field,message,record,owner,expires_at,retry_after_seconds
w1 POST $inc/fields/remediation/renew {"claim_id": "$lost"} || kslate_renew('$inc', 'remediation', '$lost' || 409 55000 LEASE_LOST field,message,record,owner,reason
both PUT both/b-1/fields/counted {"value": 1, "expected_version": 0} || kslate_write('both/b-1', 'counted', '1', 0 || 409 55000 LEASE_LOST field,message,record,owner,reason
both PUT both/b-1/fields/x {"value": 1, "expected_version": 0, "claim_id": "$lost"} || kslate_write('both/b-1', 'x', '1', 0, claim_id => '$lost' || 409 55000 LEASE_LOST message,record,owner,reason
w1 POST incidents/inc-2/fields/remediation/claim || kslate_claim('incidents/inc-2', 'remediation' || 409 55000 COMPLETED field,message,record,author,version,completed_at
w1 POST $inc/fields/remediation/reopen || kslate_reopen('$inc', 'remediation' || 409 55000 NOT_COMPLETED field,message,record,author,version
w1 POST $inc/fields/actions_taken/entries {"value": 1} || kslate_append('$inc', 'actions_taken', '1', idempotency_key => 'used' || 409 23505 IDEMPOTENCY_CONFLICT message,record
w1 PUT $inc/checkpoint {"document": {"goal": 1}} || kslate_checkpoint_save('$inc', '{"goal": 1}' || 422 23514 INVALID_CHECKPOINT message,record
diag PUT $inc/fields/status {"value": "resolved", "expected_version": 1} || kslate_write('$inc', 'status', '"resolved"', 1 || 422 23514 INVALID_CHECKPOINT field,message,record
diag PUT $inc/fields/status {"value": "clo\"sed", "expected_version": 1} || kslate_write('$inc', 'status', '"clo\"sed"', 1 || 422 23514 INVALID_VALUE field,message,record,path
diag PUT $inc/fields/planned_action {"value": 1, "expected_version": 1} || kslate_write('$inc', 'planned_action', '1', 1 || 422 23514 EVIDENCE_REQUIRED field,message,record
w1 PUT $inc/checkpoint {"document": {"more": "$long"}} || kslate_checkpoint_save('$inc', '{"more": "$long"}' || 413 54000 PAYLOAD_TOO_LARGE message,record
"#;

/// Records in all states that are needed; gives the claim_id that worker 1 has lost to worker 2.
fn fill(stage: &Stage) -> String {
    let send = |token: &str, method: &str, path: &str, body: &str| {
        let answer = stage.send(token, method, &format!("/v1/records/{path}"), body);
        assert!(answer.status < 300, "{path}: {}", answer.text());
        answer.json()
    };
    for record in [INC, "incidents/inc-2"] {
        send("diag", "PUT", record, "{}");
    }
    let path = format!("{INC}/fields/planned_action");
    send(
        "diag",
        "PUT",
        &path,
        r#"{"value": {"a": 1.10}, "expected_version": 0, "evidence": "e\"1\n"}"#,
    );
    let task = format!("{INC}/fields/remediation");
    let lost = send("w1", "POST", &format!("{task}/claim"), "{}")["claim_id"].clone();
    send(
        "w1",
        "POST",
        &format!("{task}/release"),
        &json!({ "claim_id": lost }).to_string(),
    );
    send(
        "w2",
        "POST",
        &format!("{task}/claim"),
        r#"{"lease_seconds": 3600}"#,
    );
    let task = "incidents/inc-2/fields/remediation";
    let done = send("w1", "POST", &format!("{task}/claim"), "{}")["claim_id"].clone();
    send(
        "w1",
        "POST",
        &format!("{task}/complete"),
        &json!({ "claim_id": done }).to_string(),
    );
    stage
        .send("admin", "PUT", "/v1/classes/both", BOTH)
        .expect(200);
    send("both", "PUT", "both/b-1", "{}");
    send("plan", "PUT", "migrations/m-1", r#"{"evidence": "e"}"#);
    let key = [("Idempotency-Key", "used")];
    let entries = format!("/v1/records/{INC}/fields/actions_taken/entries");
    stage
        .api("w1")
        .request("POST", &entries, &key, b"{\"value\": 0}")
        .expect(201);
    lost.as_str().expect("a uuid").to_string()
}

/// The seconds that a lease still has are counted down between two requests.
fn without_seconds(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split("another ").enumerate() {
        if index == 0 {
            out += part;
            continue;
        }
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out += &format!("another N{rest}");
    }
    match out.split_once("\"retry_after_seconds\":") {
        Some((head, tail)) => {
            let tail = tail.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{head}\"retry_after_seconds\":N{tail}")
        }
        None => out,
    }
}

fn check(stage: &Stage) {
    let changes = r#"[{"field": "status", "value": "open", "expected_version": 9}, {"field": "hypotheses", "value": 1, "expected_version": 8}]"#;
    let table = REFUSALS
        .replace("$inc", INC)
        .replace("$lost", &fill(stage))
        .replace("$changes", changes)
        .replace("$long", &"x".repeat(262_144));
    for line in table.lines().filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.split(" || ").collect();
        let [request, call, wanted] = parts[..] else {
            panic!("three parts: {line}");
        };
        let wanted: Vec<&str> = wanted.split(' ').collect();
        let [status, sqlstate, error, keys] = wanted[..] else {
            panic!("four words: {line}");
        };
        let mut parts = request.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (token, method, path, body) = (part(), part(), part(), part());
        let told: String = line.chars().take(200).collect();

        let key = [("Idempotency-Key", "used")];
        let headers = match error {
            "IDEMPOTENCY_CONFLICT" => &key[..],
            _ => &[],
        };
        let path = format!("/v1/records/{path}");
        let answer = stage
            .api(token)
            .request(method, &path, headers, body.as_bytes());
        let told = format!("{told}: {} {}", answer.status, answer.text());
        assert_eq!(answer.status.to_string(), status, "{told}");
        let came: Value = answer.json();
        assert_eq!(came["error"], error, "{told}");
        assert_eq!(shape(&came), format!("{{error,{keys}}}"), "{told}");
        let seconds = came["retry_after_seconds"].as_i64();
        let seconds = seconds.map(|seconds| seconds.to_string());
        assert_eq!(answer.header("retry-after"), seconds.as_deref(), "{told}");
        let json = Some("application/json");
        assert_eq!(answer.header("content-type"), json, "{told}");
        assert!(answer.header("x-request-id").is_some(), "{told}");

        let identity = match token {
            "diag" => "apikey:diagnoser",
            "w1" => "apikey:remediator/worker-1",
            "op" => "apikey:operator",
            "both" => "apikey:both",
            _ => "apikey:stranger",
        };
        let sql = format!("select * from {call}, identity => '{identity}')");
        let raised = refused_in_sql(&stage.database, "kslate", &sql);
        assert_eq!(raised.sqlstate, sqlstate, "{told} {raised:?}");
        let body = without_seconds(&answer.text());
        assert_eq!(without_seconds(&raised.detail), body, "{told}");
        let message = without_seconds(came["message"].as_str().unwrap_or_default());
        assert_eq!(without_seconds(&raised.message), message, "{told}");
    }
}

#[test]
fn the_same_over_http_and_in_sql() {
    check(&Stage::new());
}

/// A panic's backtrace is appended to DETAIL where the server has RUST_BACKTRACE: nothing of ours may be.
#[test]
fn the_same_where_the_server_prints_backtraces() {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start()));
    let dir = cluster.dir().display().to_string();
    let restarted = bash(
        "scripts/cluster restart \"$DIR\"",
        &[("DIR", &dir), ("RUST_BACKTRACE", "full")],
    );
    assert!(restarted.status.success(), "{restarted:?}");
    let seen = bash(
        "grep -qz '^RUST_BACKTRACE=full$' \"/proc/$(head -n 1 \"$(scripts/cluster home \"$DIR\")/data/postmaster.pid\")/environ\"",
        &[("DIR", &dir)],
    );
    assert!(
        seen.status.success(),
        "the server has the variable: {seen:?}"
    );
    check(&Stage::on(cluster.fresh_database()));
}

#[test]
fn what_the_server_itself_refuses() {
    let stage = Stage::new();
    stage
        .send("diag", "PUT", "/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let big = "x".repeat(2_000_000);
    let path = "/v1/records/incidents/inc-1";
    for (token, method, path, headers, body, status, keys) in [
        ("", "GET", path, None, "", 401, "{error,message}"),
        ("w1", "GET", "/v1/nothing", None, "", 404, "{error,message}"),
        ("w1", "DELETE", path, None, "", 405, "{error,message}"),
        (
            "w1",
            "PUT",
            path,
            Some(("Content-Type", "text/plain")),
            "{}",
            415,
            "{error,message}",
        ),
        (
            "w1",
            "PUT",
            path,
            None,
            big.as_str(),
            413,
            "{error,message}",
        ),
        (
            "w1",
            "PUT",
            path,
            None,
            r#"{"lease": 1}"#,
            400,
            "{error,message,path}",
        ),
        ("w1", "PUT", path, None, "[]", 400, "{error,message,path}"),
        (
            "w1",
            "GET",
            "/v1/records/incidents/inc-1?x=1",
            None,
            "",
            400,
            "{error,message}",
        ),
        (
            "w1",
            "PUT",
            path,
            Some(("Idempotency-Key", "")),
            "",
            400,
            "{error,message}",
        ),
        (
            "w1",
            "PUT",
            "/v1/classes/both",
            None,
            BOTH,
            403,
            "{error,message,needs_one_of[],roles_held[]}",
        ),
        (
            "admin",
            "PUT",
            "/v1/classes/both",
            None,
            "class: both\n",
            422,
            "{error,message,class,faults[{line,path,message}]}",
        ),
    ] {
        let headers: Vec<(&str, &str)> = headers.into_iter().collect();
        let answer = stage
            .api(token)
            .request(method, path, &headers, body.as_bytes());
        let told = format!("{method} {path}: {} {}", answer.status, answer.text());
        assert_eq!(answer.status, status, "{told}");
        assert_eq!(shape(&answer.json()), keys, "{told}");
        assert_eq!(
            answer.header("www-authenticate"),
            (status == 401).then_some("Bearer"),
            "{told}"
        );
        assert_eq!(answer.header("allow").is_some(), status == 405, "{told}");
        assert!(answer.header("x-request-id").is_some(), "{told}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{told}"
        );
    }
    let unknown = stage.send(
        "w1",
        "POST",
        "/v1/records/incidents/inc-1/fields/remediation/claim",
        r#"{"lease": 1}"#,
    );
    assert_eq!(
        unknown.text(),
        r#"{"error":"MALFORMED","message":"unknown key \"lease\" in the body; known: lease_seconds, reattach","path":"/lease"}"#
    );
    let anonymous = stage.send("", "GET", path, "");
    assert_eq!(
        anonymous.text(),
        r#"{"error":"UNAUTHENTICATED","message":"send a known API key as Authorization: Bearer <token>"}"#
    );
}

#[test]
fn a_class_with_faults() {
    let stage = Stage::new();
    let source = BOTH
        .replace("mode: cas", "mode: csa")
        .replace("[third]", "[forth]");
    let answer = stage.send("admin", "PUT", "/v1/classes/both", &source);
    let body = answer.refused(422, "INVALID_CLASS");
    assert_eq!(
        shape(&body),
        "{error,message,class,faults[{line,path,message}]}"
    );
    let faults = body["faults"].as_array().expect("faults");
    let lines: Vec<Option<i64>> = faults.iter().map(|fault| fault["line"].as_i64()).collect();
    assert_eq!(lines, [Some(5), Some(6), Some(6), Some(7)], "{body}");
    let sql = format!("select * from kslate_class_apply($class${source}$class$)");
    let raised = refused_in_sql(&stage.database, "kslate", &sql);
    assert_eq!(raised.sqlstate, "22023");
    assert_eq!(raised.detail, answer.text());
}

#[test]
fn a_database_that_is_away_or_locked() {
    let cluster = Cluster::start();
    let database: Database = cluster.fresh_database();
    let shim = Shim::start(&database, kslate_tests::KEYS);
    let diagnoser = shim.api("diag-token");
    let path = "/v1/records/incidents/inc-1";
    diagnoser.put(path, "{}").expect(201);

    // Somebody sits on the record's row for longer than a call waits.
    let sitting = std::process::Command::new(kslate_tests::postgres_program("psql"))
        .args(["-XAtq", &database.url("kslate"), "-c"])
        .arg("begin; select from kslate.record where record = 'incidents/inc-1' for update; select pg_sleep(60)")
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut sitting = sitting.expect("psql starts");
    kslate_tests::until("the row is locked", || {
        database.psql("kslate", "select count(*) from pg_stat_activity where query like 'begin; select from kslate.record%' and wait_event = 'PgSleep'") == "1"
    });
    let write = r#"{"value": "x", "expected_version": 0}"#;
    let busy = diagnoser.put(&format!("{path}/fields/hypotheses"), write);
    let _ = sitting.kill();
    let _ = sitting.wait();
    busy.refused(503, "BUSY");
    assert_eq!(shape(&busy.json()), "{error,message,retry_after_seconds}");
    assert_eq!(busy.header("retry-after"), Some("1"));

    cluster.stop();
    for (method, path, body) in [
        ("GET", path, ""),
        ("PUT", path, "{}"),
        ("GET", "/readyz", ""),
    ] {
        let answer = diagnoser.request(method, path, &[], body.as_bytes());
        answer.refused(503, "UNAVAILABLE");
        assert_eq!(shape(&answer.json()), "{error,message,retry_after_seconds}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    shim.anonymous().get("/healthz").expect(200);
    shim.anonymous().get(path).refused(401, "UNAUTHENTICATED");
    cluster.start_again();
    kslate_tests::until("the server is back", || {
        shim.anonymous().get("/readyz").status == 200
    });
    assert_eq!(
        diagnoser.get(path).expect(200)["record_version"],
        0,
        "the busy write was not made"
    );
}
