//! Twelve clients write over HTTP and note what they asked for and what they were told, while processes are killed, connections
//! are cut, the pool is filled and processes are stopped; then their list is held against history.
//!
//! What each file would miss is a line of the code; taken out, a test fails:
//! - `storm.rs`: the look-up `self.replay(…)` in kslate-pg/src/idempotency.rs (a change is there twice); and with
//!   `synchronous_commit = off` acknowledged changes are lost
//! - `stages.rs`: the same look-up, and `Error::lost(…)` at the head of `judge` in kslate-http/src/server/db.rs (an unknown outcome
//!   is told as a refusal)
//! - `doctored.rs`: any check of tests/src/ledger/judge.rs

mod doctored;
mod stages;
mod storm;
