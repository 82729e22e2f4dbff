//! kslate: shared, structured records for fleets of software agents. Every rule lives in this extension.
//!
//! The way of a call: [`entry`] → `scope` (who is calling, about which record) → one of the operations
//! (`record`, `write`, `claim`, `checkpoint`, `history`, …) → `rows` (single rows, without a statement) or `store` (kept plans) →
//! `triggers` (versions, gate, history), which fire for everybody else and are called for us.

use std::panic::AssertUnwindSafe;

use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;

mod blame;
mod caller;
mod catalog;
mod change;
mod checkpoint;
mod claim;
mod classes;
mod columns;
mod doctor;
mod ending;
mod entries;
mod error;
mod fence;
mod field_json;
mod guard;
mod history;
mod idempotency;
mod json;
mod lease;
mod queue;
mod record;
mod rows;
mod scope;
mod setup;
mod shape;
mod spi;
mod store;
mod time;
mod triggers;
mod write;
mod write_many;

::pgrx::pg_module_magic!(name, version);

extension_sql_file!(
    "../extension/trigger_functions.sql",
    name = "trigger_functions"
);
extension_sql_file!("../extension/revoke.sql", name = "revoke", finalize);

/// PostgreSQL calls it when it loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    time::define_clock_offset();
}

/// The one way into the extension: every SQL function and trigger runs in it.
///
/// A [`error::Failure`] becomes an ERROR with our DETAIL. An ERROR of PostgreSQL, or of a trigger below one of our
/// statements, is raised anew with the SQLSTATE, message and detail it had: pgrx would append a backtrace to its DETAIL.
fn entry<T>(operation: impl FnOnce() -> error::Outcome<T>) -> T {
    let outcome = PgTryBuilder::new(AssertUnwindSafe(operation))
        .catch_others(|caught| match caught {
            CaughtError::PostgresError(raised) => {
                let mut report = ErrorReport::new(
                    raised.sql_error_code(),
                    raised.message().to_owned(),
                    "kslate",
                );
                if let Some(detail) = raised.detail() {
                    report = report.set_detail(detail);
                }
                if let Some(hint) = raised.hint() {
                    report = report.set_hint(hint);
                }
                report.report(PgLogLevel::ERROR);
                unreachable!()
            }
            other => other.rethrow(),
        })
        .execute();
    match outcome {
        Ok(value) => value,
        Err(failure) => {
            failure.report().report(PgLogLevel::ERROR);
            unreachable!()
        }
    }
}
