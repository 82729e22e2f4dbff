//! Whether a value may be written to a field.

use crate::fault::shortened;
use crate::model::Field;
use crate::value::same_value;
use serde_json::Value;
use std::fmt;

/// Why a value may not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer into the value; empty for the value itself.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl Field {
    /// Checks a value (JSON text) against the field's `values` and `schema`; for an append field, one entry.
    pub fn check_value(&self, json: &str) -> Result<(), Violation> {
        if self.values.is_none() && self.schema.is_none() {
            return Ok(());
        }
        let value: Value = serde_json::from_str(json).map_err(|error| Violation {
            path: String::new(),
            message: format!("is no JSON value: {error}"),
        })?;
        if let Some(allowed) = &self.values {
            if !allowed
                .iter()
                .any(|candidate| same_value(candidate, &value))
            {
                return Err(Violation {
                    path: String::new(),
                    message: not_among(&value, allowed),
                });
            }
        }
        self.schema
            .as_ref()
            .and_then(|schema| schema.violation(&value))
            .map_or(Ok(()), Err)
    }
}

/// The sentence for a value that is not in the list.
pub(crate) fn not_among(value: &Value, allowed: &[Value]) -> String {
    let list: Vec<String> = allowed.iter().map(bare).collect();
    format!(
        "{} is not allowed; one of: {}",
        shown(value),
        list.join(", ")
    )
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => crate::fault::quoted(text),
        other => shortened(&other.to_string()),
    }
}

/// Strings without quotes, which is how people write them in the definition.
pub(crate) fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text),
        other => shortened(&other.to_string()),
    }
}
