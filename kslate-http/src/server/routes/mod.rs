//! The handlers, one noun a file. Each reads the same: who calls, what is asked, one call, its answer copied.

pub mod checkpoints;
pub mod claims;
pub mod classes;
pub mod fields;
pub mod history;
pub mod records;
pub mod service;
