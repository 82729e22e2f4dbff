//! The order of claim next, and what its filter matches.

use kslate_tests::crew::{claim_id, Crew};
use kslate_tests::{until_async, Cluster, Session, Shim, KEYS};
use serde_json::{json, Value};

const NEXT: &str = "'incidents', 'remediation'";

/// Records by these names, created in this order.
async fn created(names: &[String]) -> Crew {
    let crew = Crew::on(Cluster::shared().fresh_database()).await;
    for name in names {
        crew.diagnoser
            .ok("create", &format!("'incidents/{name}'"))
            .await;
    }
    crew
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

async fn next(session: &Session, more: &str) -> Option<Value> {
    let rows = session.rows("claim_next", &format!("{NEXT}{more}")).await;
    rows.expect("an answer").pop()
}

/// The key of a granted record.
fn key(granted: &Value) -> String {
    let record = granted["record"].as_str().expect("a record");
    record.trim_start_matches("incidents/").to_string()
}

async fn end(session: &Session, how: &str, granted: &Value) {
    let arguments = format!(
        "'incidents/{}', 'remediation', {}",
        key(granted),
        claim_id(granted)
    );
    session.ok(how, &arguments).await;
}

/// All that is free, in the order it is granted.
async fn all(session: &Session) -> Vec<String> {
    let mut order = Vec::new();
    while let Some(granted) = next(session, ", 3600").await {
        order.push(key(&granted));
    }
    order
}

#[tokio::test]
async fn one_worker_meets_them_as_they_were_queued() {
    let crew = created(&names(&["m", "z", "a", "B", "10", "9"])).await;
    let mut granted = Vec::new();
    for _ in 0..4 {
        granted.push(next(&crew.worker, "").await.expect("one is free"));
    }
    let keys: Vec<String> = granted.iter().map(key).collect();
    assert_eq!(keys, ["m", "z", "a", "B"], "as they were created");
    // Back into the queue, behind all others: by release, by reopen, by a hand, by a new record.
    end(&crew.worker, "release", &granted[2]).await;
    end(&crew.worker, "complete", &granted[0]).await;
    end(&crew.worker, "complete", &granted[3]).await;
    crew.worker
        .ok("reopen", "'incidents/B', 'remediation'")
        .await;
    crew.diagnoser.ok("create", "'incidents/0'").await;
    crew.dba
        .run("update kslate.claim set state = 'open' where record = 'incidents/z'")
        .await;
    crew.dba
        .run("insert into kslate.record (record) values ('incidents/00')")
        .await;
    crew.worker
        .ok("reopen", "'incidents/m', 'remediation'")
        .await;
    // A write, a checkpoint and a renewal move nobody in the queue.
    crew.diagnoser
        .ok("write", "'incidents/10', 'hypotheses', '1', 0")
        .await;
    assert_eq!(
        all(&crew.worker).await,
        ["10", "9", "a", "B", "0", "z", "00", "m"]
    );
    assert_eq!(
        next(&crew.worker, "").await,
        None,
        "nothing free is an answer"
    );
    crew.consistent().await;
}

/// Claims of so many records that all run out, renewed in the reverse order: the one claimed last runs out first.
async fn renewed_backwards(count: usize) -> Crew {
    let all: Vec<String> = (0..count).map(|number| format!("n-{number:02}")).collect();
    let crew = created(&all).await;
    let mut granted = Vec::new();
    for _ in 0..count {
        granted.push(next(&crew.worker, ", 2").await.expect("one is free"));
    }
    for granted in granted.iter().rev() {
        let arguments = format!(
            "'incidents/{}', 'remediation', {}, 3",
            key(granted),
            claim_id(granted)
        );
        crew.worker.ok("renew", &arguments).await;
    }
    let stale = crew
        .dba
        .run("select count(*) from kslate.claim where recheck_at < expires_at")
        .await;
    assert_eq!(stale, count.to_string(), "renewals leave recheck_at alone");
    crew
}

async fn all_lapse(crew: &Crew) {
    until_async("all leases run out", || async {
        crew.dba.run("select bool_and(expires_at < clock_timestamp()) from kslate.claim where state = 'claimed'").await == "t"
    })
    .await;
}

#[tokio::test]
async fn the_longest_lapsed_first_whatever_was_renewed() {
    // One call moves up twenty entries of the queue at most.
    for count in [5, 20, 21, 45] {
        let crew = renewed_backwards(count).await;
        crew.diagnoser.ok("create", "'incidents/open'").await;
        all_lapse(&crew).await;
        let mut wanted: Vec<String> = (0..count)
            .rev()
            .map(|number| format!("n-{number:02}"))
            .collect();
        wanted.push("open".to_string());
        assert_eq!(all(&crew.other).await, wanted, "{count} that were renewed");
        let takeovers = "select count(*) from kslate.history where op = 'takeover' and took_over_from = 'apikey:remediator/worker-1'";
        assert_eq!(crew.dba.run(takeovers).await, count.to_string());
        crew.consistent().await;
    }
}

/// Leases that were renewed and live stand before the one that has lapsed: it is found all the same, and before an open one.
#[tokio::test]
async fn a_lapsed_one_behind_many_that_were_renewed() {
    for filter in ["", r#", 60, '{"status": "open"}'"#] {
        for open in [false, true] {
            let crew = renewed_backwards(45).await;
            crew.diagnoser.ok("create", "'incidents/late'").await;
            let late = next(&crew.worker, ", 2").await.expect("one is free");
            assert_eq!(key(&late), "late");
            if open {
                crew.diagnoser.ok("create", "'incidents/open'").await;
            }
            // All but that one are renewed for good; in the queue they are due before it.
            let ids = crew.dba.run("select record, claim_id from kslate.claim where state = 'claimed' and record <> 'incidents/late'").await;
            for line in ids.lines() {
                let (record, id) = line.split_once('|').expect("two columns");
                let arguments = format!("'{record}', 'remediation', '{id}', 3600");
                crew.worker.ok("renew", &arguments).await;
            }
            crew.dba.sees_lapse("incidents/late", "remediation").await;
            let granted = next(&crew.other, filter).await;
            assert_eq!(
                granted.as_ref().map(key).as_deref(),
                Some("late"),
                "filter {filter:?}, another open: {open}"
            );
            let rest = next(&crew.other, filter).await;
            assert_eq!(rest.as_ref().map(key), open.then(|| "open".to_string()));
            crew.consistent().await;
        }
    }
}

/// What a filter leaves of five records, by their keys.
#[tokio::test]
async fn what_a_filter_matches() {
    let crew = created(&names(&["a", "b", "c", "d", "e"])).await;
    for (record, value) in [
        ("a", r#"{"x": 1, "y": [1, 2]}"#),
        ("b", r#""1""#),
        ("c", "1.0"),
        ("d", "[1, 2]"),
    ] {
        crew.diagnoser
            .ok(
                "write",
                &format!("'incidents/{record}', 'hypotheses', '{value}', 0"),
            )
            .await;
    }
    for record in ["b", "c"] {
        crew.diagnoser
            .ok(
                "write",
                &format!("'incidents/{record}', 'status', '\"mitigating\"', 1"),
            )
            .await;
    }
    let done = crew
        .worker
        .ok("claim", "'incidents/e', 'remediation'")
        .await;
    end(&crew.worker, "release", &done).await;
    for (filter, wanted) in [
        ("{}", "abcde"),
        // A value, equal as jsonb: not the text, but the number or the object.
        (r#"{"status": "open"}"#, "ade"),
        (r#"{"hypotheses": 1}"#, "c"),
        (r#"{"hypotheses": 1.00}"#, "c"),
        (r#"{"hypotheses": "1"}"#, "b"),
        (r#"{"hypotheses": {"y": [1, 2], "x": 1.0}}"#, "a"),
        (r#"{"hypotheses": {"x": 1}}"#, ""),
        // Any of a list; a list is a value within a list.
        (r#"{"hypotheses": [1, "1"]}"#, "bc"),
        (r#"{"hypotheses": [[1, 2]]}"#, "d"),
        (r#"{"hypotheses": []}"#, ""),
        // Never written counts as null.
        (r#"{"hypotheses": null}"#, "e"),
        (r#"{"hypotheses": [null, 1]}"#, "ce"),
        // All must hold.
        (r#"{"status": "mitigating", "hypotheses": 1}"#, "c"),
        (r#"{"status": "open", "hypotheses": 1}"#, ""),
        (
            r#"{"status": ["open", "mitigating"], "hypotheses": [null, "1"], "planned_action": null}"#,
            "be",
        ),
        // The task's own value.
        (r#"{"remediation": null}"#, "abcde"),
    ] {
        let mut found = Vec::new();
        while let Some(granted) = next(&crew.worker, &format!(", 3600, '{filter}'")).await {
            found.push(granted);
        }
        let mut keys: Vec<String> = found.iter().map(key).collect();
        keys.sort();
        assert_eq!(keys.concat(), wanted, "{filter}");
        for granted in &found {
            end(&crew.worker, "release", granted).await;
        }
    }
    for (filter, error, field) in [
        (
            r#"{"actions_taken": []}"#,
            "MALFORMED",
            json!("actions_taken"),
        ),
        (r#"{"nope": 1}"#, "NOT_FOUND", json!("nope")),
        (
            r#"{"status": "open", "nope": 1}"#,
            "NOT_FOUND",
            json!("nope"),
        ),
        ("[]", "MALFORMED", Value::Null),
        ("null", "MALFORMED", Value::Null),
        ("\"status\"", "MALFORMED", Value::Null),
    ] {
        let refused = crew
            .worker
            .refused(error, "claim_next", &format!("{NEXT}, 60, '{filter}'"))
            .await;
        assert_eq!(refused["field"], field, "{filter}: {refused}");
    }
    crew.consistent().await;
}

#[test]
fn over_http() {
    let database = Cluster::shared().fresh_database();
    let keys = format!("{KEYS}ver-token: verifier\nplan-token: planner\nmig-token: migrator\n");
    let shim = Shim::start(&database, &keys);
    let (diagnoser, worker) = (shim.api("diag-token"), shim.api("w1-token"));
    let path = "/v1/classes/incidents/claim";
    let body = r#"{"field": "remediation", "filter": {"status": ["open"]}, "lease_seconds": 60}"#;
    assert_eq!(
        worker.post(path, body).expect(200),
        json!({ "record": null })
    );
    diagnoser.put("/v1/records/incidents/a", "{}").expect(201);
    let granted = worker.post(path, body).expect(200);
    assert_eq!(
        (&granted["record"], &granted["lease_seconds"]),
        (&json!("incidents/a"), &json!(60))
    );
    assert_eq!(worker.post(path, body).text(), r#"{"record":null}"#);
    let append = r#"{"field": "remediation", "filter": {"actions_taken": []}}"#;
    worker.post(path, append).refused(400, "MALFORMED");
    // A filter tells nothing of a field that one may not read.
    let hint = r#"{"field": "verification", "filter": {"credentials_hint": "x"}}"#;
    let refused = shim
        .api("ver-token")
        .post("/v1/classes/migrations/claim", hint)
        .refused(403, "SCOPE_DENIED");
    assert_eq!(refused["field"], "credentials_hint");
    let hint = r#"{"field": "move", "filter": {"credentials_hint": null}}"#;
    shim.api("plan-token")
        .put("/v1/records/migrations/m-1", r#"{"evidence": "e"}"#)
        .expect(201);
    let granted = shim
        .api("mig-token")
        .post("/v1/classes/migrations/claim", hint)
        .expect(200);
    assert_eq!(granted["record"], "migrations/m-1");
}
