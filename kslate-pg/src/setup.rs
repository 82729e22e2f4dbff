//! The storage: made and migrated from the files in sql/, which are no members of the extension.

use std::ffi::CString;

use pgrx::prelude::*;

use crate::error::{Code, Failure, Outcome};
use crate::guard::{Guard, PinnedPath, Storage};
use crate::rows;
use crate::spi::Session;

/// The storage version that this library works on: the number of migrations.
pub const STORAGE_VERSION: i32 = MIGRATIONS.len() as i32;

/// Numbered, run once each, as the owner of schema kslate.
const MIGRATIONS: &[&str] = &[
    include_str!("../../sql/001_tables.sql"),
    include_str!("../../sql/002_took_over_from.sql"),
];
/// Run each time: roles and rights as the caller, views as the owner, triggers as the caller.
const ROLES: &str = include_str!("../../sql/roles.sql");
const VIEWS: &str = include_str!("../../sql/views.sql");
const TRIGGERS: &str = include_str!("../../sql/triggers.sql");
/// What stands in the triggers' file for the quoted schema of the extension.
const EXTENSION: &str = "@extension@";
const RIGHTS: &str = include_str!("../../sql/rights.sql");

/// Creates or migrates the storage of kslate in this database and returns its version. Run it again whenever you like: it
/// puts back triggers, views and rights that are missing, and changes no data. Needs a superuser.
#[pg_extern]
fn kslate_setup() -> i32 {
    crate::entry(|| {
        // SAFETY: reads the backend's state.
        let (superuser, restricted) =
            unsafe { (pg_sys::superuser(), pg_sys::InSecurityRestrictedOperation()) };
        if !superuser || restricted {
            return Err(Failure::new(
                Code::ScopeDenied,
                "kslate_setup() needs a superuser",
            ));
        }
        check_encoding()?;
        let _path = PinnedPath::pin();
        script(ROLES)?;
        let storage = Storage::find()?;
        check_owner(storage)?;
        migrate(storage)?;
        script(&TRIGGERS.replace(EXTENSION, &extension_schema()?))?;
        script(RIGHTS)?;
        Ok(STORAGE_VERSION)
    })
}

/// The version of this library.
#[pg_extern(stable)]
fn kslate_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// As the owner of the schema: the migrations that are missing, then the views.
fn migrate(storage: Storage) -> Outcome<()> {
    let _guard = Guard::enter(storage)?;
    let session = Session::open();
    let version = present_version(storage)?;
    if version > STORAGE_VERSION {
        return Err(Failure::new(
            Code::Unavailable,
            format!("the storage is at version {version}, newer than this library ({STORAGE_VERSION}): install the newer kslate"),
        ));
    }
    let done = usize::try_from(version).unwrap_or(0);
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        session.run_script(&c_text(migration)?)?;
        let record = format!(
            "insert into kslate.storage (version) values ({})",
            number + 1
        );
        session.run_script(&c_text(&record)?)?;
    }
    // A table that somebody has altered would be misread from here on: then nothing is migrated.
    if let Some((_, why)) = rows::unfit_tables(storage).into_iter().next() {
        return Err(Failure::new(Code::Unavailable, why));
    }
    session.run_script(&c_text(VIEWS)?)
}

/// 0 where there are no tables yet.
fn present_version(storage: Storage) -> Outcome<i32> {
    // SAFETY: a catalog look-up.
    let table = unsafe { pg_sys::get_relname_relid(c"storage".as_ptr(), storage.schema) };
    if table == pg_sys::InvalidOid {
        return Ok(0);
    }
    let found: Option<i32> = Spi::get_one("select coalesce(max(version), 0) from kslate.storage")
        .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
    Ok(found.unwrap_or(0))
}

/// What is read here becomes Rust's strings, which are UTF-8.
fn check_encoding() -> Outcome<()> {
    // SAFETY: reads the backend's state; the name is a constant.
    let (encoding, name) = unsafe {
        let name = std::ffi::CStr::from_ptr(pg_sys::GetDatabaseEncodingName());
        (pg_sys::GetDatabaseEncoding(), name.to_string_lossy())
    };
    if encoding == pg_sys::pg_enc::PG_UTF8 as i32 {
        return Ok(());
    }
    Err(Failure::new(
        Code::Unavailable,
        format!("this database is in {name}: kslate needs one that was created with ENCODING 'UTF8' (and TEMPLATE template0)"),
    ))
}

/// Refuses a schema kslate that is not kslate_owner's: somebody else's code would be trusted.
fn check_owner(storage: Storage) -> Outcome<()> {
    // SAFETY: a catalog look-up.
    let owner = unsafe { pg_sys::get_role_oid(c"kslate_owner".as_ptr(), true) };
    if owner == pg_sys::InvalidOid || owner != storage.owner {
        return Err(Failure::new(
            Code::Unavailable,
            "schema kslate exists and is not owned by kslate_owner: rename it, or alter its owner, and run kslate_setup() again",
        ));
    }
    storage.check_owner()
}

/// The quoted name of the schema that CREATE EXTENSION chose.
fn extension_schema() -> Outcome<String> {
    let found: Option<String> = Spi::get_one(
        "select pg_catalog.quote_ident(n.nspname) from pg_catalog.pg_extension e \
         join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) e.extnamespace \
         where e.extname operator(pg_catalog.=) 'kslate'",
    )
    .map_err(|error| Failure::new(Code::Unavailable, error.to_string()))?;
    found.ok_or_else(|| {
        Failure::new(
            Code::Unavailable,
            "the extension kslate is not created here",
        )
    })
}

fn script(sql: &str) -> Outcome<()> {
    Session::open().run_script(&c_text(sql)?)
}

fn c_text(sql: &str) -> Outcome<CString> {
    CString::new(sql).map_err(|_| Failure::new(Code::Unavailable, "a SQL file contains NUL"))
}
