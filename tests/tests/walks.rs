//! Two walks through the whole crash scenario, blame included, as new users tried it: with only psql and docs/sql.md, with only
//! curl and docs/http.md. `KSLATE_DOCS=write` writes what they print now into tests/walks/*.expected.

use kslate_tests::page::{expect_printed, makes_keys};
use kslate_tests::play::Stage;
use kslate_tests::{bash, postgres_program, root};
use std::fs;
use std::path::PathBuf;

fn walk(name: &str) -> (PathBuf, String) {
    let file = root().join("tests/walks").join(name);
    let text = fs::read_to_string(&file).expect("a walk");
    (file, text)
}

#[test]
fn only_psql() {
    let (file, text) = walk("psql.sql");
    let page = fs::read_to_string(root().join("docs/sql.md")).expect("the page");
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let is_ours = word.starts_with("kslate_");
        assert!(
            !is_ours || page.contains(word),
            "{word} is not in docs/sql.md"
        );
    }
    let stage = Stage::anew("");
    let command = format!(
        "'{}' -Xq \"$URL\" <'{}' 2>&1 | cat",
        postgres_program("psql"),
        file.display()
    );
    // One pipe for both, and nothing kept back: answers and errors in the order they come.
    let output = bash(
        &format!("export PSQL_PAGER=; stdbuf -oL {command}"),
        &[("URL", &stage.database.url("kslate"))],
    );
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    expect_printed(&file.with_extension("expected"), &printed);
}

#[test]
fn only_curl() {
    let (file, text) = walk("curl.sh");
    let (keys, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| makes_keys(line));
    let stage = Stage::anew(&keys.join("\n"));
    let printed = stage.there(&stage.command(&rest.join("\n")));
    expect_printed(&file.with_extension("expected"), &printed);
}
