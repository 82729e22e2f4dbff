//! Callers of the SQL functions: a session with an identity, answers as JSON, refusals taken apart.

use crate::database::Database;
use crate::wait::until_async;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

/// One connection, and the identity that it names if it is a gateway's.
pub struct Session {
    client: Client,
    process: i32,
    identity: Option<String>,
}

/// An ERROR of the database.
pub struct Refused {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
}

/// What a call gives: the row as JSON, or the refusal.
pub type Called = Result<Value, Refused>;

impl Session {
    /// A session of a database role, judged as `pg:<role>`.
    pub async fn login(database: &Database<'_>, role: &str) -> Arc<Session> {
        Session::open(database, role, None).await
    }

    /// A session of the gateway that speaks for `apikey:<name>`.
    pub async fn agent(database: &Database<'_>, name: &str) -> Arc<Session> {
        Session::open(database, "kslate_server", Some(format!("apikey:{name}"))).await
    }

    async fn open(database: &Database<'_>, role: &str, identity: Option<String>) -> Arc<Session> {
        Session::over(database.connect(role).await, identity).await
    }

    /// A session on a connection of one's own, which names an identity if it is a gateway's.
    pub async fn over(client: Client, identity: Option<String>) -> Arc<Session> {
        let process = client
            .query_one("select pg_backend_pid()", &[])
            .await
            .expect("a backend")
            .get(0);
        Arc::new(Session {
            client,
            process,
            identity,
        })
    }

    /// `pg_backend_pid()`.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Calls `kslate_<function>(<arguments>)` and gives all rows, each as a JSON object.
    pub async fn rows(&self, function: &str, arguments: &str) -> Result<Vec<Value>, Refused> {
        let mut all = arguments.to_string();
        if let Some(identity) = &self.identity {
            if !all.is_empty() {
                all += ", ";
            }
            all += &format!("identity => '{}'", identity.replace('\'', "''"));
        }
        let rows = self
            .sql(&format!(
                "select row_to_json(r)::text from kslate_{function}({all}) r"
            ))
            .await?;
        Ok(rows
            .lines()
            .map(|row| serde_json::from_str(row).expect("row_to_json gives JSON"))
            .collect())
    }

    /// Calls a function that answers one row.
    pub async fn call(&self, function: &str, arguments: &str) -> Called {
        let mut rows = self.rows(function, arguments).await?;
        assert_eq!(rows.len(), 1, "kslate_{function}({arguments}): {rows:?}");
        Ok(rows.remove(0))
    }

    /// The same; a refusal fails the test.
    pub async fn ok(&self, function: &str, arguments: &str) -> Value {
        self.call(function, arguments)
            .await
            .unwrap_or_else(|refused| panic!("kslate_{function}({arguments}): {refused:?}"))
    }

    /// The same; success fails the test, and so does another error than this one. Gives the JSON of DETAIL.
    pub async fn refused(&self, error: &str, function: &str, arguments: &str) -> Value {
        match self.call(function, arguments).await {
            Ok(row) => panic!("kslate_{function}({arguments}) was accepted: {row}"),
            Err(refused) => refused.is(error),
        }
    }

    /// Any SQL: all rows, a line each, columns set apart by `|`, NULL as nothing.
    pub async fn sql(&self, sql: &str) -> Result<String, Refused> {
        let messages = self.client.simple_query(sql).await.map_err(|error| {
            let told = error
                .as_db_error()
                .unwrap_or_else(|| panic!("the connection broke: {error}\n{sql}"));
            Refused {
                sqlstate: told.code().code().to_string(),
                message: told.message().to_string(),
                detail: told.detail().map(str::to_string),
            }
        })?;
        let mut lines = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                let columns: Vec<&str> = (0..row.len())
                    .map(|column| row.get(column).unwrap_or(""))
                    .collect();
                lines.push(columns.join("|"));
            }
        }
        Ok(lines.join("\n"))
    }

    /// The same; an error fails the test.
    pub async fn run(&self, sql: &str) -> String {
        self.sql(sql)
            .await
            .unwrap_or_else(|refused| panic!("{refused:?}\n{sql}"))
    }

    /// Begins a call and leaves it running.
    pub fn begin(self: &Arc<Self>, function: &str, arguments: &str) -> JoinHandle<Called> {
        let (session, function, arguments) =
            (self.clone(), function.to_string(), arguments.to_string());
        tokio::spawn(async move { session.call(&function, &arguments).await })
    }

    /// Begins a statement and leaves it running.
    pub fn begin_sql(self: &Arc<Self>, sql: &str) -> JoinHandle<Result<String, Refused>> {
        let (session, sql) = (self.clone(), sql.to_string());
        tokio::spawn(async move { session.sql(&sql).await })
    }

    /// Returns when `other` waits for a lock; this session looks on.
    pub async fn sees_waiting(&self, other: &Session) {
        let sql = format!(
            "select count(*) from pg_stat_activity where pid = {} and wait_event_type = 'Lock'",
            other.process
        );
        until_async("a session waits for a lock", || async {
            self.run(&sql).await == "1"
        })
        .await;
    }

    /// Returns when the database's clock has passed the expiry of a claim.
    pub async fn sees_lapse(&self, record: &str, field: &str) {
        let sql = format!(
            "select expires_at <= clock_timestamp() from kslate.claim where record = '{record}' and field = '{field}'"
        );
        until_async("a lease runs out", || async { self.run(&sql).await == "t" }).await;
    }

    /// Lets a lease run out now, as a superuser's hand would: history gets a row `renew`.
    pub async fn lapse(&self, record: &str, field: &str) {
        self.run(&format!(
            "update kslate.claim set expires_at = clock_timestamp() where record = '{record}' and field = '{field}'"
        ))
        .await;
    }
}

impl Refused {
    /// The JSON of DETAIL, if it is JSON.
    pub fn body(&self) -> Option<Value> {
        serde_json::from_str(self.detail.as_deref()?).ok()
    }

    /// The `error` of DETAIL; empty where PostgreSQL itself refused.
    pub fn error(&self) -> String {
        self.body()
            .and_then(|body| Some(body["error"].as_str()?.to_string()))
            .unwrap_or_default()
    }

    /// Fails the test where it is another error; gives the JSON of DETAIL.
    pub fn is(&self, error: &str) -> Value {
        assert_eq!(self.error(), error, "{self:?}");
        assert_eq!(self.sqlstate, sqlstate(error), "{self:?}");
        self.body().expect("it has an error")
    }
}

/// The stock SQLSTATE of an error.
pub fn sqlstate(error: &str) -> &'static str {
    match error {
        "MALFORMED" | "INVALID_CLASS" => "22023",
        "SCOPE_DENIED" | "IMMUTABLE" => "42501",
        "NOT_FOUND" => "P0002",
        "ALREADY_EXISTS" | "IDEMPOTENCY_CONFLICT" => "23505",
        "VERSION_CONFLICT" | "LEASE_LOST" | "COMPLETED" | "NOT_COMPLETED" => "55000",
        "HELD" => "55P03",
        "INVALID_CHECKPOINT" | "INVALID_VALUE" | "EVIDENCE_REQUIRED" => "23514",
        "PAYLOAD_TOO_LARGE" => "54000",
        "UNAVAILABLE" => "57P03",
        other => panic!("{other} is no error with an SQLSTATE of ours"),
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail.as_deref().unwrap_or("no DETAIL");
        write!(out, "{}: {} ({detail})", self.sqlstate, self.message)
    }
}
