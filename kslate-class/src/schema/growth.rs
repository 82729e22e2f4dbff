//! How the work of validating grows with a value. References can make a small schema exponential (each definition
//! referring to the next one twice), and a validator has no brake of its own; so such schemas are refused, and for
//! those that refer to themselves more than once per step the nesting of values is limited.

use serde_json::{Map, Value};

/// Subschemas that a schema may come to once its references are followed.
const MAX_SUBSCHEMAS: usize = 5_000;
/// Visits to a subschema that one value may cost through self-references.
const MAX_VISITS: f64 = 4_000_000.0;

/// Keywords whose subschemas look at the same value.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with one subschema, or a list of them, for the elements of an array or any member of an object.
const ELEMENTS: [&str; 9] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
];

/// The growth of a schema's work per level of a value's nesting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// How often one part of a value is handed to the schema again; up to 1 the work is linear.
    factor: f64,
    /// How many levels of the value each time takes at least.
    levels: f64,
}

impl Growth {
    /// Measures a schema; the error says what it does that cannot be used.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let mut walk = Walk {
            root: schema,
            open: Vec::new(),
            path: Vec::new(),
            visits: 0,
            loops: Vec::new(),
        };
        walk.visit(schema)?;
        let overlaps = |path: &Vec<Step>| {
            walk.loops
                .iter()
                .filter(|other| overlap(path, other))
                .count()
        };
        let factor = walk.loops.iter().map(overlaps).max().unwrap_or(0);
        let levels = walk.loops.iter().map(Vec::len).min().unwrap_or(1);
        Ok(Self {
            factor: factor as f64,
            levels: levels.max(1) as f64,
        })
    }

    /// True if validating the value stays within bounds.
    pub(super) fn allows(self, value: &Value) -> bool {
        self.factor <= 1.0 || self.visits(value, 0.0) <= MAX_VISITS
    }

    fn visits(self, value: &Value, depth: f64) -> f64 {
        let own = self.factor.powf(depth / self.levels);
        let below: f64 = match value {
            Value::Array(items) => items
                .iter()
                .map(|item| self.visits(item, depth + 1.0))
                .sum(),
            Value::Object(members) => members
                .values()
                .map(|member| self.visits(member, depth + 1.0))
                .sum(),
            _ => 0.0,
        };
        own + below
    }
}

/// One step down into a value.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Member(String),
    /// Any element or member.
    Any,
}

fn overlap(a: &[Step], b: &[Step]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a == b || *a == Step::Any || *b == Step::Any)
}

/// A walk through everything a schema refers to, each reference followed each time.
struct Walk<'a> {
    root: &'a Value,
    /// The schemas being visited, with the length of the path where each began.
    open: Vec<(*const Value, usize)>,
    path: Vec<Step>,
    visits: usize,
    /// The paths into a value after which a schema meets itself again.
    loops: Vec<Vec<Step>>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        self.visits += 1;
        if self.visits > MAX_SUBSCHEMAS {
            return Err(format!(
                "its references multiply to more than {MAX_SUBSCHEMAS} subschemas"
            ));
        }
        let here: *const Value = schema;
        if let Some((_, began)) = self.open.iter().find(|(open, _)| *open == here) {
            let way = self.path.get(*began..).unwrap_or_default().to_vec();
            if way.is_empty() {
                return Err(
                    "it refers to itself without going into the value, so it would never end"
                        .to_owned(),
                );
            }
            self.loops.push(way);
            return Ok(());
        }
        self.open.push((here, self.path.len()));
        self.keywords(keywords)?;
        self.open.pop();
        Ok(())
    }

    fn keywords(&mut self, keywords: &'a Map<String, Value>) -> Result<(), String> {
        let below_root = self.open.len() > 1;
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let target = self.target(reference)?;
                    self.visit(target)?;
                }
                ("$dynamicRef" | "$recursiveRef", _) => {
                    return Err(format!(
                        "{keyword} cannot be used; write $ref with a pointer (#/$defs/…)"
                    ));
                }
                ("$id" | "id", Value::String(_)) if below_root => {
                    return Err(format!(
                        "{keyword} inside a schema cannot be used; name it under $defs"
                    ));
                }
                ("properties", Value::Object(members)) => {
                    for (name, member) in members {
                        self.step(Step::Member(name.clone()), member)?;
                    }
                }
                ("patternProperties", Value::Object(members)) => {
                    for member in members.values() {
                        self.step(Step::Any, member)?;
                    }
                }
                ("dependentSchemas" | "dependencies", Value::Object(members)) => {
                    for member in members.values() {
                        self.visit(member)?;
                    }
                }
                (keyword, value) if IN_PLACE.contains(&keyword) => {
                    for schema in one_or_many(value) {
                        self.visit(schema)?;
                    }
                }
                (keyword, value) if ELEMENTS.contains(&keyword) => {
                    for schema in one_or_many(value) {
                        self.step(Step::Any, schema)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step, schema: &'a Value) -> Result<(), String> {
        self.path.push(step);
        self.visit(schema)?;
        self.path.pop();
        Ok(())
    }

    /// What a reference stands for: the schema itself, or a place in it.
    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let shown = crate::fault::quoted(reference);
        match reference.strip_prefix('#') {
            Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                if pointer.contains('%') {
                    return Err(format!(
                        "$ref {shown} has a percent escape; name the definition without"
                    ));
                }
                self.root
                    .pointer(pointer)
                    .ok_or_else(|| format!("$ref {shown} points at nothing in this schema"))
            }
            _ => Err(format!(
                "$ref {shown} leaves the schema; only references inside it (#/$defs/…) can be used"
            )),
        }
    }
}

fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Array(schemas) => schemas,
        one => std::slice::from_ref(one),
    }
}
