//! Claim next in a crowd: each task is granted once, a filter holds at the moment of the grant, and nobody waits for a
//! transaction that sits idle.

use kslate_tests::crew::{claim_id, Crew};
use kslate_tests::Session;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NEXT: &str = "'incidents', 'remediation'";

/// A database with so many records, and no more.
async fn stocked(records: u32) -> Crew {
    let crew = Crew::on(kslate_tests::Cluster::shared().fresh_database()).await;
    crew.dba
        .run(&format!(
            "insert into kslate.record (record) select 'incidents/n-' || n from generate_series(1, {records}) n"
        ))
        .await;
    crew
}

async fn sessions(crew: &Crew, workers: usize) -> Vec<Arc<Session>> {
    let mut sessions = Vec::new();
    for worker in 0..workers {
        sessions.push(Session::agent(&crew.database, &format!("remediator/{worker}")).await);
    }
    sessions
}

/// Takes tasks until there is none, and completes every second one; gives record and claim_id of each.
async fn work(session: Arc<Session>, arguments: String) -> Vec<(String, String)> {
    let mut taken = Vec::new();
    loop {
        let rows = session
            .rows("claim_next", &arguments)
            .await
            .expect("an answer");
        let Some(row) = rows.first() else {
            return taken;
        };
        let record = row["record"].as_str().expect("a record").to_string();
        if taken.len() % 2 == 1 {
            let arguments = format!("'{record}', 'remediation', {}", claim_id(row));
            session.ok("complete", &arguments).await;
        }
        taken.push((record, claim_id(row)));
    }
}

/// All work until nothing is free for any of them; gives who took which record. Each was granted once, and history says so too.
async fn drain(
    crew: &Crew,
    sessions: Vec<Arc<Session>>,
    arguments: &str,
) -> BTreeMap<String, usize> {
    let mut taken = BTreeMap::new();
    loop {
        let working: Vec<_> = sessions
            .iter()
            .map(|session| tokio::spawn(work(session.clone(), arguments.to_string())))
            .collect();
        let mut more = false;
        for (worker, work) in working.into_iter().enumerate() {
            for (record, _) in work.await.expect("no panic") {
                more = true;
                let twice = taken.insert(record.clone(), worker);
                assert_eq!(twice, None, "{record} was granted twice");
            }
        }
        // A worker also stops where all that is left is locked by others for a moment.
        if !more {
            break;
        }
    }
    let told = crew
        .dba
        .run("select record, author, epoch from kslate.history where op in ('claim', 'takeover', 'reattach')")
        .await;
    let history: Vec<&str> = told.lines().collect();
    assert_eq!(history.len(), taken.len());
    for line in history {
        let parts: Vec<&str> = line.split('|').collect();
        let worker = format!("apikey:remediator/{}", taken[parts[0]]);
        assert_eq!(parts[1..], [worker.as_str(), "1"], "{line}");
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_workers_drain_two_thousand_records() {
    let crew = stocked(2_000).await;
    let sessions = sessions(&crew, 200).await;
    let taken = drain(&crew, sessions, &format!("{NEXT}, 3600")).await;
    assert_eq!(taken.len(), 2_000);
    assert_eq!(
        crew.dba
            .run("select count(*) from kslate.claim where state = 'open'")
            .await,
        "0"
    );
    crew.consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_workers_with_filters_take_each_task_once() {
    let crew = stocked(200).await;
    crew.dba
        .run("update kslate.field set value = '\"mitigating\"' where field = 'status' and substr(record, 13)::int % 2 = 0")
        .await;
    let filter = r#"{"status": ["mitigating", "resolved"], "hypotheses": null}"#;
    let sessions = sessions(&crew, 40).await;
    let taken = drain(&crew, sessions, &format!("{NEXT}, 3600, '{filter}'")).await;
    assert_eq!(taken.len(), 100);
    assert!(taken
        .keys()
        .all(|record| record.ends_with(['0', '2', '4', '6', '8'])));
    crew.consistent().await;
}

/// Writers change what the filter asks for while the claims are under way. All changes of a record are in one order, so history
/// tells what stood there at each grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_filter_holds_at_the_moment_of_the_grant() {
    let crew = Arc::new(stocked(12).await);
    let finish = Instant::now() + Duration::from_secs(8);
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let session = Session::agent(&crew.database, "diagnoser").await;
        tasks.push(tokio::spawn(async move {
            let mut round = writer;
            while Instant::now() < finish {
                round += 1;
                let record = format!("incidents/n-{}", round % 12 + 1);
                let value = if round / 12 % 2 == 0 {
                    "mitigating"
                } else {
                    "open"
                };
                let version = session
                    .ok("fields", &format!("'{record}', array['status']"))
                    .await;
                let arguments = format!(
                    "'{record}', 'status', '\"{value}\"', {}",
                    version["version"]
                );
                if let Err(refused) = session.call("write", &arguments).await {
                    refused.is("VERSION_CONFLICT");
                }
            }
        }));
    }
    for worker in 0..6 {
        let session = Session::agent(&crew.database, &format!("remediator/{worker}")).await;
        tasks.push(tokio::spawn(async move {
            let next = format!("{NEXT}, 60, '{{\"status\": \"open\"}}'");
            while Instant::now() < finish {
                let rows = session.rows("claim_next", &next).await.expect("an answer");
                if let Some(row) = rows.first() {
                    let record = row["record"].as_str().expect("a record");
                    let arguments = format!("'{record}', 'remediation', {}", claim_id(row));
                    session.ok("release", &arguments).await;
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let told = crew
        .dba
        .run(
            "select count(*), count(*) filter (where status <> '\"open\"') from (
               select (select coalesce(s.value -> 'status', s.value) from kslate.history s
                       where s.record = c.record and s.record_version < c.record_version and (s.field = 'status' or s.op = 'create')
                       order by s.record_version desc limit 1) as status
               from kslate.history c where c.op = 'claim') grants",
        )
        .await;
    let (grants, wrong) = told.split_once('|').expect("two numbers");
    assert_eq!(wrong, "0", "of {grants} grants did not match the filter");
    assert!(
        grants.parse::<u32>().expect("a number") > 100,
        "{grants} grants"
    );
    crew.consistent().await;
}

/// What an idle transaction may hold of the record that would be next.
const HOLDS: [(&str, &str); 7] = [
    ("the record's row", "select from kslate.record where record = 'incidents/n-1' for update"),
    ("the claim's row", "select from kslate.claim where record = 'incidents/n-1' for update"),
    ("the record, shared", "select from kslate.record where record = 'incidents/n-1' for share"),
    ("a write", "select from kslate_write('incidents/n-1', 'hypotheses', '1', 0, identity => 'apikey:diagnoser')"),
    ("a claim", "select from kslate_claim('incidents/n-1', 'remediation', identity => 'apikey:remediator')"),
    ("a claim next", "select from kslate_claim_next('incidents', 'remediation', identity => 'apikey:remediator')"),
    ("a hand's change", "update kslate.claim set reason = 'mine' where record = 'incidents/n-1'"),
];

const SOON: Duration = Duration::from_millis(100);

#[tokio::test]
async fn nobody_waits_for_an_idle_transaction() {
    for lapsed in [false, true] {
        for filter in ["", r#", 60, '{"status": "open"}'"#] {
            let crew = stocked(3).await;
            if lapsed {
                // The one that comes first for that reason.
                let claim = "'incidents/n-1', 'remediation'";
                crew.worker.ok("claim", claim).await;
                crew.dba.lapse("incidents/n-1", "remediation").await;
            }
            let gateway = Session::login(&crew.database, "kslate_server").await;
            for (what, held) in HOLDS {
                let about = format!("{what}, lapsed {lapsed}, filter {filter:?}");
                let holder = if held.contains("identity") {
                    &gateway
                } else {
                    &crew.dba
                };
                holder.run(&format!("begin; {held}")).await;
                let mut soon = false;
                // The machine may be busy: one round of calls must be quick. A call that waits waits eight seconds, every time.
                for _ in 0..5 {
                    let mut slowest = Duration::ZERO;
                    for _ in 0..5 {
                        let (took, record) = timed(&crew, filter).await;
                        slowest = slowest.max(took);
                        let record = record.expect("two are free");
                        assert_ne!(record["record"], "incidents/n-1", "{about}");
                        let (took, nothing) = {
                            let other = timed(&crew, filter).await.1.expect("one is free");
                            let none = timed(&crew, filter).await;
                            back(&crew, &other).await;
                            none
                        };
                        slowest = slowest.max(took);
                        assert_eq!(nothing, None, "{about}");
                        back(&crew, &record).await;
                    }
                    soon = slowest < SOON;
                    if soon {
                        break;
                    }
                }
                assert!(soon, "{about}: no round had all calls within {SOON:?}");
                holder.run("rollback").await;
            }
            // Free again, and first again.
            let (_, record) = timed(&crew, filter).await;
            assert_eq!(record.expect("one is free")["record"], "incidents/n-1");
            crew.consistent().await;
        }
    }
}

/// One call, how long it took, and what it granted.
async fn timed(crew: &Crew, filter: &str) -> (Duration, Option<Value>) {
    let begun = Instant::now();
    let rows = crew
        .other
        .rows("claim_next", &format!("{NEXT}{filter}"))
        .await;
    (begun.elapsed(), rows.expect("an answer").pop())
}

async fn back(crew: &Crew, granted: &Value) {
    let record = granted["record"].as_str().expect("a record");
    let arguments = format!("'{record}', 'remediation', {}", claim_id(granted));
    crew.other.ok("release", &arguments).await;
}
