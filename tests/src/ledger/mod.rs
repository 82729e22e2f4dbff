//! Histories under faults: clients that write down what they asked for and what became of it, and the judge that holds their
//! list against the rows of history.
//!
//! ```no_run
//! # use kslate_tests::{ledger, Cluster, Shim};
//! let database = Cluster::shared().fresh_database();
//! ledger::prepare(&database, &["ledger/a"]);
//! let shim = Shim::start(&database, &ledger::keys(4));
//! let load = ledger::Load::new(shim.address(), 4, |_| vec!["ledger/a".into()], ledger::Patience::Tries);
//! let told = load.run(|counts| { /* kill, cut, pause; counts.unknown tells whether it hurt */ });
//! let summary = ledger::judge(&ledger::history(&database), &told.attempts).expect("no violation");
//! ```

mod judge;
mod load;
mod writer;

pub use judge::{judge, Summary};
pub use load::{Counts, Load, Told};
pub use writer::{Attempt, Change, Outcome, Patience, Place};

use crate::database::Database;
use serde_json::Value;

const CLASS: &str = "
class: ledger
roles: { writer: [\"apikey:writer/*\"] }
fields:
  plan: { mode: cas, write: [writer] }
  note: { mode: lww, write: [writer] }
  log:  { mode: append, write: [writer] }
  job:  { mode: task, write: [writer] }
  step: { mode: lww, write: [writer], requires_claim: job }
";

/// The class of the load, and its records, which nobody else may change.
pub fn prepare(database: &Database, records: &[&str]) {
    let mut sql = format!("select from kslate_class_apply($class${CLASS}$class$);");
    for record in records {
        sql += &format!("select from kslate_create('{record}', identity => 'apikey:writer/0');");
    }
    database.psql("kslate", &sql);
}

/// A key file for that many writers: `t0: writer/0` and so on.
pub fn keys(writers: usize) -> String {
    (0..writers)
        .map(|number| format!("t{number}: writer/{number}\n"))
        .collect()
}

/// All rows of history, each as a JSON object.
pub fn history(database: &Database) -> Vec<Value> {
    database
        .psql(
            "postgres",
            "select row_to_json(h) from kslate.history h order by record, record_version",
        )
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
