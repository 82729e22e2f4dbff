//! kslate over HTTP: the server in front of the SQL functions, and the command line that talks to it.
//!
//! Neither holds a rule of its own but whose a key is and which keys may apply classes; every other rule lives in the extension.

pub mod cli;
pub mod config;
pub mod server;
