//! The definition with every default filled in, as answers show it.

use crate::model::{CheckpointRules, Class, Field};
use serde_json::{Map, Value};

impl Class {
    /// One JSON object: `roles`, `create`, `fields`, and `checkpoint` where the class has rules for it. Its keys
    /// stand in the order of the definition; name and description of the class are not in it.
    pub fn definition_json(&self) -> String {
        let mut definition = Map::new();
        let roles = self.roles.iter().map(|role| {
            let patterns = role
                .patterns
                .iter()
                .map(|pattern| Value::from(pattern.as_str()))
                .collect();
            (role.name.clone(), Value::Array(patterns))
        });
        definition.insert("roles".into(), Value::Object(roles.collect()));
        definition.insert("create".into(), list(&self.create));
        let fields = self
            .fields
            .iter()
            .map(|field| (field.name.clone(), Value::Object(field.definition())));
        definition.insert("fields".into(), Value::Object(fields.collect()));
        if let Some(rules) = &self.checkpoint {
            definition.insert("checkpoint".into(), Value::Object(rules.definition()));
        }
        Value::Object(definition).to_string()
    }
}

impl Field {
    fn definition(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        keys.insert("mode".into(), self.mode.as_str().into());
        keys.insert("write".into(), list(&self.write));
        keys.insert("read".into(), list(&self.read));
        keys.insert("evidence".into(), self.evidence.as_str().into());
        if let Some(description) = &self.description {
            keys.insert("description".into(), description.as_str().into());
        }
        if let Some(values) = &self.values {
            keys.insert("values".into(), Value::Array(values.clone()));
        }
        if let Some(initial) = &self.initial {
            keys.insert("initial".into(), initial.clone());
        }
        if let Some(schema) = &self.schema {
            keys.insert("schema".into(), schema.source().clone());
        }
        if let Some(task) = &self.requires_claim {
            keys.insert("requires_claim".into(), task.as_str().into());
        }
        if let Some(lease) = self.lease {
            let mut seconds = Map::new();
            seconds.insert("default_seconds".into(), lease.default_seconds.into());
            seconds.insert("max_seconds".into(), lease.max_seconds.into());
            keys.insert("lease".into(), Value::Object(seconds));
        }
        if !self.overriders.is_empty() {
            keys.insert("override".into(), list(&self.overriders));
        }
        keys
    }
}

impl CheckpointRules {
    fn definition(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        keys.insert("required".into(), list(&self.required));
        keys.insert("sections".into(), list(&self.sections));
        keys.insert("max_bytes".into(), self.max_bytes.into());
        if let Some(task) = &self.requires_claim {
            keys.insert("requires_claim".into(), task.as_str().into());
        }
        keys
    }
}

fn list(names: &[String]) -> Value {
    names.iter().map(String::as_str).collect::<Vec<_>>().into()
}
