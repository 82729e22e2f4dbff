//! The database is killed again and again under eight writers; the writers' own list of what was acknowledged is then compared
//! with history, row by row. The server in between stays the same process and recovers by itself.

mod compare;
mod writer;

use compare::{compare, consistent, rows};
use kslate_tests::{bash, until, Cluster, Shim};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use writer::{Attempt, Counts, Writer, RECORDS};

const WRITERS: usize = 8;
const KILLS: usize = 10;
const MIN_ACKNOWLEDGED: usize = 2_000;
const MIN_UNANSWERED: usize = 10;

const CLASS: &str = "
class: crash
roles: { writer: [\"apikey:writer/*\"], holder: [apikey:holder] }
fields:
  plan: { mode: cas, write: [writer] }
  note: { mode: lww, write: [writer] }
  log:  { mode: append, write: [writer] }
  job:  { mode: task, write: [writer] }
  kept: { mode: task, write: [holder] }
";

/// A number from 0 to `below`, from a simple generator whose seed is printed.
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

/// Not the postmaster alone, whose children would still finish what they are at: every process of the server.
fn kill_all(cluster: &Cluster) {
    let killed = bash(
        "home=$(scripts/cluster home \"$DIR\"); read -r all <\"$home/data/postmaster.pid\"
         for process in /proc/[0-9]*; do
           if [[ $(readlink \"$process/cwd\") == \"$home/data\" ]]; then all+=\" ${process#/proc/}\"; fi
         done
         kill -9 $all || true",
        &[("DIR", &cluster.dir().display().to_string())],
    );
    assert!(killed.status.success(), "{killed:?}");
}

/// Ten kills, each at a random moment once the writers are well under way again.
fn kill_again_and_again(cluster: &Cluster, counts: &Counts) {
    let mut seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_nanos() as u64 | 1);
    println!("seed {seed}");
    let mut kills = 0;
    while kills < KILLS || counts.unanswered.load(Ordering::Relaxed) < MIN_UNANSWERED {
        assert!(kills < 5 * KILLS, "{kills} kills and hardly any unanswered");
        let before = counts.acknowledged.load(Ordering::Relaxed);
        until("the writers are under way again", || {
            counts.acknowledged.load(Ordering::Relaxed) > before + 50
        });
        std::thread::sleep(Duration::from_millis(random(&mut seed, 400)));
        if kills % 2 == 0 {
            cluster.kill9();
        } else {
            kill_all(cluster);
        }
        kills += 1;
        cluster.start_again();
    }
    until("enough is acknowledged", || {
        counts.acknowledged.load(Ordering::Relaxed) >= MIN_ACKNOWLEDGED
    });
}

#[test]
fn ten_kills_lose_no_acknowledged_change() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    database.psql(
        "kslate",
        &format!("select from kslate_class_apply($class${CLASS}$class$)"),
    );
    let keys: String = (0..WRITERS)
        .map(|number| format!("t{number}: writer/{number}\n"))
        .chain(["holder: holder\n".to_string()])
        .collect();
    let shim = Shim::start_with(&database, &keys, &[("KSLATE_LOG", "warn")]);
    let holder = shim.api("holder");
    for record in RECORDS {
        let path = format!("/v1/records/{record}");
        shim.api("t0").put(&path, "{}").expect(201);
    }
    let kept = format!("/v1/records/{}/fields/kept", RECORDS[0]);
    let lease = holder
        .post(&format!("{kept}/claim"), r#"{"lease_seconds": 3600}"#)
        .expect(200);
    let lease_row =
        "select row_to_json(c) from kslate.claim c where field = 'kept' order by record";
    let lease_before = database.psql("kslate", lease_row);

    let counts = Counts::default();
    let writers: Vec<Writer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|number| Writer::new(number, shim.api(&format!("t{number}")), &counts))
            .map(|writer| scope.spawn(|| writer.run()))
            .collect();
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            kill_again_and_again(&cluster, &counts);
        }));
        counts.stop.store(true, Ordering::Relaxed);
        let writers = threads
            .into_iter()
            .map(|thread| thread.join().expect("a writer does not panic"))
            .collect();
        killed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        writers
    });
    println!(
        "{} acknowledged, {} unanswered",
        counts.acknowledged.load(Ordering::Relaxed),
        counts.unanswered.load(Ordering::Relaxed)
    );

    // The same process, and well.
    shim.anonymous().get("/readyz").expect(200);
    let wrong: Vec<&String> = writers.iter().flat_map(|writer| &writer.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{}", shim.log());

    let history = rows(
        &database,
        "select row_to_json(h) from kslate.history h order by record, record_version",
    );
    let attempts: Vec<Attempt> = writers.into_iter().flat_map(|w| w.attempts).collect();
    compare(&history, &attempts);
    consistent(&database, &history);

    // The lease that was under way through all of it.
    assert_eq!(database.psql("kslate", lease_row), lease_before);
    let again = format!("{kept}/claim");
    let held = holder.post(&again, "{}").refused(409, "HELD");
    assert_eq!(held["expires_at"], lease["expires_at"]);
    let body = json!({"claim_id": lease["claim_id"], "lease_seconds": 60}).to_string();
    let renewed = holder.post(&format!("{kept}/renew"), body).expect(200);
    assert_eq!(renewed["epoch"], lease["epoch"]);
}
