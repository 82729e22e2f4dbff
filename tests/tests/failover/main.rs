//! The primary dies under load, its standby is promoted, and the same server goes on by itself.
//!
//! What each test would miss is a line of the code; taken out, the test fails:
//! - `loss.rs`: the loop over `self.hosts` in kslate-http/src/server/connect.rs (the second host is never asked), or
//!   `synchronous_standby_names` in `synchronous` below (what only the primary had is lost)
//! - `waiting.rs`: the arm `connection.unreplicated.happened()` in db.rs
//! - `silent.rs`: the `timeout` around `connect_to` in connect.rs
//! - `epoch_again.rs`: `self.claim_id == Some(claim_id)` in kslate-pg/src/fence.rs

mod epoch_again;
mod loss;
mod silent;
mod waiting;

use kslate_tests::{bash, until, Cluster, Database, Standby};

/// The address of both, the primary first.
fn both(database: &Database, standby: &Standby) -> String {
    format!(
        "postgresql:///{}?host={},{}&user=kslate_server&target_session_attrs=read-write",
        database.name(),
        database.cluster().socket(),
        standby.socket().display()
    )
}

/// A standby that each commit waits for, at that level of `synchronous_commit`.
fn synchronous(cluster: &Cluster, database: &Database, level: &str) -> Standby {
    let standby = Standby::start(cluster);
    for sql in [
        "alter system set synchronous_standby_names = '*'".to_string(),
        format!("alter system set synchronous_commit = {level}"),
        "select pg_reload_conf()".to_string(),
    ] {
        database.psql("postgres", &sql);
    }
    until("the standby is the synchronous one", || {
        database.psql("postgres", "select sync_state from pg_stat_replication") == "sync"
    });
    standby
}

fn signal(signal: &str, process: &str) {
    let sent = bash(&format!("kill -{signal} {process}"), &[]);
    assert!(sent.status.success(), "{sent:?}");
}

/// Sessions of the server whose commit waits for the standby.
fn waiting(database: &Database) -> String {
    database.psql(
        "postgres",
        "select pid from pg_stat_activity where usename = 'kslate_server' and wait_event = 'SyncRep'",
    )
}
