//! The definition as a tree in which every node and key knows its line.

use serde_json::{Number, Value};

/// A value of the source.
#[derive(Debug)]
pub(crate) struct Node {
    pub line: u64,
    pub kind: Kind,
}

/// What a value is, in JSON's terms.
#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// Already reported (an alias, an unquoted `no`, …): whoever meets it adds no second fault.
    Faulty,
}

/// One key of a mapping with its value; keys are unique in their mapping.
#[derive(Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub line: u64,
    pub value: Node,
}

impl Node {
    /// The node as a JSON value; `None` if something below it is faulty.
    pub(crate) fn to_json(&self) -> Option<Value> {
        Some(match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => {
                Value::Array(items.iter().map(Node::to_json).collect::<Option<_>>()?)
            }
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| Some((entry.key.clone(), entry.value.to_json()?)))
                    .collect::<Option<_>>()?,
            ),
            Kind::Faulty => return None,
        })
    }

    /// What the node is, for messages.
    pub(crate) fn described(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing (null)",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Faulty => "faulty",
        }
    }
}
