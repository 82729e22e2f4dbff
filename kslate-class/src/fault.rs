//! What is wrong with a definition, and where.

use serde::Serialize;
use std::fmt;

/// One fault of a definition. `line` counts from 1 and is `None` where no line can be named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub line: Option<u64>,
    /// The keys that lead there (`fields.status.mode`, `roles.diagnoser[0]`); empty for the definition itself.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Collects the faults of one definition.
#[derive(Default)]
pub(crate) struct Faults {
    found: Vec<Fault>,
}

impl Faults {
    pub(crate) fn add(&mut self, line: u64, path: impl Into<String>, message: impl Into<String>) {
        self.found.push(Fault {
            line: Some(line),
            path: path.into(),
            message: message.into(),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them in the order of the source.
    pub(crate) fn into_ordered(mut self) -> Vec<Fault> {
        self.found
            .sort_by_key(|fault| fault.line.unwrap_or(u64::MAX));
        self.found.dedup();
        self.found
    }
}

/// Text out of a definition for use in a message: in quotes, escaped, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(shortened(text)).to_string()
}

/// Text cut to what still reads well inside a message or a path.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
