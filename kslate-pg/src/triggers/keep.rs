//! What is kept: history, checkpoints and classes are append-only, and no row of the state tables ever goes.

use pgrx::pg_sys;

use super::{immutable, Event, Fired};
use crate::catalog;
use crate::error::Outcome;

/// BEFORE STATEMENT: refuses what nobody may do, and INSERT by anybody but our own code where the trigger is on INSERT.
pub fn keep(fired: Fired) -> Outcome<pg_sys::Datum> {
    let table = fired.on(&[
        c"history",
        c"checkpoint",
        c"class",
        c"field",
        c"claim",
        c"record",
    ])?;
    let allowed = fired.ours()
        && match fired.event {
            Event::Insert => true,
            // A task field that was never claimed can be taken out of its class.
            Event::Delete => table == c"claim",
            Event::Update | Event::Truncate => false,
        };
    if allowed {
        return Ok(fired.done());
    }
    let verb = match fired.event {
        Event::Insert => "INSERT",
        Event::Update => "UPDATE",
        Event::Delete => "DELETE",
        Event::Truncate => "TRUNCATE",
    };
    let table = table.to_string_lossy();
    Err(immutable(match table.as_ref() {
        "history" | "checkpoint" | "class" => {
            format!("{verb} on kslate.{table} is refused: it is written by the kslate functions and never changed")
        }
        _ => format!(
            "{verb} on kslate.{table} is refused: a record keeps its versions and epochs for good"
        ),
    }))
}

/// AFTER STATEMENT on class: every backend parses the classes anew.
pub fn class_changed(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"class"])?;
    catalog::invalidate(fired.relation());
    Ok(fired.done())
}
