//! Values: equality as jsonb has it, digits kept, `values` and `schema` at work.

use kslate_class::{parse, same_value, Field};
use serde_json::Value;
use std::time::{Duration, Instant};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A cas field with these further keys.
fn field(keys: &str) -> Field {
    let source = format!(
        "class: c\nroles: {{ r: [apikey:r] }}\nfields:\n  f: {{ mode: cas, write: [r], {keys} }}\n"
    );
    let class = parse(&source).unwrap_or_else(|faults| panic!("{source}\n{faults:#?}"));
    class.fields.into_iter().next().unwrap()
}

#[test]
fn equality_is_that_of_jsonb() {
    for (a, b) in [
        ("1", "1.0"),
        ("1", "1e0"),
        ("100", "1E+2"),
        ("0.001", "1e-3"),
        ("-0.0", "0"),
        ("0e99", "0"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890.000",
        ),
        ("1.5e400", "15e399"),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
        (r#""\u00e4""#, r#""ä""#),
    ] {
        assert!(same_value(&json(a), &json(b)), "{a} = {b}");
    }
    for (a, b) in [
        ("1", "-1"),
        ("1", "10"),
        ("1", "\"1\""),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567891",
        ),
        ("0.1", "0.10000000000000000001"),
        ("1e99999999999999999999", "1e-99999999999999999999"),
        ("[1,2]", "[2,1]"),
        (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
        ("null", "false"),
    ] {
        assert!(!same_value(&json(a), &json(b)), "{a} ≠ {b}");
    }
}

#[test]
fn values_allows_what_equals_one_of_them() {
    let field = field("values: [1, 2.50, {x: [1]}, high, 123456789012345678901234567890, null]");
    for good in [
        "1.0",
        "25e-1",
        r#"{"x":[1.0]}"#,
        r#""high""#,
        "123456789012345678901234567890",
        "null",
        " 1 ",
    ] {
        assert_eq!(field.check_value(good), Ok(()), "{good}");
    }
    for bad in [
        "2",
        "\"1\"",
        "123456789012345678901234567891",
        "false",
        r#"{"x":[1],"y2":1}"#,
    ] {
        assert!(field.check_value(bad).is_err(), "{bad}");
    }
    assert_eq!(
        field.check_value("7").unwrap_err().message,
        "7 is not allowed; one of: 1, 2.50, {\"x\":[1]}, high, 123456789012345678901234567890, null"
    );
}

#[test]
fn numbers_keep_their_digits() {
    for (written, kept) in [
        (
            "123456789012345678901234567890.1234567890",
            "123456789012345678901234567890.1234567890",
        ),
        ("1.0", "1.0"),
        ("1e3", "1e+3"),
        ("+5", "5"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("0x1F", "31"),
        ("0", "0"),
        ("-0", "-0"),
    ] {
        assert_eq!(
            field(&format!("initial: {written}"))
                .initial
                .unwrap()
                .to_string(),
            kept
        );
    }
}

#[test]
fn plain_scalars_are_what_yaml_1_2_says() {
    for (written, meant) in [
        ("~", "null"),
        ("null", "null"),
        ("true", "true"),
        ("FALSE", "false"),
        ("tRue", "\"tRue\""),
        ("\"no\"", "\"no\""),
        ("'012'", "\"012\""),
        ("nope", "\"nope\""),
        ("1.2.3", "\"1.2.3\""),
        ("10s", "\"10s\""),
        ("...x", "\"...x\""),
        ("1 2", "\"1 2\""),
        ("inf", "\"inf\""),
        ("2026-11", "\"2026-11\""),
    ] {
        assert_eq!(
            field(&format!("initial: {written}")).initial,
            Some(json(meant)),
            "{written}"
        );
    }
}

#[test]
fn a_schema_decides_on_exact_numbers() {
    let exact = field("schema: { const: 123456789012345678901234567890 }");
    assert_eq!(exact.check_value("123456789012345678901234567890"), Ok(()));
    assert!(exact.check_value("123456789012345678901234567891").is_err());
    let bounded = field("schema: { maximum: 123456789012345678901234567890 }");
    assert!(bounded
        .check_value("123456789012345678901234567891")
        .is_err());
    assert_eq!(
        bounded.check_value("123456789012345678901234567889"),
        Ok(())
    );
}

#[test]
fn a_schema_violation_names_its_place() {
    let field =
        field("schema: { type: object, properties: { a/b: { items: { type: integer } } } }");
    let violation = field.check_value(r#"{"a/b":[1,"x"]}"#).unwrap_err();
    assert_eq!(violation.path, "/a~1b/1");
    assert_eq!(violation.message, "\"x\" is not of type \"integer\"");
    let long = format!("[{}]", "1,".repeat(100_000) + "1");
    assert!(field.check_value(&long).unwrap_err().message.len() < 100);
}

#[test]
fn anything_goes_without_values_and_schema() {
    assert_eq!(
        field("description: x").check_value("{\"any\":[1e400]}"),
        Ok(())
    );
}

#[test]
fn hostile_values_are_answered_soon() {
    let started = Instant::now();
    let field = field("schema: { type: [number, array, string], multipleOf: 0.01, maximum: 10, minimum: -10, uniqueItems: true, pattern: \"^(a+)+$\" }");
    let nines = "9".repeat(400_000);
    let backtracking = format!("\"{}!\"", "a".repeat(200_000));
    let unique = format!(
        "[{}0]",
        (1..20_000).map(|n| format!("{n},")).collect::<String>()
    );
    for value in [
        "1e999999999",
        "-1e999999999",
        "1e-999999999",
        "1e99999999999999999999",
        nines.as_str(),
        backtracking.as_str(),
        unique.as_str(),
        &format!("{}{}", "[".repeat(120), "]".repeat(120)),
        &"[".repeat(100_000),
    ] {
        let one = Instant::now();
        let _ = field.check_value(value);
        assert!(
            one.elapsed() < Duration::from_secs(3),
            "{} took {:?}",
            &value[..value.len().min(20)],
            one.elapsed()
        );
    }
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(field.check_value("1e999999999").is_err());
}

#[test]
fn text_that_is_no_json_is_a_violation() {
    for text in ["", "{", "nul", "1 2", "NaN"] {
        assert!(field("values: [1]")
            .check_value(text)
            .unwrap_err()
            .message
            .starts_with("is no JSON value"));
    }
}
