//! Locks, changes and inserts single rows by their primary key, without a statement.
//!
//! It is what `SELECT … FOR NO KEY UPDATE`, `UPDATE … WHERE key` and `INSERT … VALUES` do, through the same functions of
//! PostgreSQL that the apply worker of logical replication uses; setting up and taking down an executor for such a statement
//! costs three times what the change does, and every change of a record needs several.
//!
//! Isolation levels see what they would see with the statements: READ COMMITTED follows a row to its newest version,
//! REPEATABLE READ and SERIALIZABLE end in 40001 where it was changed after their snapshot. Row triggers fire. Statement
//! triggers, column lists and transition tables do not, so a table with any trigger but ours is left to the statement
//! ([`Change::Foreign`]).

use std::ffi::CStr;
use std::ptr;

use pgrx::pg_sys;

use crate::error::{Code, Failure, Outcome};
use crate::guard::Storage;
use crate::spi::{text, Parameter, Row};

/// Our tables' primary keys have two columns at most, all of type text.
const MOST_KEYS: usize = 2;

/// The triggers that are ours (sql/triggers.sql).
const OWN_TRIGGERS: [&CStr; 3] = [c"a_version", c"z_history", c"a_keep"];

/// What became of a change.
pub enum Change<T> {
    Made(T),
    /// No row has this key.
    Missing,
    /// Nothing was done: the table has triggers of somebody else, which only a statement fires faithfully.
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
pub fn lock<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    read: impl FnOnce(&Row) -> Outcome<T>,
) -> Outcome<Option<T>> {
    let table = Table::to_change(storage, table)?;
    match table.lock(key)? {
        None => Ok(None),
        Some(locked) => read(&locked.row()).map(Some),
    }
}

/// Locks the row with this primary key, lets `change` judge it and name the columns to set, and sets them.
pub fn update<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    change: impl FnOnce(&Row) -> Outcome<(T, Vec<(usize, Parameter)>)>,
) -> Outcome<Change<T>> {
    let table = Table::to_change(storage, table)?;
    if !table.has_only_own_triggers() {
        return Ok(Change::Foreign);
    }
    let Some(locked) = table.lock(key)? else {
        return Ok(Change::Missing);
    };
    let (answer, columns) = change(&locked.row())?;
    table.update(&locked, &columns)?;
    Ok(Change::Made(answer))
}

/// Inserts a row with all columns of the table, in their order. False: [`Change::Foreign`].
pub fn insert(storage: Storage, table: &CStr, values: &[Parameter]) -> Outcome<bool> {
    let table = Table::to_change(storage, table)?;
    if !table.has_only_own_triggers() {
        return Ok(false);
    }
    table.insert(values)?;
    Ok(true)
}

/// Reads the row with the highest primary key that begins with `key`, as it is committed now.
pub fn last<T>(
    storage: Storage,
    table: &CStr,
    key: &[&str],
    read: impl FnOnce(&Row) -> Outcome<T>,
) -> Outcome<Option<T>> {
    let table = Table::to_change(storage, table)?;
    // SAFETY: the snapshot is given back; after an ERROR by the transaction's end.
    let found = unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let backward = pg_sys::ScanDirection::BackwardScanDirection;
        let found = table.find(key, pg_sys::GetActiveSnapshot(), backward);
        pg_sys::PopActiveSnapshot();
        found
    };
    found.map(|slot| read(&slot.row())).transpose()
}

/// Does this transaction see one snapshot until its end (REPEATABLE READ, SERIALIZABLE)?
pub fn one_snapshot() -> bool {
    // SAFETY: reads the backend's state.
    unsafe { pg_sys::XactIsoLevel > pg_sys::XACT_READ_COMMITTED as i32 }
}

/// An open table. After an ERROR the transaction's end closes it.
struct Table {
    relation: pg_sys::Relation,
}

impl Table {
    /// Opens a table whose rows are to be locked or changed. A read-only transaction is told so, as by the statement.
    fn to_change(storage: Storage, name: &CStr) -> Outcome<Table> {
        // SAFETY: reads the transaction's state.
        unsafe { pg_sys::PreventCommandIfReadOnly(c"SELECT FOR NO KEY UPDATE".as_ptr()) };
        Table::open(storage, name, pg_sys::RowExclusiveLock)
    }

    fn open(storage: Storage, name: &CStr, lock: u32) -> Outcome<Table> {
        // SAFETY: the relation was just found.
        unsafe {
            let relation = pg_sys::get_relname_relid(name.as_ptr(), storage.schema);
            if relation == pg_sys::InvalidOid {
                return Err(Failure::new(
                    Code::Unavailable,
                    "a table of kslate is missing: run SELECT kslate_setup() as a superuser",
                ));
            }
            Ok(Table {
                relation: pg_sys::table_open(relation, lock as i32),
            })
        }
    }

    fn has_only_own_triggers(&self) -> bool {
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

    fn slot(&self) -> Slot {
        // SAFETY: the relation is open.
        Slot(unsafe { pg_sys::table_slot_create(self.relation, ptr::null_mut()) })
    }

    /// Finds the row by the primary key, on a fresh snapshot, and locks it.
    fn lock(&self, key: &[&str]) -> Outcome<Option<Slot>> {
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
    unsafe fn find(
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
    unsafe fn lock_tuple(
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
    fn update(&self, locked: &Slot, columns: &[(usize, Parameter)]) -> Outcome<()> {
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
                new.set(column, set.map_or_else(|| old.datum(column), |(_, value)| *value));
            }
            pg_sys::ExecStoreVirtualTuple(new.0);
            let mut recheck: pg_sys::EPQState = std::mem::zeroed();
            init_recheck(&mut recheck, target.state);
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

    fn insert(&self, values: &[Parameter]) -> Outcome<()> {
        let target = Target::open(self.relation);
        // SAFETY: as in `update`.
        unsafe {
            let description = (*self.relation).rd_att;
            if (*description).natts as usize != values.len() {
                return Err(Failure::new(
                    Code::Unavailable,
                    "a table of kslate has other columns than this library knows: run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()",
                ));
            }
            let new = Slot(pg_sys::MakeSingleTupleTableSlot(description, &pg_sys::TTSOpsVirtual));
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

/// A scan of the table's primary key. After an ERROR the transaction's end closes it.
struct Scan {
    index: pg_sys::Relation,
    scan: pg_sys::IndexScanDesc,
}

impl Scan {
    /// Begins at the rows whose key has these first columns. The table and the snapshot must outlive the scan.
    unsafe fn begin(table: &Table, key: &[&str], snapshot: pg_sys::Snapshot) -> Scan {
        debug_assert!(key.len() <= MOST_KEYS);
        // SAFETY: the index is the table's own; the keys are copied by index_rescan.
        unsafe {
            let index = pg_sys::index_open(
                pg_sys::RelationGetPrimaryKeyIndex(table.relation),
                pg_sys::AccessShareLock as i32,
            );
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
    unsafe fn next(&self, direction: pg_sys::ScanDirection::Type, slot: &Slot) -> bool {
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
struct Slot(*mut pg_sys::TupleTableSlot);

impl Slot {
    /// The tuple, taken apart; it must not outlive the slot.
    fn row(&self) -> Row {
        // SAFETY: called on slots that hold a tuple.
        unsafe { Row::of_slot(self.0) }
    }

    /// Sets a column of a virtual tuple.
    unsafe fn set(&self, column: usize, value: Parameter) {
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

/// What PostgreSQL wants to know of the relation that is written to: its indexes and triggers.
struct Target {
    state: *mut pg_sys::EState,
    relation: *mut pg_sys::ResultRelInfo,
}

impl Target {
    fn open(relation: pg_sys::Relation) -> Target {
        // SAFETY: the relation is open and outlives the target; the node is of the size and kind that it says.
        unsafe {
            let state = pg_sys::CreateExecutorState();
            let target = pg_sys::MemoryContextAllocZero(
                (*state).es_query_cxt,
                size_of::<pg_sys::ResultRelInfo>(),
            )
            .cast::<pg_sys::ResultRelInfo>();
            (*target).type_ = pg_sys::NodeTag::T_ResultRelInfo;
            pg_sys::InitResultRelInfo(target, relation, 0, ptr::null_mut(), 0);
            pg_sys::ExecOpenIndices(target, false);
            // AFTER triggers look for their relation there.
            (*state).es_opened_result_relations = pg_sys::lappend(ptr::null_mut(), target.cast());
            (*state).es_output_cid = pg_sys::GetCurrentCommandId(true);
            (*state).es_snapshot = pg_sys::GetActiveSnapshot();
            Target {
                state,
                relation: target,
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened once.
            unsafe {
                pg_sys::ExecCloseIndices(self.relation);
                pg_sys::ExecResetTupleTable((*self.state).es_tupleTable, false);
                pg_sys::FreeExecutorState(self.state);
            }
        }
    }
}

fn could_not_lock() -> Failure {
    Failure::new(
        Code::Busy,
        "the record could not be locked; nothing was changed, send the same request again",
    )
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

#[cfg(feature = "pg15")]
unsafe fn init_recheck(recheck: &mut pg_sys::EPQState, state: *mut pg_sys::EState) {
    // SAFETY: as its caller's.
    unsafe { pg_sys::EvalPlanQualInit(recheck, state, ptr::null_mut(), ptr::null_mut(), -1) }
}

#[cfg(not(feature = "pg15"))]
unsafe fn init_recheck(recheck: &mut pg_sys::EPQState, state: *mut pg_sys::EState) {
    // SAFETY: as its caller's.
    unsafe {
        pg_sys::EvalPlanQualInit(
            recheck,
            state,
            ptr::null_mut(),
            ptr::null_mut(),
            -1,
            ptr::null_mut(),
        )
    }
}
