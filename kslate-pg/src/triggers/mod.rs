//! Triggers: versions, history, the gate and immutability hold for whoever reaches the data.
//!
//! Our own code is known by its live [`crate::guard::Guard`]. It brings its versions along; for everybody else the BEFORE
//! triggers make them. The AFTER triggers see the final row, whoever wrote it.

use std::ffi::{c_char, CStr};
use std::ptr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::{Code, Failure, Outcome};
use crate::guard::{is_ours, Storage};
use crate::rows;
use crate::scope::Call;
use crate::spi::{Parameter, Row};

mod claim;
mod field;
mod keep;
mod record;

/// Declares a trigger function of the C interface.
macro_rules! trigger {
    ($name:ident, $info:ident, $body:path) => {
        /// Tells PostgreSQL how to call the function of this name.
        #[no_mangle]
        #[doc(hidden)]
        pub extern "C" fn $info() -> &'static pg_sys::Pg_finfo_record {
            const V1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
            &V1
        }

        #[no_mangle]
        #[doc(hidden)]
        #[pg_guard]
        pub unsafe extern "C-unwind" fn $name(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            crate::entry(|| $body(unsafe { Fired::new(fcinfo) }?))
        }
    };
}

trigger!(
    kslate_field_before,
    pg_finfo_kslate_field_before,
    field::before
);
trigger!(
    kslate_field_after,
    pg_finfo_kslate_field_after,
    field::after
);
trigger!(
    kslate_claim_before,
    pg_finfo_kslate_claim_before,
    claim::before
);
trigger!(
    kslate_claim_after,
    pg_finfo_kslate_claim_after,
    claim::after
);
trigger!(
    kslate_record_before,
    pg_finfo_kslate_record_before,
    record::before
);
trigger!(
    kslate_record_after,
    pg_finfo_kslate_record_after,
    record::after
);
trigger!(kslate_keep, pg_finfo_kslate_keep, keep::keep);
trigger!(
    kslate_class_changed,
    pg_finfo_kslate_class_changed,
    keep::class_changed
);

/// What made a trigger fire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Insert,
    Update,
    Delete,
    Truncate,
}

/// A trigger that has fired on one of our tables.
struct Fired {
    data: *mut pg_sys::TriggerData,
    storage: Storage,
    event: Event,
}

impl Fired {
    /// # Safety
    /// `fcinfo` must be what PostgreSQL called the function with.
    unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Outcome<Fired> {
        // SAFETY: the node's tag tells whether the context is a TriggerData.
        unsafe {
            let context = (*fcinfo).context;
            if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_TriggerData {
                return Err(Failure::new(
                    Code::ScopeDenied,
                    "this is a trigger function",
                ));
            }
            let data = context.cast::<pg_sys::TriggerData>();
            let event = match (*data).tg_event & pg_sys::TRIGGER_EVENT_OPMASK {
                pg_sys::TRIGGER_EVENT_INSERT => Event::Insert,
                pg_sys::TRIGGER_EVENT_UPDATE => Event::Update,
                pg_sys::TRIGGER_EVENT_DELETE => Event::Delete,
                _ => Event::Truncate,
            };
            Ok(Fired {
                data,
                storage: Storage::find()?,
                event,
            })
        }
    }

    /// Refuses to work on any table but the one it is for.
    fn on(&self, tables: &[&CStr]) -> Outcome<&CStr> {
        // SAFETY: the relation is open while the trigger runs; relname is a NUL-terminated name.
        let (schema, name) = unsafe {
            let form = (*(*self.data).tg_relation).rd_rel;
            (
                (*form).relnamespace,
                CStr::from_ptr((*form).relname.data.as_ptr()),
            )
        };
        if schema == self.storage.schema && tables.contains(&name) {
            // SAFETY: as above.
            rows::check_fit(unsafe { (*self.data).tg_relation })?;
            return Ok(name);
        }
        Err(Failure::new(
            Code::ScopeDenied,
            "a kslate trigger sits on a table that is not kslate's",
        ))
    }

    /// Is it our own code that writes?
    fn ours(&self) -> bool {
        is_ours(self.storage)
    }

    /// The call of a writer who is not our code.
    fn call(&self) -> Outcome<Option<Call>> {
        if self.ours() {
            Ok(None)
        } else {
            Call::open(None).map(Some)
        }
    }

    fn row_level(&self) -> bool {
        // SAFETY: the data live while the trigger runs.
        unsafe { (*self.data).tg_event & pg_sys::TRIGGER_EVENT_ROW != 0 }
    }

    fn relation(&self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { (*(*self.data).tg_relation).rd_id }
    }

    fn new_tuple(&self) -> pg_sys::HeapTuple {
        // SAFETY: as above.
        unsafe {
            match self.event {
                Event::Update => (*self.data).tg_newtuple,
                _ => (*self.data).tg_trigtuple,
            }
        }
    }

    fn deform(&self, tuple: pg_sys::HeapTuple) -> Outcome<Row> {
        if !self.row_level() || tuple.is_null() {
            return Err(Failure::new(
                Code::ScopeDenied,
                "this is a row-level trigger",
            ));
        }
        // SAFETY: the tuple is of the trigger's relation, and lives while the trigger runs.
        unsafe { Ok(Row::deform(tuple, (*(*self.data).tg_relation).rd_att)) }
    }

    /// The row as it is to be, or has become.
    fn new_row(&self) -> Outcome<Row> {
        self.deform(self.new_tuple())
    }

    /// The row as it was, for an update.
    fn old_row(&self) -> Outcome<Row> {
        // SAFETY: the data live while the trigger runs.
        self.deform(unsafe { (*self.data).tg_trigtuple })
    }

    /// Lets the row pass as it is.
    fn pass(&self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.new_tuple())
    }

    /// Leaves the row as it was.
    fn pass_old(&self) -> pg_sys::Datum {
        // SAFETY: the data live while the trigger runs.
        unsafe { pg_sys::Datum::from((*self.data).tg_trigtuple) }
    }

    /// Lets the row pass with some columns set.
    fn pass_with(&self, columns: &[(usize, Parameter)]) -> pg_sys::Datum {
        // SAFETY: all arrays have as many elements as the relation has columns; the columns are our tables' own.
        unsafe {
            let description = (*(*self.data).tg_relation).rd_att;
            let count = (*description).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0usize); count];
            let mut nulls = vec![false; count];
            let mut replace = vec![false; count];
            for (column, value) in columns {
                if let (Some(v), Some(n), Some(r)) = (
                    values.get_mut(*column),
                    nulls.get_mut(*column),
                    replace.get_mut(*column),
                ) {
                    *v = value.unwrap_or(pg_sys::Datum::from(0usize));
                    *n = value.is_none();
                    *r = true;
                }
            }
            pg_sys::Datum::from(pg_sys::heap_modify_tuple(
                self.new_tuple(),
                description,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
                replace.as_mut_ptr(),
            ))
        }
    }

    /// What an AFTER trigger returns.
    fn done(&self) -> pg_sys::Datum {
        pg_sys::Datum::from(ptr::null_mut::<c_char>())
    }
}

/// What is done after our own code has changed a row without firing triggers: given the row before and after.
pub type Changed = fn(Storage, Option<&Row>, &Row) -> Outcome<()>;

/// What that is for a table, None where nothing is.
pub fn changed(table: &CStr) -> Option<Changed> {
    match table.to_bytes() {
        b"field" => Some(field::changed),
        b"claim" => Some(claim::changed),
        _ => None,
    }
}

/// A change that nobody may make.
fn immutable(message: impl Into<String>) -> Failure {
    Failure::new(Code::Immutable, message)
}
