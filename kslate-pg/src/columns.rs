//! The columns of the tables whose rows are read and written by place, counted from 0 in the order of sql/001_tables.sql and what
//! later migrations added. That they are there is looked at before a row is ([`crate::rows`]).

use pgrx::pg_sys::{
    self, INT4OID as INT4, INT8OID as INT8, JSONBOID as JSONB, TEXTOID as TEXT,
    TIMESTAMPTZOID as TIME, UUIDOID as UUID,
};

/// A table as this library needs it.
pub struct Definition {
    pub name: &'static str,
    /// How many columns its primary key has. They are the first ones.
    pub key: usize,
    /// The columns' names, in upper case, and types.
    pub columns: &'static [(&'static str, pg_sys::Oid)],
}

/// A module for each table with the place of each column.
macro_rules! tables {
    ($($table:ident($key:literal): $($column:ident $kind:ident),*;)*) => {
        $(#[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
        pub mod $table {
            enum Place { $($column),* }
            $(pub const $column: usize = Place::$column as usize;)*
        })*
        /// All of them.
        pub const TABLES: &[Definition] = &[$(Definition {
            name: stringify!($table),
            key: $key,
            columns: &[$((stringify!($column), $kind)),*],
        }),*];
    };
}

tables! {
    record(1): RECORD TEXT, CLASS TEXT, KEY TEXT, VERSION INT8, CREATED_BY TEXT, CREATED_AT TIME;
    field(2): RECORD TEXT, FIELD TEXT, VALUE JSONB, VERSION INT8, AUTHOR TEXT, ROLE TEXT, EVIDENCE TEXT, RECORD_VERSION INT8,
        CHANGED_AT TIME;
    claim(2): RECORD TEXT, FIELD TEXT, CLASS TEXT, STATE TEXT, OWNER TEXT, ROLE TEXT, CLAIM_ID UUID, EPOCH INT8,
        LEASE_SECONDS INT4, QUEUED_AT TIME, CLAIMED_AT TIME, EXPIRES_AT TIME, RECHECK_AT TIME, VERSION INT8, RECORD_VERSION INT8,
        CHANGED_BY TEXT, CHANGED_ROLE TEXT, CHANGED_AT TIME, REASON TEXT, ENDED TEXT, TOOK_OVER_FROM TEXT;
    checkpoint(2): RECORD TEXT, CHECKPOINT_ID INT8, ROLE TEXT, DOCUMENT JSONB, RECORD_VERSION INT8, AUTHOR TEXT, SAVED_AT TIME;
    history(2): RECORD TEXT, RECORD_VERSION INT8, OP TEXT, FIELD TEXT, VERSION INT8, VALUE JSONB, AUTHOR TEXT, ROLE TEXT,
        EVIDENCE TEXT, CHANGED_AT TIME, EPOCH INT8, TOOK_OVER_FROM TEXT, REASON TEXT, LOGIN TEXT;
}
