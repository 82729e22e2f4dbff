//! Lists of names: of roles, of patterns, of sections.

use super::place::Place;
use super::{all, Names};
use crate::fault::{quoted, Faults};
use crate::name;
use std::collections::HashSet;

/// How a class, a role and a field are spelled.
pub(crate) const SPELLING: &str =
    "a small letter first, then small letters, digits, _ and -, at most 63 in all";

/// What the elements of a list are.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    Pattern,
    Role,
    Section,
}

impl Named {
    fn singular(self) -> &'static str {
        match self {
            Named::Pattern => "pattern",
            Named::Role => "role",
            Named::Section => "section",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Named::Pattern => "identity patterns",
            Named::Role => "role names",
            Named::Section => "section names",
        }
    }
}

/// Reports the key of a role or field that is no name.
pub(crate) fn well_named(place: &Place<'_>, what: &str, faults: &mut Faults) {
    if !name::is_field(place.key()) {
        place.key_fault(
            faults,
            format!("{} is no {what} name: {SPELLING}", quoted(place.key())),
        );
    }
}

/// The texts of a list; an empty list of patterns or roles and an element that comes twice are faults.
pub(crate) fn distinct_texts<'a>(
    place: &Place<'a>,
    named: Named,
    faults: &mut Faults,
) -> Option<Vec<(&'a str, Place<'a>)>> {
    let mut seen = HashSet::new();
    let items = place.list(named.plural(), faults)?;
    if items.is_empty() && matches!(named, Named::Pattern) {
        place.fault(
            faults,
            "is empty: nobody could hold this role; list at least one pattern",
        );
        return None;
    }
    let read = items.into_iter().map(|item| {
        let text = item.text(faults)?;
        if !seen.insert(text) {
            item.fault(
                faults,
                format!("{} {} is listed twice", named.singular(), quoted(text)),
            );
            return None;
        }
        Some((text, item))
    });
    all(read)
}

/// A list of roles of the class.
pub(crate) fn roles_in(
    place: &Place<'_>,
    names: &Names<'_>,
    may_be_empty: bool,
    faults: &mut Faults,
) -> Option<Vec<String>> {
    let items = distinct_texts(place, Named::Role, faults)?;
    if items.is_empty() && !may_be_empty {
        place.fault(faults, "is empty; name at least one role");
        return None;
    }
    let read = items.into_iter().map(|(role, item)| match &names.roles {
        Some(known) if !known.contains(&role) => {
            let message = format!(
                "unknown role {}; roles of this class: {}",
                quoted(role),
                known.join(", ")
            );
            item.fault(faults, message);
            None
        }
        _ => Some(role.to_owned()),
    });
    all(read)
}
