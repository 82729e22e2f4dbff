//! The columns of the tables that triggers and row locks read, counted from 0 in the order of sql/001_tables.sql.

pub mod record {
    pub const RECORD: usize = 0;
    pub const CLASS: usize = 1;
    pub const KEY: usize = 2;
    pub const VERSION: usize = 3;
    pub const CREATED_BY: usize = 4;
    pub const CREATED_AT: usize = 5;
}

pub mod field {
    pub const RECORD: usize = 0;
    pub const FIELD: usize = 1;
    pub const VALUE: usize = 2;
    pub const VERSION: usize = 3;
    pub const AUTHOR: usize = 4;
    pub const ROLE: usize = 5;
    pub const EVIDENCE: usize = 6;
    pub const RECORD_VERSION: usize = 7;
    pub const CHANGED_AT: usize = 8;
}

pub mod claim {
    pub const RECORD: usize = 0;
    pub const FIELD: usize = 1;
    pub const CLASS: usize = 2;
    pub const STATE: usize = 3;
    pub const OWNER: usize = 4;
    pub const ROLE: usize = 5;
    pub const CLAIM_ID: usize = 6;
    pub const EPOCH: usize = 7;
    pub const LEASE_SECONDS: usize = 8;
    pub const QUEUED_AT: usize = 9;
    pub const CLAIMED_AT: usize = 10;
    pub const EXPIRES_AT: usize = 11;
    pub const RECHECK_AT: usize = 12;
    pub const VERSION: usize = 13;
    pub const RECORD_VERSION: usize = 14;
    pub const CHANGED_BY: usize = 15;
    pub const CHANGED_ROLE: usize = 16;
    pub const CHANGED_AT: usize = 17;
    pub const REASON: usize = 18;
    pub const ENDED: usize = 19;
}

pub mod checkpoint {
    pub const CHECKPOINT_ID: usize = 1;
}
