//! Which identities a role is bound to.

use std::fmt;

/// The longest name PostgreSQL keeps; a longer one is cut there and would never match here.
const PG_NAME_BYTES: usize = 63;

/// An exact identity (`apikey:diagnoser`), or one that ends in `/*` and stands for one or more further
/// characters after the slash (`apikey:diagnoser/*`). Nothing else is a wildcard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// Reads one pattern; the error says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = crate::fault::quoted(text);
        let (name, is_pg) = match (text.strip_prefix("apikey:"), text.strip_prefix("pg:")) {
            (Some(name), _) => (name, false),
            (None, Some(name)) => (name, true),
            (None, None) => {
                return Err(format!(
                    "pattern {shown} can match nothing: an identity starts with apikey: or pg:"
                ));
            }
        };
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(format!(
                "pattern {shown} has a blank or a control character; an identity has none"
            ));
        }
        let fixed = name.strip_suffix("/*").unwrap_or(name);
        if fixed.contains('*') {
            return Err(format!(
                "pattern {shown}: the only wildcard is /* at the end, as in \"apikey:reviewer/*\""
            ));
        }
        if fixed.is_empty() {
            return Err(format!(
                "pattern {shown} names nobody; write a name after the colon"
            ));
        }
        // With a wildcard the slash and one further character have to fit as well.
        let shortest = if fixed.len() < name.len() {
            fixed.len() + 2
        } else {
            fixed.len()
        };
        if is_pg && shortest > PG_NAME_BYTES {
            return Err(format!(
                "pattern {shown} can match nothing: names of PostgreSQL roles have at most {PG_NAME_BYTES} bytes"
            ));
        }
        Ok(Self {
            text: text.to_owned(),
        })
    }

    /// True if the pattern stands for this identity.
    pub fn matches(&self, identity: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(prefix) => identity.len() > prefix.len() && identity.starts_with(prefix),
            None => identity == self.text,
        }
    }

    /// The pattern as written in the definition.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
