//! Class definitions, parsed once in a backend.
//!
//! The cache needs no look-up per call: `kslate.class` sends a relation-cache invalidation with every change (trigger
//! `z_changed`), which reaches a backend at the latest when it next takes a table lock. A class change holds an EXCLUSIVE lock
//! on `kslate.record` until it commits, so whoever has locked a record's row has seen the invalidation of every class change
//! before it: [`generation`] tells whether one came in between. A rolled back change invalidates too.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use kslate_class::Class;
use pgrx::pg_sys;

use crate::error::{Code, Failure, Outcome};
use crate::guard::Storage;
use crate::setup::STORAGE_VERSION;
use crate::spi::{text, Session};
use crate::store;

thread_local! {
    static CLASSES: RefCell<HashMap<String, Rc<Class>>> = RefCell::new(HashMap::new());
    /// The relation `kslate.class`, once classes were read from it.
    static RELATION: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::InvalidOid) };
    /// Counts the invalidations; `SEEN` is the one that the cache was last emptied for.
    static GENERATION: Cell<u64> = const { Cell::new(0) };
    static SEEN: Cell<u64> = const { Cell::new(0) };
    /// Counts the invalidations of any relation.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    /// The generation in which the storage was last found at the version that this library needs.
    static RIGHT_STORAGE: Cell<Option<u64>> = const { Cell::new(None) };
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C-unwind" {
    fn CacheRegisterRelcacheCallback(
        callback: unsafe extern "C-unwind" fn(pg_sys::Datum, pg_sys::Oid),
        argument: pg_sys::Datum,
    );
    fn CacheInvalidateRelcacheByRelid(relation: pg_sys::Oid);
    fn AcceptInvalidationMessages();
}

/// Called by PostgreSQL in the middle of anything: it only counts.
unsafe extern "C-unwind" fn invalidated(_: pg_sys::Datum, relation: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    if relation == pg_sys::InvalidOid || relation == RELATION.get() {
        GENERATION.set(GENERATION.get().wrapping_add(1));
    }
}

/// Tells all backends, when this transaction commits, that classes have changed.
pub fn invalidate(relation: pg_sys::Oid) {
    // SAFETY: the relation exists, a trigger on it is calling.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| CacheInvalidateRelcacheByRelid(relation)) }
}

/// A number that changes whenever a class may have changed.
pub fn generation() -> u64 {
    GENERATION.get()
}

/// A number that changes whenever the columns of some relation may have changed.
pub fn relation_changes() -> u64 {
    register();
    CHANGES.get()
}

/// What others have committed to the catalogs is known from here on.
fn accept_invalidations() {
    // SAFETY: what every taking of a lock does.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| AcceptInvalidationMessages()) };
}

/// The class in force under this name; NOT_FOUND where there is none.
pub fn class(session: &Session, storage: Storage, name: &str) -> Outcome<Rc<Class>> {
    // A transaction that has its locks already would not look: a right taken away is gone there too.
    accept_invalidations();
    if SEEN.get() != GENERATION.get() {
        CLASSES.with_borrow_mut(HashMap::clear);
        SEEN.set(GENERATION.get());
    }
    if let Some(class) = CLASSES.with_borrow(|classes| classes.get(name).cloned()) {
        return Ok(class);
    }
    loop {
        let before = GENERATION.get();
        check_storage(session, storage)?;
        let source = match session
            .read_latest(&store::CLASS_SOURCE, &[text(name)])?
            .first()
        {
            Some(row) => row.need::<String>(0)?,
            None => return Err(unknown(session, name)?),
        };
        let class = Rc::new(kslate_class::parse(&source).map_err(|_| {
            Failure::new(
                Code::Unavailable,
                format!("the stored definition of {name} cannot be read by this version of kslate"),
            )
        })?);
        if GENERATION.get() == before {
            CLASSES.with_borrow_mut(|classes| classes.insert(name.to_owned(), class.clone()));
            return Ok(class);
        }
    }
}

fn unknown(session: &Session, name: &str) -> Outcome<Failure> {
    let rows = session.read_latest(&store::CLASS_NAMES, &[])?;
    let names: Vec<String> = rows.iter().filter_map(|row| row.get(0)).collect();
    let known = if names.is_empty() {
        "none is applied yet: see kslate class apply".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    };
    Ok(Failure::new(
        Code::NotFound,
        format!("no class {name}; {known}"),
    ))
}

fn register() {
    if !REGISTERED.replace(true) {
        // SAFETY: the callback is registered once in a backend and lives as long as it.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                CacheRegisterRelcacheCallback(invalidated, pg_sys::Datum::from(0usize))
            });
        }
    }
}

/// Refuses a storage of another version than this library's. It is asked once in a backend, and again whenever `kslate.class` was
/// touched, which every `kslate_setup()` does: a backend that still has the old library refuses what a new one has migrated.
pub fn check_storage(session: &Session, storage: Storage) -> Outcome<()> {
    accept_invalidations();
    if RIGHT_STORAGE.get() == Some(GENERATION.get()) {
        return Ok(());
    }
    register();
    // SAFETY: catalog look-ups.
    let versions = unsafe {
        RELATION.set(pg_sys::get_relname_relid(c"class".as_ptr(), storage.schema));
        pg_sys::get_relname_relid(c"storage".as_ptr(), storage.schema)
    };
    if versions == pg_sys::InvalidOid {
        return Err(Failure::new(
            Code::Unavailable,
            "schema kslate has no storage of kslate in it: run SELECT kslate_setup() as a superuser",
        ));
    }
    let before = GENERATION.get();
    let rows = session.read_latest(&store::STORAGE_VERSION, &[])?;
    let version = rows.first().and_then(|row| row.get::<i32>(0)).unwrap_or(0);
    if version == STORAGE_VERSION {
        RIGHT_STORAGE.set(Some(before));
        return Ok(());
    }
    let todo = if version > STORAGE_VERSION {
        "install the newer kslate, whose storage this is"
    } else {
        "run ALTER EXTENSION kslate UPDATE and SELECT kslate_setup()"
    };
    Err(Failure::new(
        Code::Unavailable,
        format!(
            "the storage of kslate is at version {version}, this library needs {STORAGE_VERSION}: {todo}"
        ),
    ))
}
