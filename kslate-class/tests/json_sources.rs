//! A definition written as JSON means what the JSON says.

use kslate_class::{parse, Class};
use serde_json::{json, Value};

fn with_initial(json: &str) -> String {
    format!(
        r#"{{"class":"c","roles":{{"r":["apikey:r"]}},"fields":{{"f":{{"mode":"lww","write":["r"],"initial":{json}}}}}}}"#
    )
}

fn class(source: &str) -> Class {
    parse(source).unwrap_or_else(|faults| panic!("{source}\n{faults:#?}"))
}

#[test]
fn values_come_through_unchanged() {
    let long_key = "k".repeat(3_000);
    for text in [
        r#""plain""#,
        r#""no""#,
        r#""a\/b\\c\"d\b\f\n\r\té""#,
        r#""\ud83d\ude00 😀""#,
        r#""\u00e4\u0085""#,
        r#"" leading and trailing ""#,
        r##""# no comment""##,
        r#""a: b, [c] {d} &e *f !g %h @i `j""#,
        r#"{"a":1,"b" :2,"c": 3 , "":4}"#,
        r#"{"y":1,"no":2,"<<":3,"null":4,"1":5}"#,
        "[1,2.50,-0.0,1e3,1E+3,1e-3,123456789012345678901234567890.12345678901234567890]",
        "[true,false,null,[],{},[[]],[{}]]",
        r#"{"a":{"b":[{"c":[]}]}}"#,
        &format!(r#"{{"{long_key}":1}}"#),
    ] {
        let expected: Value = serde_json::from_str(text).unwrap();
        let pretty = format!("{expected:#}");
        let tabbed = pretty.replace("  ", "\t");
        for written in [text, &pretty, &tabbed] {
            let read = class(&with_initial(written)).fields[0]
                .initial
                .clone()
                .unwrap();
            assert_eq!(read.to_string(), expected.to_string(), "{written}");
        }
    }
}

#[test]
fn json_and_yaml_are_one_class() {
    let yaml = class("class: c\nroles: { r: [apikey:r] }\nfields:\n  f:\n    mode: lww\n    write: [r]\n    initial: {a: [1.0, no-way]}\n");
    assert_eq!(class(&with_initial(r#"{"a":[1.0,"no-way"]}"#)), yaml);
    let whole: Value = serde_json::from_str(&with_initial("1")).unwrap();
    assert_eq!(class(&format!("{whole:#}")), class(&whole.to_string()));
}

#[test]
fn faults_in_json_have_lines_too() {
    let pretty = format!(
        "{:#}",
        json!({"class": "c", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "csa", "write": ["r"]}}})
    );
    let faults = parse(&pretty).unwrap_err();
    let line = pretty
        .lines()
        .position(|line| line.contains("csa"))
        .unwrap() as u64
        + 1;
    assert_eq!(
        (faults[0].line, faults[0].path.as_str()),
        (Some(line), "fields.f.mode")
    );
    let doubled = parse(r#"{"class":"c","class":"d"}"#).unwrap_err();
    assert!(doubled
        .iter()
        .any(|fault| fault.message.starts_with("duplicate key \"class\"")));
}

/// Every printable character in a JSON string is itself. (Others have to be escaped, as YAML demands.)
#[test]
fn strings_of_every_printable_character() {
    for start in (0x20u32..0xd7ff)
        .step_by(64)
        .chain((0xe000..0xffff).step_by(64))
        .chain((0x1f600..0x1f700).step_by(64))
    {
        let text: String = (start..start + 64)
            .filter_map(char::from_u32)
            .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
            .collect();
        let json = Value::from(text.clone()).to_string();
        match parse(&with_initial(&json)) {
            Ok(class) => assert_eq!(
                class.fields[0].initial,
                Some(Value::from(text)),
                "U+{start:04X}"
            ),
            Err(faults) => panic!("U+{start:04X}: {faults:?}"),
        }
    }
}
