//! `kslate doctor`: the one command that asks the database itself.

use std::process::ExitCode;

use clap::Args;
use deadpool::managed::Manager as _;

use super::exit::{Code, Failure};
use super::json::Object;
use super::output::{self, Table};
use crate::server::connect::{because, Target};

/// Check a database: triggers, rights, leftovers.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 0: nothing found; 1: findings, or no connection.\n\nExample:\n  kslate doctor --database-url 'postgresql:///kslate?host=/run/postgresql'"
)]
pub struct Doctor {
    /// The database, as postgresql:// address (TLS: ?sslmode=verify-full&sslrootcert=FILE) or key=value string
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
}

impl Doctor {
    pub(super) fn run(&self, json: bool) -> Result<ExitCode, Failure> {
        let url = self.database_url.as_ref().ok_or_else(|| {
            Failure::Usage("which database? Give --database-url or DATABASE_URL".to_owned())
        })?;
        let target = Target::read(url, false)
            .map_err(|error| Failure::Usage(format!("database address: {error}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Local(error.to_string()))?;
        let findings = runtime.block_on(ask(&target))?;
        if json {
            let lines: String = findings
                .iter()
                .map(|[area, object, finding]| {
                    Object::default()
                        .text("area", Some(area))
                        .text("object", Some(object))
                        .text("finding", Some(finding))
                        .finish()
                        + "\n"
                })
                .collect();
            output::print(&lines)?;
        } else if findings.is_empty() {
            output::print("nothing found: the database is as kslate needs it\n")?;
        } else {
            let mut table = Table::new(&["AREA", "OBJECT", "FINDING"]);
            findings
                .iter()
                .for_each(|finding| table.row(finding.to_vec()));
            output::print(&table.text())?;
        }
        Ok(if findings.is_empty() {
            ExitCode::SUCCESS
        } else {
            Code::Failure.into()
        })
    }
}

async fn ask(target: &Target) -> Result<Vec<[String; 3]>, Failure> {
    let connection = target
        .create()
        .await
        .map_err(|error| Failure::Local(error.to_string()))?;
    let sql = format!(
        "SELECT d.area, d.object, d.finding FROM {}.kslate_doctor() d",
        connection.schema
    );
    let rows = connection
        .client
        .query_typed(&sql, &[])
        .await
        .map_err(|error| Failure::Local(because(&error)))?;
    let text = |row: &tokio_postgres::Row, at: usize| {
        row.try_get::<_, Option<String>>(at)
            .map(Option::unwrap_or_default)
    };
    rows.iter()
        .map(|row| Ok([text(row, 0)?, text(row, 1)?, text(row, 2)?]))
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(|error| Failure::Local(because(&error)))
}
