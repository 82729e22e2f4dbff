//! What PostgreSQL's executor functions want to be given of a table that is written to.

use std::ptr;

use pgrx::pg_sys;

/// What PostgreSQL wants to know of the relation that is written to: its indexes and triggers.
pub struct Target {
    pub state: *mut pg_sys::EState,
    pub relation: *mut pg_sys::ResultRelInfo,
}

impl Target {
    pub fn open(relation: pg_sys::Relation) -> Target {
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

#[cfg(feature = "pg15")]
pub unsafe fn init_recheck(recheck: &mut pg_sys::EPQState, state: *mut pg_sys::EState) {
    // SAFETY: as its caller's.
    unsafe { pg_sys::EvalPlanQualInit(recheck, state, ptr::null_mut(), ptr::null_mut(), -1) }
}

#[cfg(not(feature = "pg15"))]
pub unsafe fn init_recheck(recheck: &mut pg_sys::EPQState, state: *mut pg_sys::EState) {
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
