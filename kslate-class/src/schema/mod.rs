//! The JSON Schema of a field. It is compiled without any means to fetch: a definition stands on its own.

mod growth;

use crate::admission::Violation;
use crate::fault::shortened;
use growth::Growth;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A JSON Schema, compiled when the definition was parsed. Two are equal if they were written the same.
#[derive(Clone)]
pub struct Schema {
    source: Value,
    growth: Growth,
    validator: Arc<Validator>,
}

impl Schema {
    /// Compiles a schema; the error has the JSON Pointer of what is wrong in it, and a sentence.
    pub(crate) fn compile(source: Value) -> Result<Self, (String, String)> {
        let growth = Growth::of(&source).map_err(|message| (String::new(), message))?;
        let validator = jsonschema::options()
            .offline()
            // An expression out of a definition may not make a backend backtrack for minutes.
            .with_pattern_options(PatternOptions::regex())
            .build(&source)
            .map_err(|error| (error.instance_path().to_string(), sentence(&error)))?;
        Ok(Self {
            source,
            growth,
            validator: Arc::new(validator),
        })
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The first thing about a value that the schema does not allow.
    pub(crate) fn violation(&self, value: &Value) -> Option<Violation> {
        if !self.growth.allows(value) {
            let message = "is nested too deeply for the schema of the field, which refers to itself more than once";
            return Some(Violation {
                path: String::new(),
                message: message.to_owned(),
            });
        }
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
