//! Behind pgbouncer in transaction mode with two server connections, all is as without it: the tests of the HTTP surface are run
//! again as they are, with every server that they start going through one (`KSLATE_TEST_VIA`).

use kslate_tests::{root, until, Api, Cluster, Pooler, SetAtEnd, Shim, KEYS};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The tests that speak HTTP, and of each those whose names contain this.
const SUITE: [(&str, &str); 5] = [
    ("manual", ""),
    ("answers", ""),
    ("bad_input", ""),
    ("errors_matrix", ""),
    ("walks", "only_curl"),
];

/// The programs of the tests, built where they are not.
fn programs() -> BTreeMap<String, String> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.current_dir(root()).args([
        "test",
        "--no-run",
        "--message-format=json",
        "--package=kslate-tests",
    ]);
    if std::env::current_exe()
        .is_ok_and(|path| path.components().any(|part| part.as_os_str() == "release"))
    {
        cargo.arg("--release");
    }
    for (name, _) in SUITE {
        cargo.arg(format!("--test={name}"));
    }
    let output = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "the tests are built");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|told| {
            let program = told["executable"].as_str()?.to_string();
            Some((told["target"]["name"].as_str()?.to_string(), program))
        })
        .collect()
}

#[test]
fn the_http_suite_passes_behind_it() {
    let programs = programs();
    let mut failed = Vec::new();
    for (name, filter) in SUITE {
        let program = || {
            let mut command = Command::new(&programs[name]);
            command
                .current_dir(root().join("tests"))
                .arg(filter)
                .stdin(Stdio::null());
            command
        };
        let listed = program()
            .arg("--list")
            .output()
            .expect("the tests are listed");
        let listed = String::from_utf8_lossy(&listed.stdout)
            .matches(": test\n")
            .count();
        assert!(listed > 0, "{name} has tests");
        let run = program()
            .env("KSLATE_TEST_VIA", "pgbouncer")
            .output()
            .expect("the tests run");
        let told = String::from_utf8_lossy(&run.stdout).into_owned();
        let all = format!("test result: ok. {listed} passed; 0 failed; 0 ignored");
        println!("{name}: {listed} tests, {}", run.status);
        if !(run.status.success() && told.contains(&all)) {
            failed.push(format!(
                "{name}: {}\n{told}\n{}",
                run.status,
                String::from_utf8_lossy(&run.stderr)
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

const CLIENTS: usize = 12;
const RECORD: &str = "/v1/records/incidents/inc-1";

/// One column of `show pools` for a pool.
fn column(pools: &str, pool: &str, column: usize) -> Option<u32> {
    let line = pools.lines().find(|line| line.starts_with(pool))?;
    line.split('|').nth(column)?.parse().ok()
}

/// That it really is transaction mode, and that two connections carry a dozen clients at once: who is recorded is who asked.
#[test]
fn a_dozen_clients_share_two_connections() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let pooler = Pooler::start(cluster);
    let keys: String = (0..CLIENTS)
        .map(|client| format!("t{client}: remediator/{client}\n"))
        .collect();
    let url = pooler.url("kslate_server", database.name());
    let environment = [
        ("DATABASE_URL", url.as_str()),
        ("KSLATE_PREPARE", "off"),
        ("KSLATE_POOL", "16"),
    ];
    let shim = Shim::start_with(&database, &format!("{KEYS}{keys}"), &environment);
    shim.api("diag-token").put(RECORD, "{}").expect(201);
    let (done, sent) = (AtomicBool::new(false), AtomicU32::new(0));
    let pool = format!("{}|kslate_server|", database.name());
    let (mut clients, mut servers, mut backends) = (0, 0, 0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (api, done, sent): (Api, _, _) = (shim.api(&format!("t{client}")), &done, &sent);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let path = format!("{RECORD}/fields/actions_taken/entries");
                    let answer = api
                        .post(&path, json!({ "value": client }).to_string())
                        .expect(201);
                    assert_eq!(answer["author"], format!("apikey:remediator/{client}"));
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _end = SetAtEnd(&done);
        until("a dozen are at work, and have done much", || {
            let pools = pooler.ask("show pools");
            let at = |number| column(&pools, &pool, number).unwrap_or(0);
            // database|user|cl_active|cl_waiting|cl_cancel_req|sv_active|sv_idle|…
            clients = clients.max(at(2) + at(3));
            // A connection that is in none of these is being made or closed; PostgreSQL counts them all.
            servers = servers.max(at(5) + at(6));
            let sql = "select count(*) from pg_stat_activity where datname = current_database() and usename = 'kslate_server'";
            backends = backends.max(database.psql("postgres", sql).parse().expect("a number"));
            sent.load(Ordering::Relaxed) > 300 && clients >= 8
        });
    });
    assert!(clients >= 8, "{clients} clients at work");
    assert_eq!((servers, backends), (2, 2), "connections to PostgreSQL");
    let mode = pooler.ask("show pools");
    let mode = mode
        .lines()
        .find(|line| line.starts_with(&pool))
        .expect("the pool");
    assert!(mode.ends_with("|transaction"), "{mode}");
    let wrong = "select count(*) from kslate.history where op = 'append' and author <> 'apikey:remediator/' || (value #>> '{}')";
    assert_eq!(database.psql("postgres", wrong), "0");
}

/// The control: what transaction mode takes away is really gone. A session's statement is unknown on the other connection.
#[tokio::test]
async fn a_kept_statement_is_lost_behind_it() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let pooler = Pooler::start(cluster);
    let connect = || async {
        let url = pooler.url("kslate_server", database.name());
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .expect("it answers");
        tokio::spawn(connection);
        client
    };
    let (one, other) = (connect().await, connect().await);
    one.simple_query("prepare mine as select 1")
        .await
        .expect("on the first connection");
    // The other client sits on that connection, so that the first gets the second one.
    other.simple_query("begin").await.expect("a transaction");
    let pids = "select pg_backend_pid()";
    let (mine, others) = (one.simple_query(pids).await, other.simple_query(pids).await);
    let pid = |rows: Result<Vec<tokio_postgres::SimpleQueryMessage>, _>| {
        rows.expect("a row").iter().find_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        })
    };
    assert_ne!(pid(mine), pid(others));
    let lost = one
        .simple_query("execute mine")
        .await
        .expect_err("it is on the other connection");
    assert_eq!(lost.code().map(|code| code.code()), Some("26000"));
}
