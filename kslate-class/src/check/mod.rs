//! From the tree to the class: every rule of a definition, each with the line that breaks it.

mod checkpoint;
mod field;
mod lists;
mod place;

use crate::fault::{quoted, Faults};
use crate::model::{Class, Field, Mode, Role};
use crate::name;
use crate::parse::{Kind, Node};
use crate::pattern::Pattern;
use lists::{distinct_texts, roles_in, Named};
use place::{Object, Place};

const MAX_ROLES: usize = 50;
const MAX_FIELDS: usize = 200;

const CLASS_KEYS: [&str; 6] = [
    "class",
    "description",
    "roles",
    "create",
    "fields",
    "checkpoint",
];

/// Reads a class out of its tree. `None` only with faults added; with faults added the class is not to be used.
pub(crate) fn class(root: &Node, faults: &mut Faults) -> Option<Class> {
    let root = Object::of(&Place::root(root), Some(&CLASS_KEYS), faults)?;
    let class = root
        .require("class", faults)
        .and_then(|place| class_name(&place, faults));
    let description = optional_text(&root, "description", faults);

    let roles_object = root
        .require("roles", faults)
        .and_then(|place| Object::of(&place, None, faults));
    let roles = roles_object
        .as_ref()
        .and_then(|object| roles(object, faults));
    let fields_object = root
        .require("fields", faults)
        .and_then(|place| Object::of(&place, None, faults));
    let names = Names::of(roles_object.as_ref(), fields_object.as_ref());

    let fields = fields_object
        .as_ref()
        .and_then(|object| fields(object, &names, faults));
    let create = match root.get("create") {
        Some(place) => roles_in(&place, &names, false, faults),
        None => Some(writers(&names, fields.as_deref().unwrap_or_default())),
    };
    let checkpoint = root
        .get("checkpoint")
        .map(|place| checkpoint::rules(&place, &names, faults));
    if let (Some(Some(rules)), Some(fields)) = (&checkpoint, &fields_object) {
        checkpoint::gate(rules, &root, fields, &names, faults);
    }
    Some(Class {
        name: class?,
        description: description?,
        roles: roles?,
        create: create?,
        fields: fields?,
        checkpoint: match checkpoint {
            Some(rules) => Some(rules?),
            None => None,
        },
    })
}

/// The names a definition declares, known before the rules that refer to them are checked.
pub(crate) struct Names<'a> {
    /// `None` where `roles` cannot be read: nobody's reference to a role is then at fault.
    roles: Option<Vec<&'a str>>,
    /// Every field with its mode, or without where the mode is at fault.
    fields: Vec<(&'a str, Option<Mode>)>,
}

impl<'a> Names<'a> {
    fn of(roles: Option<&Object<'a>>, fields: Option<&Object<'a>>) -> Self {
        let mode_of = |node: &Node| match &node.kind {
            Kind::Map(entries) => {
                entries
                    .iter()
                    .find(|entry| entry.key == "mode")
                    .and_then(|entry| match &entry.value.kind {
                        Kind::Text(word) => Mode::from_word(word),
                        _ => None,
                    })
            }
            _ => None,
        };
        Self {
            roles: roles.map(|object| {
                object
                    .entries()
                    .iter()
                    .map(|entry| entry.key.as_str())
                    .collect()
            }),
            fields: fields.map_or_else(Vec::new, |object| {
                object
                    .entries()
                    .iter()
                    .map(|entry| (entry.key.as_str(), mode_of(&entry.value)))
                    .collect()
            }),
        }
    }

    /// `Some(None)`: declared, but its mode is at fault.
    fn mode(&self, field: &str) -> Option<Option<Mode>> {
        self.fields
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, mode)| *mode)
    }

    fn all_roles(&self) -> Vec<String> {
        self.roles
            .iter()
            .flatten()
            .map(|role| (*role).to_owned())
            .collect()
    }
}

fn class_name(place: &Place<'_>, faults: &mut Faults) -> Option<String> {
    let text = place.text(faults)?;
    if !name::is_class(text) {
        let shown = quoted(text);
        place.fault(
            faults,
            format!("{shown} is no class name: {}", lists::SPELLING),
        );
        return None;
    }
    Some(text.to_owned())
}

/// `Some(None)`: not given. `None`: at fault.
fn optional_text(object: &Object<'_>, key: &str, faults: &mut Faults) -> Option<Option<String>> {
    match object.get(key) {
        Some(place) => place.text(faults).map(|text| Some(text.to_owned())),
        None => Some(None),
    }
}

fn roles(object: &Object<'_>, faults: &mut Faults) -> Option<Vec<Role>> {
    object.size(1, MAX_ROLES, "role", faults);
    let read = object.places().map(|place| {
        lists::well_named(&place, "role", faults);
        let patterns = patterns(&place, faults)?;
        Some(Role {
            name: place.key().to_owned(),
            patterns,
        })
    });
    all(read)
}

fn patterns(place: &Place<'_>, faults: &mut Faults) -> Option<Vec<Pattern>> {
    let read = distinct_texts(place, Named::Pattern, faults)?
        .into_iter()
        .map(|(text, place)| {
            Pattern::parse(text)
                .map_err(|message| place.fault(faults, message))
                .ok()
        });
    all(read)
}

fn fields(object: &Object<'_>, names: &Names<'_>, faults: &mut Faults) -> Option<Vec<Field>> {
    object.size(1, MAX_FIELDS, "field", faults);
    let read = object.places().map(|place| {
        lists::well_named(&place, "field", faults);
        field::field(&place, names, faults)
    });
    all(read)
}

/// The default of `create`: every role that may write some field, in the order of the roles.
fn writers(names: &Names<'_>, fields: &[Field]) -> Vec<String> {
    let mut roles = names.all_roles();
    roles.retain(|role| fields.iter().any(|field| field.write.contains(role)));
    roles
}

/// Every element, or `None`; unlike collecting options it goes through all of them, so that all are checked.
fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = read.collect();
    read.into_iter().collect()
}
