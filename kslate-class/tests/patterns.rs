//! Which identities a pattern stands for, and which patterns are none.

use kslate_class::Pattern;

#[test]
fn exact_patterns_match_one_identity() {
    let pattern = Pattern::parse("apikey:diagnoser").unwrap();
    assert!(pattern.matches("apikey:diagnoser"));
    for other in [
        "apikey:diagnoser/a",
        "apikey:diagnose",
        "pg:diagnoser",
        "APIKEY:diagnoser",
        "apikey:diagnoser ",
        "",
    ] {
        assert!(!pattern.matches(other), "{other}");
    }
    assert_eq!(pattern.to_string(), "apikey:diagnoser");
}

#[test]
fn a_trailing_slash_star_stands_for_one_or_more_characters() {
    let pattern = Pattern::parse("apikey:remediator/*").unwrap();
    for member in [
        "apikey:remediator/worker-1",
        "apikey:remediator/a/b",
        "apikey:remediator/*",
        "apikey:remediator/ä",
    ] {
        assert!(pattern.matches(member), "{member}");
    }
    for other in [
        "apikey:remediator",
        "apikey:remediator/",
        "apikey:remediators/x",
        "pg:remediator/x",
    ] {
        assert!(!pattern.matches(other), "{other}");
    }
}

#[test]
fn names_of_database_roles_fit_into_63_bytes() {
    assert!(Pattern::parse(&format!("pg:{}", "a".repeat(63))).is_ok());
    assert!(Pattern::parse(&format!("pg:{}", "a".repeat(64))).is_err());
    assert!(Pattern::parse(&format!("pg:{}/*", "a".repeat(61))).is_ok());
    assert!(Pattern::parse(&format!("pg:{}/*", "a".repeat(62))).is_err());
    assert!(Pattern::parse(&format!("pg:{}", "ä".repeat(32))).is_err());
    assert!(Pattern::parse(&format!("apikey:{}", "a".repeat(64))).is_ok());
}

#[test]
fn what_can_match_nothing_is_refused() {
    for (text, reason) in [
        ("review*", "starts with apikey: or pg:"),
        ("diagnoser", "starts with apikey: or pg:"),
        ("", "starts with apikey: or pg:"),
        ("*", "starts with apikey: or pg:"),
        ("APIKEY:x", "starts with apikey: or pg:"),
        ("apikey:", "names nobody"),
        ("pg:/*", "names nobody"),
        ("apikey:review*", "only wildcard is /*"),
        ("apikey:*", "only wildcard is /*"),
        ("apikey:a/*/b", "only wildcard is /*"),
        ("apikey:a/**", "only wildcard is /*"),
        ("apikey:*/*", "only wildcard is /*"),
        ("apikey:a b", "blank or a control character"),
        ("apikey:a\u{7}", "blank or a control character"),
        ("pg:a\tb", "blank or a control character"),
        ("pg:a\u{a0}b", "blank or a control character"),
    ] {
        let message = Pattern::parse(text).unwrap_err();
        assert!(message.contains(reason), "{text:?}: {message}");
    }
}
