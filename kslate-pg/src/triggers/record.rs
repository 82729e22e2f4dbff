//! kslate.record: creation by hand is a creation; its version is nobody's to set.

use pgrx::pg_sys;

use super::field::class_of;
use super::{immutable, Event, Fired};
use crate::columns::record::*;
use crate::error::{Failure, Outcome};
use crate::record;
use crate::scope::Call;
use crate::spi::{int, text, time};
use crate::time::Time;

/// BEFORE ROW: for a writer that is not our code, derives all columns of a new record from its name, and refuses updates.
pub fn before(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"record"])?;
    if fired.ours() {
        return Ok(fired.pass());
    }
    if fired.event == Event::Update {
        return Err(immutable(
            "a record's row changes only with its fields and claims",
        ));
    }
    let new = fired.new_row()?;
    let name = new
        .get::<String>(RECORD)
        .ok_or_else(|| Failure::missing("record"))?;
    let Some((class, key)) = kslate_class::name::split_record(&name) else {
        return Err(Failure::malformed("record must be class/key"));
    };
    let call = Call::open(None)?;
    class_of(&call.session, call.storage, &name)?;
    let author = call.caller.identity.clone();
    drop(call);
    Ok(fired.pass_with(&[
        (CLASS, text(class)),
        (KEY, text(key)),
        (VERSION, int(0)),
        (CREATED_BY, text(&author)),
        (CREATED_AT, time(Time::now())),
    ]))
}

/// AFTER ROW: a record inserted by hand gets what `kslate_create` gives: initial values, claims, its row of history.
pub fn after(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"record"])?;
    if fired.ours() {
        return Ok(fired.done());
    }
    let new = fired.new_row()?;
    let name: String = new.need(RECORD)?;
    let call = Call::open(None)?;
    let class = class_of(&call.session, call.storage, &name)?;
    let author: String = new.need(CREATED_BY)?;
    let first = record::FirstValues {
        given: Vec::new(),
        author: &author,
        role: None,
        evidence: None,
    };
    record::furnish(&call, &class, &name, &first, new.need(CREATED_AT)?)?;
    Ok(fired.done())
}
