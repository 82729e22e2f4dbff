//! pgbouncer in front of a test's cluster.

use crate::cluster::Cluster;
use crate::database::postgres_program;
use crate::repository::run;
use crate::wait::until;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// pgbouncer in transaction mode with two connections to each database, on a Unix socket in the cluster's folder; killed when
/// dropped.
pub struct Pooler {
    child: Child,
    dir: PathBuf,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Server connections that a pool may have.
const SIZE: u32 = 2;

impl Pooler {
    /// Starts one; returns when it answers.
    pub fn start(cluster: &Cluster) -> Pooler {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = cluster.dir().join(format!("pgbouncer-{number}"));
        fs::create_dir(&dir).expect("a folder");
        let as_root = run(Command::new("id").arg("-u")) == "0";
        let users = dir.join("users.txt");
        fs::write(&users, "\"kslate_server\" \"\"\n\"postgres\" \"\"\n").expect("a file");
        let file = dir.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={socket}\n[pgbouncer]\nunix_socket_dir = {dir}\nlisten_port = 6432\nlogfile = {dir}/log\n\
             auth_type = trust\nauth_file = {users}\nadmin_users = postgres\npool_mode = transaction\ndefault_pool_size = {SIZE}\n\
             max_client_conn = 500\nserver_login_retry = 1\nquery_wait_timeout = 12\n",
            socket = cluster.socket(),
            dir = dir.display(),
            users = users.display(),
        );
        fs::write(&file, text).expect("a file");
        let mut command = Command::new("pgbouncer");
        command
            .env(
                "PATH",
                format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()),
            )
            .arg("--quiet");
        // Whoever gets at its socket is trusted: nobody but the user that runs the cluster, whom it changes to as root.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("our folder");
        if as_root {
            let owner = run(Command::new("stat").args(["-c", "%U", cluster.socket()]));
            run(Command::new("chown")
                .arg("-R")
                .arg(format!("{owner}:"))
                .arg(&dir));
            command.arg(format!("--user={owner}"));
        }
        let child = command
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer starts: `scripts/deps test` installs it");
        cluster.watch_process(child.id());
        let pooler = Pooler { child, dir };
        until("pgbouncer answers", || {
            pooler.try_ask("show version").is_some()
        });
        pooler
    }

    /// The URL of a database behind it.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!(
            "postgresql:///{database}?host={}&port=6432&user={role}",
            self.dir.display()
        )
    }

    /// A command of its console, such as `show pools`: a line a row, columns set apart by `|`.
    pub fn ask(&self, command: &str) -> String {
        self.try_ask(command)
            .unwrap_or_else(|| panic!("pgbouncer does not answer {command}"))
    }

    fn try_ask(&self, command: &str) -> Option<String> {
        let output = Command::new(postgres_program("psql"))
            .args(["-XAt", &self.url("postgres", "pgbouncer"), "-c", command])
            .stdin(Stdio::null())
            .output()
            .expect("psql starts");
        output.status.success().then(|| {
            String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_string()
        })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
