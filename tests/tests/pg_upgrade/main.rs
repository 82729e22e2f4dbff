//! pg_upgrade to a newer PostgreSQL: everything is there, works, and goes on where it was.
//!
//! Needs two servers, so it is built with `--features matrix` only and run by `make test-matrix`, which gives the older one as
//! PG_CONFIG and the newer one as KSLATE_TEST_NEW_PG_CONFIG. Taken out, it fails: any trigger of `kslate.field` in
//! sql/triggers.sql (the gate is gone), or the extension of the newer server.

#[path = "../dump_restore/filled.rs"]
mod filled;
#[path = "../upgrade/released.rs"]
mod released;

use filled::{fill, works};
use kslate_tests::{assert_consistent, bash, checksum, postgres_program, Cluster, Database};
use std::path::{Path, PathBuf};

/// The upgraded server; stopped when dropped.
struct Upgraded {
    home: PathBuf,
    bin: String,
}

const SCRIPT: &str = r#"
old=$(scripts/cluster home "$DIR")
owner=$(stat -c %U "$old")
as_server() (cd "$HOME_DIR"; if ((EUID == 0)); then exec setpriv --reuid "$owner" --regid "$(id -g "$owner")" --init-groups env HOME=/ "$@"; fi; exec "$@")
mkdir -m 700 "$HOME_DIR" "$HOME_DIR/socket"
if ((EUID == 0)); then chown -R "$owner:" "$HOME_DIR"; fi
as_server "$NEW/initdb" --pgdata="$HOME_DIR/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --data-checksums
as_server "$NEW/pg_upgrade" --old-bindir="$OLD" --new-bindir="$NEW" --old-datadir="$old/data" --new-datadir="$HOME_DIR/data" \
  --socketdir="$HOME_DIR/socket" --username=postgres || {
    grep -rE -A 5 'error:|ERROR|FATAL' "$HOME_DIR"/data/pg_upgrade_output.d/*/log
    exit 1
  }
as_server "$NEW/pg_ctl" -D "$HOME_DIR/data" -l "$HOME_DIR/log" -w -t 60 -o "-c listen_addresses='' -k '$HOME_DIR/socket'" start
"#;

impl Upgraded {
    /// From a cluster that was stopped cleanly.
    fn from(cluster: &Cluster, new: &Path) -> Upgraded {
        let old = postgres_program("postgres");
        let (old, new) = (Path::new(&old).parent(), new.parent());
        let bin = new.expect("a folder").display().to_string();
        let home = cluster.dir().join("upgraded");
        let output = bash(
            SCRIPT,
            &[
                ("DIR", &cluster.dir().display().to_string()),
                ("HOME_DIR", &home.display().to_string()),
                ("OLD", &old.expect("a folder").display().to_string()),
                ("NEW", &bin),
            ],
        );
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Upgraded { home, bin }
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        let _ = bash(
            r#"read -r postmaster <"$HOME_DIR/data/postmaster.pid"; kill -QUIT "$postmaster"
            while kill -0 "$postmaster" 2>/dev/null; do sleep 0.1; done"#,
            &[("HOME_DIR", &self.home.display().to_string())],
        );
    }
}

#[test]
fn an_upgraded_cluster_goes_on_where_it_was() {
    let new = std::env::var("KSLATE_TEST_NEW_PG_CONFIG").expect("the newer pg_config");
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let before = fill(&database);
    // PostgreSQL and kslate may be upgraded at once.
    let older: Vec<Database> = released::all()
        .iter()
        .map(|version| released::database(&cluster, version))
        .collect();
    let held: Vec<String> = older.iter().chain([&database]).map(checksum).collect();
    let old = database.psql("postgres", "show server_version_num");
    cluster.stop();

    let upgraded = Upgraded::from(&cluster, Path::new(&new));
    let socket = upgraded.home.join("socket");
    let older: Vec<Database> = older.iter().map(|old| old.at(&socket)).collect();
    let database = database.at(&socket);
    let new = database.psql("postgres", "show server_version_num");
    println!("from {old} to {new} with {}", upgraded.bin);
    assert!(new > old);
    let now: Vec<String> = older.iter().chain([&database]).map(checksum).collect();
    assert_eq!(now, held);
    for database in &older {
        database.psql("kslate", released::UPDATE);
        database.psql("kslate", released::SETUP);
    }
    for database in older.iter().chain([&database]) {
        let findings = database.psql("kslate", "select * from kslate_doctor()");
        assert_eq!(findings, "");
    }
    works(&database, &before);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for database in older.iter().chain([&database]) {
        runtime.block_on(assert_consistent(database));
    }
}
