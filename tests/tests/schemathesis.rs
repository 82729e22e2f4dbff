//! schemathesis against the server's own OpenAPI document: no 5xx, no answer that the document does not describe, no malformed
//! request accepted, and enough of each operation done with success.

use kslate_tests::{bash, root, Cluster, Shim};
use serde_json::Value;
use std::fs;

/// The tester holds every role of the class that is played with, and may apply classes.
const KEYS: &str = "tester-token: { identity: tester, admin: true }\n";
const LEAST_CASES: u64 = 5_000;
const LEAST_DONE: u64 = 50;

#[test]
fn the_server_keeps_to_its_document() {
    let cluster = Cluster::shared();
    let database = cluster.fresh_database();
    // What a crash would leave is no matter here, and waiting for the disk is most of the time.
    database.psql(
        "postgres",
        &format!(
            "alter database {} set synchronous_commit = off",
            database.name()
        ),
    );
    let shim = Shim::start_with(&database, KEYS, &[("KSLATE_LOG", "warn")]);
    let class = fs::read_to_string(root().join("tests/schemathesis/surface.yaml"))
        .expect("the class to play with");
    let tester = shim.api("tester-token");
    tester.put("/v1/classes/surface", class).expect(200);
    let document = tester.get("/openapi.json").expect(200);

    let counts = cluster.dir().join("counts.json").display().to_string();
    let played = bash(
        "tests/schemathesis/run",
        &[
            ("KSLATE_SERVER", &shim.url()),
            ("KSLATE_APIKEY", "tester-token"),
            ("COUNTS", &counts),
        ],
    );
    let told = String::from_utf8_lossy(&played.stdout);
    let complained = String::from_utf8_lossy(&played.stderr);
    assert!(
        played.status.success(),
        "schemathesis found something:\n{told}\n{complained}\n{}",
        shim.log()
    );

    let counts: Value =
        serde_json::from_str(&fs::read_to_string(&counts).expect("the counts")).expect("JSON");
    let mut total = 0;
    let mut too_few = Vec::new();
    for operation in operations(&document) {
        let (mut all, mut done) = (0, 0);
        let mut refused = Vec::new();
        for (status, count) in counts[&operation].as_object().into_iter().flatten() {
            let count = count.as_u64().unwrap_or_default();
            assert!(
                !status.starts_with('5'),
                "{operation}: {count} times {status}"
            );
            all += count;
            if status.starts_with('2') {
                done += count;
            } else {
                refused.push(format!("{count} × {status}"));
            }
        }
        println!(
            "{operation:<18} {done:>5} of {all:>5} answers are 2xx; {}",
            refused.join(", ")
        );
        total += all;
        if done < LEAST_DONE {
            too_few.push(operation);
        }
    }
    println!("{total} cases");
    assert!(too_few.is_empty(), "fewer than {LEAST_DONE}: {too_few:?}");
    assert!(total >= LEAST_CASES, "{total} cases");
}

fn operations(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, methods)| methods.as_object().into_iter().flatten());
    operations
        .filter_map(|(_, operation)| operation["operationId"].as_str().map(str::to_owned))
        .collect()
}
