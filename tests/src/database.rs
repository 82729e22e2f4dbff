//! One database of a test's cluster.

use crate::cluster::Cluster;
use crate::repository::{root, run};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tokio_postgres::{Client, NoTls};

/// A database; it goes with its cluster.
pub struct Database<'a> {
    cluster: &'a Cluster,
    name: String,
    /// Where another server than the cluster's own has it: the folder of that server's socket.
    elsewhere: Option<String>,
}

impl<'a> Database<'a> {
    pub(crate) fn new(cluster: &'a Cluster, name: String) -> Self {
        Database {
            cluster,
            name,
            elsewhere: None,
        }
    }

    /// The database of this name on another server, reached by the socket in that folder.
    pub fn at(&self, socket: &Path) -> Database<'a> {
        Database {
            cluster: self.cluster,
            name: self.name.clone(),
            elsewhere: Some(socket.display().to_string()),
        }
    }

    /// Its cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL for a role, see [`Cluster::url`].
    pub fn url(&self, role: &str) -> String {
        let socket = self.elsewhere.as_deref();
        socket_url(socket.unwrap_or(self.cluster.socket()), role, &self.name)
    }

    /// A connection for a role; its background task runs in the caller's tokio runtime.
    pub async fn connect(&self, role: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(role), NoTls)
            .await
            .expect("the database answers");
        tokio::spawn(connection);
        client
    }

    /// Runs a script in psql and gives what it printed, unaligned and without headers; an error fails the test.
    pub fn psql(&self, role: &str, sql: &str) -> String {
        match self.try_psql(role, sql) {
            Ok(printed) => printed,
            Err(told) => panic!("psql as {role} on {}: {told}\n{sql}", self.name),
        }
    }

    /// The same; an error is given with DETAIL and SQLSTATE, as psql's verbose form prints it.
    pub fn try_psql(&self, role: &str, sql: &str) -> Result<String, String> {
        let mut child = Command::new(postgres_program("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"])
            .arg(self.url(role))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql starts");
        let mut input = child.stdin.take().expect("it is piped");
        // psql may end before it has read all: what it said is the answer then.
        let _ = input.write_all(sql.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("psql ends");
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_string())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// The URL of a database behind the socket in a folder.
pub(crate) fn socket_url(socket: &str, role: &str, database: &str) -> String {
    format!("postgresql:///{database}?host={socket}&user={role}")
}

/// The path of a program of the PostgreSQL in use, such as `psql` or `pg_dump`.
pub fn postgres_program(name: &str) -> String {
    static BIN: OnceLock<String> = OnceLock::new();
    let bin = BIN.get_or_init(|| {
        run(Command::new("bash")
            .current_dir(root())
            .args(["-euc", ". scripts/lib.sh; use_postgres; echo \"$PG_BIN\""]))
    });
    format!("{bin}/{name}")
}
