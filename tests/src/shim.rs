//! A server started for a test.

use crate::database::Database;
use crate::http::Api;
use crate::repository::root;
use crate::wait::until;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The manual's three tokens, and an administrator's.
pub const KEYS: &str =
    "diag-token: diagnoser\nw1-token: remediator/worker-1\nw2-token: remediator/worker-2\n\
                        admin-token: { identity: admin, admin: true }\n";

/// `bin/kslate serve` on a free port, logged in as `kslate_server`; killed when dropped.
pub struct Shim {
    child: Child,
    address: SocketAddr,
    keys: PathBuf,
    log: PathBuf,
    environment: Vec<(String, String)>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Shim {
    /// Starts one with a key file of that text; returns when it serves.
    pub fn start(database: &Database, keys: &str) -> Shim {
        Shim::start_with(database, keys, &[])
    }

    /// The same with more environment.
    pub fn start_with(database: &Database, keys: &str, environment: &[(&str, &str)]) -> Shim {
        let dir = database.cluster().dir();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let keys_file = dir.join(format!("keys-{number}.yaml"));
        fs::write(&keys_file, keys).expect("a key file");
        let mut all = match database.cluster().pooler() {
            None => vec![("DATABASE_URL".into(), database.url("kslate_server"))],
            Some(pooler) => vec![
                (
                    "DATABASE_URL".into(),
                    pooler.url("kslate_server", database.name()),
                ),
                ("KSLATE_PREPARE".into(), "off".into()),
            ],
        };
        all.push(("KSLATE_APIKEYS".into(), keys_file.display().to_string()));
        for (name, value) in environment {
            all.push((name.to_string(), value.to_string()));
        }
        Shim::launch(database, keys_file, all, "127.0.0.1:0")
    }

    fn launch(
        database: &Database,
        keys: PathBuf,
        environment: Vec<(String, String)>,
        listen: &str,
    ) -> Shim {
        let program = root().join("bin/kslate");
        assert!(
            program.exists(),
            "no bin/kslate: run `make build`, or the tests with `make test`"
        );
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = database.cluster().dir().join(format!("shim-{number}.log"));
        let out = fs::File::create(&log).expect("a log");
        let child = Command::new(program)
            .args(["serve", "--listen", listen])
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a second handle"))
            .stderr(out)
            .spawn()
            .expect("bin/kslate starts");
        database.cluster().watch_process(child.id());
        let mut shim = Shim {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            keys,
            log,
            environment,
        };
        until("the server tells its address", || {
            if let Ok(Some(status)) = shim.child.try_wait() {
                panic!("the server ended with {status}:\n{}", shim.log());
            }
            let told = shim.log();
            let address = told.lines().find_map(address_in);
            shim.address = address.unwrap_or(shim.address);
            address.is_some()
        });
        shim
    }

    /// Kills it, as the machine's memory killer would.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Another process in the place of one that was killed: same address, same settings.
    pub fn start_again(&mut self, database: &Database) {
        let (keys, environment) = (self.keys.clone(), self.environment.clone());
        *self = Shim::launch(database, keys, environment, &self.address.to_string());
    }

    /// A caller with a token; no token: `shim.anonymous()`.
    pub fn api(&self, token: &str) -> Api {
        Api::new(self.address, Some(token))
    }

    /// A caller without a token.
    pub fn anonymous(&self) -> Api {
        Api::new(self.address, None)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its key file; a test may rewrite it.
    pub fn keys(&self) -> &PathBuf {
        &self.keys
    }

    /// All that it has logged so far.
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Its process, for signals.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits for the end, at most 30 s; true where it ended with success.
    pub fn terminate(mut self) -> bool {
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let mut ended = None;
        until("the server ends after SIGTERM", || {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some()
        });
        ended.is_some_and(|status| status.success())
    }
}

/// The address in a line that tells `http://ADDRESS`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split("http://").nth(1)?;
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))
        .unwrap_or(rest.len());
    rest[..end]
        .parse()
        .ok()
        .filter(|address: &SocketAddr| address.port() != 0)
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
