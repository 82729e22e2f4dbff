//! A hot standby of a test's cluster.

use crate::cluster::Cluster;
use crate::database::{postgres_program, Database};
use crate::repository::{bash, run, script};
use std::path::{Path, PathBuf};
use tokio_postgres::Client;

/// A copy of a primary, made by pg_basebackup in the primary's folder; stopped when dropped. Where the
/// test's process is killed its folder goes with the primary's, and a server without its data folder ends by itself.
pub struct Standby {
    home: PathBuf,
}

/// Runs a command as the operating system's user that the primary runs as: the owner of its data.
const AS_SERVER: &str = r#"
owner=$(stat -c %U "$PRIMARY")
as_server() (cd /; if ((EUID == 0)); then exec setpriv --reuid "$owner" --regid "$(id -g "$owner")" --init-groups env HOME=/ "$@"; fi; exec "$@")
"#;

const START: &str = r#"
as_server "$PG_CTL" -D "$HOME_DIR/data" -l "$HOME_DIR/log" -w -t 60 -o "-k '$HOME_DIR/socket'" start
"#;

impl Standby {
    /// Copies the primary, and starts the copy; returns when it answers.
    pub fn start(primary: &Cluster) -> Standby {
        let standby = Standby::back_up(primary);
        standby.run(
            primary,
            &format!("as_server touch \"$HOME_DIR/data/standby.signal\"\n{START}"),
        );
        standby
    }

    /// A copy that is not started: a base backup.
    pub fn back_up(primary: &Cluster) -> Standby {
        let home = primary.dir().join("standby");
        let standby = Standby { home };
        standby.run(
            primary,
            r#"
            mkdir -m 700 "$HOME_DIR" "$HOME_DIR/socket"
            if ((EUID == 0)); then chown -R "$owner:" "$HOME_DIR"; fi
            as_server "$BASEBACKUP" --pgdata="$HOME_DIR/data" --write-recovery-conf --checkpoint=fast --wal-method=stream \
              --dbname="$URL"
            as_server rm "$HOME_DIR/data/standby.signal"
            "#,
        );
        standby
    }

    /// The primary archives its WAL from now on; gives the folder.
    pub fn archive(primary: &Cluster) -> PathBuf {
        let folder = primary.dir().join("archive");
        let postgres = Database::new(primary, "postgres".into());
        postgres.psql("postgres", "alter system set archive_mode = on");
        let command = format!(
            "alter system set archive_command = 'cp %p {0}/%f.new && mv {0}/%f.new {0}/%f'",
            folder.display()
        );
        postgres.psql("postgres", &command);
        run_beside(
            primary,
            &folder,
            r#"mkdir -m 700 "$HOME_DIR"; if ((EUID == 0)); then chown "$owner:" "$HOME_DIR"; fi"#,
        );
        primary.restart();
        folder
    }

    /// Starts a base backup of before with what was archived since, up to a restore point; then it is a primary of its own.
    pub fn recover(&self, primary: &Cluster, archive: &Path, point: &str) {
        let settings = format!(
            "archive_mode = off\nrestore_command = 'cp {}/%f %p'\nrecovery_target_name = '{point}'\nrecovery_target_action = promote\n",
            archive.display()
        );
        self.run(
            primary,
            &format!(
                "as_server tee -a \"$HOME_DIR/data/postgresql.auto.conf\" >/dev/null <<<\"{settings}\"
                 as_server touch \"$HOME_DIR/data/recovery.signal\"\n{START}"
            ),
        );
    }

    /// The folder of its socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join("socket")
    }

    /// The database of this name on it.
    pub fn database<'a>(&self, primarys: &Database<'a>) -> Database<'a> {
        primarys.at(&self.socket())
    }

    /// Its WAL receiver's process, for signals; None where none runs.
    pub fn receiver(&self, primarys: &Database) -> Option<String> {
        let told = self
            .database(primarys)
            .psql("postgres", "select pid from pg_stat_wal_receiver");
        Some(told).filter(|told| !told.is_empty())
    }

    /// A connection to it, to the database of this name on the primary.
    pub async fn connect(&self, role: &str, database: &Database<'_>) -> Client {
        self.database(database).connect(role).await
    }

    /// Makes it a primary of its own.
    pub fn promote(&self, primary: &Cluster) {
        self.run(
            primary,
            r#"as_server "$PG_CTL" -D "$HOME_DIR/data" -w -t 60 promote"#,
        );
    }

    fn run(&self, primary: &Cluster, text: &str) {
        run_beside(primary, &self.home, text);
    }
}

/// Runs bash on a text that knows a folder as HOME_DIR.
fn run_beside(primary: &Cluster, folder: &Path, text: &str) {
    let primary_home = run(script("cluster").arg("home").arg(primary.dir()));
    let output = bash(
        &format!("{AS_SERVER}{text}"),
        &[
            ("PRIMARY", &primary_home),
            ("URL", &primary.url("postgres", "postgres")),
            ("HOME_DIR", &folder.display().to_string()),
            ("BASEBACKUP", &postgres_program("pg_basebackup")),
            ("PG_CTL", &postgres_program("pg_ctl")),
        ],
    );
    assert!(
        output.status.success(),
        "{text}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Drop for Standby {
    fn drop(&mut self) {
        let data = self.home.join("data").display().to_string();
        let _ = bash(
            &format!(
                "PRIMARY=$DATA\n{AS_SERVER}\nas_server \"$PG_CTL\" -D \"$DATA\" -m immediate -w -t 30 stop"
            ),
            &[("DATA", &data), ("PG_CTL", &postgres_program("pg_ctl"))],
        );
    }
}
