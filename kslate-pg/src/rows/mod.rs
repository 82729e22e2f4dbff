//! Locks, changes and inserts single rows by their primary key, without a statement.
//!
//! It is what `SELECT … FOR NO KEY UPDATE`, `UPDATE … WHERE key` and `INSERT … VALUES` do, through the same functions of
//! PostgreSQL that the apply worker of logical replication uses; setting up and taking down an executor for such a statement
//! costs three times what the change does, and every change of a record needs several.
//!
//! Isolation levels see what they would see with the statements: READ COMMITTED follows a row to its newest version,
//! REPEATABLE READ and SERIALIZABLE end in 40001 where it was changed after their snapshot. No trigger fires: what ours do after
//! a row was changed, the gate and the row of history, is done here by calling the same code ([`triggers::changed`]), and a table
//! with any trigger, rule or column but ours is left to the statement ([`Change::Foreign`]).

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use crate::columns::TABLES;
use crate::error::Outcome;
use crate::guard::Storage;
use crate::spi::{Parameter, Row};
use crate::triggers;

mod index;
mod layout;
mod raw;
mod scan;
mod strangers;
mod table;
mod target;

pub use layout::check as check_fit;
use scan::{Scan, Slot};
use table::Table;

/// Columns to set, counted from 0 as in [`crate::columns`], and their values.
pub type Columns = Vec<(usize, Parameter)>;

/// What became of a change.
pub enum Change<T> {
    Made(T),
    /// No row has this key.
    Missing,
    /// Nothing was done: the table has something of somebody else's on it, which only a statement carries out faithfully.
    Foreign,
}

/// Reads the row with this primary key on the snapshot of the calling query, as on a hot standby.
pub fn read<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    read: impl FnOnce(&Row) -> Outcome<T>,
) -> Outcome<Option<T>> {
    let table = Table::open(storage, table, pg_sys::AccessShareLock)?;
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: a query is running, so it has a snapshot.
    let found = unsafe { table.find(key, pg_sys::GetActiveSnapshot(), forward) };
    found.map(|slot| read(&slot.row())).transpose()
}

/// Reads the last checkpoint of a record and a role, on the snapshot of the calling query. None: the table lacks the index for it, read
/// it by a statement.
pub fn read_latest<T>(
    storage: Storage,
    key: &[&str; 2],
    read: impl FnOnce(&Row) -> Outcome<T>,
) -> Outcome<Option<Option<T>>> {
    let table = Table::open(storage, c"checkpoint", pg_sys::AccessShareLock)?;
    let Some(index) = table.layout.latest else {
        return Ok(None);
    };
    let backward = pg_sys::ScanDirection::BackwardScanDirection;
    // SAFETY: a query is running, so it has a snapshot.
    let found = unsafe { table.find_by(index, key, pg_sys::GetActiveSnapshot(), backward) };
    found.map(|slot| read(&slot.row())).transpose().map(Some)
}

/// Reads all rows whose primary key begins with `key`, in its order, on the snapshot of the calling query.
pub fn each(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    mut read: impl FnMut(&Row) -> Outcome<()>,
) -> Outcome<()> {
    let table = Table::open(storage, table, pg_sys::AccessShareLock)?;
    let slot = table.slot();
    // SAFETY: a query is running, so it has a snapshot; the slot is the table's.
    unsafe {
        let scan = Scan::begin(&table, key, pg_sys::GetActiveSnapshot());
        while scan.next(pg_sys::ScanDirection::ForwardScanDirection, &slot) {
            read(&slot.row())?;
        }
    }
    Ok(())
}

/// Locks the row with this primary key and reads it as it is then; None where the snapshot has none.
pub fn lock<'n>(storage: Storage, table: &'n CStr, key: &[&str]) -> Outcome<Option<Locked<'n>>> {
    Locked::of(Table::to_change(storage, table)?, storage, table, key)
}

/// Locks the row with this primary key, lets `change` judge it and name the columns to set, and sets them.
pub fn update<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    change: impl FnOnce(&Row) -> Outcome<(T, Columns)>,
) -> Outcome<Change<T>> {
    let open = Table::to_change(storage, table)?;
    if !open.layout.ours {
        return Ok(Change::Foreign);
    }
    match Locked::of(open, storage, table, key)? {
        Some(locked) => locked.update(change),
        None => Ok(Change::Missing),
    }
}

/// A row that this transaction has locked, as it was then. It must not outlive the call.
pub struct Locked<'n> {
    // Dropped in this order.
    slot: Slot,
    table: Table,
    storage: Storage,
    name: &'n CStr,
}

impl<'n> Locked<'n> {
    fn of(
        table: Table,
        storage: Storage,
        name: &'n CStr,
        key: &[&str],
    ) -> Outcome<Option<Locked<'n>>> {
        Ok(table.lock(key)?.map(|slot| Locked {
            slot,
            table,
            storage,
            name,
        }))
    }

    /// The row; it must not outlive the lock's value.
    pub fn row(&self) -> Row {
        self.slot.row()
    }

    /// Can it be changed without a statement?
    pub fn is_ours(&self) -> bool {
        self.table.layout.ours
    }

    /// Lets `change` judge the row, which nobody has changed since it was locked, and name the columns to set, and sets them.
    pub fn update<T>(
        self,
        change: impl FnOnce(&Row) -> Outcome<(T, Columns)>,
    ) -> Outcome<Change<T>> {
        if !self.is_ours() {
            return Ok(Change::Foreign);
        }
        let old = self.row();
        let (answer, columns) = change(&old)?;
        let new = self.table.update(&self.slot, &old, &columns);
        changed(self.storage, self.name, Some(&old), &new)?;
        Ok(Change::Made(answer))
    }
}

/// Inserts a row with all columns that are ours, in their order. False: [`Change::Foreign`].
pub fn insert(storage: Storage, table: &CStr, values: &[Parameter]) -> Outcome<bool> {
    let open = Table::to_change(storage, table)?;
    if !open.layout.ours {
        return Ok(false);
    }
    let new = open.insert(values);
    changed(storage, table, None, &new)?;
    Ok(true)
}

/// What our triggers do after a row was changed.
fn changed(storage: Storage, table: &CStr, old: Option<&Row>, new: &Slot) -> Outcome<()> {
    match triggers::changed(table) {
        Some(after) => after(storage, old, &new.row()),
        None => Ok(()),
    }
}

/// Reads the row with the highest primary key that begins with `key`, as it is committed now.
pub fn last<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    read: impl FnOnce(&Row) -> Outcome<T>,
) -> Outcome<Option<T>> {
    as_committed_now(|| {
        let table = Table::to_change(storage, table)?;
        let backward = pg_sys::ScanDirection::BackwardScanDirection;
        // SAFETY: the snapshot is the active one.
        let found = unsafe { table.find(key, pg_sys::GetActiveSnapshot(), backward) };
        found.map(|slot| read(&slot.row())).transpose()
    })
}

/// Has this role of a record saved a checkpoint, as it is committed now? None: as of [`read_latest`].
pub fn has_saved(storage: Storage, key: &[&str; 2]) -> Outcome<Option<bool>> {
    let latest = as_committed_now(|| read_latest(storage, key, |_| Ok(())))?;
    Ok(latest.map(|found| found.is_some()))
}

/// Reads on a snapshot of now, of which this transaction's own changes are part.
fn as_committed_now<T>(read: impl FnOnce() -> T) -> T {
    // SAFETY: the snapshot is given back; after an ERROR by the transaction's end.
    unsafe {
        raw::guarded(|| {
            raw::CommandCounterIncrement();
            raw::PushActiveSnapshot(raw::GetLatestSnapshot());
        });
        let found = read();
        pg_sys::PopActiveSnapshot();
        found
    }
}

/// The tables whose rows this library would misread, and why. One that is missing is not told.
pub fn unfit_tables(storage: Storage) -> Vec<(&'static str, String)> {
    let look = |table: &'static str| {
        let name = CString::new(table).ok()?;
        // SAFETY: a catalog look-up.
        let there = unsafe { pg_sys::get_relname_relid(name.as_ptr(), storage.schema) };
        if there == pg_sys::InvalidOid {
            return None;
        }
        let failure = Table::open(storage, &name, pg_sys::AccessShareLock).err()?;
        Some((table, failure.message().to_owned()))
    };
    TABLES.iter().filter_map(|table| look(table.name)).collect()
}

/// Does this transaction see one snapshot until its end (REPEATABLE READ, SERIALIZABLE)?
pub fn one_snapshot() -> bool {
    // SAFETY: reads the backend's state.
    unsafe { pg_sys::XactIsoLevel > pg_sys::XACT_READ_COMMITTED as i32 }
}
