//! Each format of pg_dump, restored by nothing but pg_restore or psql.

use crate::contents::{data, same};
use crate::filled::{fill, works};
use kslate_tests::{assert_consistent, bash, checksum, postgres_program, Cluster, Database};

const FORMATS: [(&str, &str); 3] = [
    (
        "plain",
        r#""$PG_DUMP" -d "$FROM" | "$PSQL" -X -q --single-transaction -v ON_ERROR_STOP=1 -d "$TO""#,
    ),
    (
        "custom",
        r#""$PG_DUMP" --format custom --file "$DIR/dump" -d "$FROM"; "$PG_RESTORE" --exit-on-error --single-transaction -d "$TO" "$DIR/dump""#,
    ),
    (
        "directory",
        r#""$PG_DUMP" --format directory --jobs 2 --file "$DIR/dumped" -d "$FROM"; "$PG_RESTORE" --exit-on-error --jobs 2 -d "$TO" "$DIR/dumped""#,
    ),
];

fn copy(from: &Database, to: &Database, how: &str) {
    let dir = from.cluster().dir().display().to_string();
    let output = bash(
        how,
        &[
            ("PG_DUMP", &postgres_program("pg_dump")),
            ("PG_RESTORE", &postgres_program("pg_restore")),
            ("PSQL", &postgres_program("psql")),
            ("FROM", &from.url("kslate")),
            ("TO", &to.url("kslate")),
            ("DIR", &dir),
        ],
    );
    assert!(output.status.success(), "{how}: {output:?}");
}

#[test]
fn scenario_11_a_dump_restores_everything_in_each_format() {
    let cluster = Cluster::shared();
    let source = cluster.fresh_database();
    let before = fill(&source);
    for (format, how) in FORMATS {
        let restored = cluster.empty_database();
        copy(&source, &restored, how);
        same(&data(&restored), &data(&source));
        assert_eq!(checksum(&restored), checksum(&source), "{format}");
        let findings = restored.psql("kslate", "select * from kslate_doctor()");
        assert_eq!(findings, "", "{format}");
        works(&restored, &before);
        tokio::runtime::Runtime::new()
            .expect("a runtime")
            .block_on(assert_consistent(&restored));
    }
    // What was not touched meanwhile.
    works(&source, &before);
}
