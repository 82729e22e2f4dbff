//! Twelve clients write over HTTP and note what they asked for and what they were told, while processes are killed, connections
//! are cut, the pool is filled and processes are stopped; then their list is held against history.
//!
//! What each file would miss is a line of the code; taken out, a test fails:
//! - `storm.rs`: the look-up of idempotency keys (`remembered` in kslate-pg/src/idempotency.rs: a change is there twice),
//!   `tokio::spawn` around `run` in kslate-http/src/server/db.rs, `fsync = on` of the cluster
//! - `stages.rs`: the same, and `Error::lost` in the first arm of `judge` in db.rs (an unknown outcome told as a refusal)
//! - `doctored.rs`: any check of tests/src/ledger/judge.rs

mod doctored;
mod stages;
mod storm;
