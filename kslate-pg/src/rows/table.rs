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
            let relation = pg_sys::table_open(relation, lock as i32);
            match layout::check(relation) {
                Ok(layout) => Ok(Table { relation, layout }),
                Err(unfit) => {
                    pg_sys::table_close(relation, pg_sys::NoLock as i32);
                    Err(unfit)
                }
            }
        }
    }

    pub fn slot(&self) -> Slot {
        // SAFETY: the relation is open.
        Slot(unsafe { pg_sys::table_slot_create(self.relation, ptr::null_mut()) })
    }

    /// Finds the row by the primary key, on a fresh snapshot, and locks it.
    pub fn lock(&self, key: &[&str]) -> Outcome<Option<Slot>> {
        let columns = Key::of(key);
        // SAFETY: the snapshot and the slots are given back; after an ERROR by the transaction's end.
        let (locked, outcome, moved_on) = unsafe { raw::guarded(|| self.lock_raw(&columns)) };
        let locked = Slot(locked);
        match outcome {
            None => Ok(None),
            // Its newest version has another key: there is no such row any more.
            Some(pg_sys::TM_Result::TM_Ok) if moved_on && !locked.row().begins_with(key) => {
                Ok(None)
            }
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

    /// A slot, and what became of the lock; None where there is no such row. In the slot is the row's newest version; last is
    /// whether that is another one than the snapshot sees.
    unsafe fn lock_raw(
        &self,
        key: &Key,
    ) -> (
        *mut pg_sys::TupleTableSlot,
        Option<pg_sys::TM_Result::Type>,
        bool,
    ) {
        // SAFETY: the relation is open, and the tuple that is locked was seen in it by this snapshot.
        unsafe {
            // What this command has done so far must be seen, and what others committed while we waited.
            raw::CommandCounterIncrement();
            raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            let snapshot = raw::GetActiveSnapshot();
            let seen = raw::table_slot_create(self.relation, ptr::null_mut());
            let locked = raw::table_slot_create(self.relation, ptr::null_mut());
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let mut about: pg_sys::TM_FailureData = std::mem::zeroed();
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
            (locked, outcome, about.traversed)
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
                let kept = || old.datum(column).filter(|_| column < self.layout.columns);
                set.map_or_else(kept, |(_, value)| *value)
            });
            let fits = |(column, value): &(usize, Parameter)| {
                value.is_some() || !self.layout.must_have(*column)
            };
            if self.layout.plain && columns.iter().all(fits) {
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

    /// Inserts a row with all columns that are ours, and returns it. No trigger fires.
    pub fn insert(&self, values: &[Parameter]) -> Slot {
        // SAFETY: as in `update`.
        unsafe {
            let new = Slot::virtual_tuple(self.relation, |column| {
                values.get(column).copied().flatten()
            });
            if !self.layout.plain {
                pin_path();
            }
            Target::open(self.relation).insert(&new);
            new
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
