//! A table of ours, opened: finding, locking, changing and inserting its rows.

use std::ffi::CStr;
use std::ptr;

use pgrx::pg_sys;

use super::layout::{self, Layout};
use super::one_snapshot;
use super::raw;
use super::scan::{find_raw, Key, Slot};
use super::target::{self, Target};
use crate::error::{Code, Failure, Outcome};
use crate::guard::{pin_path, Storage};
use crate::spi::{Parameter, Row};

/// An open table. After an ERROR the transaction's end closes it.
pub struct Table {
    pub relation: pg_sys::Relation,
    pub layout: Layout,
}

impl Table {
    /// Opens a table whose rows are to be locked or changed. A read-only transaction is told so, as by the statement.
    pub fn to_change(storage: Storage, name: &CStr) -> Outcome<Table> {
        // SAFETY: reads the transaction's state.
        unsafe { pg_sys::PreventCommandIfReadOnly(c"SELECT FOR NO KEY UPDATE".as_ptr()) };
        Table::open(storage, name, pg_sys::RowExclusiveLock)
    }

    pub fn open(storage: Storage, name: &CStr, lock: u32) -> Outcome<Table> {
        // SAFETY: the relation was just found.
        unsafe {
            let relation = pg_sys::get_relname_relid(name.as_ptr(), storage.schema);
            if relation == pg_sys::InvalidOid {
                return Err(Failure::new(
                    Code::Unavailable,
                    "a table of kslate is missing: run SELECT kslate_setup() as a superuser",
                ));
            }
            let mut table = Table {
                relation: pg_sys::table_open(relation, lock as i32),
                layout: Layout::default(),
            };
            table.layout = layout::check(table.relation)?;
            Ok(table)
        }
    }

    pub fn slot(&self) -> Slot {
        // SAFETY: the relation is open.
        Slot(unsafe { pg_sys::table_slot_create(self.relation, ptr::null_mut()) })
    }

    /// Finds the row by the primary key, on a fresh snapshot, and locks it.
    pub fn lock(&self, key: &[&str]) -> Outcome<Option<Slot>> {
        let key = Key::of(key);
        // SAFETY: the snapshot and the slots are given back; after an ERROR by the transaction's end.
        let (locked, outcome) = unsafe { raw::guarded(|| self.lock_raw(&key)) };
        let locked = Slot(locked);
        match outcome {
            None => Ok(None),
            Some(pg_sys::TM_Result::TM_Ok) => Ok(Some(locked)),
            Some(pg_sys::TM_Result::TM_Updated | pg_sys::TM_Result::TM_Deleted)
                if one_snapshot() =>
            {
                pgrx::ereport!(
                    ERROR,
                    pgrx::PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                    "could not serialize access due to concurrent update"
                );
            }
            Some(pg_sys::TM_Result::TM_Deleted) => Ok(None),
            Some(_) => Err(could_not_lock()),
        }
    }

    /// A slot, and what became of the lock; None where there is no such row. In the slot is the row's newest version.
    unsafe fn lock_raw(
        &self,
        key: &Key,
    ) -> (*mut pg_sys::TupleTableSlot, Option<pg_sys::TM_Result::Type>) {
        // SAFETY: the relation is open, and the tuple that is locked was seen in it by this snapshot.
        unsafe {
            // What this command has done so far must be seen, and what others committed while we waited.
            raw::CommandCounterIncrement();
            raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            let snapshot = raw::GetActiveSnapshot();
            let seen = raw::table_slot_create(self.relation, ptr::null_mut());
            let locked = raw::table_slot_create(self.relation, ptr::null_mut());
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let outcome = find_raw(
                self.relation,
                raw::primary_key(self.relation),
                key,
                snapshot,
                forward,
                seen,
            )
            .then(|| {
                let mut flags = pg_sys::TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS as u8;
                if !one_snapshot() {
                    flags |= pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8;
                }
                let mut place = (*seen).tts_tid;
                let mut about: pg_sys::TM_FailureData = std::mem::zeroed();
                match (*(*self.relation).rd_tableam).tuple_lock {
                    None => pg_sys::TM_Result::TM_Invisible,
                    Some(tuple_lock) => tuple_lock(
                        self.relation,
                        &mut place,
                        snapshot,
                        locked,
                        raw::GetCurrentCommandId(true),
                        pg_sys::LockTupleMode::LockTupleNoKeyExclusive,
                        pg_sys::LockWaitPolicy::LockWaitBlock,
                        flags,
                        &mut about,
                    ),
                }
            });
            raw::ExecDropSingleTupleTableSlot(seen);
            raw::PopActiveSnapshot();
            (locked, outcome)
        }
    }

    /// The index of this name, if it is one of the table's on these columns, counted from 0, and whole.
    pub fn index(&self, storage: Storage, name: &CStr, columns: &[usize]) -> Option<pg_sys::Oid> {
        // SAFETY: catalog look-ups; the tuple is released before we leave. An index has as many columns as it says.
        unsafe {
            let index = pg_sys::get_relname_relid(name.as_ptr(), storage.schema);
            let tuple = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::INDEXRELID as i32,
                pg_sys::Datum::from(index),
            );
            if tuple.is_null() {
                return None;
            }
            let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(tuple);
            let places = (*form).indkey.values.as_slice((*form).indnkeyatts as usize);
            let fits = (*form).indrelid == (*self.relation).rd_id
                && (*form).indisvalid
                && places.len() == columns.len()
                && places
                    .iter()
                    .zip(columns)
                    .all(|(place, column)| *place as usize == column + 1);
            pg_sys::ReleaseSysCache(tuple);
            fits.then_some(index)
        }
    }

    /// The first row, from this side, whose primary key begins so, as the snapshot sees it.
    pub unsafe fn find(
        &self,
        key: &[&str],
        snapshot: pg_sys::Snapshot,
        direction: pg_sys::ScanDirection::Type,
    ) -> Option<Slot> {
        // SAFETY: as its caller's.
        unsafe {
            let index = raw::guarded(|| raw::primary_key(self.relation));
            self.find_by(index, key, snapshot, direction)
        }
    }

    /// The same by another index.
    pub unsafe fn find_by(
        &self,
        index: pg_sys::Oid,
        key: &[&str],
        snapshot: pg_sys::Snapshot,
        direction: pg_sys::ScanDirection::Type,
    ) -> Option<Slot> {
        let key = Key::of(key);
        // SAFETY: as its caller's.
        let (slot, found) = unsafe {
            raw::guarded(|| {
                let slot = raw::table_slot_create(self.relation, ptr::null_mut());
                let found = find_raw(self.relation, index, &key, snapshot, direction, slot);
                (slot, found)
            })
        };
        let slot = Slot(slot);
        found.then_some(slot)
    }

    /// Sets columns of a locked row, `old` when taken apart, and returns it as it is then. No trigger fires.
    pub fn update(&self, locked: &Slot, old: &Row, columns: &[(usize, Parameter)]) -> Slot {
        // SAFETY: the new slot has the relation's columns; what it points to lives until the row is written.
        unsafe {
            let new = Slot::virtual_tuple(self.relation, |column| {
                let set = columns.iter().find(|(set, _)| *set == column);
                set.map_or_else(|| old.datum(column), |(_, value)| *value)
            });
            if self.layout.plain {
                self.update_plain(locked, &new);
            } else {
                pin_path();
                Target::open(self.relation).update(locked, &new);
            }
            new
        }
    }

    /// Most updates are HOT and leave the indexes alone, so they are opened where that was not so.
    unsafe fn update_plain(&self, locked: &Slot, new: &Slot) {
        // SAFETY: as in `update`; the row was locked by this transaction, so nobody has changed it.
        unsafe {
            let mut stale = target::NONE_STALE;
            raw::guarded(|| {
                raw::CheckCmdReplicaIdentity(self.relation, pg_sys::CmdType::CMD_UPDATE);
                raw::simple_table_tuple_update(
                    self.relation,
                    &mut (*locked.0).tts_tid,
                    new.0,
                    raw::GetActiveSnapshot(),
                    &mut stale,
                );
            });
            if stale != target::NONE_STALE {
                Target::open(self.relation).insert_index_entries(new, stale);
            }
        }
    }

    /// Inserts a row with all columns of the table, and returns it. No trigger fires.
    pub fn insert(&self, values: &[Parameter]) -> Outcome<Slot> {
        // SAFETY: as in `update`.
        unsafe {
            if (*(*self.relation).rd_att).natts as usize != values.len() {
                return Err(Failure::new(
                    Code::Unavailable,
                    "a table of kslate has columns that are not kslate's: drop them",
                ));
            }
            let new = Slot::virtual_tuple(self.relation, |column| {
                values.get(column).copied().flatten()
            });
            if !self.layout.plain {
                pin_path();
            }
            Target::open(self.relation).insert(&new);
            Ok(new)
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened once. The lock stays until the transaction ends.
            unsafe { pg_sys::table_close(self.relation, pg_sys::NoLock as i32) };
        }
    }
}

fn could_not_lock() -> Failure {
    Failure::new(
        Code::Busy,
        "the record could not be locked; nothing was changed, send the same request again",
    )
}
