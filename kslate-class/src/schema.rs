//! The JSON Schema of a field. It is compiled without any means to fetch: a definition stands on its own.

use crate::admission::Violation;
use crate::fault::shortened;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A JSON Schema, compiled when the definition was parsed. Two are equal if they were written the same.
#[derive(Clone)]
pub struct Schema {
    source: Value,
    validator: Arc<Validator>,
}

impl Schema {
    /// Compiles a schema; the error has the JSON Pointer of what is wrong in it, and a sentence.
    pub(crate) fn compile(source: Value) -> Result<Self, (String, String)> {
        let validator = jsonschema::options()
            .offline()
            // An expression out of a definition may not make a backend backtrack for minutes.
            .with_pattern_options(PatternOptions::regex())
            .build(&source)
            .map_err(|error| (error.instance_path().to_string(), sentence(&error)))?;
        Ok(Self {
            source,
            validator: Arc::new(validator),
        })
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The first thing about a value that the schema does not allow.
    pub(crate) fn violation(&self, value: &Value) -> Option<Violation> {
        let error = self.validator.validate(value).err()?;
        Some(Violation {
            path: error.instance_path().to_string(),
            message: sentence(&error),
        })
    }
}

/// An error of the validator without the value in it where that is long.
fn sentence(error: &jsonschema::ValidationError<'_>) -> String {
    const SHOWN: usize = 80;
    let instance = error.instance();
    let long = match instance.as_ref() {
        Value::Array(_) | Value::Object(_) => true,
        Value::String(text) => text.len() > SHOWN,
        Value::Number(number) => number.to_string().len() > SHOWN,
        Value::Null | Value::Bool(_) => false,
    };
    let text = if long {
        error.masked_with("the value").to_string()
    } else {
        error.to_string()
    };
    if text.len() > 4 * SHOWN {
        shortened(&text)
    } else {
        text
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.source).finish()
    }
}
