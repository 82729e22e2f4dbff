//! Schemas that refer to themselves, or to drafts; none of them takes long.

use kslate_class::parse;
use std::time::{Duration, Instant};

fn source(schema: &str) -> String {
    format!("class: c\nroles: {{ r: [apikey:r] }}\nfields:\n  f: {{ mode: cas, write: [r], schema: {schema} }}\n")
}

#[test]
fn references_inside_the_schema_work() {
    let class = parse(&source(r##"{"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["id"]}}, "$ref": "#/$defs/node"}"##)).unwrap();
    let field = class.field("f").unwrap();
    assert_eq!(field.check_value(r#"{"id":1,"next":{"id":2}}"#), Ok(()));
    assert_eq!(
        field
            .check_value(r#"{"id":1,"next":{"next":{"id":3}}}"#)
            .unwrap_err()
            .path,
        "/next"
    );
}

fn refused(schema: &str) -> String {
    let faults = parse(&source(schema)).expect_err(schema);
    assert_eq!(
        (faults.len(), faults[0].path.as_str()),
        (1, "fields.f.schema"),
        "{faults:?}"
    );
    faults[0].message.clone()
}

#[test]
fn a_schema_that_never_ends_is_refused() {
    for schema in [
        r##"{"$ref": "#"}"##,
        r##"{"allOf": [{"$ref": "#"}]}"##,
        r##"{"not": {"$ref": "#"}}"##,
        r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}"##,
        r##"{"if": {"$ref": "#"}, "then": true}"##,
        r##"{"dependentSchemas": {"a": {"$ref": "#"}}}"##,
    ] {
        assert!(refused(schema).contains("it would never end"), "{schema}");
    }
}

#[test]
fn references_that_cannot_be_followed_on_paper_are_refused() {
    for (schema, message) in [
        (
            r##"{"$dynamicRef": "#x", "$dynamicAnchor": "x"}"##,
            "$dynamicRef cannot be used",
        ),
        (
            r##"{"$ref": "#x", "$defs": {"x": {"$anchor": "x"}}}"##,
            "only references inside it",
        ),
        (r##"{"$ref": "other.json"}"##, "only references inside it"),
        (r##"{"$ref": "#/$defs/x"}"##, "points at nothing"),
        (
            r##"{"properties": {"a": {"$id": "https://example.com/a"}}}"##,
            "$id inside a schema cannot be used",
        ),
    ] {
        assert!(
            refused(schema).contains(message),
            "{schema}: {}",
            refused(schema)
        );
    }
    // Not keywords but names of members.
    assert!(parse(&source(
        r#"{"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}}"#
    ))
    .is_ok());
    assert!(parse(&source(
        r#"{"$id": "https://example.com/root", "type": "string"}"#
    ))
    .is_ok());
}

/// A schema that hands a part of the value to itself twice is exponential in the depth of the value.
#[test]
fn deep_values_of_a_branching_schema_are_refused_soon() {
    let schema = r##"{"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["x"]}, {"properties": {"a": {"$ref": "#"}}}]}"##;
    let class = parse(&source(schema)).unwrap();
    let field = class.field("f").unwrap();
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let started = Instant::now();
    assert_eq!(field.check_value(&nested(10)), Ok(()));
    assert!(field
        .check_value(&nested(100))
        .unwrap_err()
        .message
        .contains("nested too deeply"));
    let _ = field.check_value(&nested(20));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "took {:?}",
        started.elapsed()
    );
    // Two different members are no such thing.
    let tree =
        r##"{"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}"##;
    let class = parse(&source(tree)).unwrap();
    let deep = format!(
        "{}{{}}{}",
        r#"{"left":{},"right":"#.repeat(100),
        "}".repeat(100)
    );
    assert_eq!(class.field("f").unwrap().check_value(&deep), Ok(()));
}

#[test]
fn drafts_are_known_and_other_metaschemas_are_not_fetched() {
    for draft in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        assert!(
            parse(&source(&format!(
                r#"{{"$schema": "{draft}", "type": "string"}}"#
            )))
            .is_ok(),
            "{draft}"
        );
    }
    assert!(parse(&source(
        r#"{"$schema": "https://example.com/meta", "type": "string"}"#
    ))
    .is_err());
}

/// Each level refers to the next one twice: 2^40 subschemas, were they all visited.
#[test]
fn a_bomb_of_references_does_not_go_off() {
    for (twice, value) in [
        (
            r##"{"allOf": [{"$ref": "#/$defs/NEXT"}, {"$ref": "#/$defs/NEXT"}]}"##,
            "1",
        ),
        (
            r##"{"oneOf": [{"$ref": "#/$defs/NEXT"}, {"$ref": "#/$defs/NEXT"}]}"##,
            "1",
        ),
        (
            r##"{"properties": {"a": {"$ref": "#/$defs/NEXT"}, "b": {"$ref": "#/$defs/NEXT"}}}"##,
            "{}",
        ),
    ] {
        let definitions: Vec<String> = (0..40)
            .map(|n| {
                format!(
                    "\"n{n}\": {}",
                    twice.replace("NEXT", &format!("n{}", n + 1))
                )
            })
            .chain(["\"n40\": {\"type\": \"integer\"}".to_owned()])
            .collect();
        let schema = format!(
            r##"{{"$defs": {{{}}}, "$ref": "#/$defs/n0"}}"##,
            definitions.join(", ")
        );
        let started = Instant::now();
        if let Ok(class) = parse(&source(&schema)) {
            let _ = class.field("f").unwrap().check_value(value);
        }
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{twice} took {:?}",
            started.elapsed()
        );
    }
}
