//! The connection is cut at each stage of a request: between client and server, and between server and database.

use kslate_tests::{until, Api, Cluster, Cut, Database, Proxy, Shim, KEYS};
use serde_json::json;
use std::io;

const ENTRIES: &str = "/v1/records/incidents/inc-1/fields/actions_taken/entries";

/// One append under a key of its own; numbers of one length, so that each request has as many bytes as the last.
fn append(api: &Api, number: usize) -> io::Result<kslate_tests::Answer> {
    let key = format!("cut-{number}");
    let body = json!({ "value": number }).to_string();
    api.try_request(
        "POST",
        ENTRIES,
        &[("Idempotency-Key", &key)],
        body.as_bytes(),
    )
}

fn landed(database: &Database, number: usize) -> bool {
    let sql = format!("select count(*) from kslate.entry where value = '{number}'");
    let count = database.psql("postgres", &sql);
    assert!(["0", "1"].contains(&count.as_str()), "{number}: {count}");
    count == "1"
}

/// What a request and its answer are long, and every place to cut: first and last bytes, and some between.
fn places(proxy: &Proxy, before: (usize, usize)) -> Vec<Cut> {
    let now = proxy.passed();
    let (request, answer) = (now.0 - before.0, now.1 - before.1);
    assert!(request > 50 && answer > 50, "{request} {answer}");
    let within = |length: usize| (0..length).step_by(length / 12).chain([1, length - 1]);
    let requests = within(request).chain([request]).map(Cut::Request);
    requests.chain(within(answer).map(Cut::Answer)).collect()
}

#[test]
fn between_client_and_server() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start(&database, KEYS);
    let proxy = Proxy::of_server(shim.address());
    shim.api("diag-token")
        .put("/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let worker = shim.api("w1-token").at(proxy.address());
    append(&worker, 998).expect("an answer").expect(201);
    let before = proxy.passed();
    append(&worker, 999).expect("an answer").expect(201);
    let places = places(&proxy, before);
    let request = proxy.passed().0 - before.0;
    for (number, cut) in places.iter().enumerate() {
        let number = number + 100;
        proxy.cut(*cut);
        let answer = append(&worker, number);
        assert!(answer.is_err(), "{cut:?}: {answer:?}");
        assert_eq!(proxy.cuts(), number - 99, "{cut:?}");
        match cut {
            // The server works on it with nobody there; the same request again waits for it, or is the first to come.
            Cut::Request(length) if *length == request => {}
            Cut::Request(_) => assert!(!landed(&database, number), "{cut:?}"),
            Cut::Answer(_) => assert!(landed(&database, number), "{cut:?}"),
        }
        append(&worker, number).expect("an answer").expect(201);
        assert!(landed(&database, number), "{cut:?}");
    }
    // Those that nobody waited for are not there twice a little later.
    assert!(shim.terminate());
    until("all work is done", || {
        database.psql("postgres", "select count(*) from pg_stat_activity where datname = current_database() and usename = 'kslate_server'") == "0"
    });
    let all = database.psql(
        "postgres",
        "select count(*), count(distinct value) from kslate.entry",
    );
    let count = places.len() + 2;
    assert_eq!(all, format!("{count}|{count}"));
}

#[test]
fn between_server_and_database() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    let folder = cluster.dir().join("proxy");
    let proxy = Proxy::of_database(cluster.socket(), &folder);
    let url = database.at(&folder).url("kslate_server");
    let shim = Shim::start_with(
        &database,
        KEYS,
        &[("DATABASE_URL", &url), ("KSLATE_POOL", "1")],
    );
    shim.api("diag-token")
        .put("/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let worker = shim.api("w1-token");
    // The first one prepares the statement.
    append(&worker, 998).expect("an answer").expect(201);
    let before = proxy.passed();
    append(&worker, 999).expect("an answer").expect(201);
    let places = places(&proxy, before);
    for (number, cut) in places.iter().enumerate() {
        let number = number + 100;
        proxy.cut(*cut);
        let answer = append(&worker, number).expect("the server answers");
        assert_eq!(proxy.cuts(), number - 99, "{cut:?}");
        answer.refused(503, "UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), Some("1"));
        // Whether all of it had come is more than the server can know.
        assert!(
            answer
                .text()
                .contains("whether the change was made is unknown"),
            "{cut:?}: {}",
            answer.text()
        );
        if matches!(cut, Cut::Answer(_)) {
            assert!(landed(&database, number), "{cut:?}");
        }
        append(&worker, number).expect("an answer").expect(201);
        assert!(landed(&database, number), "{cut:?}");
        // The connection of the second request has prepared the statement: the next one's bytes are as counted.
    }
    let all = database.psql(
        "postgres",
        "select count(*), count(distinct value) from kslate.entry",
    );
    let count = places.len() + 2;
    assert_eq!(all, format!("{count}|{count}"));
}
