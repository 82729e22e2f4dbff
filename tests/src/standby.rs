//! A hot standby of a test's cluster.

use crate::cluster::Cluster;
use crate::database::{postgres_program, Database};
use crate::repository::{bash, run, script};
use std::path::PathBuf;
use tokio_postgres::{Client, NoTls};

/// A read-only copy that follows its primary, made by pg_basebackup in the primary's folder; stopped when dropped. Where the
/// test's process is killed its folder goes with the primary's, and a server without its data folder ends by itself.
pub struct Standby {
    home: PathBuf,
}

/// Runs a command as the operating system's user that the primary runs as: the owner of its data.
const AS_SERVER: &str = r#"
owner=$(stat -c %U "$PRIMARY")
as_server() (cd /; if ((EUID == 0)); then exec setpriv --reuid "$owner" --regid "$(id -g "$owner")" --init-groups env HOME=/ "$@"; fi; exec "$@")
"#;

impl Standby {
    /// Copies the primary, and starts the copy; returns when it answers.
    pub fn start(primary: &Cluster) -> Standby {
        let home = primary.dir().join("standby");
        let standby = Standby { home };
        standby.run(
            primary,
            r#"
            mkdir -m 700 "$HOME_DIR" "$HOME_DIR/socket"
            if ((EUID == 0)); then chown -R "$owner:" "$HOME_DIR"; fi
            as_server "$BASEBACKUP" --pgdata="$HOME_DIR/data" --write-recovery-conf --checkpoint=fast --wal-method=stream \
              --dbname="$URL"
            as_server "$PG_CTL" -D "$HOME_DIR/data" -l "$HOME_DIR/log" -w -t 60 -o "-k '$HOME_DIR/socket'" start
            "#,
        );
        standby
    }

    /// A connection to it, to the database of this name on the primary.
    pub async fn connect(&self, role: &str, database: &Database<'_>) -> Client {
        let url = format!(
            "postgresql:///{}?host={}&user={role}",
            database.name(),
            self.home.join("socket").display()
        );
        let (client, connection) = tokio_postgres::connect(&url, NoTls)
            .await
            .expect("the standby answers");
        tokio::spawn(connection);
        client
    }

    /// Makes it a primary of its own.
    pub fn promote(&self, primary: &Cluster) {
        self.run(
            primary,
            r#"as_server "$PG_CTL" -D "$HOME_DIR/data" -w -t 60 promote"#,
        );
    }

    fn run(&self, primary: &Cluster, text: &str) {
        let primary_home = run(script("cluster").arg("home").arg(primary.dir()));
        let output = bash(
            &format!("{AS_SERVER}{text}"),
            &[
                ("PRIMARY", &primary_home),
                ("URL", &primary.url("postgres", "postgres")),
                ("HOME_DIR", &self.home.display().to_string()),
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
