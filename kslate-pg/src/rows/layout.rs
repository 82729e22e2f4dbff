//! What a table looks like: are its columns where this library reads and writes them, and is there anything that is not ours?
//!
//! Columns are counted, not looked up by name. Between a new library and `kslate_setup()` one may be missing, and whoever owns a
//! table can drop one or add one in between: then its rows are refused rather than misread. A table is looked at once, and again
//! after PostgreSQL says that some relation has changed.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::catalog;
use crate::columns::TABLES;
use crate::error::{Code, Failure, Outcome};

/// The triggers that are ours (sql/triggers.sql).
const OWN_TRIGGERS: [&CStr; 3] = [c"a_version", c"z_history", c"a_keep"];
/// The table of ours that has CHECK constraints, how many, and its indexes with a predicate (sql/001_tables.sql).
const CHECKED: (&str, u16) = ("claim", 2);
const OWN_PREDICATES: [&CStr; 2] = [c"claim_open", c"claim_recheck"];

/// What is on a table.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// No triggers but ours: a row may be changed without a statement.
    pub own_triggers: bool,
    /// No columns, constraints, index expressions and predicates but ours: nobody's code runs when a row is changed.
    pub plain: bool,
}

thread_local! {
    /// For each of TABLES the relation that was looked at, after how many changes of relations, and what was seen.
    static SEEN: [Cell<(pg_sys::Oid, u64, Layout)>; TABLES.len()] =
        const { [const { Cell::new((pg_sys::InvalidOid, 0, Layout { own_triggers: false, plain: false })) }; TABLES.len()] };
}

/// Refuses a table of schema kslate whose rows this library would misread. The relation is open.
pub fn check(relation: pg_sys::Relation) -> Outcome<Layout> {
    // SAFETY: the relation is open; its name is a C string.
    let (id, name) = unsafe {
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        ((*relation).rd_id, CStr::from_ptr(name))
    };
    let Some(table) = TABLES
        .iter()
        .position(|(table, _)| table.as_bytes() == name.to_bytes())
    else {
        return Ok(Layout::default());
    };
    let changes = catalog::relation_changes();
    let (seen, after, layout) = SEEN.with(|seen| seen[table].get());
    if (seen, after) == (id, changes) {
        return Ok(layout);
    }
    let (name, columns) = TABLES[table];
    compare(relation, name, columns)?;
    // SAFETY: the relation is open.
    let layout = unsafe {
        Layout {
            own_triggers: has_only_own_triggers(relation),
            plain: is_plain(relation, name, columns.len()),
        }
    };
    SEEN.with(|seen| seen[table].set((id, changes, layout)));
    Ok(layout)
}

unsafe fn has_only_own_triggers(relation: pg_sys::Relation) -> bool {
    // SAFETY: the relation is open; its triggers' names are C strings.
    unsafe {
        let triggers = (*relation).trigdesc;
        triggers.is_null()
            || (0..(*triggers).numtriggers as usize).all(|i| {
                let name = (*(*triggers).triggers.add(i)).tgname;
                OWN_TRIGGERS.contains(&CStr::from_ptr(name))
            })
    }
}

unsafe fn is_plain(relation: pg_sys::Relation, table: &str, columns: usize) -> bool {
    // SAFETY: the relation is open, and so is each index while it is looked at.
    unsafe {
        let description = (*relation).rd_att;
        let constraints = (*description).constr;
        let checks = if table == CHECKED.0 { CHECKED.1 } else { 0 };
        let own_columns = (*description).natts as usize == columns
            && (constraints.is_null()
                || ((*constraints).num_check == checks && !(*constraints).has_generated_stored));
        let indexes = pg_sys::RelationGetIndexList(relation);
        let count = if indexes.is_null() {
            0
        } else {
            (*indexes).length as usize
        };
        own_columns && (0..count).all(|i| is_plain_index((*(*indexes).elements.add(i)).oid_value))
    }
}

unsafe fn is_plain_index(index: pg_sys::Oid) -> bool {
    // SAFETY: the index is one of an open relation.
    unsafe {
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let name = CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr());
        let plain = pg_sys::RelationGetIndexExpressions(index).is_null()
            && (pg_sys::RelationGetIndexPredicate(index).is_null()
                || OWN_PREDICATES.contains(&name));
        pg_sys::index_close(index, pg_sys::AccessShareLock as i32);
        plain
    }
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
