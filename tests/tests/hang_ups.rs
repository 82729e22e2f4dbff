//! Clients that hang up: ten thousand requests, each cut off within 20 ms, on a pool of one connection. Nobody is left idle in a
//! transaction, nobody speaks with another's identity, and the next request is answered at once.

use kslate_tests::{assert_consistent, Cluster, Database, SetAtEnd, Shim, KEYS};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The server's sessions in this database of which that is true.
fn count(database: &Database, what: &str) -> i64 {
    let sql = format!("select count(*) from pg_stat_activity where datname = current_database() and usename = 'kslate_server' and {what}");
    database.psql("postgres", &sql).parse().expect("a number")
}

const CALLERS: u32 = 24;
const ABORTED: usize = 10_000;
const REACHED: usize = 1_000;
/// More than this many requests mean that too few of them are cut off in SQL for the test to say anything.
const MOST: u32 = 200_000;
/// Ten times what it takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Sends one append and hangs up after some time. True where not one byte of an answer had come by then.
fn hang_up(address: SocketAddr, request: &[u8], after: Duration) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let sent = stream
        .set_nodelay(true)
        .and_then(|()| stream.write_all(request));
    if sent.is_err() {
        return false;
    }
    std::thread::sleep(after);
    let waiting = stream
        .set_nonblocking(true)
        .and_then(|()| stream.read(&mut [0]));
    matches!(waiting, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn append(address: SocketAddr, caller: u32, value: &str) -> Vec<u8> {
    let body = json!({ "value": value }).to_string();
    format!(
        "POST /v1/records/incidents/r-{}/fields/actions_taken/entries HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer t{caller}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        caller % 8,
        body.len()
    )
    .into_bytes()
}

/// The entries in history: the value and its author.
fn entries(database: &Database) -> BTreeMap<String, String> {
    let sql = "select value #>> '{}', author from kslate.history where op = 'append'";
    let told = database.psql("postgres", sql);
    let all: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(value, author)| (value.to_string(), author.to_string()))
        .collect();
    let lines = all.len();
    let entries: BTreeMap<String, String> = all.into_iter().collect();
    assert_eq!(entries.len(), lines, "each value was written once");
    entries
}

#[tokio::test]
async fn scenario_9_ten_thousand_hang_up_and_nobody_feels_it() {
    let database = Cluster::shared().fresh_database();
    let keys: String = (0..CALLERS)
        .map(|caller| format!("t{caller}: remediator/worker-{caller}\n"))
        .collect();
    let shim = Shim::start_with(
        &database,
        &format!("{KEYS}{keys}"),
        &[("KSLATE_POOL", "1"), ("KSLATE_LOG", "error")],
    );
    let diagnoser = shim.api("diag-token");
    for record in 0..8 {
        let path = format!("/v1/records/incidents/r-{record}");
        diagnoser.put(&path, "{}").expect(201);
    }
    let (address, next) = (shim.address(), AtomicU32::new(0));
    let aborted: Mutex<Vec<String>> = Mutex::default();
    let done = AtomicBool::new(false);
    let reached = |aborted: &[String]| {
        let entries = entries(&database);
        aborted
            .iter()
            .filter(|value| entries.contains_key(*value))
            .count()
    };
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (aborted, done, next) = (&aborted, &done, &next);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let value = format!("{caller}-{number}");
                    let request = append(address, caller, &value);
                    let after = Duration::from_millis(u64::from(number * 7 % 21));
                    if hang_up(address, &request, after) {
                        if let Ok(mut aborted) = aborted.lock() {
                            aborted.push(value);
                        }
                    }
                }
            });
        }
        // Looks on: a session idle in a transaction would be one that a hang-up has left behind.
        let _end = SetAtEnd(&done);
        let (mut worst, begun) = ((0, 0), Instant::now());
        loop {
            let (idle, all) = (
                count(&database, "state like 'idle in transaction%'"),
                count(&database, "true"),
            );
            worst = (worst.0.max(idle), worst.1.max(all));
            let sent = next.load(Ordering::Relaxed);
            let so_far = aborted
                .lock()
                .map(|aborted| aborted.clone())
                .unwrap_or_default();
            let enough = so_far.len() >= ABORTED && reached(&so_far) >= REACHED;
            assert!(
                begun.elapsed() < PATIENCE,
                "{sent} sent, and not enough of them"
            );
            if enough || sent > MOST || worst.0 > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(worst.0, 0, "somebody was idle in a transaction");
        assert!(worst.1 <= 1, "{} connections of a pool of one", worst.1);
    });

    // At once: nothing of the storm stands in the way.
    let begun = Instant::now();
    let answer = shim.api("t0").post(
        "/v1/records/incidents/r-0/fields/actions_taken/entries",
        r#"{"value": "0-after"}"#,
    );
    let took = begun.elapsed();
    assert_eq!(answer.expect(201)["author"], "apikey:remediator/worker-0");
    assert!(
        took < Duration::from_secs(1),
        "the next answer took {took:?}"
    );

    let aborted = aborted.into_inner().expect("no panic while it is held");
    let reached = reached(&aborted);
    println!("{} aborted, {reached} of them in SQL", aborted.len());
    assert!(aborted.len() >= ABORTED, "{} aborted", aborted.len());
    assert!(
        reached >= REACHED,
        "{reached} of {} had reached SQL",
        aborted.len()
    );
    for (value, author) in entries(&database) {
        let caller = value.split('-').next().unwrap_or_default();
        assert_eq!(
            author,
            format!("apikey:remediator/worker-{caller}"),
            "{value}"
        );
    }
    assert_eq!(count(&database, "state <> 'idle'"), 0);
    assert_eq!(count(&database, "true"), 1);
    assert_consistent(&database).await;
}
