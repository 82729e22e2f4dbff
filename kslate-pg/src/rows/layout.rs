//! Are the columns of a table where this library reads and writes them?
//!
//! They are counted, not looked up by name. Between a new library and `kslate_setup()` one may be missing, and whoever owns a
//! table can drop one or add one in between: then its rows are refused rather than misread. A table is looked at once, and again
//! after PostgreSQL says that some relation has changed.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::catalog;
use crate::columns::TABLES;
use crate::error::{Code, Failure, Outcome};

thread_local! {
    /// For each of TABLES the relation that was looked at, and after how many changes of relations.
    static SEEN: [Cell<(pg_sys::Oid, u64)>; TABLES.len()] =
        const { [const { Cell::new((pg_sys::InvalidOid, 0)) }; TABLES.len()] };
}

/// Refuses a table of schema kslate whose rows this library would misread. The relation is open.
pub fn check(relation: pg_sys::Relation) -> Outcome<()> {
    // SAFETY: the relation is open; its name is a C string.
    let (id, name) = unsafe {
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        ((*relation).rd_id, CStr::from_ptr(name))
    };
    let Some(table) = TABLES
        .iter()
        .position(|(table, _)| table.as_bytes() == name.to_bytes())
    else {
        return Ok(());
    };
    let now = (id, catalog::relation_changes());
    let seen = SEEN.with(|seen| seen.get(table).map(Cell::get));
    if seen != Some(now) {
        compare(relation, TABLES[table].0, TABLES[table].1)?;
        SEEN.with(|seen| seen[table].set(now));
    }
    Ok(())
}

fn compare(relation: pg_sys::Relation, table: &str, columns: &[&str]) -> Outcome<()> {
    for (place, column) in columns.iter().enumerate() {
        let found = attribute(relation, place);
        if found
            .as_ref()
            .is_some_and(|found| found.eq_ignore_ascii_case(column))
        {
            continue;
        }
        let column = column.to_ascii_lowercase();
        let message = match found {
            None => format!(
                "kslate.{table} has no column {column}: run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()"
            ),
            Some(_) => format!(
                "column {} of kslate.{table} is not {column}, as this library needs it: drop columns that are not kslate's, then dump and restore the database",
                place + 1
            ),
        };
        return Err(Failure::new(Code::Unavailable, message));
    }
    Ok(())
}

/// The name of the column at a place; a dropped one has a name that none of ours has.
fn attribute(relation: pg_sys::Relation, place: usize) -> Option<String> {
    // SAFETY: the relation is open; a name is a C string of ours until it is freed.
    unsafe {
        let name = pg_sys::SPI_fname((*relation).rd_att, place as i32 + 1);
        if name.is_null() {
            return None;
        }
        let copy = CStr::from_ptr(name).to_string_lossy().into_owned();
        pg_sys::pfree(name.cast());
        Some(copy)
    }
}
