//! A request's body: a JSON object of known keys, each of its type.
//!
//! Values and documents stay the text that was sent; ranges and meaning are the database's to judge.

use std::borrow::Cow;

use super::error::Error;
use super::json::{self, Members};
use super::query::whole;

/// The members of a body.
#[derive(Debug)]
pub struct Body<'a> {
    members: Members<'a>,
}

impl<'a> Body<'a> {
    /// Reads `text`; an empty one is `{}`.
    ///
    /// # Errors
    /// MALFORMED for what is no JSON object, and for a key that is not among `known`.
    pub fn read(text: &'a str, known: &'static [&'static str]) -> Result<Self, Error> {
        if text.is_empty() {
            return Ok(Self {
                members: Vec::new(),
            });
        }
        let members = json::object(text)?;
        if let Some((unknown, _)) = members
            .iter()
            .find(|(key, _)| !known.contains(&key.as_ref()))
        {
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            let quoted = serde_json::Value::from(unknown.as_ref());
            return Err(Error::malformed_at(
                &json::member_path(unknown),
                format!("unknown key {quoted} in the body; known: {known}"),
            ));
        }
        Ok(Self { members })
    }

    fn sent(&self, key: &str) -> Option<&'a str> {
        self.members
            .iter()
            .find(|(found, _)| found == key)
            .map(|(_, raw)| *raw)
    }

    /// `null` is the same as nothing, but for values.
    fn given(&self, key: &str) -> Option<&'a str> {
        self.sent(key).filter(|raw| *raw != "null")
    }

    fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        self.given(key)
            .map(|raw| {
                read(raw).ok_or_else(|| {
                    Error::malformed_at(&json::member_path(key), format!("{key} must be {wanted}"))
                })
            })
            .transpose()
    }

    fn needed<T>(key: &str, found: Option<T>) -> Result<T, Error> {
        found.ok_or_else(|| {
            Error::malformed_at(&json::member_path(key), format!("the key {key} is missing"))
        })
    }

    /// Any JSON value, as sent; `null` is one too.
    pub fn value(&self, key: &str) -> Result<String, Error> {
        Self::needed(key, self.sent(key).map(str::to_owned))
    }

    /// Any JSON value, as sent, or None where the key is missing.
    pub fn optional_value(&self, key: &str) -> Option<String> {
        self.sent(key).map(str::to_owned)
    }

    /// A JSON object, as sent.
    pub fn object(&self, key: &str) -> Result<Option<String>, Error> {
        self.typed(key, "an object", |raw| {
            raw.starts_with('{').then(|| raw.to_owned())
        })
    }

    /// A JSON object that must be there, as sent.
    pub fn needed_object(&self, key: &str) -> Result<String, Error> {
        Self::needed(key, self.sent(key))?;
        self.object(key)?.ok_or_else(|| {
            Error::malformed_at(&json::member_path(key), format!("{key} must be an object"))
        })
    }

    /// A JSON array that must be there, as sent.
    pub fn needed_array(&self, key: &str) -> Result<String, Error> {
        let raw = Self::needed(key, self.sent(key))?;
        if raw.starts_with('[') {
            Ok(raw.to_owned())
        } else {
            Err(Error::malformed_at(
                &json::member_path(key),
                format!("{key} must be an array"),
            ))
        }
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<String>, Error> {
        self.typed(key, "a string", |raw| {
            json::string(raw).map(Cow::into_owned)
        })
    }

    /// A string that must be there.
    pub fn needed_text(&self, key: &str) -> Result<String, Error> {
        Self::needed(key, self.text(key)?)
    }

    /// A whole number from 0 to 2^53 - 1.
    pub fn whole(&self, key: &str) -> Result<Option<i64>, Error> {
        self.typed(key, "a whole number from 0 to 9007199254740991", whole)
    }

    /// A whole number that must be there.
    pub fn needed_whole(&self, key: &str) -> Result<i64, Error> {
        Self::needed(key, self.whole(key)?)
    }

    /// A number; one beyond the largest becomes infinite, which is out of every range.
    pub fn number(&self, key: &str) -> Result<Option<f64>, Error> {
        self.typed(key, "a number", |raw| {
            raw.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                .then(|| raw.parse().ok())
                .flatten()
        })
    }

    /// `true` or `false`; false where it is missing.
    pub fn flag(&self, key: &str) -> Result<bool, Error> {
        let flag = self.typed(key, "true or false", |raw| match raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })?;
        Ok(flag.unwrap_or(false))
    }

    /// A UUID in its usual form, as text.
    pub fn uuid(&self, key: &str) -> Result<Option<String>, Error> {
        self.typed(
            key,
            "a UUID such as 0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10",
            |raw| {
                json::string(raw)
                    .filter(|text| is_uuid(text))
                    .map(Cow::into_owned)
            },
        )
    }

    /// A UUID that must be there.
    pub fn needed_uuid(&self, key: &str) -> Result<String, Error> {
        Self::needed(key, self.uuid(key)?)
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["a", "lease_seconds", "reattach"];

    fn body(text: &str) -> Body<'_> {
        Body::read(text, KNOWN).expect("a good body")
    }

    #[test]
    fn unknown_keys_are_named() {
        let error =
            Body::read(r#"{"lease":3}"#, &["lease_seconds", "reattach"]).expect_err("unknown key");
        assert_eq!(
            error.body(),
            r#"{"error":"MALFORMED","message":"unknown key \"lease\" in the body; known: lease_seconds, reattach","path":"/lease"}"#
        );
    }

    #[test]
    fn empty_and_null() {
        assert!(body("").text("a").expect("good").is_none());
        assert!(body(r#"{"a":null}"#).text("a").expect("good").is_none());
        assert!(body(r#"{"a":null}"#).needed_text("a").is_err());
        assert_eq!(body(r#"{"a":null}"#).value("a").expect("a value"), "null");
        assert!(body("{}").value("a").is_err());
        assert!(Body::read(" ", KNOWN).is_err());
    }

    #[test]
    fn types() {
        for bad in [
            "1.0",
            "-1",
            "1e2",
            "\"1\"",
            "true",
            "[]",
            "9007199254740992",
        ] {
            assert!(
                body(&format!("{{\"a\":{bad}}}")).whole("a").is_err(),
                "{bad}"
            );
        }
        assert_eq!(
            body(r#"{"a":9007199254740991}"#).whole("a").expect("whole"),
            Some(9_007_199_254_740_991)
        );
        for (text, number) in [
            ("0", 0.0),
            ("-1", -1.0),
            ("1.5", 1.5),
            ("1e18", 1e18),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(
                body(&format!("{{\"a\":{text}}}"))
                    .number("a")
                    .expect("a number"),
                Some(number)
            );
        }
        for bad in ["\"60\"", "true", "[60]", "{}"] {
            assert!(
                body(&format!("{{\"a\":{bad}}}")).number("a").is_err(),
                "{bad}"
            );
        }
        for bad in ["1", "\"true\"", "[]"] {
            assert!(
                body(&format!("{{\"a\":{bad}}}")).flag("a").is_err(),
                "{bad}"
            );
        }
        for bad in [
            "1",
            "\"x\"",
            "\"0b9a3d6e2f0e4f3e9d0a5c1f8c1d7a10\"",
            "\"{0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a1}\"",
        ] {
            assert!(
                body(&format!("{{\"a\":{bad}}}")).uuid("a").is_err(),
                "{bad}"
            );
        }
        assert!(body(r#"{"a":"0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10"}"#)
            .uuid("a")
            .expect("a uuid")
            .is_some());
        assert!(body(r#"{"a":[1]}"#).needed_object("a").is_err());
        assert!(body(r#"{"a":null}"#).needed_object("a").is_err());
        assert!(body(r#"{"a":{}}"#).needed_array("a").is_err());
        assert_eq!(
            body(r#"{"a": {"x": 1.0} }"#)
                .needed_object("a")
                .expect("an object"),
            r#"{"x": 1.0}"#
        );
        assert_eq!(
            body(r#"{"a":"\u00e9\n"}"#)
                .needed_text("a")
                .expect("a string"),
            "é\n"
        );
    }
}
