//! A node with the path that leads to it: typed access that reports what does not fit.

use crate::fault::{quoted, shortened, Faults};
use crate::parse::{Entry, Kind, Node};
use serde_json::Value;
use std::ops::RangeInclusive;

/// A value of the definition and where it stands.
pub(crate) struct Place<'a> {
    node: &'a Node,
    path: String,
    key: &'a str,
    /// Where the key stands; the value may begin on a later line.
    key_line: u64,
}

impl<'a> Place<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node,
            path: String::new(),
            key: "",
            key_line: node.line,
        }
    }

    fn under(path: &str, entry: &'a Entry) -> Self {
        let dot = if path.is_empty() { "" } else { "." };
        Self {
            node: &entry.value,
            path: format!("{path}{dot}{}", shortened(&entry.key)),
            key: &entry.key,
            key_line: entry.line,
        }
    }

    /// The key this value stands under.
    pub(crate) fn key(&self) -> &'a str {
        self.key
    }

    /// Reports a fault of the value.
    pub(crate) fn fault(&self, faults: &mut Faults, message: impl Into<String>) {
        faults.add(self.node.line, self.path.clone(), message);
    }

    /// Reports a fault of the key, or of something that is not there.
    pub(crate) fn key_fault(&self, faults: &mut Faults, message: impl Into<String>) {
        faults.add(self.key_line, self.path.clone(), message);
    }

    /// Reports a value of the wrong type; a faulty one was reported before.
    fn not(&self, wanted: &str, faults: &mut Faults) {
        if !matches!(self.node.kind, Kind::Faulty) {
            let hint = match self.node.kind {
                Kind::Number(_) | Kind::Bool(_) if wanted == "text" => "; write it in quotes",
                _ => "",
            };
            // An absent value is nowhere; its key has a line that can be found.
            faults.add(
                self.key_line,
                self.path.clone(),
                format!("must be {wanted}, is {}{hint}", self.node.described()),
            );
        }
    }

    pub(crate) fn text(&self, faults: &mut Faults) -> Option<&'a str> {
        match &self.node.kind {
            Kind::Text(text) => Some(text),
            _ => {
                self.not("text", faults);
                None
            }
        }
    }

    /// The elements of a list.
    pub(crate) fn list(&self, of: &str, faults: &mut Faults) -> Option<Vec<Place<'a>>> {
        let Kind::List(items) = &self.node.kind else {
            self.not(&format!("a list of {of}"), faults);
            return None;
        };
        let places = items.iter().enumerate().map(|(index, node)| Place {
            node,
            path: format!("{}[{index}]", self.path),
            key: self.key,
            key_line: node.line,
        });
        Some(places.collect())
    }

    /// A whole number in a range.
    pub(crate) fn whole(&self, range: RangeInclusive<u32>, faults: &mut Faults) -> Option<u32> {
        let Kind::Number(number) = &self.node.kind else {
            self.not("a whole number", faults);
            return None;
        };
        let whole = number
            .as_u64()
            .and_then(|value| u32::try_from(value).ok())
            .filter(|value| range.contains(value));
        if whole.is_none() {
            let shown = shortened(&number.to_string());
            self.fault(
                faults,
                format!(
                    "{shown} is out of range: a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
            );
        }
        whole
    }

    /// The value as JSON that jsonb can hold.
    pub(crate) fn json(&self, faults: &mut Faults) -> Option<Value> {
        let value = self.node.to_json()?;
        if let Some(reason) = crate::value::not_storable(&value) {
            self.fault(faults, reason);
            return None;
        }
        Some(value)
    }

    /// Whether the value is exactly this text, for rules that look at another key's value.
    pub(crate) fn is_text(&self, wanted: &str) -> bool {
        matches!(&self.node.kind, Kind::Text(text) if text == wanted)
    }
}

/// A mapping of the definition.
pub(crate) struct Object<'a> {
    path: String,
    key_line: u64,
    entries: &'a [Entry],
}

impl<'a> Object<'a> {
    /// The mapping at a place. With `known` every other key is a fault; without, keys are names.
    pub(crate) fn of(
        place: &Place<'a>,
        known: Option<&[&str]>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let Kind::Map(entries) = &place.node.kind else {
            place.not("a mapping (name: value)", faults);
            return None;
        };
        let object = Self {
            path: place.path.clone(),
            key_line: place.key_line,
            entries,
        };
        if let Some(known) = known {
            for unknown in object.places().filter(|place| !known.contains(&place.key)) {
                let message = format!(
                    "unknown key {}; known: {}",
                    quoted(unknown.key),
                    known.join(", ")
                );
                unknown.key_fault(faults, message);
            }
        }
        Some(object)
    }

    pub(crate) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = Place<'a>> + '_ {
        self.entries
            .iter()
            .map(|entry| Place::under(&self.path, entry))
    }

    pub(crate) fn get(&self, key: &str) -> Option<Place<'a>> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| Place::under(&self.path, entry))
    }

    /// A key that must be there.
    pub(crate) fn require(&self, key: &str, faults: &mut Faults) -> Option<Place<'a>> {
        let found = self.get(key);
        if found.is_none() {
            faults.add(
                self.key_line,
                self.path.clone(),
                format!("{key} is missing"),
            );
        }
        found
    }

    /// Reports a mapping with too few or too many names.
    pub(crate) fn size(&self, least: usize, most: usize, what: &str, faults: &mut Faults) {
        let count = self.entries.len();
        if count < least {
            faults.add(
                self.key_line,
                self.path.clone(),
                format!("is empty; a class needs at least {least} {what}"),
            );
        } else if count > most {
            faults.add(
                self.key_line,
                self.path.clone(),
                format!("has {count} {what}s; a class has at most {most}"),
            );
        }
    }
}
