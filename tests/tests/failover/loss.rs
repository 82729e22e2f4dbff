//! Synchronous replication: nothing acknowledged is lost with the primary.

use crate::{both, signal, synchronous, waiting};
use kslate_tests::ledger::{self, Counts, Load, Patience};
use kslate_tests::{assert_consistent, until, Cluster, Shim};
use std::time::{Duration, Instant};

const WRITERS: usize = 8;
const BACK_WITHIN: Duration = Duration::from_secs(10);

/// Eight writers, each on a record of its own, so that no rule has a reason to refuse one of them.
fn lose_the_primary(level: &str) {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let records: Vec<String> = (0..WRITERS).map(|n| format!("ledger/r{n}")).collect();
    ledger::prepare(
        &database,
        &records.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let standby = synchronous(&cluster, &database, level);
    let copy = standby.database(&database);

    // Before the promotion the standby reads, for a server of its own, and refuses what would change something.
    let reader = Shim::start_with(
        &database,
        "t0: writer/0\n",
        &[("DATABASE_URL", &copy.url("kslate_server"))],
    );
    until("the standby has the records", || {
        reader.api("t0").get("/v1/records/ledger/r7").status == 200
    });
    let refused = reader
        .api("t0")
        .put("/v1/records/ledger/r0/fields/note", r#"{"value": 1}"#);
    refused.refused(503, "UNAVAILABLE");
    assert!(refused.header("retry-after").is_some());

    let url = both(&database, &standby);
    let shim = Shim::start_with(
        &database,
        &ledger::keys(WRITERS),
        &[("DATABASE_URL", &url), ("KSLATE_LOG", "warn")],
    );
    let load = Load::new(
        shim.address(),
        WRITERS,
        |number| vec![records[number].clone()],
        Patience::Always,
    );
    let more = |counts: &Counts, than: usize| {
        until("the writers go on", || counts.acknowledged() > than);
    };
    let mut back = Duration::ZERO;
    let told = load.run(|counts| {
        more(counts, 400);
        // At its end some have committed what the standby does not have and must not be told so.
        let receiver = standby.receiver(&database).expect("it follows");
        signal("STOP", &receiver);
        until("commits wait for the standby", || {
            !waiting(&database).is_empty()
        });
        cluster.kill9_all();
        signal("CONT", &receiver);
        until("somebody was cut off", || counts.unknown() > 0);
        let before = counts.acknowledged();
        let promoted = Instant::now();
        standby.promote(&cluster);
        more(counts, before);
        back = promoted.elapsed();
        more(counts, before + 400);
    });
    let summary = ledger::judge(&ledger::history(&copy), &told.attempts)
        .unwrap_or_else(|violations| panic!("{level}: {violations:#?}"));
    println!(
        "{level}: {summary}; back {back:?} after the promotion began; answers {:?}",
        told.answers
    );
    assert!(back < BACK_WITHIN, "{back:?}");
    assert!(told.wrong.is_empty(), "{:?}", told.wrong);
    for answer in told.answers.keys() {
        assert!(
            ["200", "201", "503 UNAVAILABLE"].contains(&answer.as_str()),
            "{:?}",
            told.answers
        );
    }
    // Nobody was left in doubt, and somebody had been.
    assert!(summary.resolved > 0, "{summary}");
    assert_eq!(summary.landed + summary.lost, 0, "{summary}");
    shim.anonymous().get("/readyz").expect(200);
    assert!(shim.terminate(), "the server of before, to its end");
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(assert_consistent(&copy));
}

#[test]
fn nothing_acknowledged_is_lost_when_the_standby_has_applied_it() {
    lose_the_primary("remote_apply");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_standby_has_it_on_disk() {
    lose_the_primary("on");
}
