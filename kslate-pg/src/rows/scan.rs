//! Walking a table's primary key, and the place that a row is taken into.

use std::ptr;

use pgrx::pg_sys;

use super::raw;
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
        let key = Key::of(key);
        // SAFETY: as its caller's.
        unsafe {
            raw::guarded(|| {
                let index = raw::primary_key(table.relation);
                Scan::begin_raw(table.relation, index, &key, snapshot)
            })
        }
    }

    unsafe fn begin_raw(
        table: pg_sys::Relation,
        index: pg_sys::Oid,
        key: &Key,
        snapshot: pg_sys::Snapshot,
    ) -> Scan {
        // SAFETY: the index is the table's own; the keys are copied by index_rescan.
        unsafe {
            let lock = pg_sys::AccessShareLock as i32;
            let index = raw::index_open(index, lock);
            let mut keys: [pg_sys::ScanKeyData; MOST_KEYS] = std::mem::zeroed();
            for (column, (entry, value)) in keys.iter_mut().zip(key.values()).enumerate() {
                raw::ScanKeyEntryInitialize(
                    entry,
                    0,
                    column as i16 + 1,
                    pg_sys::BTEqualStrategyNumber as u16,
                    pg_sys::InvalidOid,
                    *(*index).rd_indcollation.add(column),
                    pg_sys::Oid::from(pg_sys::F_TEXTEQ),
                    *value,
                );
            }
            let count = key.count as i32;
            let scan = raw::begin_scan(table, index, snapshot, count);
            raw::index_rescan(scan, keys.as_mut_ptr(), count, ptr::null_mut(), 0);
            Scan { index, scan }
        }
    }

    /// Takes the next row into the slot; false when there is none.
    pub unsafe fn next(&self, direction: pg_sys::ScanDirection::Type, slot: &Slot) -> bool {
        // SAFETY: the slot is of the scan's table.
        unsafe { pg_sys::index_getnext_slot(self.scan, direction, slot.0) }
    }

    unsafe fn end_raw(&self) {
        // SAFETY: begun once.
        unsafe {
            raw::index_endscan(self.scan);
            raw::index_close(self.index, pg_sys::AccessShareLock as i32);
        }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: begun once.
            unsafe { raw::guarded(|| self.end_raw()) };
        }
    }
}

/// The first columns of a primary key.
pub struct Key {
    values: [pg_sys::Datum; MOST_KEYS],
    count: usize,
}

impl Key {
    /// These columns, two at most.
    pub fn of(columns: &[&str]) -> Key {
        debug_assert!(columns.len() <= MOST_KEYS);
        let mut values = [pg_sys::Datum::from(0usize); MOST_KEYS];
        for (value, column) in values.iter_mut().zip(columns) {
            *value = text(column).unwrap_or(*value);
        }
        Key {
            values,
            count: columns.len().min(MOST_KEYS),
        }
    }

    fn values(&self) -> &[pg_sys::Datum] {
        self.values.get(..self.count).unwrap_or_default()
    }
}

/// Takes the first row of an index, from this side, whose key begins so and which the snapshot sees, into the slot. Call it
/// inside [`raw::guarded`].
pub unsafe fn find_raw(
    table: pg_sys::Relation,
    index: pg_sys::Oid,
    key: &Key,
    snapshot: pg_sys::Snapshot,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: as its caller's; the slot keeps the row when the scan is over.
    unsafe {
        let scan = std::mem::ManuallyDrop::new(Scan::begin_raw(table, index, key, snapshot));
        let found = raw::index_getnext_slot(scan.scan, direction, slot);
        scan.end_raw();
        found
    }
}

/// A place for one tuple. After an ERROR the transaction's end frees it.
pub struct Slot(pub *mut pg_sys::TupleTableSlot);

impl Slot {
    /// A virtual tuple of an open relation, with these values by column. What they point to must outlive the slot.
    pub unsafe fn virtual_tuple(
        relation: pg_sys::Relation,
        value: impl Fn(usize) -> Parameter,
    ) -> Slot {
        // SAFETY: the slot has as many columns as the relation, whose description outlives it.
        Slot(unsafe {
            raw::guarded(|| {
                let description = (*relation).rd_att;
                let slot = raw::MakeSingleTupleTableSlot(description, &pg_sys::TTSOpsVirtual);
                for column in 0..(*description).natts as usize {
                    let value = value(column);
                    *(*slot).tts_values.add(column) = value.unwrap_or(pg_sys::Datum::from(0usize));
                    *(*slot).tts_isnull.add(column) = value.is_none();
                }
                raw::ExecStoreVirtualTuple(slot)
            })
        })
    }

    /// The tuple, taken apart; it must not outlive the slot.
    pub fn row(&self) -> Row {
        // SAFETY: called on slots that hold a tuple.
        unsafe { Row::of_slot(self.0) }
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
