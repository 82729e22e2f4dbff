//! What changes from one definition of a class to the next.

use crate::model::{CheckpointRules, Class, Field, Mode, Role};
use serde_json::Value;
use std::fmt;

/// One change. Two classes without differences have the same definition, up to the order of keys inside JSON values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// As in [`crate::Fault::path`].
    pub path: String,
    /// A line for people: `field rollback added (cas, written by remediator)`.
    pub text: String,
    /// What must not exist in the database if the change is to be made.
    pub orphans: Option<Orphans>,
}

/// What a change would leave without an owner: the database has to be asked whether there is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// Records with history of the field.
    FieldRemoved { field: String },
    /// Records with history of the field.
    ModeChanged { field: String, from: Mode, to: Mode },
    /// Records with checkpoints of the role.
    RoleRemoved { role: String },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Class {
    /// Everything that `new` has otherwise than `self`, in the order of the definition. Names of classes are not
    /// compared: that both are the same class is the caller's to know.
    pub fn differences(&self, new: &Class) -> Vec<Difference> {
        let mut found = Found::default();
        if self.description != new.description {
            found.plain("description", "description changed");
        }
        found.roles(&self.roles, &new.roles);
        found.list("create", "records created by", &self.create, &new.create);
        found.fields(&self.fields, &new.fields);
        found.checkpoint(self.checkpoint.as_ref(), new.checkpoint.as_ref());
        found.differences
    }
}

#[derive(Default)]
struct Found {
    differences: Vec<Difference>,
}

impl Found {
    fn add(&mut self, path: String, text: String, orphans: Option<Orphans>) {
        self.differences.push(Difference {
            path,
            text,
            orphans,
        });
    }

    fn plain(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.add(path.into(), text.into(), None);
    }

    fn list(&mut self, path: impl Into<String>, what: &str, old: &[String], new: &[String]) {
        if old != new {
            self.plain(path, format!("{what} {} (was {})", names(new), names(old)));
        }
    }

    fn changed<T: PartialEq>(
        &mut self,
        path: String,
        what: &str,
        old: &T,
        new: &T,
        shown: impl Fn(&T) -> String,
    ) {
        if old != new {
            self.plain(path, format!("{what} {} (was {})", shown(new), shown(old)));
        }
    }

    fn roles(&mut self, old: &[Role], new: &[Role]) {
        for role in old {
            let path = format!("roles.{}", role.name);
            match new.iter().find(|other| other.name == role.name) {
                None => {
                    let orphans = Orphans::RoleRemoved {
                        role: role.name.clone(),
                    };
                    self.add(path, format!("role {} removed", role.name), Some(orphans));
                }
                Some(other) => {
                    self.list(
                        path,
                        &format!("role {} held by", role.name),
                        &patterns(role),
                        &patterns(other),
                    );
                }
            }
        }
        for role in new
            .iter()
            .filter(|role| !old.iter().any(|other| other.name == role.name))
        {
            self.plain(
                format!("roles.{}", role.name),
                format!(
                    "role {} added (held by {})",
                    role.name,
                    names(&patterns(role))
                ),
            );
        }
        let order = |roles: &[Role]| {
            roles
                .iter()
                .map(|role| role.name.clone())
                .collect::<Vec<_>>()
        };
        self.order("roles", &order(old), &order(new));
    }

    fn fields(&mut self, old: &[Field], new: &[Field]) {
        for field in old {
            match new.iter().find(|other| other.name == field.name) {
                None => {
                    let orphans = Orphans::FieldRemoved {
                        field: field.name.clone(),
                    };
                    self.add(
                        format!("fields.{}", field.name),
                        format!("field {} removed", field.name),
                        Some(orphans),
                    );
                }
                Some(other) => self.field(field, other),
            }
        }
        for field in new
            .iter()
            .filter(|field| !old.iter().any(|other| other.name == field.name))
        {
            self.plain(
                format!("fields.{}", field.name),
                format!(
                    "field {} added ({}, written by {})",
                    field.name,
                    field.mode,
                    names(&field.write)
                ),
            );
        }
        let order = |fields: &[Field]| {
            fields
                .iter()
                .map(|field| field.name.clone())
                .collect::<Vec<_>>()
        };
        self.order("fields", &order(old), &order(new));
    }

    fn field(&mut self, old: &Field, new: &Field) {
        let at = |key: &str| format!("fields.{}.{key}", old.name);
        let what = |text: &str| format!("field {} {text}", old.name);
        if old.mode != new.mode {
            let orphans = Orphans::ModeChanged {
                field: old.name.clone(),
                from: old.mode,
                to: new.mode,
            };
            self.add(
                at("mode"),
                what(&format!("has mode {} (was {})", new.mode, old.mode)),
                Some(orphans),
            );
        }
        self.list(at("write"), &what("written by"), &old.write, &new.write);
        self.list(at("read"), &what("read by"), &old.read, &new.read);
        self.changed(
            at("evidence"),
            &what("has evidence"),
            &old.evidence,
            &new.evidence,
            |e| e.as_str().to_owned(),
        );
        if old.description != new.description {
            self.plain(at("description"), what("has another description"));
        }
        self.changed(
            at("values"),
            &what("has values"),
            &old.values,
            &new.values,
            |values| {
                values.as_ref().map_or_else(
                    || "any".to_owned(),
                    |values| {
                        values
                            .iter()
                            .map(crate::admission::bare)
                            .collect::<Vec<_>>()
                            .join(", ")
                    },
                )
            },
        );
        self.changed(
            at("initial"),
            &what("has initial value"),
            &old.initial,
            &new.initial,
            |initial| initial.as_ref().map_or_else(|| "none".to_owned(), shown),
        );
        if old.schema != new.schema {
            let text = match (&old.schema, &new.schema) {
                (None, _) => "has a schema now",
                (_, None) => "has no schema any more",
                _ => "has another schema",
            };
            self.plain(at("schema"), what(text));
        }
        self.changed(
            at("requires_claim"),
            &what("requires the claim of"),
            &old.requires_claim,
            &new.requires_claim,
            nothing,
        );
        // Of a field that becomes a task, or stops being one, the mode says enough.
        if let (Some(was), Some(is)) = (old.lease, new.lease) {
            self.changed(at("lease"), &what("has lease"), &was, &is, |lease| {
                format!(
                    "{} s, at most {} s",
                    lease.default_seconds, lease.max_seconds
                )
            });
        }
        self.list(
            at("override"),
            &what("force-released by"),
            &old.overriders,
            &new.overriders,
        );
    }

    fn checkpoint(&mut self, old: Option<&CheckpointRules>, new: Option<&CheckpointRules>) {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.plain(
                "checkpoint",
                format!(
                    "checkpoint rules added (required of {}, sections {}, at most {} bytes{})",
                    names(&new.required),
                    names(&new.sections),
                    new.max_bytes,
                    new.requires_claim
                        .as_ref()
                        .map(|task| format!(", by the holder of {task}"))
                        .unwrap_or_default()
                ),
            ),
            (Some(_), None) => self.plain(
                "checkpoint",
                "checkpoint rules removed; nothing holds back resolved any more",
            ),
            (Some(old), Some(new)) => {
                self.list(
                    "checkpoint.required",
                    "checkpoint required of",
                    &old.required,
                    &new.required,
                );
                self.list(
                    "checkpoint.sections",
                    "checkpoint has sections",
                    &old.sections,
                    &new.sections,
                );
                let bytes = |bytes: &u32| bytes.to_string();
                self.changed(
                    "checkpoint.max_bytes".into(),
                    "checkpoint max_bytes",
                    &old.max_bytes,
                    &new.max_bytes,
                    bytes,
                );
                let path = "checkpoint.requires_claim".to_owned();
                let what = "saving a checkpoint requires the claim of";
                self.changed(
                    path,
                    what,
                    &old.requires_claim,
                    &new.requires_claim,
                    nothing,
                );
            }
        }
    }

    /// The order of roles and fields shows in answers, so a change of it is one; added and removed ones aside.
    fn order(&mut self, what: &str, old: &[String], new: &[String]) {
        let kept_old: Vec<&String> = old.iter().filter(|name| new.contains(name)).collect();
        let kept_new: Vec<&String> = new.iter().filter(|name| old.contains(name)).collect();
        // An addition between old ones is a new order too, though its line tells only of the addition.
        if kept_old != kept_new {
            self.plain(what, format!("{what} in the order {}", names(new)));
        }
    }
}

/// A list for people; an empty one is said, so that "(was )" never stands there.
fn names(list: &[String]) -> String {
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    }
}

fn nothing(name: &Option<String>) -> String {
    name.clone().unwrap_or_else(|| "nothing".to_owned())
}

fn patterns(role: &Role) -> Vec<String> {
    role.patterns.iter().map(ToString::to_string).collect()
}

fn shown(value: &Value) -> String {
    crate::fault::shortened(&value.to_string())
}
