//! The errors that something else must bring about: a lock that is held, a database that is away, too slow or broken, a caller
//! who is nobody. They are raised by each operation and route in turn.

use crate::cases::{good, Case};
use crate::matrix::Matrix;
use crate::{judge_answer, without_seconds, Stage};
use kslate_tests::{postgres_program, refused_in_sql, until, Cluster, Database};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// The rows of docs/errors.md that begin with *any*, in order of their names, and what they say.
pub const ANY: [(&str, &str); 6] = [
    ("any answer over 64 MiB", "PAYLOAD_TOO_LARGE"),
    ("any function", "UNAVAILABLE TIMEOUT SCOPE_DENIED"),
    ("any other path", "NOT_FOUND"),
    ("any route", "METHOD_NOT_ALLOWED INTERNAL"),
    (
        "any route under /v1",
        "UNAUTHENTICATED MALFORMED UNAVAILABLE TIMEOUT",
    ),
    (
        "any route with a body",
        "UNSUPPORTED_MEDIA_TYPE PAYLOAD_TOO_LARGE",
    ),
];

/// The cells of single operations that are provoked here.
pub fn cells(matrix: &Matrix) -> BTreeSet<(String, String)> {
    let mut cells: BTreeSet<(String, String)> = matrix
        .operations
        .iter()
        .filter(|(_, operation)| operation.errors.iter().any(|error| error == "BUSY"))
        .map(|(name, _)| (name.clone(), "BUSY".to_string()))
        .collect();
    for error in ["UNAVAILABLE", "TIMEOUT"] {
        cells.insert(("ready".to_string(), error.to_string()));
    }
    cells
}

/// A transaction that sits idle until this is dropped.
struct Holder(Child);

impl Holder {
    fn of(database: &Database, sql: &str) -> Holder {
        let mut child = Command::new(postgres_program("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", &database.url("postgres")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql starts");
        let input = child.stdin.as_mut().expect("it is piped");
        writeln!(input, "begin;\n{sql};\n\\echo holds").expect("psql reads");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        assert!(
            output
                .lines()
                .any(|line| line.is_ok_and(|line| line == "holds")),
            "{sql}"
        );
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Sets something for the server's sessions in this database.
fn for_servers(database: &Database, setting: &str) -> String {
    format!(
        "alter role kslate_server in database {} set {setting}",
        database.name()
    )
}

/// What PostgreSQL says itself, in its own words and without a DETAIL of ours.
#[track_caller]
fn is_postgresqls(database: &Database, case: &Case, setting: &str, sqlstate: &str) {
    let (sql, role) = case.call.as_ref().expect("a call");
    let refused = refused_in_sql(database, role, &format!("set {setting}; {sql}"));
    let told = format!("{}: {refused:?}", case.told());
    assert_eq!(refused.sqlstate, sqlstate, "{told}");
    assert!(!refused.detail.contains("\"error\""), "{told}");
}

#[test]
fn busy() {
    let matrix = Matrix::read();
    let database = Cluster::shared().fresh_database();
    let short = for_servers(&database, "lock_timeout = '200ms'");
    let stage = Stage::with(database, &short, &[]);
    // Rows that a change locks, and the tables as a change of a class locks them.
    let _holder = Holder::of(
        &stage.database,
        "select from kslate.record for update; select from kslate.claim for update; select from kslate.idempotency for update;
         lock table kslate.class in share row exclusive mode; lock table kslate.record in exclusive mode",
    );
    let busy = cells(&matrix);
    for case in good(&stage.judged) {
        if !busy.contains(&(case.operation.clone(), "BUSY".to_string())) {
            continue;
        }
        if let Some(answer) = stage.send(&case) {
            judge_answer(&matrix, &case.told(), "BUSY", &answer);
        }
        is_postgresqls(&stage.database, &case, "lock_timeout = '200ms'", "55P03");
    }
    assert!(matrix.codes["BUSY"]
        .sqlstates
        .iter()
        .any(|state| state == "55P03"));
}

#[test]
fn timeout() {
    let matrix = Matrix::read();
    let database = Cluster::shared().fresh_database();
    let short = for_servers(&database, "statement_timeout = '200ms'");
    // A server that keeps statements sets a limit of its own, of ten seconds.
    let stage = Stage::with(database, &short, &[("KSLATE_PREPARE", "off")]);
    let _holder = Holder::of(
        &stage.database,
        "do $$ declare t regclass; begin
           for t in select oid from pg_class where relnamespace = 'kslate'::regnamespace and relkind = 'r' loop
             execute format('lock table %s in access exclusive mode', t);
           end loop;
         end $$",
    );
    for case in good(&stage.judged) {
        if let Some(answer) = stage.send(&case) {
            judge_answer(&matrix, &case.told(), "TIMEOUT", &answer);
        }
        if case.call.is_some() && matrix.operations[&case.operation].function.is_some() {
            is_postgresqls(
                &stage.database,
                &case,
                "statement_timeout = '200ms'",
                "57014",
            );
        }
    }
    assert_eq!(matrix.codes["TIMEOUT"].sqlstates, ["57014"]);
}

#[test]
fn unavailable_without_storage() {
    let matrix = Matrix::read();
    let stage = Stage::new(Cluster::shared().fresh_database());
    stage
        .database
        .psql("postgres", "drop schema kslate cascade");
    for mut case in good(&stage.judged) {
        let answer = stage
            .send(&case)
            .map(|answer| judge_answer(&matrix, &case.told(), "UNAVAILABLE", &answer));
        let Some(function) = &matrix.operations[&case.operation].function else {
            continue;
        };
        if function == "kslate_setup" {
            // It would make the storage, but not in a schema that is somebody else's.
            stage.database.psql("postgres", "create schema kslate");
        }
        let (sql, role) = case.call.take().expect("a call");
        let refused = refused_in_sql(&stage.database, role, &sql);
        let told = format!("{}: {refused:?}", case.told());
        assert!(
            matrix.codes["UNAVAILABLE"]
                .sqlstates
                .contains(&refused.sqlstate),
            "{told}"
        );
        let detail =
            serde_json::from_str(&refused.detail).unwrap_or_else(|error| panic!("{told}: {error}"));
        matrix.judge(&told, "UNAVAILABLE", &detail);
        if let Some(answer) = answer {
            assert_eq!(
                without_seconds(&refused.detail),
                without_seconds(&answer),
                "{told}"
            );
        }
        if function == "kslate_setup" {
            stage.database.psql("postgres", "drop schema kslate");
        }
    }
}

#[test]
fn unavailable_without_database() {
    let matrix = Matrix::read();
    let cluster = Cluster::start();
    let stage = Stage::new(cluster.fresh_database());
    cluster.stop();
    for case in good(&stage.judged) {
        if let Some(answer) = stage.send(&case) {
            judge_answer(&matrix, &case.told(), "UNAVAILABLE", &answer);
        }
    }
    let told = stage
        .database
        .try_psql("kslate_server", "select 1")
        .expect_err("nobody is there");
    assert!(told.contains("connection to server"), "{told}");
    cluster.start_again();
    until("the server has found the database again", || {
        stage.shim.anonymous().get("/readyz").status == 200
    });
}

/// An error that nobody foresaw: a policy of somebody's that raises one, on every table.
#[test]
fn internal() {
    let matrix = Matrix::read();
    let database = Cluster::shared().fresh_database();
    let stage = Stage::with(
        database,
        "create function public.broken() returns boolean language plpgsql as 'begin raise exception ''the inner text''; end';
         do $$ declare t regclass; begin
           for t in select oid from pg_class where relnamespace = 'kslate'::regnamespace and relkind = 'r' loop
             execute format('alter table %s enable row level security, force row level security', t);
             execute format('create policy broken on %s using (public.broken()) with check (public.broken())', t);
           end loop;
         end $$",
        &[],
    );
    for case in good(&stage.judged) {
        let Some(answer) = stage.send(&case) else {
            continue;
        };
        let body = judge_answer(&matrix, &case.told(), "INTERNAL", &answer);
        assert!(!body.contains("inner text"), "{body}");
        let id = answer.json()["request_id"].clone();
        assert_eq!(answer.header("x-request-id"), id.as_str(), "{body}");
        let log = stage.shim.log();
        let line = log.lines().find(|line| {
            line.contains(id.as_str().expect("an id")) && line.contains("the inner text")
        });
        assert!(
            line.is_some(),
            "{}: the log has the cause under the id",
            case.told()
        );
    }
}

/// Within a security-restricted operation, such as a materialized view that is filled, nobody asked for the call.
#[test]
fn scope_denied_to_nobody() {
    let matrix = Matrix::read();
    let stage = Stage::new(Cluster::shared().fresh_database());
    for case in good(&stage.judged) {
        if matrix.operations[&case.operation].function.is_none() {
            continue;
        }
        let (sql, _) = case.call.clone().expect("a call");
        let call = sql.trim_start_matches("select from ");
        let refused = refused_in_sql(
            &stage.database,
            "postgres",
            &format!("create materialized view public.m as select 1 as one from {call}"),
        );
        let told = format!("{}: {refused:?}", case.told());
        assert!(
            matrix.codes["SCOPE_DENIED"]
                .sqlstates
                .contains(&refused.sqlstate),
            "{told}"
        );
        let detail =
            serde_json::from_str(&refused.detail).unwrap_or_else(|error| panic!("{told}: {error}"));
        matrix.judge(&told, "SCOPE_DENIED", &detail);
    }
}

/// What is found before the database is asked, on every route.
#[test]
fn what_the_server_finds_itself() {
    let matrix = Matrix::read();
    let database = Cluster::shared().fresh_database();
    let stage = Stage::with(database, "", &[("KSLATE_MAX_BODY", "1000")]);
    let (mut routes, mut bodies) = (0, 0);
    for case in good(&stage.judged) {
        let Some(request) = &case.request else {
            continue;
        };
        let path = request.path.as_str();
        let (anonymous, api) = (stage.shim.anonymous(), stage.shim.api("doer"));
        let judge = |error: &str, answer| judge_answer(&matrix, &case.told(), error, &answer);
        let answer = api.request("DELETE", path, &[], b"");
        assert!(
            answer
                .header("allow")
                .is_some_and(|allow| allow.contains(&request.method)),
            "{path}"
        );
        judge("METHOD_NOT_ALLOWED", answer);
        judge(
            "NOT_FOUND",
            api.request(
                &request.method,
                &format!("{path}/nothing/of/this"),
                &[],
                b"",
            ),
        );
        if !path.starts_with("/v1/") {
            continue;
        }
        routes += 1;
        judge(
            "UNAUTHENTICATED",
            anonymous.request(&request.method, path, &[], request.body.as_bytes()),
        );
        judge(
            "UNAUTHENTICATED",
            stage
                .shim
                .api("nobody's")
                .request(&request.method, path, &[], b""),
        );
        judge(
            "MALFORMED",
            api.request(
                &request.method,
                &format!("{path}?nonsense=1"),
                &[],
                request.body.as_bytes(),
            ),
        );
        if request.method == "GET" {
            continue;
        }
        bodies += 1;
        let text = [("Content-Type", "text/plain")];
        judge(
            "UNSUPPORTED_MEDIA_TYPE",
            api.request(&request.method, path, &text, request.body.as_bytes()),
        );
        let large = format!("{{\"value\": \"{}\"}}", "x".repeat(2_000));
        judge(
            "PAYLOAD_TOO_LARGE",
            api.request(&request.method, path, &[], large.as_bytes()),
        );
    }
    assert!(
        routes > 20 && bodies > 12,
        "{routes} routes, {bodies} with a body"
    );
}

/// An answer that would not fit: the server gives up at 64 MiB. In SQL there is no such limit.
#[test]
fn an_answer_too_large() {
    let matrix = Matrix::read();
    let stage = Stage::new(Cluster::shared().fresh_database());
    stage.database.psql(
        "kslate_server",
        "select count(*) from generate_series(1, 70) n,
           lateral kslate_append('all/one', 'noted', to_jsonb(n || repeat('x', 1000000)), 'e', identity => 'apikey:doer')",
    );
    let api = stage.shim.api("doer");
    for path in ["fields/noted/entries", "history"] {
        let path = format!("/v1/records/all/one/{path}");
        judge_answer(&matrix, &path, "PAYLOAD_TOO_LARGE", &api.get(&path));
        // A smaller page is the way out, and the connection is as good as any.
        api.get(&format!("{path}?page_size=10")).expect(200);
    }
}
