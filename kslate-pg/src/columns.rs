//! The columns of the tables whose rows are read and written by place, counted from 0 in the order of sql/001_tables.sql and what
//! later migrations added. That they are there is looked at before a row is ([`crate::rows`]).

/// A module for each table: the place of each column, and their names in order.
macro_rules! tables {
    ($($table:ident: $($column:ident),*;)*) => {
        $(#[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
        pub mod $table {
            enum Place { $($column),* }
            $(pub const $column: usize = Place::$column as usize;)*
            pub const NAMES: &[&str] = &[$(stringify!($column)),*];
        })*
        /// Each table and the names of its columns, in upper case.
        pub const TABLES: &[(&str, &[&str])] = &[$((stringify!($table), $table::NAMES)),*];
    };
}

tables! {
    record: RECORD, CLASS, KEY, VERSION, CREATED_BY, CREATED_AT;
    field: RECORD, FIELD, VALUE, VERSION, AUTHOR, ROLE, EVIDENCE, RECORD_VERSION, CHANGED_AT;
    claim: RECORD, FIELD, CLASS, STATE, OWNER, ROLE, CLAIM_ID, EPOCH, LEASE_SECONDS, QUEUED_AT, CLAIMED_AT, EXPIRES_AT,
        RECHECK_AT, VERSION, RECORD_VERSION, CHANGED_BY, CHANGED_ROLE, CHANGED_AT, REASON, ENDED, TOOK_OVER_FROM;
    checkpoint: RECORD, CHECKPOINT_ID, ROLE, DOCUMENT, RECORD_VERSION, AUTHOR, SAVED_AT;
    history: RECORD, RECORD_VERSION, OP, FIELD, VERSION, VALUE, AUTHOR, ROLE, EVIDENCE, CHANGED_AT, EPOCH, TOOK_OVER_FROM,
        REASON, LOGIN;
}
