//! Databases as released versions left them.

use kslate_tests::{root, Cluster, Database};
use std::fs;

/// The released versions.
pub fn all() -> Vec<String> {
    let folders = fs::read_dir(root().join("tests/upgrade")).expect("tests/upgrade");
    let mut versions: Vec<String> = folders
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| root().join("tests/upgrade").join(name).is_dir())
        .collect();
    versions.sort();
    assert!(!versions.is_empty(), "nothing was released");
    versions
}

pub fn file(version: &str, name: &str) -> String {
    let path = root().join("tests/upgrade").join(version).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A database with the extension's SQL of that version, its storage and its data. The library is this one.
pub fn database<'c>(cluster: &'c Cluster, version: &str) -> Database<'c> {
    let database = cluster.empty_database();
    // The dump makes the schema itself.
    database.psql("postgres", &file(version, "roles.sql"));
    database.psql("postgres", "drop schema kslate");
    database.psql(
        "kslate",
        &format!("create extension kslate schema public version '{version}'"),
    );
    database.psql("kslate", &file(version, "data.sql"));
    database.psql(
        "postgres",
        "set client_min_messages = error; grant kslate_gateway to kslate_server, kslate",
    );
    database
}

/// The two statements that docs/operations.md names.
pub const UPDATE: &str = "alter extension kslate update";
pub const SETUP: &str = "select kslate_setup()";
