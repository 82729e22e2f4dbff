//! The harness of the black-box tests: private PostgreSQL clusters, servers started on them, a client that can also send what
//! no client should, and the player of the manual's pages.
//!
//! ```no_run
//! use kslate_tests::{Cluster, Shim, KEYS};
//!
//! let database = Cluster::shared().fresh_database(); // extension, storage, classes/*.yaml
//! let shim = Shim::start(&database, KEYS);
//! let diagnoser = shim.api("diag-token");
//! diagnoser.put("/v1/records/incidents/inc-1", "{}").expect(201);
//! ```
//!
//! Nothing outlives a test's process, however that ends: see [`Cluster`].

mod checksum;
mod cluster;
mod consistency;
pub mod crew;
mod database;
mod http;
pub mod ledger;
pub mod page;
pub mod play;
mod pooler;
mod proxy;
mod repository;
mod shim;
pub mod sql;
mod standby;
mod wait;

pub use checksum::{checksum, refused_in_sql, SqlRefusal};
pub use cluster::Cluster;
pub use consistency::assert_consistent;
pub use database::{postgres_program, Database};
pub use http::{exchange, Answer, Api};
pub use pooler::Pooler;
pub use proxy::{Cut, Proxy};
pub use repository::{bash, root};
pub use shim::{Shim, KEYS};
pub use sql::{Called, Refused, Session};
pub use standby::Standby;
pub use wait::{until, until_async, SetAtEnd};
