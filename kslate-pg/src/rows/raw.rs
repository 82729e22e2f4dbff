//! PostgreSQL's own functions without pgrx's wrappers.
//!
//! Each wrapper catches a PostgreSQL ERROR by a sigsetjmp of its own, and a change of one row is a hundred calls. Here a whole
//! step is [`guarded`] once. What is called inside must own nothing that Rust would drop: an ERROR jumps out of it.

use pgrx::pg_sys::{
    self, Datum, IndexScanDesc, ItemPointer, Oid, Relation, ScanDirection, ScanKey, Snapshot,
    TupleTableSlot, TupleTableSlotOps,
};

use super::target::StaleIndexes;

unsafe extern "C-unwind" {
    pub fn CommandCounterIncrement();
    pub fn GetTransactionSnapshot() -> Snapshot;
    pub fn GetLatestSnapshot() -> Snapshot;
    pub fn GetActiveSnapshot() -> Snapshot;
    pub fn PushActiveSnapshot(snapshot: Snapshot);
    pub fn PopActiveSnapshot();
    pub fn GetCurrentCommandId(used: bool) -> pg_sys::CommandId;
    pub fn table_slot_create(
        relation: Relation,
        list: *mut *mut pg_sys::List,
    ) -> *mut TupleTableSlot;
    pub fn MakeSingleTupleTableSlot(
        description: pg_sys::TupleDesc,
        kind: *const TupleTableSlotOps,
    ) -> *mut TupleTableSlot;
    pub fn ExecDropSingleTupleTableSlot(slot: *mut TupleTableSlot);
    pub fn ExecStoreVirtualTuple(slot: *mut TupleTableSlot) -> *mut TupleTableSlot;
    pub fn index_open(index: Oid, lock: i32) -> Relation;
    pub fn index_close(index: Relation, lock: i32);
    pub fn index_rescan(
        scan: IndexScanDesc,
        keys: ScanKey,
        count: i32,
        order: ScanKey,
        orders: i32,
    );
    pub fn index_getnext_slot(
        scan: IndexScanDesc,
        direction: ScanDirection::Type,
        slot: *mut TupleTableSlot,
    ) -> bool;
    pub fn index_endscan(scan: IndexScanDesc);
    pub fn ScanKeyEntryInitialize(
        entry: ScanKey,
        flags: i32,
        column: pg_sys::AttrNumber,
        strategy: pg_sys::StrategyNumber,
        subtype: Oid,
        collation: Oid,
        procedure: Oid,
        argument: Datum,
    );
    pub fn CreateExecutorState() -> *mut pg_sys::EState;
    pub fn FreeExecutorState(state: *mut pg_sys::EState);
    pub fn MemoryContextAllocZero(
        context: pg_sys::MemoryContext,
        size: pg_sys::Size,
    ) -> *mut std::ffi::c_void;
    pub fn InitResultRelInfo(
        target: *mut pg_sys::ResultRelInfo,
        relation: Relation,
        index: pg_sys::Index,
        root: *mut pg_sys::ResultRelInfo,
        instrument: i32,
    );
    pub fn ExecOpenIndices(target: *mut pg_sys::ResultRelInfo, speculative: bool);
    pub fn ExecCloseIndices(target: *mut pg_sys::ResultRelInfo);
    pub fn ExecResetTupleTable(table: *mut pg_sys::List, free: bool);
    pub fn CheckCmdReplicaIdentity(relation: Relation, command: pg_sys::CmdType::Type);
    pub fn simple_table_tuple_update(
        relation: Relation,
        place: ItemPointer,
        slot: *mut TupleTableSlot,
        snapshot: Snapshot,
        stale: *mut StaleIndexes,
    );

    #[cfg(not(feature = "pg18"))]
    fn index_beginscan(
        table: Relation,
        index: Relation,
        snapshot: Snapshot,
        keys: i32,
        orders: i32,
    ) -> IndexScanDesc;
    #[cfg(feature = "pg18")]
    fn index_beginscan(
        table: Relation,
        index: Relation,
        snapshot: Snapshot,
        instrument: *mut std::ffi::c_void,
        keys: i32,
        orders: i32,
    ) -> IndexScanDesc;
    #[cfg(not(feature = "pg18"))]
    fn RelationGetPrimaryKeyIndex(relation: Relation) -> Oid;
    #[cfg(feature = "pg18")]
    fn RelationGetPrimaryKeyIndex(relation: Relation, deferrable: bool) -> Oid;
}

/// Runs a step; a PostgreSQL ERROR in it becomes a panic of ours, as in pgrx's own wrappers.
pub unsafe fn guarded<T>(step: impl FnOnce() -> T) -> T {
    // SAFETY: as its caller's.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(step) }
}

/// Begins a scan of an index with so many keys.
pub unsafe fn begin_scan(
    table: Relation,
    index: Relation,
    snapshot: Snapshot,
    keys: i32,
) -> IndexScanDesc {
    // SAFETY: as its caller's.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return index_beginscan(table, index, snapshot, keys, 0);
        #[cfg(feature = "pg18")]
        return index_beginscan(table, index, snapshot, std::ptr::null_mut(), keys, 0);
    }
}

/// The index of the primary key.
pub unsafe fn primary_key(table: Relation) -> Oid {
    // SAFETY: as its caller's.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return RelationGetPrimaryKeyIndex(table);
        #[cfg(feature = "pg18")]
        return RelationGetPrimaryKeyIndex(table, false);
    }
}
