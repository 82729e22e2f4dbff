//! Thirty kills and more, and what lies between them.

use kslate_tests::ledger::{self, Counts, Load, Patience};
use kslate_tests::{
    assert_consistent, bash, postgres_program, until, Cluster, Cut, Database, Proxy, Shim,
};
use serde_json::json;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WRITERS: usize = 12;
/// Fewer than the writers, so that some wait for a connection when the end comes.
const POOL: &str = "8";
/// And few records, so that others wait for each other's locks.
const RECORDS: [&str; 3] = ["ledger/a", "ledger/b", "ledger/c"];
/// One with a lease that is under way through all of it.
const KEPT: &str = "ledger/kept";
/// Kills that count: those that left at least one request with an unknown outcome.
const KILLS: usize = 30;
/// What is killed in turn: those that are up again soon more often.
const TURN: [usize; 6] = [0, 1, 2, 3, 1, 2];

/// `KSLATE_KILLS=300` makes an hour of it.
fn kills() -> usize {
    std::env::var("KSLATE_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"))
}

/// Numbers from a simple generator whose seed is printed.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = now.map_or(1, |since| since.as_nanos() as u64 | 1);
        println!("seed {seed}");
        Random(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What the faults are done to.
struct Stage<'s> {
    cluster: &'s Cluster,
    database: &'s Database<'s>,
    shim: Shim,
    clients: &'s Proxy,
    sessions: &'s Proxy,
    random: Random,
}

/// The server's sessions that are at work.
const AT_WORK: &str =
    "pg_stat_activity where datname = current_database() and usename = 'kslate_server' and state = 'active'";

fn send(signal: &str, process: &str) {
    let _ = bash(&format!("kill -{signal} {process}"), &[]);
}

impl Stage<'_> {
    /// Returns when the writers are under way again.
    fn under_way(&self, counts: &Counts) {
        let before = counts.acknowledged();
        until("the writers are under way", || {
            counts.acknowledged() > before + 30
        });
    }

    /// One session at work, if the database answers and there is one.
    fn session(&self) -> Option<String> {
        let told = self
            .database
            .try_psql("postgres", &format!("select pid from {AT_WORK} limit 1"));
        told.ok().filter(|told| !told.is_empty())
    }

    fn a_session(&self) -> String {
        let mut session = None;
        until("a session is at work", || {
            session = self.session();
            session.is_some()
        });
        session.unwrap_or_default()
    }

    fn postmaster(&self) -> String {
        let told = bash(
            "head -n 1 \"$(scripts/cluster home \"$DIR\")/data/postmaster.pid\"",
            &[("DIR", &self.cluster.dir().display().to_string())],
        );
        String::from_utf8_lossy(&told.stdout).trim().to_string()
    }

    /// kill -9 of all processes of the database, of the server, of one session, of the postmaster.
    fn kill(&mut self, kind: usize) {
        match kind {
            0 => {
                self.cluster.kill9_all();
                self.cluster.start_again();
            }
            1 => {
                self.shim.kill9();
                self.shim.start_again(self.database);
            }
            2 => send("KILL", &self.a_session()),
            _ => {
                self.cluster.kill9();
                self.cluster.start_again();
            }
        }
    }

    /// What is not a kill.
    fn disturb(&mut self, kind: usize, counts: &Counts) {
        match kind % 7 {
            0 => self.cut(self.clients, 900),
            1 => {
                let session = self.a_session();
                let sql = format!("select pg_terminate_backend({session})");
                let _ = self.database.try_psql("postgres", &sql);
            }
            2 => self.fill_the_pool(counts),
            3 => self.cut(self.sessions, 2_000),
            4 => self.pause(&self.a_session()),
            5 => self.pause(&self.postmaster()),
            _ => self.pause(&self.shim.process().to_string()),
        }
    }

    /// At a random byte, on the way there and on the way back in turn.
    fn cut(&mut self, proxy: &Proxy, bytes: u64) {
        let before = proxy.cuts();
        let after = self.random.below(bytes) as usize;
        proxy.cut(if before.is_multiple_of(2) {
            Cut::Request(after)
        } else {
            Cut::Answer(after)
        });
        until("something is cut", || proxy.cuts() > before);
    }

    /// Somebody sits on all records until the first client is told that the server is full.
    fn fill_the_pool(&self, counts: &Counts) {
        let before = counts.crowded();
        let _sitter = Sitter::on(self.database);
        until("the pool is full", || counts.crowded() > before);
    }

    fn pause(&self, process: &str) {
        send("STOP", process);
        std::thread::sleep(Duration::from_millis(300));
        send("CONT", process);
    }
}

/// A session that has locked every record, until it is dropped: then PostgreSQL finds its client gone.
struct Sitter(Child);

impl Sitter {
    fn on(database: &Database) -> Sitter {
        let mut child = Command::new(postgres_program("psql"))
            .args(["-XAtq", &database.url("postgres")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("psql starts");
        let input = child.stdin.as_mut().expect("it is piped");
        input
            .write_all(b"begin; select from kslate.record order by record for update;\n")
            .expect("psql reads");
        Sitter(child)
    }
}

impl Drop for Sitter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn thirty_kills_and_each_acknowledged_change_is_there_once() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    ledger::prepare(&database, &[&RECORDS[..], &[KEPT]].concat());
    let folder = cluster.dir().join("proxy");
    let sessions = Proxy::of_database(cluster.socket(), &folder);
    let url = database.at(&folder).url("kslate_server");
    let shim = Shim::start_with(
        &database,
        &ledger::keys(WRITERS),
        &[
            ("DATABASE_URL", &url),
            ("KSLATE_POOL", POOL),
            ("KSLATE_LOG", "error"),
        ],
    );
    let clients = Proxy::of_server(shim.address());
    let holder = shim.api("t0");
    let job = format!("/v1/records/{KEPT}/fields/job");
    let lease = holder
        .post(&format!("{job}/claim"), r#"{"lease_seconds": 3600}"#)
        .expect(200);
    let mut stage = Stage {
        cluster: &cluster,
        database: &database,
        shim,
        clients: &clients,
        sessions: &sessions,
        random: Random::new(),
    };
    let all = |_| RECORDS.map(str::to_string).to_vec();
    let load = Load::new(clients.address(), WRITERS, all, Patience::Tries);
    let (mut counted, mut cycles) = ([0; 4], 0);
    let begun = Instant::now();
    let told = load.run(|counts| {
        while counted.iter().sum::<usize>() < kills() {
            assert!(cycles < 3 * kills(), "{counted:?} of {cycles}");
            stage.under_way(counts);
            if cycles % 2 == 0 {
                stage.disturb(cycles / 2, counts);
                stage.under_way(counts);
            }
            let moment = stage.random.below(60);
            std::thread::sleep(Duration::from_millis(moment));
            let before = counts.unknown();
            let kind = TURN[cycles % TURN.len()];
            stage.kill(kind);
            stage.under_way(counts);
            counted[kind] += usize::from(counts.unknown() > before);
            cycles += 1;
        }
    });
    let took = begun.elapsed();
    let held = holder
        .post(&format!("{job}/claim"), "{}")
        .refused(409, "HELD");
    assert_eq!(held["expires_at"], lease["expires_at"]);
    let body = json!({"claim_id": lease["claim_id"], "lease_seconds": 60}).to_string();
    let renewed = holder.post(&format!("{job}/renew"), body).expect(200);
    assert_eq!(renewed["epoch"], lease["epoch"]);
    // Work that nobody waits for any more comes to its end before history is read.
    assert!(stage.shim.terminate());
    until("all work is done", || {
        database.psql("postgres", &format!("select count(*) from {AT_WORK}")) == "0"
    });
    let mut history = ledger::history(&database);
    history.retain(|row| row["record"] != KEPT);
    let summary = ledger::judge(&history, &told.attempts)
        .unwrap_or_else(|violations| panic!("{violations:#?}"));
    println!(
        "{cycles} cycles in {took:?}; of unknown outcome after a kill of all, server, session, postmaster: {counted:?}; \
         {} + {} cuts; {summary}; answers {:?}",
        clients.cuts(),
        sessions.cuts(),
        told.answers
    );
    assert!(told.wrong.is_empty(), "{:?}", told.wrong);
    let expected = [
        "200",
        "201",
        "409 HELD",
        "409 LEASE_LOST",
        "409 VERSION_CONFLICT",
        "503 BUSY",
        "503 UNAVAILABLE",
        "504 TIMEOUT",
        "no answer",
    ];
    for answer in told.answers.keys() {
        assert!(expected.contains(&answer.as_str()), "{:?}", told.answers);
    }
    assert!(counted.iter().all(|kind| *kind > 0), "{counted:?}");
    assert!(
        summary.resolved >= KILLS && summary.landed > 0 && summary.lost > 0,
        "{summary}"
    );
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(assert_consistent(&database));
}
