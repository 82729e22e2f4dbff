//! Sources that try to hurt the reader, or that merely look odd.

use kslate_class::{parse, Fault};
use std::time::{Duration, Instant};

const GOOD: &str = "class: c\nroles:\n  r: [apikey:r]\nfields:\n  f: { mode: cas, write: [r], initial: {a: [1, \"x\"]} }\n";

fn faults(source: &str) -> Vec<Fault> {
    let started = Instant::now();
    let faults = parse(source).expect_err("a fault");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "took {:?}",
        started.elapsed()
    );
    faults
}

fn only(source: &str) -> Fault {
    let mut found = faults(source);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn aliases_anchors_tags_and_merge_keys() {
    let anchor = only(&GOOD.replace("{a: [1", "&x {a: [1"));
    assert_eq!(
        (anchor.line, anchor.path.as_str()),
        (Some(5), "fields.f.initial")
    );
    assert!(anchor
        .message
        .starts_with("anchors (&name) are not allowed"));
    let alias = only(&GOOD.replace("[1, ", "[*x, "));
    assert_eq!(
        (alias.line, alias.path.as_str()),
        (Some(5), "fields.f.initial.a[0]")
    );
    assert!(alias.message.starts_with("aliases (*name) are not allowed"));
    let tag = only(&GOOD.replace("[1, ", "[!!str 1, "));
    assert!(tag.message.starts_with("tags (!name) are not allowed"));
    assert!(only(&GOOD.replace("{a:", "{<<: {b: 1}, a:"))
        .message
        .starts_with("merge keys"));
    assert!(only(&GOOD.replace("{a:", "{? [k] : 1, a:"))
        .message
        .starts_with("a key must be text"));
}

#[test]
fn a_bomb_of_aliases_does_not_go_off() {
    let mut source = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (name, of) in ["b", "c", "d", "e", "f", "g", "h", "i"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        source.push_str(&format!(
            "{name}: &{name} [*{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}, *{of}]\n"
        ));
    }
    let found = faults(&source);
    assert!(
        found
            .iter()
            .any(|fault| fault.line == Some(2) && fault.path == "b[8]"),
        "{found:#?}"
    );
}

#[test]
fn sizes_are_bounded() {
    let big = format!("{GOOD}# {}\n", "x".repeat(256 * 1024));
    let fault = only(&big);
    assert_eq!(fault.line, None);
    assert!(fault.message.contains("256 KiB"), "{fault:?}");
    let fits = format!("{GOOD}# {}", "x".repeat(256 * 1024 - GOOD.len() - 2));
    assert!(parse(&fits).is_ok());

    let nodes = GOOD.replace("[1, \"x\"]", &format!("[{}1]", "1,".repeat(30_000)));
    assert!(only(&nodes)
        .message
        .contains("more than 20000 values and keys"));
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = |levels: usize| {
            GOOD.replace(
                "[1, \"x\"]",
                &format!("{}1{}", open.repeat(levels), close.repeat(levels)),
            )
        };
        assert!(parse(&deep(59)).is_ok());
        // The class, `fields`, `f` and `initial` are four levels.
        assert!(parse(&deep(60)).is_ok());
        for levels in [61, 200, 300, 5_000, 50_000] {
            let fault = only(&deep(levels));
            assert!(
                fault.message.contains("more than 64 levels deep"),
                "{levels}: {fault:?}"
            );
        }
    }
    let block: String = (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(only(&block).message.contains("more than 64 levels deep"));
    assert!(only(&"- ".repeat(50_000))
        .message
        .contains("more than 64 levels deep"));
    assert!(only(&"[".repeat(250_000))
        .message
        .contains("more than 64 levels deep"));
    assert!(only(&"? ".repeat(100_000)).message.contains("levels deep"));
}

#[test]
fn many_faults_stay_small() {
    let keys: String = (0..9_000)
        .map(|n| format!("{}{n}: no\n", "k".repeat(10)))
        .collect();
    let found = faults(&keys);
    let bytes: usize = found
        .iter()
        .map(|fault| fault.message.len() + fault.path.len())
        .sum();
    assert!(bytes < 4 << 20, "{bytes} bytes in {} faults", found.len());
    let doubled = "a: 1\n".repeat(9_000);
    faults(&doubled);
    let long = format!("{}: 1\n", "k".repeat(900)).repeat(250);
    faults(&long);
}

#[test]
fn nul_and_bom() {
    let fault = only(&GOOD.replace("class: c", "class: c\0"));
    assert_eq!(fault.line, Some(1));
    assert!(fault.message.contains("NUL"));
    assert!(only(&GOOD.replace("\"x\"", "\"\\0\""))
        .message
        .contains("NUL"));
    assert!(only(&GOOD.replace("{a:", "{\"a\\0\":"))
        .message
        .contains("NUL"));
    assert_eq!(
        parse(&format!("\u{feff}{GOOD}")).unwrap(),
        parse(GOOD).unwrap()
    );
    assert!(parse(&GOOD.replace("roles:", "\u{feff}roles:")).is_err());
}

#[test]
fn line_ends_and_blanks() {
    assert_eq!(
        parse(&GOOD.replace('\n', "\r\n")).unwrap(),
        parse(GOOD).unwrap()
    );
    let fault = only(&GOOD.replace("mode: cas", "mode: csa").replace('\n', "\r\n"));
    assert_eq!(fault.line, Some(5));
    let tab = faults(&GOOD.replace("  r:", "\tr:"));
    assert_eq!(tab[0].line, Some(3), "{tab:?}");
    assert!(
        tab[0].message.contains("the YAML cannot be read"),
        "{tab:?}"
    );
    for empty in ["", "\n\n", "# nothing\n", "---\n", "\u{feff}"] {
        assert!(parse(empty).is_err(), "{empty:?}");
    }
}

#[test]
fn documents_and_directives() {
    assert!(parse(&format!("---\n{GOOD}...\n")).is_ok());
    let second = only(&format!("{GOOD}---\n{GOOD}"));
    assert_eq!(second.line, Some(6));
    assert!(second.message.contains("a definition is one document"));
    assert!(only(&format!("%YAML 1.1\n---\n{GOOD}"))
        .message
        .contains("directives"));
}

#[test]
fn broken_syntax_names_its_line() {
    for (source, line) in [
        ("class: c\nroles: {\n", 3),
        ("class: c\nroles: ]\n", 2),
        ("class: \"c\n", 2),
        ("class: c\n  roles: 1\n", 2),
        ("class: c: d\n", 1),
    ] {
        let found = faults(source);
        let fault = found
            .iter()
            .find(|fault| fault.message.contains("cannot be read"))
            .unwrap_or_else(|| panic!("{found:?}"));
        assert!(
            fault.line.is_some_and(|at| at.abs_diff(line) <= 1),
            "{source:?}: {fault:?}"
        );
    }
}

/// Prefixes and single-byte changes of good definitions are an answer, never a panic.
#[test]
fn nothing_panics() {
    for source in [GOOD, include_str!("../../classes/incidents.yaml")] {
        let source = source.replace('…', "...");
        for end in (0..=source.len()).step_by(3) {
            let _ = parse(&source[..end]);
        }
        for at in (0..source.len()).step_by(5) {
            for other in [
                "\"", "[", "}", ":", "*", "&", "!", "\t", "\n", "-", "|", "%", "ä",
            ] {
                let _ = parse(&format!("{}{other}{}", &source[..at], &source[at + 1..]));
            }
        }
    }
}
