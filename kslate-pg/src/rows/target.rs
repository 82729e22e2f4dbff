//! What PostgreSQL's executor functions want to be given of a table that is written to.

use std::ptr;

use pgrx::pg_sys;

use super::raw;
use super::scan::Slot;

/// A relation that is written to, with its indexes and without its triggers.
pub struct Target {
    state: *mut pg_sys::EState,
    relation: *mut pg_sys::ResultRelInfo,
}

impl Target {
    pub fn open(relation: pg_sys::Relation) -> Target {
        // SAFETY: the relation is open and outlives the target; the node is of the size and kind that it says.
        unsafe {
            raw::guarded(|| {
                let state = raw::CreateExecutorState();
                let size = size_of::<pg_sys::ResultRelInfo>();
                let target: *mut pg_sys::ResultRelInfo =
                    raw::MemoryContextAllocZero((*state).es_query_cxt, size).cast();
                (*target).type_ = pg_sys::NodeTag::T_ResultRelInfo;
                raw::InitResultRelInfo(target, relation, 0, ptr::null_mut(), 0);
                (*target).ri_TrigDesc = ptr::null_mut();
                raw::ExecOpenIndices(target, false);
                (*state).es_output_cid = raw::GetCurrentCommandId(true);
                (*state).es_snapshot = raw::GetActiveSnapshot();
                Target {
                    state,
                    relation: target,
                }
            })
        }
    }

    /// Inserts a row, and checks the table's constraints.
    pub fn insert(&self, new: &Slot) {
        // SAFETY: the slot holds a tuple of the relation.
        unsafe { pg_sys::ExecSimpleRelationInsert(self.relation, self.state, new.0) };
    }

    /// Changes a row that is locked, and checks the table's constraints.
    pub fn update(&self, locked: &Slot, new: &Slot) {
        // SAFETY: both slots hold tuples of the relation.
        unsafe {
            let mut recheck: pg_sys::EPQState = std::mem::zeroed();
            init_recheck(&mut recheck, self.state);
            pg_sys::ExecSimpleRelationUpdate(
                self.relation,
                self.state,
                &mut recheck,
                locked.0,
                new.0,
            );
        }
    }

    /// Adds the index entries of a row that was updated, in those indexes that are stale.
    pub fn insert_index_entries(&self, new: &Slot, stale: StaleIndexes) {
        // SAFETY: the slot holds the tuple as it was stored.
        unsafe { insert_index_entries(self.relation, new.0, self.state, stale) };
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened once.
            unsafe {
                raw::guarded(|| {
                    raw::ExecCloseIndices(self.relation);
                    raw::ExecResetTupleTable((*self.state).es_tupleTable, false);
                    raw::FreeExecutorState(self.state);
                });
            }
        }
    }
}

/// Which indexes an update has left without an entry for the row: from PostgreSQL 16 on all, or those that summarise.
#[cfg(feature = "pg15")]
pub type StaleIndexes = bool;
#[cfg(not(feature = "pg15"))]
pub type StaleIndexes = pg_sys::TU_UpdateIndexes::Type;

/// None are stale.
#[cfg(feature = "pg15")]
pub const NONE_STALE: StaleIndexes = false;
#[cfg(not(feature = "pg15"))]
pub const NONE_STALE: StaleIndexes = pg_sys::TU_UpdateIndexes::TU_None;

/// `ExecInsertIndexTuples` after an update.
unsafe fn insert_index_entries(
    relation: *mut pg_sys::ResultRelInfo,
    slot: *mut pg_sys::TupleTableSlot,
    state: *mut pg_sys::EState,
    #[cfg_attr(feature = "pg15", allow(unused_variables))] stale: StaleIndexes,
) {
    // SAFETY: as its caller's.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::ExecInsertIndexTuples(
            relation,
            slot,
            state,
            true,
            false,
            ptr::null_mut(),
            ptr::null_mut(),
        );
        #[cfg(not(feature = "pg15"))]
        pg_sys::ExecInsertIndexTuples(
            relation,
            slot,
            state,
            true,
            false,
            ptr::null_mut(),
            ptr::null_mut(),
            stale == pg_sys::TU_UpdateIndexes::TU_Summarizing,
        );
    }
}

/// `EvalPlanQualInit` without a plan.
unsafe fn init_recheck(recheck: &mut pg_sys::EPQState, state: *mut pg_sys::EState) {
    // SAFETY: as its caller's.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::EvalPlanQualInit(recheck, state, ptr::null_mut(), ptr::null_mut(), -1);
        #[cfg(not(feature = "pg15"))]
        pg_sys::EvalPlanQualInit(
            recheck,
            state,
            ptr::null_mut(),
            ptr::null_mut(),
            -1,
            ptr::null_mut(),
        );
    }
}
