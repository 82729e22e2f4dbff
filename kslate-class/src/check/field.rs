//! The rules of one field.

use super::lists::roles_in;
use super::place::{Object, Place};
use super::{all, optional_text, Names};
use crate::admission::{bare, not_among};
use crate::fault::{quoted, Faults};
use crate::model::{Evidence, Field, Lease, Mode};
use crate::schema::Schema;
use crate::value::same_value;
use serde_json::Value;

const FIELD_KEYS: [&str; 11] = [
    "mode",
    "write",
    "read",
    "evidence",
    "description",
    "values",
    "initial",
    "schema",
    "requires_claim",
    "lease",
    "override",
];

/// Reads one field. `None` only with faults added.
pub(super) fn field(place: &Place<'_>, names: &Names<'_>, faults: &mut Faults) -> Option<Field> {
    let keys = Object::of(place, Some(&FIELD_KEYS), faults)?;
    let mode = keys
        .require("mode", faults)
        .and_then(|place| mode(&place, faults));
    let write = keys
        .require("write", faults)
        .and_then(|place| roles_in(&place, names, false, faults));
    let read = match keys.get("read") {
        Some(place) => roles_in(&place, names, false, faults),
        None => Some(names.all_roles()),
    };
    let evidence = match keys.get("evidence") {
        Some(place) => evidence(&place, faults),
        None => Some(Evidence::Optional),
    };
    let description = optional_text(&keys, "description", faults);
    let schema = optional(keys.get("schema"), |place| schema(place, faults));
    let values = optional(keys.get("values"), |place| {
        let schema = schema.as_ref().and_then(Option::as_ref);
        values(place, schema, faults)
    });
    let initial = optional(keys.get("initial"), |place| {
        let values = values.as_ref().and_then(Option::as_ref);
        let schema = schema.as_ref().and_then(Option::as_ref);
        initial(place, mode, values.map(Vec::as_slice), schema, faults)
    });
    let requires_claim = optional(keys.get("requires_claim"), |place| {
        if mode == Some(Mode::Task) {
            place.key_fault(
                faults,
                "a task is written by its own holder only; requires_claim is for the other modes",
            );
            return None;
        }
        task_name(place, names, faults)
    });
    let lease = lease(&keys, mode, faults);
    let overriders = match keys.get("override") {
        Some(place) => {
            only_on_task(&place, mode, faults).and_then(|()| roles_in(&place, names, true, faults))
        }
        None => Some(Vec::new()),
    };
    Some(Field {
        name: place.key().to_owned(),
        mode: mode?,
        description: description?,
        write: write?,
        read: read?,
        initial: initial?,
        values: values?,
        schema: schema?,
        evidence: evidence?,
        requires_claim: requires_claim?,
        lease: lease?,
        overriders: overriders?,
    })
}

/// The name of a task field of the class.
pub(super) fn task_name(
    place: &Place<'_>,
    names: &Names<'_>,
    faults: &mut Faults,
) -> Option<String> {
    let name = place.text(faults)?;
    let wrong = match names.mode(name) {
        Some(None | Some(Mode::Task)) => return Some(name.to_owned()),
        Some(Some(mode)) => format!(
            "{} is {mode}; requires_claim names a task field of this class",
            quoted(name)
        ),
        None => format!(
            "unknown field {}; requires_claim names a task field of this class",
            quoted(name)
        ),
    };
    let tasks: Vec<&str> = names
        .fields
        .iter()
        .filter(|(_, mode)| *mode == Some(Mode::Task))
        .map(|(name, _)| *name)
        .collect();
    let known = if tasks.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has: {}", tasks.join(", "))
    };
    place.fault(faults, format!("{wrong} ({known})"));
    None
}

/// `Some(None)`: not given. `None`: at fault.
fn optional<'a, T>(
    place: Option<Place<'a>>,
    read: impl FnOnce(&Place<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match place {
        Some(place) => read(&place).map(Some),
        None => Some(None),
    }
}

fn mode(place: &Place<'_>, faults: &mut Faults) -> Option<Mode> {
    let word = place.text(faults)?;
    let mode = Mode::from_word(word);
    if mode.is_none() {
        place.fault(
            faults,
            format!(
                "unknown mode {}: one of {}",
                quoted(word),
                Mode::ALL.map(Mode::as_str).join(", ")
            ),
        );
    }
    mode
}

fn evidence(place: &Place<'_>, faults: &mut Faults) -> Option<Evidence> {
    match place.text(faults)? {
        "optional" => Some(Evidence::Optional),
        "required" => Some(Evidence::Required),
        word => {
            place.fault(
                faults,
                format!(
                    "unknown evidence {}: one of optional, required",
                    quoted(word)
                ),
            );
            None
        }
    }
}

fn schema(place: &Place<'_>, faults: &mut Faults) -> Option<Schema> {
    let source = place.json(faults)?;
    if !source.is_object() && !source.is_boolean() {
        place.key_fault(faults, "must be a JSON Schema: a mapping, or true or false");
        return None;
    }
    Schema::compile(source)
        .map_err(|(pointer, message)| {
            let at = if pointer.is_empty() {
                String::new()
            } else {
                format!(" at {pointer}")
            };
            place.key_fault(
                faults,
                format!("is no JSON Schema that can be used{at}: {message}"),
            );
        })
        .ok()
}

fn values(place: &Place<'_>, schema: Option<&Schema>, faults: &mut Faults) -> Option<Vec<Value>> {
    let items = place.list("values", faults)?;
    if items.is_empty() {
        place.fault(
            faults,
            "is empty: nothing could ever be written; list the values or remove the key",
        );
        return None;
    }
    let mut known: Vec<Value> = Vec::with_capacity(items.len());
    let read: Vec<Option<()>> = items
        .iter()
        .map(|item| {
            let value = item.json(faults)?;
            if known.iter().any(|other| same_value(other, &value)) {
                item.fault(faults, format!("value {} is listed twice", bare(&value)));
                return None;
            }
            if let Some(violation) = schema.and_then(|schema| schema.violation(&value)) {
                item.fault(
                    faults,
                    format!("could never be written, the schema refuses it: {violation}"),
                );
                return None;
            }
            known.push(value);
            Some(())
        })
        .collect();
    all(read.into_iter()).map(|_| known)
}

fn initial(
    place: &Place<'_>,
    mode: Option<Mode>,
    values: Option<&[Value]>,
    schema: Option<&Schema>,
    faults: &mut Faults,
) -> Option<Value> {
    match mode {
        Some(mode @ (Mode::Append | Mode::Task)) => {
            place.key_fault(
                faults,
                format!("only cas and lww fields have an initial value; this one is {mode}"),
            );
            return None;
        }
        Some(Mode::Cas | Mode::Lww) | None => {}
    }
    let value = place.json(faults)?;
    if let Some(values) =
        values.filter(|values| !values.iter().any(|allowed| same_value(allowed, &value)))
    {
        place.fault(faults, not_among(&value, values));
        return None;
    }
    if let Some(violation) = schema.and_then(|schema| schema.violation(&value)) {
        place.fault(
            faults,
            format!("is refused by the schema of the field: {violation}"),
        );
        return None;
    }
    Some(value)
}

fn only_on_task(place: &Place<'_>, mode: Option<Mode>, faults: &mut Faults) -> Option<()> {
    match mode {
        Some(Mode::Task) | None => Some(()),
        Some(mode) => {
            place.key_fault(
                faults,
                format!("only task fields have {}; this one is {mode}", place.key()),
            );
            None
        }
    }
}

/// `Some(None)`: no task.
fn lease(keys: &Object<'_>, mode: Option<Mode>, faults: &mut Faults) -> Option<Option<Lease>> {
    let Some(place) = keys.get("lease") else {
        return Some((mode == Some(Mode::Task)).then(Lease::default));
    };
    only_on_task(&place, mode, faults)?;
    let seconds = Object::of(&place, Some(&["default_seconds", "max_seconds"]), faults)?;
    let range = 1..=Lease::LONGEST_SECONDS;
    let defaults = Lease::default();
    let given_max = optional(seconds.get("max_seconds"), |place| {
        place.whole(range.clone(), faults)
    });
    let given_default = optional(seconds.get("default_seconds"), |place| {
        place.whole(range, faults)
    });
    let max_seconds = given_max?.unwrap_or(defaults.max_seconds);
    let default_seconds = match given_default? {
        Some(given) if given > max_seconds => {
            let message = format!("default_seconds {given} is more than max_seconds {max_seconds}");
            seconds
                .get("default_seconds")
                .unwrap_or(place)
                .fault(faults, message);
            return None;
        }
        Some(given) => given,
        // A class that only says how long at most means no longer by default either.
        None => defaults.default_seconds.min(max_seconds),
    };
    Some(Some(Lease {
        default_seconds,
        max_seconds,
    }))
}
