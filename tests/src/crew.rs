//! The people of most SQL tests: a diagnoser, two workers, a DBA, on one record of class incidents.

use crate::{assert_consistent, Cluster, Database, Session};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A fresh database with the record `incidents/inc-1` (no first values but `status`), and sessions on it.
pub struct Crew {
    pub database: Database<'static>,
    pub diagnoser: Arc<Session>,
    /// `apikey:remediator/worker-1`
    pub worker: Arc<Session>,
    /// `apikey:remediator/worker-2`
    pub other: Arc<Session>,
    /// `postgres`, a superuser.
    pub dba: Arc<Session>,
}

/// A checkpoint's document with all sections that class incidents asks for.
pub const DOCUMENT: &str = r#"{"goal":"g","decisions":[],"progress":"p","open_questions":[]}"#;

impl Crew {
    /// Makes the database, the sessions and the record.
    pub async fn new() -> Crew {
        let crew = Crew::on(Cluster::shared().fresh_database()).await;
        crew.diagnoser.ok("create", "'incidents/inc-1'").await;
        crew
    }

    /// Sessions on a database, without a record.
    pub async fn on(database: Database<'static>) -> Crew {
        Crew {
            diagnoser: Session::agent(&database, "diagnoser").await,
            worker: Session::agent(&database, "remediator/worker-1").await,
            other: Session::agent(&database, "remediator/worker-2").await,
            dba: Session::login(&database, "postgres").await,
            database,
        }
    }

    /// The worker claims `remediation` of the record; gives the claim_id, quoted for SQL.
    pub async fn claim(&self, lease_seconds: u32) -> String {
        claim_id(
            &self
                .worker
                .ok(
                    "claim",
                    &format!("'incidents/inc-1', 'remediation', {lease_seconds}"),
                )
                .await,
        )
    }

    /// The worker's claim runs out, by a superuser's hand.
    pub async fn lapse(&self) {
        self.dba.lapse("incidents/inc-1", "remediation").await;
    }

    /// The columns of the newest history rows of the record, newest first, `columns` as SQL.
    pub async fn history(&self, columns: &str, rows: u32) -> String {
        self.dba
            .run(&format!(
                "select {columns} from kslate.history where record = 'incidents/inc-1' order by record_version desc limit {rows}"
            ))
            .await
    }

    /// The record's version.
    pub async fn version(&self) -> i64 {
        self.dba
            .run("select version from kslate.record where record = 'incidents/inc-1'")
            .await
            .parse()
            .expect("a number")
    }

    /// The end of a test: the tables agree with history.
    pub async fn consistent(&self) {
        assert_consistent(&self.database).await;
    }
}

/// The claim_id of an answer, quoted for SQL.
pub fn claim_id(answer: &Value) -> String {
    format!("'{}'", answer["claim_id"].as_str().expect("a claim_id"))
}

/// Makes a database role, or alters the one that is there. Roles belong to the whole cluster: two tests make theirs one after
/// the other.
pub fn role(database: &Database<'_>, name: &str, options: &str, grants: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    database.psql(
        "postgres",
        &format!(
            "do $$ begin if to_regrole('{name}') is null then create role {name}; end if; end $$;
             alter role {name} {options}; {grants}"
        ),
    );
}
