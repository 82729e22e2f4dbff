//! Query parameters: each known, each at most once.

use super::asked::decode;
use super::error::{shorten, Error};
use super::json;

/// Versions, sequence numbers and ids stay below 2^53, so that no client's number loses a digit.
pub const LARGEST_WHOLE: i64 = (1 << 53) - 1;

/// The parameters of a request.
#[derive(Debug)]
pub struct Query {
    sent: Vec<(String, String)>,
}

impl Query {
    /// Reads `raw`, the part of the address behind `?`.
    ///
    /// # Errors
    /// MALFORMED for an unknown or repeated parameter, and for what is not UTF-8.
    pub fn read(raw: &str, known: &'static [&'static str]) -> Result<Self, Error> {
        let mut sent: Vec<(String, String)> = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = plus_decode(name)?;
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                return Err(Error::malformed(format!(
                    "unknown query parameter {:?}; known: {known}",
                    shorten(&name)
                )));
            }
            if sent.iter().any(|(seen, _)| *seen == name) {
                return Err(Error::malformed(format!(
                    "the query parameter {name} is there twice"
                )));
            }
            let value = plus_decode(value)?;
            sent.push((name, value));
        }
        Ok(Self { sent })
    }

    /// A parameter as it was sent.
    pub fn text(&self, name: &str) -> Option<String> {
        self.sent
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
    }

    /// A whole number from 0 to 2^53 - 1.
    pub fn whole(&self, name: &str) -> Result<Option<i64>, Error> {
        self.text(name)
            .map(|text| {
                whole(&text).ok_or_else(|| {
                    Error::malformed(format!(
                        "{name} must be a whole number from 0 on, not {:?}",
                        shorten(&text)
                    ))
                })
            })
            .transpose()
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        match self.text(name).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(Error::malformed(format!(
                "{name} must be true or false, not {:?}",
                shorten(other)
            ))),
        }
    }

    /// Names with commas in between.
    pub fn names(&self, name: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err(Error::malformed(format!(
                "{name} must be names with commas in between, not {:?}",
                shorten(&text)
            )));
        }
        Ok(Some(names))
    }

    /// A JSON object.
    pub fn object(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match json::object(&text) {
            Ok(_) => Ok(Some(text)),
            Err(fault) => Err(Error::malformed(format!(
                "{name} must be a JSON object: {}",
                fault.message
            ))),
        }
    }

    /// Rows a page: 1 to 1000.
    pub fn page_size(&self) -> Result<usize, Error> {
        match self.text("page_size") {
            None => Ok(100),
            Some(text) => whole(&text)
                .and_then(|size| usize::try_from(size).ok())
                .filter(|size| (1..=1000).contains(size))
                .ok_or_else(|| {
                    Error::malformed(format!(
                        "page_size must be a whole number from 1 to 1000, not {:?}",
                        shorten(&text)
                    ))
                }),
        }
    }
}

/// A whole number from 0 to 2^53 - 1, written without sign, fraction, exponent or leading zeros.
pub fn whole(text: &str) -> Option<i64> {
    let plain = text == "0"
        || (!text.starts_with('0')
            && !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit()));
    plain
        .then(|| text.parse::<i64>().ok())
        .flatten()
        .filter(|number| *number <= LARGEST_WHOLE)
}

fn plus_decode(text: &str) -> Result<String, Error> {
    let spaced = text.replace('+', " ");
    decode(&spaced)
        .map(|decoded| decoded.into_owned())
        .ok_or_else(|| Error::malformed("the query is not UTF-8, or holds a NUL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_repeated_and_broken_parameters_are_refused() {
        for raw in [
            "limit=3",
            "page_size=1&page_size=1",
            "after=%ff",
            "after=a%00b",
            "page%5fsize=1&page_size=1",
            "%70age_size=1&x",
        ] {
            assert!(Query::read(raw, &["page_size", "after"]).is_err(), "{raw}");
        }
        assert!(Query::read("a=1", &[]).is_err());
        assert!(Query::read("", &[]).is_ok());
    }

    #[test]
    fn numbers_flags_and_names() {
        let query = Query::read(
            "page_size=1000&after=9007199254740991&x=true&fields=a,b&filter=%7B%22a+b%22%3A1%7D",
            &["page_size", "after", "x", "fields", "filter"],
        )
        .expect("good");
        assert_eq!(query.page_size().expect("good"), 1000);
        assert_eq!(query.whole("after").expect("good"), Some(LARGEST_WHOLE));
        assert!(query.flag("x", false).expect("good"));
        assert_eq!(
            query.names("fields").expect("good").expect("there"),
            ["a", "b"]
        );
        assert_eq!(
            query.object("filter").expect("good").as_deref(),
            Some("{\"a b\":1}")
        );
        for bad in [
            "",
            "-1",
            "+1",
            "1.0",
            "01",
            "1e3",
            "9007199254740992",
            "99999999999999999999",
            "x",
            " 1",
        ] {
            assert_eq!(whole(bad), None, "{bad}");
        }
        for bad in [
            "page_size=0",
            "page_size=1001",
            "page_size=",
            "page_size=-1",
        ] {
            assert!(
                Query::read(bad, &["page_size"])
                    .expect("read")
                    .page_size()
                    .is_err(),
                "{bad}"
            );
        }
        assert!(Query::read("fields=a,,b", &["fields"])
            .expect("read")
            .names("fields")
            .is_err());
        assert!(Query::read("fields=", &["fields"])
            .expect("read")
            .names("fields")
            .is_err());
    }
}
