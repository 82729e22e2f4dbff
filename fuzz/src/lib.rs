//! What must hold of each parser, whatever it is fed. A violation is a panic, as libFuzzer wants it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kslate_class::Pattern;
use kslate_http::server::{decode, json};
use percent_encoding::{utf8_percent_encode, NON_ALPHANUMERIC};
use serde_json::value::RawValue;

/// A target of its name.
pub type Target = fn(&[u8]);

/// All of them, by the names of their corpora and of the programs in `targets/`.
pub const TARGETS: [(&str, Target); 4] = [
    ("class", class),
    ("pattern", pattern),
    ("path", path),
    ("body", body),
];

/// A class definition: faults that say where, or a class that is the same class when it is written out and read again.
pub fn class(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match kslate_class::parse(text) {
        Err(faults) => {
            assert!(!faults.is_empty());
            // To YAML a carriage return alone ends a line as well.
            let lines = text.split(['\n', '\r']).count() as u64;
            for fault in faults {
                assert!(!fault.message.is_empty());
                assert!(fault.line.is_none_or(|line| (1..=lines).contains(&line)));
            }
        }
        Ok(class) => {
            let definition = class.definition_json();
            let name = serde_json::Value::from(class.name.as_str());
            let description = serde_json::Value::from(class.description.as_deref());
            let source = match class.description {
                None => format!("{{\"class\":{name},{}", &definition[1..]),
                Some(_) => format!(
                    "{{\"class\":{name},\"description\":{description},{}",
                    &definition[1..]
                ),
            };
            let again = kslate_class::parse(&source)
                .unwrap_or_else(|faults| panic!("{source}: {faults:?}"));
            assert_eq!(again.definition_json(), definition);
            assert!(class.differences(&again).is_empty(), "{source}");
        }
    }
}

/// A pattern, and on the next line an identity.
pub fn pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, identity) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(pattern) = Pattern::parse(text) else {
        return;
    };
    assert_eq!(pattern.as_str(), text);
    let expected = match text.strip_suffix("/*") {
        Some(family) => identity
            .strip_prefix(family)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|member| !member.is_empty()),
        None => identity == text,
    };
    assert_eq!(pattern.matches(identity), expected, "{text} {identity}");
    assert!(!pattern.matches(""));
}

/// The path of a request, as sent: what it says is decoded once, and is a record's name only if it is written like one.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(decoded) = decode(text) else {
        return;
    };
    assert!(!decoded.contains('\0'));
    let encoded = utf8_percent_encode(&decoded, NON_ALPHANUMERIC).to_string();
    assert_eq!(decode(&encoded), Some(Cow::Borrowed(decoded.as_ref())));
    let Some((class, key)) = kslate_class::name::split_record(&decoded) else {
        return;
    };
    assert_eq!(format!("{class}/{key}"), decoded);
    assert!(class.len() <= 63 && (1..=128).contains(&key.len()));
    assert!(!decoded.contains(['%', '\\', '\'', '"', ' ', '*']) && !key.starts_with('.'));
}

/// The body of a request: refused with a place, or an object that other parsers read the same way.
pub fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match json::object(text) {
        Err(fault) => {
            assert!(!fault.message.is_empty());
            assert!(fault.path.is_empty() || fault.path.starts_with('/'));
        }
        Ok(members) => {
            let theirs: BTreeMap<String, &RawValue> =
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(members.len(), theirs.len(), "a key twice");
            for (key, raw) in members {
                assert_eq!(theirs.get(key.as_ref()).map(|raw| raw.get()), Some(raw));
                if let Some(value) = json::string(raw) {
                    assert_eq!(
                        serde_json::from_str::<String>(raw).ok().as_deref(),
                        Some(&*value)
                    );
                    assert!(!value.contains('\0'));
                }
            }
        }
    }
}
