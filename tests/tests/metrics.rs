//! /metrics counts what happened, and tells how many claims are held.

use kslate_tests::{until, Cluster, Database, Shim, KEYS};

const RECORD: &str = "/v1/records/incidents/inc-1";

fn metric(shim: &Shim, name: &str) -> Option<String> {
    let text = shim.anonymous().get("/metrics").text();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name} ")))?;
    line.split(' ').nth(1).map(str::to_owned)
}

fn lapse(database: &Database) {
    database.psql(
        "kslate",
        "update kslate.claim set expires_at = clock_timestamp() - interval '1 s' where state = 'claimed'",
    );
}

#[test]
fn what_is_counted() {
    let database = Cluster::shared().fresh_database();
    let shim = Shim::start(&database, KEYS);
    let (diagnoser, first, second) = (
        shim.api("diag-token"),
        shim.api("w1-token"),
        shim.api("w2-token"),
    );
    diagnoser.put(RECORD, "{}").expect(201);
    let claim = format!("{RECORD}/fields/remediation/claim");
    let granted = first.post(&claim, "{}").expect(200);
    second.post(&claim, "{}").refused(409, "HELD");
    lapse(&database);
    second.post(&claim, "{}").expect(200);
    let renew = format!("{{\"claim_id\": {}}}", granted["claim_id"]);
    first
        .post(&format!("{RECORD}/fields/remediation/renew"), renew)
        .refused(409, "LEASE_LOST");
    diagnoser
        .put(
            &format!("{RECORD}/fields/status"),
            r#"{"value": "resolved", "expected_version": 1}"#,
        )
        .refused(422, "INVALID_CHECKPOINT");
    // An invalid checkpoint that is not the gate's.
    first
        .put(&format!("{RECORD}/checkpoint"), r#"{"document": {}}"#)
        .refused(422, "INVALID_CHECKPOINT");

    for name in [
        "kslate_held_refusals_total",
        "kslate_takeovers_total",
        "kslate_lease_lost_total",
        "kslate_gate_refusals_total",
        "kslate_claims_held",
    ] {
        assert_eq!(metric(&shim, name).as_deref(), Some("1"), "{name}");
    }
    assert_eq!(
        metric(&shim, "kslate_pool_connections_max").as_deref(),
        Some("16")
    );
    let text = shim.anonymous().get("/metrics").text();
    for line in [
        r#"kslate_http_requests_total{method="POST",route="/v1/records/{class}/{key}/fields/{field}/claim",status="200"} 2"#,
        r#"kslate_http_requests_total{method="POST",route="/v1/records/{class}/{key}/fields/{field}/claim",status="409"} 1"#,
        r#"kslate_http_request_seconds_bucket{route="/v1/records/{class}/{key}/fields/{field}/claim",le="+Inf"} 3"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    lapse(&database);
    until("a lapsed lease is no claim held", || {
        metric(&shim, "kslate_claims_held").as_deref() == Some("0")
    });
}

#[test]
fn claims_held_while_the_database_is_away() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let shim = Shim::start(&database, KEYS);
    assert_eq!(metric(&shim, "kslate_claims_held").as_deref(), Some("0"));
    cluster.stop();
    until("the number goes with the database", || {
        metric(&shim, "kslate_claims_held").is_none()
    });
    assert!(metric(&shim, "kslate_pool_connections_max").is_some());
    cluster.start_again();
    until("and comes back", || {
        metric(&shim, "kslate_claims_held").is_some()
    });
}
