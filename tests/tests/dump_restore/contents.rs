//! What a database holds, as pg_dump tells it.

use kslate_tests::{bash, postgres_program, Database};
use std::collections::BTreeSet;

pub fn dump(database: &Database, options: &str) -> String {
    // Newer releases of pg_dump put a random word around what psql may not be talked into.
    let output = bash(
        "\"$PG_DUMP\" $OPTIONS -d \"$URL\" | sed '/^\\\\\\(un\\)\\?restrict /d'",
        &[
            ("PG_DUMP", &postgres_program("pg_dump")),
            ("OPTIONS", options),
            ("URL", &database.url("kslate")),
        ],
    );
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("a dump is UTF-8")
}

/// The data as INSERTs, in an order of its own.
pub fn data(database: &Database) -> Vec<String> {
    let text = dump(database, "--data-only --inserts");
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort();
    assert!(lines.len() > 50, "{text}");
    lines
}

pub fn schema(database: &Database) -> Vec<String> {
    let text = dump(database, "--schema-only");
    // scripts/database writes a comment of its own on the extension.
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("COMMENT ON EXTENSION"));
    lines.map(str::to_string).collect()
}

/// Only the lines that differ are told.
#[track_caller]
pub fn same(now: &[String], before: &[String]) {
    let of = |lines: &[String], others: &[String]| -> Vec<String> {
        let others: BTreeSet<&String> = others.iter().collect();
        let more = lines.iter().filter(|line| !others.contains(line));
        more.cloned().collect()
    };
    let (added, lost) = (of(now, before), of(before, now));
    assert!(now == before, "added: {added:#?}\nlost: {lost:#?}");
}
