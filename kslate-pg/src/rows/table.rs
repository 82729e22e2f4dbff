//! A table of ours, opened: finding, locking, changing and inserting its rows.

use std::ffi::CStr;
use std::ptr;

use pgrx::pg_sys;

use super::layout;
use super::one_snapshot;
use super::scan::{Scan, Slot};
use super::target::{self, Target};
use crate::error::{Code, Failure, Outcome};
use crate::guard::Storage;
use crate::spi::Parameter;

/// The triggers that are ours (sql/triggers.sql).
const OWN_TRIGGERS: [&CStr; 3] = [c"a_version", c"z_history", c"a_keep"];

/// An open table. After an ERROR the transaction's end closes it.
pub struct Table {
    pub relation: pg_sys::Relation,
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
            let table = Table {
                relation: pg_sys::table_open(relation, lock as i32),
            };
            layout::check(table.relation)?;
            Ok(table)
        }
    }

    pub fn has_only_own_triggers(&self) -> bool {
        // SAFETY: the relation is open; its triggers' names are C strings.
        unsafe {
            let triggers = (*self.relation).trigdesc;
            triggers.is_null()
                || (0..(*triggers).numtriggers as usize).all(|i| {
                    let name = (*(*triggers).triggers.add(i)).tgname;
                    OWN_TRIGGERS.contains(&CStr::from_ptr(name))
                })
        }
    }

    pub fn slot(&self) -> Slot {
        // SAFETY: the relation is open.
        Slot(unsafe { pg_sys::table_slot_create(self.relation, ptr::null_mut()) })
    }

    /// Finds the row by the primary key, on a fresh snapshot, and locks it.
    pub fn lock(&self, key: &[&str]) -> Outcome<Option<Slot>> {
        // SAFETY: the snapshot is given back below; after an ERROR by the transaction's end.
        unsafe {
            // What this command has done so far must be seen, and what others committed while we waited.
            pg_sys::CommandCounterIncrement();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            let snapshot = pg_sys::GetActiveSnapshot();
            let locked = self.slot();
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            let outcome = match self.find(key, snapshot, forward) {
                None => Ok(false),
                Some(seen) => self.lock_tuple(&seen, snapshot, &locked),
            };
            pg_sys::PopActiveSnapshot();
            Ok(outcome?.then_some(locked))
        }
    }

    /// The first row, from this side, whose key begins so, as the snapshot sees it.
    pub unsafe fn find(
        &self,
        key: &[&str],
        snapshot: pg_sys::Snapshot,
        direction: pg_sys::ScanDirection::Type,
    ) -> Option<Slot> {
        let seen = self.slot();
        // SAFETY: as its caller's; the slot keeps the row when the scan is over.
        let found = unsafe { Scan::begin(self, key, snapshot).next(direction, &seen) };
        found.then_some(seen)
    }

    /// Locks the tuple, after its writers have ended, and takes its newest version into the slot. False: it was deleted.
    pub unsafe fn lock_tuple(
        &self,
        seen: &Slot,
        snapshot: pg_sys::Snapshot,
        slot: &Slot,
    ) -> Outcome<bool> {
        // SAFETY: the tuple was seen by this snapshot in this relation.
        unsafe {
            let (mut place, one_snapshot) = ((*seen.0).tts_tid, one_snapshot());
            let mut flags = pg_sys::TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS as u8;
            if !one_snapshot {
                flags |= pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8;
            }
            let mut about: pg_sys::TM_FailureData = std::mem::zeroed();
            let Some(tuple_lock) = (*(*self.relation).rd_tableam).tuple_lock else {
                return Err(could_not_lock());
            };
            let command = pg_sys::GetCurrentCommandId(true);
            let outcome = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                tuple_lock(
                    self.relation,
                    &mut place,
                    snapshot,
                    slot.0,
                    command,
                    pg_sys::LockTupleMode::LockTupleNoKeyExclusive,
                    pg_sys::LockWaitPolicy::LockWaitBlock,
                    flags,
                    &mut about,
                )
            });
            match outcome {
                pg_sys::TM_Result::TM_Ok => Ok(true),
                pg_sys::TM_Result::TM_Updated | pg_sys::TM_Result::TM_Deleted if one_snapshot => {
                    pgrx::ereport!(
                        ERROR,
                        pgrx::PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                        "could not serialize access due to concurrent update"
                    );
                }
                pg_sys::TM_Result::TM_Deleted => Ok(false),
                _ => Err(could_not_lock()),
            }
        }
    }

    /// Sets columns of a locked row.
    pub fn update(&self, locked: &Slot, columns: &[(usize, Parameter)]) -> Outcome<()> {
        let target = Target::open(self.relation);
        // SAFETY: the new slot has the relation's columns; what it points to lives until the row is written.
        unsafe {
            let old = locked.row();
            let new = Slot(pg_sys::MakeSingleTupleTableSlot(
                (*self.relation).rd_att,
                &pg_sys::TTSOpsVirtual,
            ));
            for column in 0..(*(*self.relation).rd_att).natts as usize {
                let set = columns.iter().find(|(set, _)| *set == column);
                new.set(
                    column,
                    set.map_or_else(|| old.datum(column), |(_, value)| *value),
                );
            }
            pg_sys::ExecStoreVirtualTuple(new.0);
            let mut recheck: pg_sys::EPQState = std::mem::zeroed();
            target::init_recheck(&mut recheck, target.state);
            pg_sys::AfterTriggerBeginQuery();
            pg_sys::ExecSimpleRelationUpdate(
                target.relation,
                target.state,
                &mut recheck,
                locked.0,
                new.0,
            );
            pg_sys::AfterTriggerEndQuery(target.state);
        }
        Ok(())
    }

    pub fn insert(&self, values: &[Parameter]) -> Outcome<()> {
        let target = Target::open(self.relation);
        // SAFETY: as in `update`.
        unsafe {
            let description = (*self.relation).rd_att;
            if (*description).natts as usize != values.len() {
                return Err(Failure::new(
                    Code::Unavailable,
                    "a table of kslate has columns that are not kslate's: drop them",
                ));
            }
            let new = Slot(pg_sys::MakeSingleTupleTableSlot(
                description,
                &pg_sys::TTSOpsVirtual,
            ));
            for (column, value) in values.iter().enumerate() {
                new.set(column, *value);
            }
            pg_sys::ExecStoreVirtualTuple(new.0);
            pg_sys::AfterTriggerBeginQuery();
            pg_sys::ExecSimpleRelationInsert(target.relation, target.state, new.0);
            pg_sys::AfterTriggerEndQuery(target.state);
        }
        Ok(())
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
