//! The rules for checkpoints, and what the gate needs of the class.

use super::field::task_name;
use super::lists::{distinct_texts, roles_in, Named};
use super::place::{Object, Place};
use super::{all, Names};
use crate::fault::Faults;
use crate::model::{CheckpointRules, Mode};

const CHECKPOINT_KEYS: [&str; 4] = ["required", "sections", "max_bytes", "requires_claim"];

/// Reads the `checkpoint` block. `None` only with faults added.
pub(super) fn rules(
    place: &Place<'_>,
    names: &Names<'_>,
    faults: &mut Faults,
) -> Option<CheckpointRules> {
    let keys = Object::of(place, Some(&CHECKPOINT_KEYS), faults)?;
    let required = match keys.get("required") {
        Some(place) => roles_in(&place, names, true, faults),
        None => Some(Vec::new()),
    };
    let sections = match keys.get("sections") {
        Some(place) => sections(&place, faults),
        None => Some(Vec::new()),
    };
    let max_bytes = match keys.get("max_bytes") {
        Some(place) => place.whole(1..=CheckpointRules::LARGEST_MAX_BYTES, faults),
        None => Some(CheckpointRules::DEFAULT_MAX_BYTES),
    };
    let requires_claim = match keys.get("requires_claim") {
        Some(place) => task_name(&place, names, faults).map(Some),
        None => Some(None),
    };
    Some(CheckpointRules {
        required: required?,
        sections: sections?,
        max_bytes: max_bytes?,
        requires_claim: requires_claim?,
    })
}

/// The gate holds back `status: resolved`: with required roles there has to be such a field, and it may not start there.
pub(super) fn gate(
    rules: &CheckpointRules,
    root: &Object<'_>,
    fields: &Object<'_>,
    names: &Names<'_>,
    faults: &mut Faults,
) {
    let quiet = &mut Faults::default();
    let required = root
        .get("checkpoint")
        .and_then(|place| Object::of(&place, None, quiet))
        .and_then(|checkpoint| checkpoint.get("required"));
    let Some(required) = required.filter(|_| !rules.required.is_empty()) else {
        return;
    };
    match names.mode("status") {
        Some(None | Some(Mode::Cas | Mode::Lww)) => {}
        Some(Some(mode)) => required
            .fault(faults, format!("needs a field status of mode cas or lww that may become resolved; status is {mode}")),
        None => required.fault(faults, "needs a field status of mode cas or lww that may become resolved; there is none"),
    }
    let initial = fields
        .get("status")
        .and_then(|status| Object::of(&status, None, quiet))
        .and_then(|status| status.get("initial"));
    if let Some(initial) = initial.filter(|initial| initial.is_text("resolved")) {
        let roles = rules.required.join(", ");
        initial.fault(
            faults,
            format!("status cannot start as resolved: a new record has no checkpoint of the required role(s) {roles}"),
        );
    }
}

fn sections(place: &Place<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let read = distinct_texts(place, Named::Section, faults)?
        .into_iter()
        .map(|(section, item)| {
            if section.trim().is_empty() {
                item.fault(faults, "a section has a name");
                return None;
            }
            Some(section.to_owned())
        });
    all(read)
}
