//! docs/errors.md, cell by cell: each operation raises each of its errors, the same in SQL and over HTTP, with the status, the
//! SQLSTATE and the keys that the page says. A cell without a case fails, and so does a case without a cell.

mod cases;
mod matrix;
mod order;
mod provoked;

use cases::{cases, good, Case, CLASS, KEYS};
use kslate_tests::crew::role;
use kslate_tests::{checksum, refused_in_sql, Answer, Cluster, Database, Shim};
use matrix::Matrix;
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// The errors there are.
const CODES: [&str; 23] = [
    "MALFORMED",
    "UNAUTHENTICATED",
    "SCOPE_DENIED",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "UNSUPPORTED_MEDIA_TYPE",
    "PAYLOAD_TOO_LARGE",
    "ALREADY_EXISTS",
    "VERSION_CONFLICT",
    "HELD",
    "LEASE_LOST",
    "COMPLETED",
    "NOT_COMPLETED",
    "IDEMPOTENCY_CONFLICT",
    "INVALID_CHECKPOINT",
    "INVALID_VALUE",
    "EVIDENCE_REQUIRED",
    "INVALID_CLASS",
    "IMMUTABLE",
    "BUSY",
    "UNAVAILABLE",
    "TIMEOUT",
    "INTERNAL",
];

/// What only the server can say: who calls by HTTP, and how. SQL has no such error, or PostgreSQL's own.
const HTTP_ONLY: [&str; 5] = [
    "UNAUTHENTICATED",
    "METHOD_NOT_ALLOWED",
    "UNSUPPORTED_MEDIA_TYPE",
    "TIMEOUT",
    "INTERNAL",
];

/// Cells whose two sides differ: whether a token is an administrator's, and whether the path names the class of the body, is the
/// server's to judge.
const APART: [(&str, &str); 2] = [
    ("class apply", "MALFORMED"),
    ("class apply", "SCOPE_DENIED"),
];

/// A database with records in every state, and a server on it.
pub struct Stage<'c> {
    pub database: Database<'c>,
    pub shim: Shim,
    /// The claim_id of doer's claim on `judged` of all/one.
    pub judged: String,
}

impl<'c> Stage<'c> {
    fn new(database: Database<'c>) -> Stage<'c> {
        Stage::with(database, "", &[])
    }

    /// `sql` is run as a superuser before the server that is kept starts.
    fn with(database: Database<'c>, sql: &str, environment: &[(&str, &str)]) -> Stage<'c> {
        role(
            &database,
            "matrix_admin",
            "login",
            "grant kslate_admin to matrix_admin",
        );
        let judged = fill(&Shim::start(&database, KEYS));
        database.psql("postgres", sql);
        // What was set for a role holds from the next connection on, a pooler's too.
        database.psql("postgres", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'kslate_server' and datname = current_database()");
        let mut all = vec![("KSLATE_MAX_BODY", "4194304")];
        all.extend(environment);
        let shim = Shim::start_with(&database, KEYS, &all);
        Stage {
            database,
            shim,
            judged,
        }
    }

    fn send(&self, case: &Case) -> Option<Answer> {
        let request = case.request.as_ref()?;
        let api = match case.token.as_str() {
            "-" => self.shim.anonymous(),
            token => self.shim.api(token),
        };
        let key = [("Idempotency-Key", "used")];
        let headers = if request.key { &key[..] } else { &[] };
        Some(api.request(
            &request.method,
            &request.path,
            headers,
            request.body.as_bytes(),
        ))
    }
}

/// Gives the claim_id of doer's claim on `judged`.
fn fill(shim: &Shim) -> String {
    let send = |token: &str, method: &str, path: &str, key: bool, body: Value| {
        let used = [("Idempotency-Key", "used")];
        let headers = if key { &used[..] } else { &[] };
        let answer = shim.api(token).request(
            method,
            &format!("/v1/{path}"),
            headers,
            body.to_string().as_bytes(),
        );
        assert!(answer.status < 300, "{path}: {}", answer.text());
        answer.json()["claim_id"].clone()
    };
    let used = [("Idempotency-Key", "used")];
    let applied = shim
        .api("admin")
        .request("PUT", "/v1/classes/all", &used, CLASS.as_bytes());
    applied.expect(200);
    for record in ["one", "spare", "two", "done"] {
        send(
            "doer",
            "PUT",
            &format!("records/all/{record}"),
            false,
            json!({}),
        );
    }
    let one = "records/all/one/fields";
    send(
        "doer",
        "PUT",
        &format!("{one}/number"),
        false,
        json!({"value": 5, "expected_version": 0}),
    );
    send(
        "doer",
        "POST",
        &format!("{one}/log/entries"),
        true,
        json!({"value": 0}),
    );
    send(
        "boss",
        "PUT",
        &format!("{one}/secret"),
        true,
        json!({"value": 1}),
    );
    send(
        "doer1",
        "POST",
        &format!("{one}/task/claim"),
        false,
        json!({"lease_seconds": 3600}),
    );
    let done = send(
        "doer",
        "POST",
        "records/all/done/fields/task/claim",
        false,
        json!({}),
    );
    send(
        "doer",
        "POST",
        "records/all/done/fields/task/complete",
        false,
        json!({"claim_id": done}),
    );
    send(
        "doer",
        "POST",
        "classes/all/claim",
        true,
        json!({"field": "task"}),
    );
    let judged = send(
        "doer",
        "POST",
        &format!("{one}/judged/claim"),
        false,
        json!({"lease_seconds": 3600}),
    );
    judged.as_str().expect("a claim_id").to_string()
}

/// The seconds that a lease still has are counted down from one call to the next.
pub fn without_seconds(text: &str) -> String {
    let mut out = text.to_string();
    for mark in ["another ", "\"retry_after_seconds\":"] {
        if let Some((head, tail)) = out.split_once(mark) {
            let tail = tail.trim_start_matches(|c: char| c.is_ascii_digit());
            out = format!("{head}{mark}N{tail}");
        }
    }
    out
}

/// Over HTTP: status, keys and headers are the page's; gives the body.
#[track_caller]
pub fn judge_answer(matrix: &Matrix, about: &str, error: &str, answer: &Answer) -> String {
    let body = answer.text();
    let about = format!("{about}: {} {body:.300}", answer.status);
    assert_eq!(answer.status, matrix.codes[error].status, "{about}");
    matrix.judge(&about, error, &answer.json());
    let seconds = answer.json()["retry_after_seconds"]
        .as_i64()
        .map(|seconds| seconds.to_string());
    let may_retry = matches!(error, "HELD" | "BUSY" | "UNAVAILABLE");
    assert_eq!(seconds.is_some(), may_retry, "{about}");
    assert_eq!(answer.header("retry-after"), seconds.as_deref(), "{about}");
    assert_eq!(
        answer.header("www-authenticate"),
        (error == "UNAUTHENTICATED").then_some("Bearer"),
        "{about}"
    );
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{about}"
    );
    body
}

#[test]
fn every_cell_has_a_case_and_every_case_a_cell() {
    let matrix = Matrix::read();
    let codes: BTreeSet<&str> = matrix.codes.keys().map(String::as_str).collect();
    assert_eq!(codes, BTreeSet::from(CODES), "the rows of the page");
    let mut covered = BTreeSet::new();
    for case in cases("$judged") {
        let operation = matrix.operations.get(&case.operation);
        case.belongs_to(operation.unwrap_or_else(|| panic!("no operation {}", case.operation)));
        // Both sides, or the one that the operation has.
        let alone = APART.contains(&(&case.operation, &case.error));
        let operation = operation.expect("it is there");
        assert!(
            alone || case.request.is_some() == operation.route.is_some(),
            "{}",
            case.told()
        );
        covered.insert((case.operation, case.error));
    }
    for (operation, error) in APART {
        let sides = cases("$judged")
            .into_iter()
            .filter(|case| case.operation == operation && case.error == error);
        assert_eq!(
            sides
                .map(|case| case.request.is_some())
                .collect::<BTreeSet<bool>>(),
            BTreeSet::from([false, true])
        );
    }
    covered.extend(provoked::cells(&matrix));
    assert_eq!(covered, matrix.cells());
    let any: Vec<(&str, Vec<&str>)> = provoked::ANY
        .iter()
        .map(|(row, errors)| (*row, errors.split(' ').collect()))
        .collect();
    let page: Vec<(&str, Vec<&str>)> = matrix
        .any
        .iter()
        .map(|(row, errors)| (row.as_str(), errors.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(page, any, "the rows that begin with any");
    let operations: BTreeSet<String> = good("").into_iter().map(|case| case.operation).collect();
    assert_eq!(
        operations,
        matrix.operations.keys().cloned().collect(),
        "an accepted request of each operation"
    );
    for case in good("$judged") {
        case.belongs_to(&matrix.operations[&case.operation]);
    }
    let mut raised: BTreeSet<&str> = covered.iter().map(|(_, error)| error.as_str()).collect();
    raised.extend(any.into_iter().flat_map(|(_, errors)| errors));
    assert_eq!(
        raised,
        BTreeSet::from(CODES),
        "each row of the page has a case"
    );
}

#[test]
fn sql_and_http_say_the_same() {
    let matrix = Matrix::read();
    let stage = Stage::new(Cluster::shared().fresh_database());
    let before = checksum(&stage.database);
    for case in cases(&stage.judged) {
        let about = case.told();
        let answer = stage
            .send(&case)
            .map(|answer| judge_answer(&matrix, &about, &case.error, &answer));
        let Some((sql, role)) = &case.call else {
            continue;
        };
        assert!(!HTTP_ONLY.contains(&case.error.as_str()), "{about}");
        let refused = refused_in_sql(&stage.database, role, sql);
        let told = format!("{about}: {refused:.300?}");
        assert!(
            matrix.codes[&case.error]
                .sqlstates
                .contains(&refused.sqlstate),
            "{told}"
        );
        let detail: Value =
            serde_json::from_str(&refused.detail).unwrap_or_else(|error| panic!("{told}: {error}"));
        matrix.judge(&told, &case.error, &detail);
        assert_eq!(detail["message"], refused.message.as_str(), "{told}");
        if let Some(answer) = answer {
            assert_eq!(
                without_seconds(&refused.detail),
                without_seconds(&answer),
                "{told}"
            );
        }
    }
    assert_eq!(checksum(&stage.database), before, "a refusal left a trace");
}

/// Text that PostgreSQL's own input functions refuse: 22P02 in SQL, MALFORMED over HTTP.
#[test]
fn what_postgresql_refuses_itself() {
    let stage = Stage::new(Cluster::shared().fresh_database());
    let one = "/v1/records/all/one";
    for (sql, method, path, body) in [
        (
            "kslate_write('all/one', 'plain', '{'",
            "PUT",
            format!("{one}/fields/plain"),
            r#"{"value": {}"#,
        ),
        (
            "kslate_write('all/one', 'plain', '1', claim_id => 'x'",
            "PUT",
            format!("{one}/fields/plain"),
            r#"{"value": 1, "claim_id": "x"}"#,
        ),
        (
            "kslate_renew('all/one', 'task', 'x'",
            "POST",
            format!("{one}/fields/task/renew"),
            r#"{"claim_id": "x"}"#,
        ),
        (
            "kslate_checkpoint_save('all/one', 'x'",
            "PUT",
            format!("{one}/checkpoint"),
            r#"{"document": x}"#,
        ),
        (
            "kslate_list('all', 'x'",
            "GET",
            "/v1/records/all?filter=x".to_string(),
            "",
        ),
        (
            "kslate_claim('all/one', 'task', 'x'",
            "POST",
            format!("{one}/fields/task/claim"),
            r#"{"lease_seconds": "x"}"#,
        ),
    ] {
        let refused = refused_in_sql(
            &stage.database,
            "kslate_server",
            &format!("select from {sql}, identity => 'apikey:doer')"),
        );
        assert_eq!(
            (
                refused.sqlstate.as_str(),
                refused.detail.contains("\"error\"")
            ),
            ("22P02", false),
            "{sql}: {refused:?}"
        );
        stage
            .shim
            .api("doer")
            .request(method, &path, &[], body.as_bytes())
            .refused(400, "MALFORMED");
    }
}
