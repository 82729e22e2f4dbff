//! Every fenced command of the README, in its order, against a started server.
//!
//! `sh` blocks run in bash, `sql` blocks in psql; a `text` block right after one is what it prints, where `…` stands for
//! anything. `make run`, `make test` and `make psql`, which are about this machine or a terminal, are only looked up.

use kslate_tests::{bash, play::Stage, postgres_program, root};
use std::fs;

struct Block {
    language: String,
    text: String,
    line: usize,
    prints: Option<String>,
}

#[test]
fn every_command_of_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let blocks = blocks(&readme);
    let keys: String = blocks
        .iter()
        .flat_map(|block| block.text.lines())
        .filter(|line| line.starts_with("printf "))
        .collect();
    let stage = Stage::anew(&keys);
    let mut played = 0;
    for block in &blocks {
        let mut command = String::new();
        for line in block.text.lines() {
            match line
                .split("make ")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next())
            {
                Some(target @ ("run" | "test" | "psql")) => {
                    assert!(
                        makefile.contains(&format!("\n{target}:")),
                        "README.md:{}: make {target}",
                        block.line
                    );
                }
                _ if line.starts_with("printf ") => {}
                _ => command += &format!("{line}\n"),
            }
        }
        let printed = match block.language.as_str() {
            _ if command.trim().is_empty() => continue,
            "sh" => stage.command(&command),
            "sql" => psql(&stage, &command),
            other => panic!("README.md:{}: a block of {other}", block.line),
        };
        played += 1;
        if let Some(expected) = &block.prints {
            assert!(
                matches(&printed, expected),
                "README.md:{} prints\n{printed}\nnot\n{expected}",
                block.line
            );
        }
    }
    assert!(played >= 4, "only {played} blocks found");
}

/// As a reader sees it: errors among the answers, and the script goes on after one.
fn psql(stage: &Stage, sql: &str) -> String {
    let script = stage.database.cluster().dir().join("readme.sql");
    fs::write(&script, sql).expect("a script");
    let command = format!(
        "'{}' -Xq \"$URL\" <'{}' 2>&1",
        postgres_program("psql"),
        script.display()
    );
    let output = bash(&command, &[("URL", &stage.database.url("kslate"))]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `…` in the expected text stands for anything; blanks at the ends of lines, which psql prints, do not count.
fn matches(printed: &str, expected: &str) -> bool {
    let trimmed = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (printed, expected) = (trimmed(printed), trimmed(expected));
    let mut pieces = expected.split('…');
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, between)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in between {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = markdown.lines().enumerate();
    let mut adjacent = false;
    while let Some((index, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            adjacent = false;
            continue;
        };
        let text: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .map(|line| format!("{line}\n"))
            .collect();
        match blocks.last_mut() {
            Some(before) if language == "text" && adjacent => before.prints = Some(text),
            _ => blocks.push(Block {
                language: language.to_string(),
                text,
                line: index + 1,
                prints: None,
            }),
        }
        adjacent = true;
    }
    blocks
}
