//! JSON as the wire wants it: stricter than PostgreSQL and than most parsers, and nothing is decoded that need not be.
//!
//! One pass over the text finds everything that must be refused: a duplicate key at any depth, `\u0000`,
//! a lone surrogate, nesting without end, trailing text. What it hands out are slices of the text, so that a number keeps
//! every digit on its way to the database.

use std::borrow::Cow;
use std::collections::HashSet;

/// Levels of arrays and objects in a request. The database allows 100 in a value; a value sits at most three levels deep
/// in a body (`changes`, its element, its `value`), and the database is the one that says so precisely.
const MAX_DEPTH: usize = 103;

/// What is wrong with a text, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// A sentence for the caller.
    pub message: String,
    /// JSON Pointer to the place.
    pub path: String,
}

/// The members of an object: decoded key, text of the value as it was sent.
pub type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Reads `text`, which must be one JSON object and nothing else, and returns its members in the order sent.
///
/// # Errors
/// The first [`Fault`] in the order of the text.
pub fn object(text: &str) -> Result<Members<'_>, Fault> {
    let mut scan = Scan {
        text,
        at: 0,
        path: Vec::new(),
        depth: 0,
    };
    scan.blanks();
    if scan.peek() != Some(b'{') {
        // A text that is no JSON at all gets that said first.
        if scan.at < text.len() {
            scan.value()?;
        }
        return Err(scan.fault("a JSON object is wanted here"));
    }
    let mut members = Vec::new();
    scan.members(Some(&mut members))?;
    scan.blanks();
    if scan.at != text.len() {
        return Err(Fault {
            message: format!("unexpected text after the JSON object, at byte {}", scan.at),
            path: String::new(),
        });
    }
    Ok(members)
}

/// The text of a JSON string without its quotes and escapes; None if `raw` is no string. `raw` has been through [`object`].
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// `keys` as a JSON Pointer (RFC 6901).
fn pointer<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    let mut path = String::new();
    for key in keys {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    path
}

/// `key` at the top of a body, as a JSON Pointer.
pub fn member_path(key: &str) -> String {
    pointer([key])
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    path: Vec<Step<'a>>,
    depth: usize,
}

enum Step<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        let steps: Vec<String> = self
            .path
            .iter()
            .map(|step| match step {
                Step::Key(key) => key.to_string(),
                Step::Index(index) => index.to_string(),
            })
            .collect();
        Fault {
            message: message.into(),
            path: pointer(steps.iter().map(String::as_str)),
        }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            None => self.fault(format!("the JSON ends too early: {wanted} is missing")),
            Some(found) => self.fault(format!(
                "the body is not JSON: {wanted} is wanted at byte {}, not {found:?}",
                self.at
            )),
        }
    }

    fn take(&mut self, wanted: u8, name: &str) -> Result<(), Fault> {
        if self.peek() == Some(wanted) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.unexpected(name))
        }
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            // The pointer to it would be as deep as the text: its first steps are enough to find it.
            self.path.truncate(4);
            return Err(
                self.fault("nested too deep: a value may have 100 levels of arrays and objects")
            );
        }
        Ok(())
    }

    fn value(&mut self) -> Result<(), Fault> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.members(None),
            Some(b'[') => self.elements(),
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn members(&mut self, mut found: Option<&mut Members<'a>>) -> Result<(), Fault> {
        self.take(b'{', "'{'")?;
        self.deeper()?;
        let mut seen: HashSet<Cow<'a, str>> = HashSet::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.depth -= 1;
            return Ok(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.string()?;
            self.path.push(Step::Key(key.clone()));
            if !seen.insert(key.clone()) {
                return Err(self.fault(format!("the key {key:?} is there twice")));
            }
            self.blanks();
            self.take(b':', "':'")?;
            self.blanks();
            let start = self.at;
            self.value()?;
            if let Some(found) = found.as_deref_mut() {
                found.push((key, self.text.get(start..self.at).unwrap_or_default()));
            }
            self.path.pop();
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.unexpected("',' or '}'")),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Fault> {
        self.take(b'[', "'['")?;
        self.deeper()?;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.depth -= 1;
            return Ok(());
        }
        let mut index = 0;
        loop {
            self.path.push(Step::Index(index));
            self.value()?;
            self.path.pop();
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.unexpected("',' or ']'")),
            }
            index += 1;
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// A string, decoded where it has escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.take(b'"', "'\"'")?;
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let plain = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            let run = self.text.get(plain..self.at).unwrap_or_default();
            if let Some(decoded) = decoded.as_mut() {
                decoded.push_str(run);
            }
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let so_far = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    let character = self.escape()?;
                    decoded
                        .get_or_insert_with(|| so_far.to_owned())
                        .push(character);
                }
                Some(_) => {
                    return Err(self.fault(format!(
                        "a control character in a string, at byte {}: write it as an escape",
                        self.at
                    )))
                }
                None => return Err(self.unexpected("'\"'")),
            }
        }
        let whole = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(decoded.map_or(Cow::Borrowed(whole), Cow::Owned))
    }

    /// What stands after a backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let escaped = self.peek();
        let character = match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected("an escape of JSON")),
        };
        self.at += 1;
        Ok(character)
    }

    /// What stands after `\u`: four hex digits, or a pair of surrogates.
    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.hex()?;
        let code = match first {
            0 => return Err(self.fault("\\u0000 cannot be stored: leave it out")),
            0xd800..=0xdbff => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                if !rest.starts_with("\\u") {
                    return Err(self.fault(format!(
                        "\\u{first:04x} is half of a character: the other half is missing"
                    )));
                }
                self.at += 2;
                let second = self.hex()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.fault(format!(
                        "\\u{first:04x} is half of a character: the other half is missing"
                    )));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| {
            self.fault(format!(
                "\\u{first:04x} is half of a character: the other half is missing"
            ))
        })
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.unexpected("four hex digits"))?;
        self.at += 4;
        Ok(code)
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if self
            .text
            .get(self.at..)
            .unwrap_or_default()
            .starts_with(word)
        {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected("a value"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, String) {
        match object(text) {
            Err(fault) => (fault.path, fault.message),
            Ok(members) => panic!("{text} was read as {members:?}"),
        }
    }

    #[test]
    fn members_are_slices_of_the_text() {
        let text = " {\"a\" : 1.000000000000000000000000000001 , \"b\\u0041\":[1, {\"x\":null}],\"c\":\"\\ud83d\\ude00\"} ";
        let members = object(text).expect("good JSON");
        let seen: Vec<(&str, &str)> = members
            .iter()
            .map(|(key, raw)| (key.as_ref(), *raw))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", "1.000000000000000000000000000001"),
                ("bA", "[1, {\"x\":null}]"),
                ("c", "\"\\ud83d\\ude00\"")
            ]
        );
        assert_eq!(string("\"\\ud83d\\ude00\"").as_deref(), Some("😀"));
    }

    #[test]
    fn what_is_refused_has_a_place() {
        for (text, path) in [
            ("", ""),
            ("[]", ""),
            ("null", ""),
            ("{", ""),
            ("{} {}", ""),
            ("{}x", ""),
            ("{\"a\":}", "/a"),
            ("{\"a\":01}", ""),
            ("{\"a\":1.}", "/a"),
            ("{\"a\":+1}", "/a"),
            ("{\"a\":NaN}", "/a"),
            ("{\"a\":1,}", ""),
            ("{'a':1}", ""),
            ("{\"a\":1,\"a\":2}", "/a"),
            ("{\"a\":1,\"\\u0061\":2}", "/a"),
            (
                "{\"value\":{\"x/y\":[0,{\"k\":1,\"k\":2}]}}",
                "/value/x~1y/1/k",
            ),
            ("{\"value\":[\"a\\u0000b\"]}", "/value/0"),
            ("{\"value\":{\"a\\u0000b\":1}}", "/value"),
            ("{\"value\":\"\\ud800\"}", "/value"),
            ("{\"value\":\"\\ud800\\u0041\"}", "/value"),
            ("{\"value\":\"\\udc00\"}", "/value"),
            ("{\"value\":\"\\u12\"}", "/value"),
            ("{\"value\":\"\\u+123\"}", "/value"),
            ("{\"value\":\"\\x41\"}", "/value"),
            ("{\"value\":\"a\nb\"}", "/value"),
            ("{\"value\":\"a\tb\"}", "/value"),
            ("{\"value\":tru}", "/value"),
            ("{\"value\":\"abc", "/value"),
            ("{\"value\":\"\u{e9}\\u00", "/value"),
        ] {
            assert_eq!(refused(text).0, path, "{text}");
        }
    }

    #[test]
    fn an_escaped_backslash_is_no_escape() {
        let members = object("{\"value\":\"a\\\\u0000b\"}").expect("good JSON");
        assert_eq!(string(members[0].1).as_deref(), Some("a\\u0000b"));
    }

    #[test]
    fn keys_that_other_parsers_take_for_their_own_are_keys() {
        let text = "{\"value\":{\"$serde_json::private::Number\":\"x\"}}";
        assert_eq!(
            object(text).expect("good JSON")[0].1,
            "{\"$serde_json::private::Number\":\"x\"}"
        );
    }

    #[test]
    fn depth_is_bounded() {
        let deep =
            |levels: usize| format!("{{\"value\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(object(&deep(100)).is_ok());
        let (path, message) = refused(&deep(MAX_DEPTH));
        assert_eq!(path, "/value/0/0/0");
        assert!(message.contains("100 levels"), "{message}");
        assert_eq!(refused(&"{\"a\":".repeat(500_000)).0, "/a/a/a/a");
    }
}
