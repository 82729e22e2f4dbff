//! From every released version to this one, in three scenarios: `schema.rs`, an upgraded database has what a fresh one has and no more;
//! `library.rs`, this library on what an older one left behind, and an older one's part played on a newer storage; `data.rs`, what an
//! older version stored is there, right, and goes on. `tests/upgrade` has the released versions.
//!
//! Taken out, a test fails: the `update` in sql/002_took_over_from.sql (`data.rs`), its `alter table` or a function's change from
//! kslate-pg/sql (`schema.rs`), in kslate-pg/src/scope.rs `catalog::check_storage`, or in kslate-pg/src/rows/layout.rs `compare`
//! (`library.rs`).

mod columns;
mod data;
mod library;
mod released;
mod schema;

use kslate_tests::{bash, root};
use std::fs;

#[test]
fn nothing_that_was_released_is_edited() {
    for version in released::all() {
        let checked = bash(
            "cd tests/upgrade/$VERSION; sha256sum --check --quiet --strict SHA256SUMS
             ls *.sql | diff - <(sed 's/.* [ *]*//' SHA256SUMS | sort)",
            &[("VERSION", &version)],
        );
        assert!(checked.status.success(), "{version}: {checked:?}");
        for entry in fs::read_dir(root().join("tests/upgrade").join(&version)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_str().expect("a name");
            if name.starts_with(|first: char| first.is_ascii_digit()) {
                let now = fs::read_to_string(root().join("sql").join(name)).expect("a migration");
                assert_eq!(
                    now,
                    released::file(&version, name),
                    "{name} was released in {version}"
                );
            }
        }
    }
}
