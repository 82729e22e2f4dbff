//! What somebody else has put on our tables. A statement carries it out; a row that is changed without one would pass it by.
//!
//! Ours are known by their names and by what they call: whoever replaces one of ours under its own name has taken it over.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::index::indexes_of;
use crate::columns::Definition;
use crate::spi::attribute;

/// CHECK constraints that are ours, with their table, and our indexes with a predicate (sql/001_tables.sql).
const OWN_CHECKS: (&str, [&CStr; 2]) = ("claim", [c"claim_state_check", c"claim_check"]);
const OWN_PREDICATES: [&CStr; 2] = [c"claim_open", c"claim_recheck"];

/// No triggers, rules, policies that bind the owner, and columns but ours?
pub unsafe fn none(relation: pg_sys::Relation, table: &Definition) -> bool {
    // SAFETY: the relation is open.
    unsafe {
        let form = &*(*relation).rd_rel;
        let description = (*relation).rd_att;
        let mut others = table.columns.len()..(*description).natts as usize;
        let triggers = (*relation).trigdesc;
        !form.relhasrules
            && !form.relforcerowsecurity
            && others.all(|place| (*attribute(description, place)).attisdropped)
            && (triggers.is_null()
                || (0..(*triggers).numtriggers as usize)
                    .all(|i| is_own_trigger(&*(*triggers).triggers.add(i), table.name)))
    }
}

/// sql/triggers.sql.
unsafe fn is_own_trigger(trigger: &pg_sys::Trigger, table: &str) -> bool {
    // SAFETY: the names are C strings.
    unsafe {
        let function = match CStr::from_ptr(trigger.tgname).to_bytes() {
            b"a_version" => format!("kslate_{table}_before"),
            b"z_history" => format!("kslate_{table}_after"),
            b"a_keep" => "kslate_keep".to_owned(),
            _ => return false,
        };
        let called = pg_sys::get_func_name(trigger.tgfoid);
        !called.is_null()
            && CStr::from_ptr(called).to_bytes() == function.as_bytes()
            && is_of_the_extension(trigger.tgfoid)
    }
}

unsafe fn is_of_the_extension(function: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups; the name is a C string.
    unsafe {
        let extension = pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function);
        let name = pg_sys::get_extension_name(extension);
        !name.is_null() && CStr::from_ptr(name) == c"kslate"
    }
}

/// No constraints, index expressions and predicates but ours?
pub unsafe fn none_in_constraints(relation: pg_sys::Relation, table: &str) -> bool {
    // SAFETY: the relation is open, and so is each index while it is looked at.
    unsafe {
        let constraints = (*(*relation).rd_att).constr;
        let own: &[&CStr] = if table == OWN_CHECKS.0 {
            &OWN_CHECKS.1
        } else {
            &[]
        };
        let own_checks = constraints.is_null()
            || (!(*constraints).has_generated_stored
                && (0..(*constraints).num_check as usize)
                    .all(|i| own.contains(&CStr::from_ptr((*(*constraints).check.add(i)).ccname))));
        own_checks
            && !(*(*relation).rd_rel).relispartition
            && indexes_of(relation).all(|index| is_plain(index))
    }
}

unsafe fn is_plain(index: pg_sys::Oid) -> bool {
    // SAFETY: the index is one of an open relation.
    unsafe {
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let name = CStr::from_ptr((*(*index).rd_rel).relname.data.as_ptr());
        let plain = pg_sys::RelationGetIndexExpressions(index).is_null()
            && (pg_sys::RelationGetIndexPredicate(index).is_null()
                || OWN_PREDICATES.contains(&name));
        pg_sys::index_close(index, pg_sys::AccessShareLock as i32);
        plain
    }
}
