//! JSON in and out of the command line. Texts of values pass through as they are, so that no digit is lost.

use std::io::Read as _;

use clap::Args;
use serde_json::value::RawValue;

use super::exit::Failure;
use super::output;

/// A JSON object in the making.
#[derive(Default)]
pub struct Object(String);

impl Object {
    /// Adds a member whose value is JSON already.
    pub fn raw(mut self, key: &str, json: Option<impl AsRef<str>>) -> Self {
        if let Some(json) = json {
            self.0.push(if self.0.is_empty() { '{' } else { ',' });
            self.0.push_str(&format!(
                "{}:{}",
                serde_json::Value::from(key),
                json.as_ref()
            ));
        }
        self
    }

    /// Adds a string.
    pub fn text(self, key: &str, text: Option<&str>) -> Self {
        self.raw(
            key,
            text.map(|text| serde_json::Value::from(text).to_string()),
        )
    }

    /// Adds a number or `true`.
    pub fn plain(self, key: &str, value: Option<impl ToString>) -> Self {
        self.raw(key, value.map(|value| value.to_string()))
    }

    /// The object's text.
    pub fn finish(self) -> String {
        if self.0.is_empty() {
            "{}".to_owned()
        } else {
            self.0 + "}"
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Args)]
pub struct ValueArgs {
    /// JSON (`3`, `true`, `null`, `{"a":1}`); what is no JSON is a string, so `resolved` is "resolved"
    #[arg(
        value_name = "VALUE",
        allow_negative_numbers = true,
        required_unless_present = "value_file",
        conflicts_with = "value_file"
    )]
    value: Option<String>,

    /// Take VALUE as a string, whatever it looks like
    #[arg(long)]
    string: bool,

    /// Read the value from a file; `-` is stdin
    #[arg(long, value_name = "FILE")]
    value_file: Option<String>,
}

impl ValueArgs {
    /// The value as JSON.
    pub fn json(&self) -> Result<String, Failure> {
        let text = match (&self.value, &self.value_file) {
            (Some(value), _) => value.clone(),
            (None, Some(file)) => read_file(file)?,
            (None, None) => return Err(Failure::Usage("a value is missing".to_owned())),
        };
        Ok(if self.string {
            serde_json::Value::from(text).to_string()
        } else {
            lenient(&text)
        })
    }
}

/// JSON as it is, all else as a string.
pub fn lenient(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text.trim()) {
        Ok(json) => json.get().to_owned(),
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

/// A file's text; `-` is stdin.
pub fn read_file(name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if name == "-" {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(name).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::Local(format!("{name}: {error}")))?;
    Ok(text)
}

/// A filter: one JSON object, or `field=value` as often as there are fields.
pub fn filter(given: &[String]) -> Result<Option<String>, Failure> {
    match given {
        [] => Ok(None),
        [object] if object.trim_start().starts_with('{') => Ok(Some(object.clone())),
        pairs => members(pairs, "--filter").map(Some),
    }
}

/// `name=value` pairs as an object.
pub fn members(pairs: &[String], option: &str) -> Result<String, Failure> {
    let mut object = Object::default();
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "{option} {pair}: name=value is wanted, such as status=open"
            ))
        })?;
        object = object.raw(name, Some(lenient(value)));
    }
    Ok(object.finish())
}

/// Indents JSON by two blanks a level. Order, digits and escapes stay as they came; control characters come out escaped.
pub fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            output::push_safe(&mut out, character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                out.push('"');
            }
            '{' | '[' => {
                out.push(character);
                while characters
                    .next_if(|next| next.is_ascii_whitespace())
                    .is_some()
                {}
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects() {
        assert_eq!(Object::default().finish(), "{}");
        let object = Object::default()
            .raw("value", Some("1.00"))
            .text("evidence", Some("a\"b"))
            .text("claim_id", None)
            .plain("expected_version", Some(3));
        assert_eq!(
            object.finish(),
            r#"{"value":1.00,"evidence":"a\"b","expected_version":3}"#
        );
    }

    #[test]
    fn values() {
        for (given, json) in [
            ("resolved", "\"resolved\""),
            ("\"resolved\"", "\"resolved\""),
            ("3", "3"),
            (
                "1.000000000000000000000000000001",
                "1.000000000000000000000000000001",
            ),
            ("null", "null"),
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("{a: 1}", "\"{a: 1}\""),
            ("", "\"\""),
            ("wait for replica 2", "\"wait for replica 2\""),
        ] {
            assert_eq!(lenient(given), json, "{given}");
        }
    }

    /// What looks like an option is one: misspelt, it must not be stored.
    #[test]
    fn values_and_options() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            value: ValueArgs,
            #[arg(long)]
            evidence: Option<String>,
        }
        let value = |words: &[&str]| {
            let line = <Line as clap::Parser>::try_parse_from([&["set"], words].concat());
            line.map(|line| (line.value.value, line.evidence))
        };
        for misspelt in [
            &["--evidnece=log@1"][..],
            &["1", "--evidnece=log@1"],
            &["--dry-run"],
            &["-x"],
        ] {
            assert!(value(misspelt).is_err(), "{misspelt:?}");
        }
        for (words, stored) in [
            (&["-3"][..], "-3"),
            (&["-1.5e3"], "-1.5e3"),
            (&["--", "--dry-run"], "--dry-run"),
            (&["--evidence", "log@1", "x"], "x"),
        ] {
            assert_eq!(value(words).expect("a value").0.as_deref(), Some(stored));
        }
    }

    #[test]
    fn filters() {
        let given = |texts: &[&str]| {
            filter(
                &texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(given(&[]).expect("none"), None);
        assert_eq!(
            given(&["{\"a\":[1,2]}"]).expect("an object").as_deref(),
            Some("{\"a\":[1,2]}")
        );
        assert_eq!(
            given(&["status=open", "n=3"]).expect("pairs").as_deref(),
            Some(r#"{"status":"open","n":3}"#)
        );
        assert!(given(&["status"]).is_err());
    }

    #[test]
    fn indented() {
        let json =
            r#"{"b": 1.50, "a":[ ], "c":{},"d":["x, y: {\"z\"}\\", {"e":1E400}], "f":"\u0041"}"#;
        let wanted = "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"c\": {},\n  \"d\": [\n    \"x, y: {\\\"z\\\"}\\\\\",\n    {\n      \"e\": 1E400\n    }\n  ],\n  \"f\": \"\\u0041\"\n}";
        assert_eq!(indent(json), wanted);
        assert_eq!(indent("\"a\u{7f}\u{9b}b\""), "\"a\\u007f\\u009bb\"");
        assert_eq!(indent("3"), "3");
    }
}
