//! Class definitions of kslate: parsed, checked and asked about, without a database.
//!
//! [`parse`] turns a definition (YAML or JSON) into a [`Class`] or into every fault it has, with line and path.
//! The extension asks the parsed class who may do what; the command line lints with the same code.

mod admission;
mod check;
mod definition;
mod difference;
mod fault;
mod model;
pub mod name;
mod parse;
mod pattern;
mod schema;
mod value;

pub use admission::Violation;
pub use difference::{Difference, Orphans};
pub use fault::Fault;
pub use model::{CheckpointRules, Class, Evidence, Field, Lease, Mode, Role};
pub use parse::parse;
pub use pattern::Pattern;
pub use schema::Schema;
pub use value::same_value;
