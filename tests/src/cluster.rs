//! A PostgreSQL cluster of a test's own.

use crate::database::{socket_url, Database};
use crate::pooler::Pooler;
use crate::repository::{bash, run, script};
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// A private cluster in a folder under /tmp, made by `scripts/cluster`.
///
/// It is removed when dropped. For all other ends there is `scripts/cluster watch`: a process that holds the other end of a
/// pipe and cleans up when that closes, which the kernel does for a test that panics, is killed, or leaves the cluster in a
/// static, as [`Cluster::shared`] does.
pub struct Cluster {
    dir: PathBuf,
    socket: String,
    template: OnceLock<()>,
    made: AtomicU32,
    creating: Mutex<()>,
    watch: Mutex<(Child, Option<ChildStdin>)>,
    pooler: OnceLock<Pooler>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Cluster {
    /// The cluster that the tests of this binary share. A test that stops or kills the server takes [`Cluster::start`].
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Cluster::start)
    }

    /// Makes and starts one.
    pub fn start() -> Cluster {
        let dir = PathBuf::from(format!(
            "/tmp/kslate-test-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        ));
        let _ = fs::remove_dir_all(&dir);
        // The server's user must get in.
        fs::DirBuilder::new()
            .mode(0o755)
            .create(&dir)
            .expect("a new folder under /tmp");
        let mut child = script("cluster")
            .arg("watch")
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the tests; the watcher is to survive them.
            .process_group(0)
            .spawn()
            .expect("scripts/cluster starts");
        let pipe = child.stdin.take();
        run(script("cluster").arg("start").arg(&dir));
        let url = run(script("cluster").arg("url").arg(&dir));
        let socket = url
            .split("host=")
            .nth(1)
            .and_then(|rest| rest.split('&').next())
            .expect("host in the URL")
            .to_string();
        Cluster {
            dir,
            socket,
            template: OnceLock::new(),
            made: AtomicU32::new(0),
            creating: Mutex::new(()),
            watch: Mutex::new((child, pipe)),
            pooler: OnceLock::new(),
        }
    }

    /// The URL of a database for a role: `postgres`, `kslate` (both superusers), `kslate_server` (what a shim logs in as), or
    /// one that the test made.
    pub fn url(&self, role: &str, database: &str) -> String {
        socket_url(&self.socket, role, database)
    }

    /// The folder that holds the cluster; tests may put files there.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A database with the extension, its storage and the classes of `classes/`, copied from a template.
    pub fn fresh_database(&self) -> Database<'_> {
        self.template.get_or_init(|| {
            let _one_at_a_time = self.creating.lock();
            let made = Database::new(self, "kslate".into());
            made.psql("postgres", "create database kslate_template");
            run(script("database")
                .args(["--private", "kslate_server"])
                .arg(self.url("kslate", "kslate_template")));
        });
        self.create("template kslate_template")
    }

    /// A database without anything.
    pub fn empty_database(&self) -> Database<'_> {
        self.create("template template0")
    }

    /// The same in another encoding than UTF-8.
    pub fn empty_database_in(&self, encoding: &str) -> Database<'_> {
        self.create(&format!(
            "template template0 encoding '{encoding}' lc_collate 'C' lc_ctype 'C'"
        ))
    }

    /// A copy of a database that nobody is connected to.
    pub fn copy_of(&self, database: &Database) -> Database<'_> {
        self.create(&format!("template {}", database.name()))
    }

    fn create(&self, how: &str) -> Database<'_> {
        let _one_at_a_time = self.creating.lock();
        let name = format!("test_{}", self.made.fetch_add(1, Ordering::Relaxed));
        Database::new(self, "postgres".into())
            .psql("postgres", &format!("create database {name} {how}"));
        Database::new(self, name)
    }

    /// Kills the postmaster, as the machine's memory killer would. [`Cluster::start_again`] recovers.
    pub fn kill9(&self) {
        let home = run(script("cluster").arg("home").arg(&self.dir));
        let file =
            fs::read_to_string(format!("{home}/data/postmaster.pid")).expect("postmaster.pid");
        run(Command::new("kill").args(["-9", file.lines().next().expect("its first line")]));
    }

    /// Kills not the postmaster alone, whose children would still finish what they are at, but every process of the server.
    pub fn kill9_all(&self) {
        let killed = bash(
            "home=$(scripts/cluster home \"$DIR\"); read -r all <\"$home/data/postmaster.pid\"
             for process in /proc/[0-9]*; do
               if [[ $(readlink \"$process/cwd\") == \"$home/data\" ]]; then all+=\" ${process#/proc/}\"; fi
             done
             kill -9 $all || true",
            &[("DIR", &self.dir.display().to_string())],
        );
        assert!(killed.status.success(), "{killed:?}");
    }

    /// Starts the server after [`Cluster::kill9`] or [`Cluster::stop`]; returns when it answers.
    pub fn start_again(&self) {
        run(script("cluster").arg("start").arg(&self.dir));
    }

    /// Stops it cleanly.
    pub fn stop(&self) {
        run(script("cluster").arg("stop").arg(&self.dir));
    }

    /// Stops it cleanly and starts it.
    pub fn restart(&self) {
        run(script("cluster").arg("restart").arg(&self.dir));
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// The pooler that servers go through where `KSLATE_TEST_VIA=pgbouncer`: how tests/pgbouncer.rs runs other tests.
    pub fn pooler(&self) -> Option<&Pooler> {
        match std::env::var("KSLATE_TEST_VIA").ok()?.as_str() {
            "pgbouncer" => Some(self.pooler.get_or_init(|| Pooler::start(self))),
            other => panic!("KSLATE_TEST_VIA={other}: only pgbouncer is known"),
        }
    }

    /// The watcher ends this process too, when the test's own process is gone.
    pub(crate) fn watch_process(&self, id: u32) {
        let mut watch = self.watch.lock().expect("no panic while it is held");
        if let (_, Some(pipe)) = &mut *watch {
            writeln!(pipe, "{id}").expect("the watcher reads");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Ok((child, pipe)) = self.watch.get_mut() {
            drop(pipe.take());
            let _ = child.wait();
        }
    }
}
