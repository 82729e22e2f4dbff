//! Walking a table's primary key, and the place that a row is taken into.

use std::ptr;

use pgrx::pg_sys;

use super::table::Table;
use crate::spi::{text, Parameter, Row};

/// Our tables' primary keys begin with two columns of type text at most.
const MOST_KEYS: usize = 2;

/// A scan of the table's primary key. After an ERROR the transaction's end closes it.
pub struct Scan {
    index: pg_sys::Relation,
    scan: pg_sys::IndexScanDesc,
}

impl Scan {
    /// Begins at the rows whose key has these first columns. The table and the snapshot must outlive the scan.
    pub unsafe fn begin(table: &Table, key: &[&str], snapshot: pg_sys::Snapshot) -> Scan {
        debug_assert!(key.len() <= MOST_KEYS);
        // SAFETY: the index is the table's own; the keys are copied by index_rescan.
        unsafe {
            let index =
                pg_sys::index_open(primary_key(table.relation), pg_sys::AccessShareLock as i32);
            let mut keys: [pg_sys::ScanKeyData; MOST_KEYS] = std::mem::zeroed();
            for (column, (entry, value)) in keys.iter_mut().zip(key).enumerate() {
                pg_sys::ScanKeyEntryInitialize(
                    entry,
                    0,
                    column as i16 + 1,
                    pg_sys::BTEqualStrategyNumber as u16,
                    pg_sys::InvalidOid,
                    *(*index).rd_indcollation.add(column),
                    pg_sys::Oid::from(pg_sys::F_TEXTEQ),
                    text(value).unwrap_or(pg_sys::Datum::from(0usize)),
                );
            }
            let count = key.len() as i32;
            let scan = begin_scan(table.relation, index, snapshot, count);
            pg_sys::index_rescan(scan, keys.as_mut_ptr(), count, ptr::null_mut(), 0);
            Scan { index, scan }
        }
    }

    /// Takes the next row into the slot; false when there is none.
    pub unsafe fn next(&self, direction: pg_sys::ScanDirection::Type, slot: &Slot) -> bool {
        // SAFETY: the slot is of the scan's table.
        unsafe { pg_sys::index_getnext_slot(self.scan, direction, slot.0) }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: begun once.
            unsafe {
                pg_sys::index_endscan(self.scan);
                pg_sys::index_close(self.index, pg_sys::AccessShareLock as i32);
            }
        }
    }
}

/// A place for one tuple. After an ERROR the transaction's end frees it.
pub struct Slot(pub *mut pg_sys::TupleTableSlot);

impl Slot {
    /// The tuple, taken apart; it must not outlive the slot.
    pub fn row(&self) -> Row {
        // SAFETY: called on slots that hold a tuple.
        unsafe { Row::of_slot(self.0) }
    }

    /// Sets a column of a virtual tuple.
    pub unsafe fn set(&self, column: usize, value: Parameter) {
        // SAFETY: the column is one of the slot's.
        unsafe {
            *(*self.0).tts_values.add(column) = value.unwrap_or(pg_sys::Datum::from(0usize));
            *(*self.0).tts_isnull.add(column) = value.is_none();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: made once.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.0) };
        }
    }
}

#[cfg(not(feature = "pg18"))]
unsafe fn begin_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: as its caller's.
    unsafe { pg_sys::index_beginscan(table, index, snapshot, keys, 0) }
}

#[cfg(feature = "pg18")]
unsafe fn begin_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: as its caller's.
    unsafe { pg_sys::index_beginscan(table, index, snapshot, ptr::null_mut(), keys, 0) }
}

#[cfg(not(feature = "pg18"))]
unsafe fn primary_key(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: as its caller's.
    unsafe { pg_sys::RelationGetPrimaryKeyIndex(table) }
}

#[cfg(feature = "pg18")]
unsafe fn primary_key(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: as its caller's.
    unsafe { pg_sys::RelationGetPrimaryKeyIndex(table, false) }
}
