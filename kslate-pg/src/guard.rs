//! Whose rights our statements run with: those of the NOLOGIN owner of schema kslate, never a superuser's.
//!
//! No function is SECURITY DEFINER, since pg_dump does not dump the owner of an extension's functions: after a restore such
//! functions would belong to the restoring superuser, and still be executable by kslate_user.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::error::{Code, Failure, Outcome};

/// How long a statement of ours waits for a lock, unless the caller's own lock_timeout is shorter: 8 s.
const LOCK_TIMEOUT_MS: i32 = 8_000;

/// Schema kslate, as the catalogs have it now.
#[derive(Clone, Copy)]
pub struct Storage {
    pub schema: pg_sys::Oid,
    pub owner: pg_sys::Oid,
}

impl Storage {
    /// Finds the schema and its owner.
    pub fn find() -> Outcome<Storage> {
        // SAFETY: catalog look-ups; the tuple is released before we leave.
        unsafe {
            let schema = pg_sys::get_namespace_oid(c"kslate".as_ptr(), true);
            let tuple = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::NAMESPACEOID as i32,
                pg_sys::Datum::from(schema),
            );
            if schema == pg_sys::InvalidOid || tuple.is_null() {
                return Err(Failure::new(
                    Code::Unavailable,
                    "kslate has no storage in this database: run SELECT kslate_setup() as a superuser",
                ));
            }
            let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_namespace>(tuple);
            let owner = (*form).nspowner;
            pg_sys::ReleaseSysCache(tuple);
            Ok(Storage { schema, owner })
        }
    }

    /// Refuses an owner that could be somebody: our statements would run with that somebody's rights.
    pub fn check_owner(self) -> Outcome<()> {
        // SAFETY: catalog look-ups; what was found is released before we leave.
        let (could_log_in, is_member) = unsafe {
            let tuple = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::AUTHOID as i32,
                pg_sys::Datum::from(self.owner),
            );
            if tuple.is_null() {
                (true, true)
            } else {
                let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_authid>(tuple);
                let could = (*form).rolsuper || (*form).rolcanlogin;
                pg_sys::ReleaseSysCache(tuple);
                let list = pg_sys::SearchSysCacheList(
                    pg_sys::SysCacheIdentifier::AUTHMEMMEMROLE as i32,
                    1,
                    pg_sys::Datum::from(self.owner),
                    pg_sys::Datum::from(0usize),
                    pg_sys::Datum::from(0usize),
                );
                let members = (*list).n_members;
                pg_sys::ReleaseCatCacheList(list);
                (could, members > 0)
            }
        };
        if could_log_in || is_member {
            return Err(Failure::new(
                Code::Unavailable,
                "the owner of schema kslate must be a NOLOGIN role without any membership: run SELECT * FROM kslate_doctor()",
            ));
        }
        Ok(())
    }
}

thread_local! {
    /// How many guards live in this backend.
    static LIVE: Cell<u32> = const { Cell::new(0) };
    /// The path of the innermost guard.
    static PATH: Cell<Path> = const { Cell::new(Path::NoGuard) };
}

/// Where a guard's search_path stands. Pinning costs more than the smallest of our changes, which executes no statement.
#[derive(Clone, Copy)]
enum Path {
    NoGuard,
    /// Still the caller's, as is this lock_timeout.
    Callers(i32),
    /// Ours, until this nest level of settings ends.
    Pinned(i32),
}

/// From here to the end of the innermost guard, names are looked up as our statements expect. Called before anything is
/// executed that looks up names: a statement, or somebody's own trigger, constraint or index expression.
pub fn pin_path() {
    let Path::Callers(lock_timeout) = PATH.get() else {
        return;
    };
    // SAFETY: undone when the guard is dropped, and by the abort of the (sub)transaction after an ERROR.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        PATH.set(Path::Pinned(level));
        set(c"search_path", c"pg_catalog, kslate, pg_temp");
        // Somebody's trigger may SET LOCAL it: what is put back after that must be the caller's, not ours.
        pg_sys::LockTimeout = lock_timeout;
        bound_lock_wait();
    }
}

/// Is it our own code that executes the present statement? The owner's user id alone would not tell: a superuser can take
/// it on by SET ROLE, and a restore can make a superuser the owner.
pub fn is_ours(storage: Storage) -> bool {
    // SAFETY: reads the backend's state.
    LIVE.get() > 0 && unsafe { pg_sys::GetUserId() } == storage.owner
}

/// While it lives, our code runs as the owner of schema kslate and with a bounded lock wait; its statements also with a pinned
/// search_path ([`pin_path`]).
pub struct Guard {
    user: pg_sys::Oid,
    context: i32,
    /// The path of the guard around this one.
    around: Path,
    _settings: Settings,
}

/// Settings that hold while it lives, set where PostgreSQL reads them.
///
/// Plans are made for the long run: they are kept as long as the backend lives, and one that was made while a table was small
/// would read all of it for good. Every statement of ours has its index; none is worth compiling.
struct Settings {
    seqscan: bool,
    jit: bool,
    lock_timeout: i32,
}

impl Settings {
    fn ours() -> Settings {
        // SAFETY: settings of this backend, which is one thread; put back on drop.
        unsafe {
            let before = Settings {
                seqscan: pg_sys::enable_seqscan,
                jit: pg_sys::jit_enabled,
                lock_timeout: pg_sys::LockTimeout,
            };
            pg_sys::enable_seqscan = false;
            pg_sys::jit_enabled = false;
            if lock_wait_is_too_long() {
                pg_sys::LockTimeout = LOCK_TIMEOUT_MS;
            }
            before
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // SAFETY: as above; an ERROR does not put them back, so this is done while panicking too.
        unsafe {
            pg_sys::enable_seqscan = self.seqscan;
            pg_sys::jit_enabled = self.jit;
            pg_sys::LockTimeout = self.lock_timeout;
        }
    }
}

impl Guard {
    /// Switches to the owner.
    pub fn enter(storage: Storage) -> Outcome<Guard> {
        storage.check_owner()?;
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: undone on drop, and by the abort of the (sub)transaction after an ERROR.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            LIVE.set(LIVE.get() + 1);
            let guard = Guard {
                user,
                context,
                around: PATH.replace(Path::Callers(pg_sys::LockTimeout)),
                _settings: Settings::ours(),
            };
            pg_sys::SetUserIdAndSecContext(
                storage.owner,
                context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32,
            );
            Ok(guard)
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        LIVE.set(LIVE.get().saturating_sub(1));
        let path = PATH.replace(self.around);
        // After an ERROR the abort of the (sub)transaction restores both.
        if !std::thread::panicking() {
            // SAFETY: puts back what `enter` and `pin_path` found.
            unsafe {
                pg_sys::SetUserIdAndSecContext(self.user, self.context);
                if let Path::Pinned(level) = path {
                    pg_sys::AtEOXact_GUC(true, level);
                }
            }
        }
    }
}

/// While it lives, names are looked up as our statements expect, with the caller's own rights.
pub struct PinnedPath(i32);

impl PinnedPath {
    /// Pins the search_path, bounds each lock wait, and keeps notices of our scripts to ourselves.
    pub fn pin() -> PinnedPath {
        // SAFETY: undone on drop, and by the abort of the transaction after an ERROR.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            set(c"search_path", c"pg_catalog, pg_temp");
            set(c"client_min_messages", c"warning");
            bound_lock_wait();
            PinnedPath(level)
        }
    }
}

impl Drop for PinnedPath {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: ends the level that `pin` began.
            unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
        }
    }
}

/// Until the nest level ends.
unsafe fn bound_lock_wait() {
    if lock_wait_is_too_long() {
        // SAFETY: as its caller's.
        unsafe { set(c"lock_timeout", c"8000") };
    }
}

fn lock_wait_is_too_long() -> bool {
    // SAFETY: reads a setting.
    let present = unsafe { pg_sys::LockTimeout };
    present == 0 || present > LOCK_TIMEOUT_MS
}

/// Sets a parameter until the nest level ends.
unsafe fn set(name: &CStr, value: &CStr) {
    // SAFETY: both are C strings; the value is a constant that PostgreSQL accepts.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}
