//! The pool: no error and no outage leaves a connection in a state that the next request could feel.

use kslate_tests::{assert_consistent, until, Answer, Api, Cluster, Database, Session, Shim, KEYS};
use serde_json::{json, Value};
use std::time::{Duration, Instant};

const ONE: [(&str, &str); 1] = [("KSLATE_POOL", "1")];
const RECORD: &str = "/v1/records/incidents/inc-1";
const HYPOTHESES: &str = "/v1/records/incidents/inc-1/fields/hypotheses";

/// A connection of the server's to this database, as pg_stat_activity counts them.
const SERVERS: &str = "datname = current_database() and usename = 'kslate_server'";

fn count(database: &Database, what: &str) -> i64 {
    let sql = format!("select count(*) from pg_stat_activity where {SERVERS} and {what}");
    database.psql("postgres", &sql).parse().expect("a number")
}

/// One connection, and a request of somebody's that fails in each way; then somebody else's is judged and recorded as theirs.
#[tokio::test]
async fn scenario_8_an_error_leaves_nothing_of_its_caller_behind() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start_with(&database, KEYS, &ONE);
    let diagnoser = shim.api("diag-token");
    diagnoser.put(RECORD, "{}").expect(201);
    let worker = shim.api("w1-token");
    let claim = format!("{RECORD}/fields/remediation/claim");
    worker
        .post(&claim, r#"{"lease_seconds": 3600}"#)
        .expect(200);
    let (mut expected, mut backends) = (0, Vec::new());
    let big = json!({ "document": { "goal": "x".repeat(300_000) } }).to_string();
    for (method, path, body, status, error) in [
        (
            "PUT",
            HYPOTHESES,
            r#"{"value": 1, "expected_version": 0}"#,
            403,
            "SCOPE_DENIED",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/fields/status",
            r#"{"value": "open", "expected_version": 9}"#,
            409,
            "VERSION_CONFLICT",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/fields/status",
            r#"{"value": "resolved", "expected_version": 1}"#,
            422,
            "INVALID_CHECKPOINT",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/fields/status",
            r#"{"value": "closed", "expected_version": 1}"#,
            422,
            "INVALID_VALUE",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/fields/nope",
            r#"{"value": 1}"#,
            404,
            "NOT_FOUND",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/checkpoint",
            big.as_str(),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            "PUT",
            "/v1/records/incidents/inc-1/checkpoint",
            r#"{"document": {"goal": "a\u0000b"}}"#,
            400,
            "MALFORMED",
        ),
        ("POST", claim.as_str(), "{}", 409, "HELD"),
        (
            "POST",
            "/v1/records/incidents/inc-1/fields/remediation/renew",
            r#"{"claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10"}"#,
            409,
            "LEASE_LOST",
        ),
        (
            "POST",
            "/v1/records/incidents/inc-1/fields/remediation/reopen",
            "{}",
            409,
            "NOT_COMPLETED",
        ),
        ("GET", "/v1/records/incidents/inc-9", "", 404, "NOT_FOUND"),
    ] {
        worker
            .request(method, path, &[], body.as_bytes())
            .refused(status, error);
        let body = json!({ "value": expected, "expected_version": expected }).to_string();
        let answer = diagnoser.put(HYPOTHESES, body).expect(200);
        expected += 1;
        let about = format!("after {error}");
        assert_eq!(
            (&answer["author"], &answer["role"]),
            (&json!("apikey:diagnoser"), &json!("diagnoser")),
            "{about}"
        );
        let me = diagnoser.get("/v1/whoami").expect(200);
        assert_eq!(me["identity"], "apikey:diagnoser", "{about}");
        backends.push(database.psql(
            "postgres",
            &format!("select pid from pg_stat_activity where {SERVERS}"),
        ));
    }
    backends.dedup();
    assert_eq!(backends.len(), 1, "all on one and the same connection");
    let authors = database.psql(
        "postgres",
        "select distinct author, role, login from kslate.history where op = 'write'",
    );
    assert_eq!(authors, "apikey:diagnoser|diagnoser|kslate_server");
    assert_consistent(&database).await;
}

/// The same within one transaction: a savepoint takes the failed call back, and with it all that it had switched.
#[tokio::test]
async fn an_error_in_mid_transaction_gives_back_all_rights() {
    let database = Cluster::shared().fresh_database();
    let session = Session::login(&database, "kslate_server").await;
    let create = "select from kslate_create('incidents/inc-1', identity => 'apikey:diagnoser')";
    session.run(create).await;
    let before = session.run("show search_path; show lock_timeout").await;
    let write = "kslate_write('incidents/inc-1', 'hypotheses', '1', ";
    for round in 0..3 {
        session.run("begin; savepoint here").await;
        for call in [
            format!("{write} 9, identity => 'apikey:diagnoser')"),
            format!("{write} 0, identity => 'apikey:remediator')"),
            format!("{write} 0, identity => 'pg:diagnoser')"),
            "kslate_append('incidents/inc-1', 'actions_taken', null, identity => 'apikey:remediator')".to_string(),
            "kslate_create('incidents/inc-1', '{\"status\": \"resolved\"}', identity => 'apikey:diagnoser')".to_string(),
        ] {
            let failed = session.sql(&format!("select from {call}")).await;
            assert!(failed.is_err(), "{call}");
            session.run("rollback to here").await;
            assert_eq!(session.run("select current_user, session_user").await, "kslate_server|kslate_server", "{call}");
            assert_eq!(session.run("show search_path; show lock_timeout").await, before, "{call}");
            let refused = session.sql("delete from kslate.history").await.expect_err("the rights of the owner are gone");
            assert_eq!((refused.sqlstate.as_str(), refused.detail), ("42501", None), "{call}");
            session.run("rollback to here").await;
        }
        let good =
            format!("select author, role from {write} {round}, identity => 'apikey:diagnoser')");
        assert_eq!(session.run(&good).await, "apikey:diagnoser|diagnoser");
        session.run("commit").await;
    }
    assert_consistent(&database).await;
}

/// Sits on the record's row until it is dropped, from another thread's point of view for as long as one likes.
struct Sitter(std::process::Child);

impl Sitter {
    fn on(database: &Database) -> Sitter {
        let child = std::process::Command::new(kslate_tests::postgres_program("psql"))
            .args(["-XAtq", &database.url("postgres"), "-c"])
            .arg("begin; select from kslate.record where record = 'incidents/inc-1' for update; select pg_sleep(600)")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("psql starts");
        let sitter = Sitter(child);
        until("the row is locked", || {
            database.psql("postgres", "select count(*) from pg_stat_activity where query like 'begin; select from kslate.record%' and wait_event = 'PgSleep'") == "1"
        });
        sitter
    }

    fn leave(mut self, database: &Database) {
        let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like 'begin; select from kslate.record%' and wait_event = 'PgSleep'";
        assert_eq!(database.psql("postgres", sql), "1");
        let _ = self.0.wait();
    }
}

impl Drop for Sitter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn is_unavailable(answer: &Answer) {
    answer.refused(503, "UNAVAILABLE");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["retry_after_seconds"], 1);
}

fn waiting(database: &Database) -> bool {
    count(database, "wait_event_type = 'Lock'") == 1
}

#[test]
fn a_full_pool_says_so_soon() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start_with(&database, KEYS, &ONE);
    let diagnoser = shim.api("diag-token");
    diagnoser.put(RECORD, "{}").expect(201);
    let sitter = Sitter::on(&database);
    std::thread::scope(|scope| {
        let slow =
            scope.spawn(|| diagnoser.put(HYPOTHESES, r#"{"value": 1, "expected_version": 0}"#));
        until("the only connection waits for the row", || {
            waiting(&database)
        });
        let begun = Instant::now();
        for path in ["/v1/whoami", "/readyz", RECORD] {
            is_unavailable(&shim.api("w1-token").get(path));
        }
        let took = begun.elapsed() / 3;
        assert!(
            took < Duration::from_secs(4),
            "{took:?} until a full pool said so"
        );
        // What needs no database is answered meanwhile.
        shim.anonymous().get("/healthz").expect(200);
        shim.anonymous().get(RECORD).refused(401, "UNAUTHENTICATED");
        shim.api("w1-token")
            .put(HYPOTHESES, "{")
            .refused(400, "MALFORMED");
        sitter.leave(&database);
        let answer = slow.join().expect("an answer");
        assert_eq!(answer.expect(200)["version"], 1);
    });
    shim.api("w1-token").get("/v1/whoami").expect(200);
}

/// Asks until it goes well; on the way there is nothing but UNAVAILABLE.
fn recovers(api: &Api, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut last = None;
    until("the server has found the database again", || {
        let answer = api.request(method, path, &[], body.as_bytes());
        let well = answer.status == 200;
        if !well {
            is_unavailable(&answer);
        }
        last = Some(answer);
        well
    });
    last.expect("an answer")
}

#[test]
fn connections_that_were_ended_are_replaced() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let shim = Shim::start_with(&database, KEYS, &[("KSLATE_POOL", "3")]);
    let (process, diagnoser) = (shim.process(), shim.api("diag-token"));
    diagnoser.put(RECORD, "{}").expect(201);
    let end =
        format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where {SERVERS}");
    let write = |version: i64| json!({ "value": "x", "expected_version": version });

    // At rest.
    for version in 0..3 {
        assert_ne!(database.psql("postgres", &end), "0");
        recovers(&diagnoser, "PUT", HYPOTHESES, &write(version));
    }
    // At work: whether it was done is unknown then, and the answer says so.
    let sitter = Sitter::on(&database);
    let lost = std::thread::scope(|scope| {
        let lost = scope.spawn(|| diagnoser.another().put(HYPOTHESES, write(3).to_string()));
        until("it waits for the row", || waiting(&database));
        database.psql("postgres", &end);
        lost.join().expect("an answer")
    });
    is_unavailable(&lost);
    assert!(
        lost.text()
            .contains("whether the change was made is unknown"),
        "{}",
        lost.text()
    );
    sitter.leave(&database);
    recovers(&diagnoser, "PUT", HYPOTHESES, &write(3));
    // All of the server.
    cluster.restart();
    recovers(&diagnoser, "PUT", HYPOTHESES, &write(4));
    cluster.kill9();
    // The backends live on until they see that the postmaster is gone.
    until("the backends are gone", || {
        diagnoser.get(RECORD).status == 503
    });
    is_unavailable(&diagnoser.get(RECORD));
    is_unavailable(&shim.anonymous().get("/readyz"));
    cluster.start_again();
    recovers(&shim.anonymous(), "GET", "/readyz", &Value::Null);
    let answer = recovers(&diagnoser, "PUT", HYPOTHESES, &write(5));
    assert_eq!(answer.json()["version"], 6);
    assert_eq!(shim.process(), process);
}

#[test]
fn a_database_that_is_read_only_for_a_while() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let shim = Shim::start_with(&database, KEYS, &[("KSLATE_POOL", "3")]);
    let diagnoser = shim.api("diag-token");
    diagnoser.put(RECORD, "{}").expect(201);
    let server = |sql: &str| {
        database.psql("postgres", sql);
        database.psql("postgres", "select pg_reload_conf()");
    };
    for version in 0..2 {
        server("alter system set default_transaction_read_only = on");
        let write = json!({ "value": "x", "expected_version": version });
        until("writes are refused", || {
            let answer = diagnoser.put(
                HYPOTHESES,
                json!({ "value": "x", "expected_version": 99 }).to_string(),
            );
            if answer.status == 503 {
                is_unavailable(&answer);
            }
            answer.status == 503
        });
        for _ in 0..5 {
            is_unavailable(&diagnoser.put(HYPOTHESES, write.to_string()));
        }
        assert_eq!(
            diagnoser.get(HYPOTHESES).expect(200)["version"],
            version,
            "reads go on"
        );
        server("alter system reset default_transaction_read_only");
        let answer = recovers(&diagnoser, "PUT", HYPOTHESES, &write);
        assert_eq!(answer.json()["version"], version + 1);
    }
    assert_eq!(count(&database, "state like 'idle in transaction%'"), 0);
}
