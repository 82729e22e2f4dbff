//! Kept plans: a statement is planned once in a backend and then only executed.
//!
//! The statements of operations run inside one [`Session`], as the owner of schema kslate and with a pinned search_path
//! (see [`crate::guard`]); those of `kslate_setup` and of the doctor's first look with the caller's rights.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::datum::{FromDatum, IntoDatum};
use pgrx::{pg_sys, Uuid};

use crate::error::{Code, Failure, Outcome};
use crate::guard::pin_path;
use crate::json::Jsonb;
use crate::time::Time;

/// A statement of ours: its text, the types of its parameters and, once used, its plan.
pub struct Statement {
    sql: &'static std::ffi::CStr,
    types: &'static [pg_sys::Oid],
    plan: AtomicPtr<pg_sys::_SPI_plan>,
}

impl Statement {
    /// A statement that is planned when it is first executed.
    pub const fn new(sql: &'static std::ffi::CStr, types: &'static [pg_sys::Oid]) -> Statement {
        Statement {
            sql,
            types,
            plan: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The kept plan. A backend is one thread, so nobody else can be here; the cell is filled only once the plan is kept.
    fn plan(&self) -> Outcome<pg_sys::SPIPlanPtr> {
        let plan = self.plan.load(Ordering::Relaxed);
        if !plan.is_null() {
            return Ok(plan);
        }
        // SAFETY: called inside an SPI connection; SPI_prepare_cursor copies the types.
        let plan = unsafe {
            let types = self.types.as_ptr().cast_mut();
            // One plan for good: with skewed statistics the plan cache would rather plan each call.
            let plan = pg_sys::SPI_prepare_cursor(
                self.sql.as_ptr(),
                self.types.len() as i32,
                types,
                pg_sys::CURSOR_OPT_GENERIC_PLAN as i32,
            );
            if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                return Err(failed(pg_sys::SPI_result));
            }
            plan
        };
        self.plan.store(plan, Ordering::Relaxed);
        Ok(plan)
    }
}

fn failed(code: i32) -> Failure {
    Failure::new(
        Code::Unavailable,
        format!("a statement of kslate failed (SPI {code})"),
    )
}

/// A parameter: NULL or a datum that lives until the session ends.
pub type Parameter = Option<pg_sys::Datum>;

/// A text parameter.
pub fn text(value: &str) -> Parameter {
    value.into_datum()
}

/// A text parameter that may be NULL.
pub fn opt_text(value: Option<&str>) -> Parameter {
    value.and_then(text)
}

/// A bigint parameter.
pub fn int(value: i64) -> Parameter {
    value.into_datum()
}

/// A bigint parameter that may be NULL.
pub fn opt_int(value: Option<i64>) -> Parameter {
    value.and_then(int)
}

/// A timestamptz parameter.
pub fn time(value: Time) -> Parameter {
    value.into_datum()
}

/// A uuid parameter.
pub fn uuid(value: Uuid) -> Parameter {
    value.into_datum()
}

/// A jsonb parameter.
pub fn jsonb(value: &Jsonb) -> Parameter {
    value.into_datum()
}

/// A text[] parameter.
pub fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Parameter {
    values.into_iter().collect::<Vec<&str>>().into_datum()
}

/// One SPI connection, made for its first statement. A nested one (a trigger below a statement of ours) is a connection of its
/// own.
pub struct Session {
    connected: Cell<bool>,
    _not_send: PhantomData<*mut ()>,
}

impl Session {
    /// A session that has executed nothing yet.
    pub fn open() -> Session {
        Session {
            connected: Cell::new(false),
            _not_send: PhantomData,
        }
    }

    fn connect(&self) -> Outcome<()> {
        if self.connected.get() {
            return Ok(());
        }
        pin_path();
        // SAFETY: matched by SPI_finish on drop, or by the end of the transaction after an ERROR.
        match unsafe { pg_sys::SPI_connect() } {
            code if code == pg_sys::SPI_OK_CONNECT as i32 => {
                self.connected.set(true);
                Ok(())
            }
            code => Err(failed(code)),
        }
    }

    /// Executes a statement that reads, on the snapshot of the calling query. Takes no transaction id, so it works on a
    /// hot standby.
    pub fn read(&self, statement: &Statement, parameters: &[Parameter]) -> Outcome<Rows<'_>> {
        self.execute(statement, parameters, true)
    }

    /// Executes a statement on a fresh snapshot: whatever follows a lock must see what was committed while it waited.
    pub fn write(&self, statement: &Statement, parameters: &[Parameter]) -> Outcome<Rows<'_>> {
        self.execute(statement, parameters, false)
    }

    /// Executes a statement that reads what is committed now, whatever the isolation level.
    pub fn read_latest(
        &self,
        statement: &Statement,
        parameters: &[Parameter],
    ) -> Outcome<Rows<'_>> {
        self.execute_latest(statement, parameters, true)
    }

    /// Executes a statement that writes after what is committed now, whatever the isolation level.
    pub fn write_latest(
        &self,
        statement: &Statement,
        parameters: &[Parameter],
    ) -> Outcome<Rows<'_>> {
        self.execute_latest(statement, parameters, false)
    }

    fn execute_latest(
        &self,
        statement: &Statement,
        parameters: &[Parameter],
        read_only: bool,
    ) -> Outcome<Rows<'_>> {
        self.connect()?;
        let plan = statement.plan()?;
        let (mut values, nulls) = split(parameters);
        // SAFETY: the plan takes as many parameters as it declares; the snapshot is registered while it is used.
        let code = unsafe {
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let code = pg_sys::SPI_execute_snapshot(
                plan,
                values.as_mut_ptr(),
                nulls.as_ptr(),
                snapshot,
                ptr::null_mut(),
                read_only,
                true,
                0,
            );
            pg_sys::UnregisterSnapshot(snapshot);
            code
        };
        rows(code)
    }

    fn execute(
        &self,
        statement: &Statement,
        parameters: &[Parameter],
        read_only: bool,
    ) -> Outcome<Rows<'_>> {
        debug_assert_eq!(parameters.len(), statement.types.len());
        self.connect()?;
        let plan = statement.plan()?;
        let (mut values, nulls) = split(parameters);
        // SAFETY: the plan takes as many parameters as it declares.
        let code = unsafe {
            pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), read_only, 0)
        };
        rows(code)
    }

    /// Runs SQL text of our own files (several statements); no user text ever comes here.
    pub fn run_script(&self, sql: &std::ffi::CStr) -> Outcome<()> {
        self.connect()?;
        // SAFETY: the text is one of our SQL files.
        match unsafe { pg_sys::SPI_execute(sql.as_ptr(), false, 0) } {
            code if code < 0 => Err(failed(code)),
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // After an ERROR the transaction's end cleans SPI up; touching it before would be wrong.
        if self.connected.get() && !std::thread::panicking() {
            // SAFETY: the connection was opened by this session and is the innermost one.
            unsafe { pg_sys::SPI_finish() };
        }
    }
}

fn split(parameters: &[Parameter]) -> (Vec<pg_sys::Datum>, Vec<std::ffi::c_char>) {
    let null = pg_sys::Datum::from(0usize);
    parameters
        .iter()
        .map(|p| {
            (
                p.unwrap_or(null),
                if p.is_some() { b' ' } else { b'n' } as std::ffi::c_char,
            )
        })
        .unzip()
}

fn rows<'s>(code: i32) -> Outcome<Rows<'s>> {
    if code < 0 {
        return Err(failed(code));
    }
    // SAFETY: SPI has just executed a statement; a utility statement or one without RETURNING leaves no table.
    unsafe {
        let table = pg_sys::SPI_tuptable;
        let count = if table.is_null() {
            0
        } else {
            (*table).numvals as usize
        };
        Ok(Rows {
            table,
            count,
            changed: pg_sys::SPI_processed,
            _session: PhantomData,
        })
    }
}

/// What a statement returned. It must not outlive the session, whose memory it is in.
pub struct Rows<'s> {
    table: *mut pg_sys::SPITupleTable,
    count: usize,
    changed: u64,
    _session: PhantomData<&'s Session>,
}

impl Rows<'_> {
    /// How many rows the statement returned or changed.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// A statement of ours has changed so many rows, unless a trigger or rule of somebody else's took it out of its hands.
    pub fn must_have_changed(&self, rows: usize) -> Outcome<()> {
        if self.changed == rows as u64 {
            return Ok(());
        }
        Err(Failure::held_back())
    }

    /// The first row, if there is one.
    pub fn first(&self) -> Option<Row> {
        self.row(0)
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = Row> + '_ {
        (0..self.count).filter_map(|i| self.row(i))
    }

    fn row(&self, i: usize) -> Option<Row> {
        if i >= self.count {
            return None;
        }
        // SAFETY: `i` is below `numvals`; the tuple has the table's description.
        unsafe {
            let description = (*self.table).tupdesc;
            Some(Row::deform(*(*self.table).vals.add(i), description))
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if !self.table.is_null() && !std::thread::panicking() {
            // SAFETY: nothing borrowed from the table outlives it: Row::get copies.
            unsafe { pg_sys::SPI_freetuptable(self.table) };
        }
    }
}

/// `TupleDescAttr(description, column)`, counted from 0.
///
/// # Safety
/// The description must have this column.
pub unsafe fn attribute(
    description: pg_sys::TupleDesc,
    column: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: as its caller's; from PostgreSQL 18 on the attributes lie behind their compact form.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let attributes = (*description).attrs.as_ptr();
        #[cfg(feature = "pg18")]
        let attributes: *const pg_sys::FormData_pg_attribute = (*description)
            .compact_attrs
            .as_ptr()
            .add((*description).natts as usize)
            .cast();
        attributes.add(column)
    }
}

/// One row, taken apart. It must not outlive what it was taken from.
pub struct Row {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    description: pg_sys::TupleDesc,
}

impl Row {
    /// Takes a tuple apart.
    ///
    /// # Safety
    /// The tuple must have this description, and outlive the row's use.
    pub unsafe fn deform(tuple: pg_sys::HeapTuple, description: pg_sys::TupleDesc) -> Row {
        // SAFETY: both arrays have as many elements as the description has attributes.
        unsafe {
            let columns = (*description).natts as usize;
            let mut values = vec![pg_sys::Datum::from(0usize); columns];
            let mut nulls = vec![true; columns];
            pg_sys::heap_deform_tuple(tuple, description, values.as_mut_ptr(), nulls.as_mut_ptr());
            Row {
                values,
                nulls,
                description,
            }
        }
    }

    /// Takes the tuple in a slot apart.
    ///
    /// # Safety
    /// The slot must hold a tuple, and keep it while the row is used.
    pub unsafe fn of_slot(slot: *mut pg_sys::TupleTableSlot) -> Row {
        // SAFETY: once taken apart, both arrays have as many elements as the description has attributes.
        unsafe {
            let description = (*slot).tts_tupleDescriptor;
            let columns = (*description).natts;
            if i32::from((*slot).tts_nvalid) < columns {
                pg_sys::slot_getsomeattrs_int(slot, columns);
            }
            let columns = columns as usize;
            Row {
                values: std::slice::from_raw_parts((*slot).tts_values, columns).to_vec(),
                nulls: std::slice::from_raw_parts((*slot).tts_isnull, columns).to_vec(),
                description,
            }
        }
    }

    /// The value of a column, counted from 0; None is NULL. The caller names the column's own type.
    pub fn get<T: FromDatum + IntoDatum>(&self, column: usize) -> Option<T> {
        let (value, null) = (*self.values.get(column)?, *self.nulls.get(column)?);
        // SAFETY: the column is one of the description's.
        let kind = unsafe { (*attribute(self.description, column)).atttypid };
        if kind != T::type_oid() {
            // A name read as text would be read past its end: better an error of ours than a crash of the server.
            pgrx::error!("column {column} of a kslate statement has type {kind:?}");
        }
        // SAFETY: the column has the type that T reads.
        unsafe { T::from_datum(value, null) }
    }

    /// The value of a column that is NOT NULL.
    pub fn need<T: FromDatum + IntoDatum>(&self, column: usize) -> Outcome<T> {
        self.get(column).ok_or_else(|| {
            Failure::new(
                Code::Unavailable,
                format!("column {column} of a kslate table is NULL"),
            )
        })
    }

    /// Whether the first columns are these texts.
    pub fn begins_with(&self, texts: &[&str]) -> bool {
        let same =
            |(column, text): (usize, &&str)| self.get::<String>(column).as_deref() == Some(*text);
        texts.iter().enumerate().all(same)
    }

    /// The datum itself, to be handed on.
    pub fn datum(&self, column: usize) -> Parameter {
        match self.nulls.get(column) {
            Some(false) => self.values.get(column).copied(),
            _ => None,
        }
    }
}
