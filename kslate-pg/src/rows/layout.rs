//! What a table looks like: are its columns where this library reads and writes them, and is all that is on it ours?
//!
//! Columns are counted, not looked up by name. Between a new library and `kslate_setup()` one may be missing, and whoever owns a
//! table can drop one, give it another type, or put something else in the table's place: then its rows are refused rather than
//! misread. A table is looked at once, and again after PostgreSQL says that some relation has changed.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use super::{index, strangers};
use crate::catalog;
use crate::columns::{checkpoint, Definition, TABLES};
use crate::error::{Code, Failure, Outcome};
use crate::spi::attribute;

/// The index that checkpoints are read by beside the primary key, and its columns (sql/001_tables.sql).
const LATEST: (&CStr, &[usize]) = (
    c"checkpoint_role",
    &[
        checkpoint::RECORD,
        checkpoint::ROLE,
        checkpoint::CHECKPOINT_ID,
    ],
);

/// What is on a table.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Nothing but ours would happen with a statement: a row may be changed without one.
    pub ours: bool,
    /// No constraints, index expressions and predicates but ours: nobody's code runs when a row is changed.
    pub plain: bool,
    /// How many columns are ours. In a table that is `ours` those behind them were dropped.
    pub columns: usize,
    /// [`LATEST`], where this table has it.
    pub latest: Option<pg_sys::Oid>,
    /// A bit for each column of ours that must not be NULL.
    not_null: u32,
}

impl Layout {
    const NONE: Layout = Layout {
        ours: false,
        plain: false,
        columns: 0,
        latest: None,
        not_null: 0,
    };

    /// Must this column, counted from 0, have a value?
    pub fn must_have(&self, column: usize) -> bool {
        self.not_null >> column & 1 == 1
    }
}

thread_local! {
    /// For each of TABLES the relation that was looked at, after how many changes of relations, and what was seen.
    static SEEN: [Cell<(pg_sys::Oid, u64, Layout)>; TABLES.len()] =
        const { [const { Cell::new((pg_sys::InvalidOid, 0, Layout::NONE)) }; TABLES.len()] };
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
        .position(|table| table.name.as_bytes() == name.to_bytes())
    else {
        return Ok(Layout::NONE);
    };
    let changes = catalog::relation_changes();
    let (seen, after, layout) = SEEN.with(|seen| seen[table].get());
    if (seen, after) == (id, changes) {
        return Ok(layout);
    }
    let layout = look(relation, &TABLES[table])?;
    SEEN.with(|seen| seen[table].set((id, changes, layout)));
    Ok(layout)
}

fn look(relation: pg_sys::Relation, table: &Definition) -> Outcome<Layout> {
    // SAFETY: the relation is open.
    unsafe {
        must_be_a_table(relation, table)?;
        let not_null = columns_must_fit(relation, table)?;
        if !index::is_primary_key(relation, table.key) {
            let key = &table.columns[..table.key];
            let names: Vec<String> = key.iter().map(|(name, _)| lower(name)).collect();
            return Err(unfit(format!(
                "the primary key of kslate.{} is not ({}): restore it",
                table.name,
                names.join(", ")
            )));
        }
        let latest = Some(index::named(relation, LATEST.0))
            .filter(|found| index::is_whole(relation, *found, LATEST.1));
        Ok(Layout {
            ours: strangers::none(relation, table),
            plain: strangers::none_in_constraints(relation, table.name),
            columns: table.columns.len(),
            latest,
            not_null,
        })
    }
}

fn unfit(message: String) -> Failure {
    Failure::new(Code::Unavailable, message)
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

unsafe fn must_be_a_table(relation: pg_sys::Relation, table: &Definition) -> Outcome<()> {
    // SAFETY: the relation is open.
    let kind = unsafe { (*(*relation).rd_rel).relkind } as u8;
    if kind == pg_sys::RELKIND_RELATION {
        return Ok(());
    }
    let what = match kind {
        pg_sys::RELKIND_VIEW | pg_sys::RELKIND_MATVIEW => "a view",
        pg_sys::RELKIND_PARTITIONED_TABLE => "partitioned",
        pg_sys::RELKIND_FOREIGN_TABLE => "a foreign table",
        _ => "no table",
    };
    Err(unfit(format!(
        "kslate.{} is {what}: kslate reads and writes a plain table of that name, put it back",
        table.name
    )))
}

/// Returns which of them must not be NULL.
unsafe fn columns_must_fit(relation: pg_sys::Relation, table: &Definition) -> Outcome<u32> {
    // SAFETY: the relation is open; there are as many attributes as it says.
    unsafe {
        let (name, description) = (table.name, (*relation).rd_att);
        let mut not_null = 0;
        for (place, (column, kind)) in table.columns.iter().enumerate() {
            let column = lower(column);
            if place >= (*description).natts as usize {
                return Err(unfit(format!(
                    "kslate.{name} has no column {column}: run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()"
                )));
            }
            let found = &*attribute(description, place);
            // A dropped one has a name that none of ours has.
            if CStr::from_ptr(found.attname.data.as_ptr()).to_bytes() != column.as_bytes() {
                return Err(unfit(format!(
                    "column {} of kslate.{name} is not {column}, as this library needs it: drop columns that are not kslate's, then dump and restore the database",
                    place + 1
                )));
            }
            if found.atttypid != *kind || found.atttypmod != -1 {
                return Err(unfit(format!(
                    "column {column} of kslate.{name} has type {}, this library needs {}: alter it back",
                    type_name(found.atttypid, found.atttypmod),
                    type_name(*kind, -1)
                )));
            }
            not_null |= u32::from(found.attnotnull) << place;
        }
        Ok(not_null)
    }
}

fn type_name(kind: pg_sys::Oid, modifier: i32) -> String {
    // SAFETY: the name is a C string of ours until it is freed.
    unsafe {
        let name = pg_sys::format_type_extended(
            kind,
            modifier,
            (pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_ALLOW_INVALID) as u16,
        );
        let copy = CStr::from_ptr(name).to_string_lossy().into_owned();
        pg_sys::pfree(name.cast());
        copy
    }
}
