//! kslate.field: versions, the gate, history.

use kslate_class::{Class, Mode};
use pgrx::pg_sys;

use super::{immutable, Event, Fired};
use crate::catalog;
use crate::columns::field::*;
use crate::error::{Code, Failure, Outcome};
use crate::guard::Storage;
use crate::history::{self, Entry};
use crate::json::Jsonb;
use crate::rows;
use crate::scope::Call;
use crate::spi::{int, text, texts, time, Row, Session};
use crate::store;
use crate::time::Time;

/// The field that the gate is about, and the value that it holds back.
const STATUS: &str = "status";
const RESOLVED: &str = "resolved";

/// BEFORE ROW: for a writer that is not our code, makes version, record version and author.
pub fn before(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"field"])?;
    if fired.ours() {
        return Ok(fired.pass());
    }
    let new = fired.new_row()?;
    let (record, field) = (new.need::<String>(RECORD)?, new.need::<String>(FIELD)?);
    let call = Call::open(None)?;
    let (version, evidence) = if fired.event == Event::Update {
        let old = fired.old_row()?;
        if old.get::<String>(RECORD).as_ref() != Some(&record)
            || old.get::<String>(FIELD).as_ref() != Some(&field)
        {
            return Err(immutable("record and field of a value do not change"));
        }
        let evidence = new.get::<String>(EVIDENCE);
        let fresh = evidence.filter(|text| Some(text) != old.get::<String>(EVIDENCE).as_ref());
        (old.need::<i64>(VERSION)?.saturating_add(1), fresh)
    } else {
        if rows::lock(call.storage, c"record", &[&record])?.is_none() {
            return Err(no_record(&record));
        }
        // INSERT … ON CONFLICT fires BEFORE INSERT and then BEFORE UPDATE: the record moves on once only.
        let rows = call
            .session
            .write(&store::FIELD_GET, &[text(&record), text(&field)])?;
        if let Some(present) = rows.first() {
            // This row never lands; it only must not fail on its way to the conflict.
            let version = present.need::<i64>(0)?;
            let author = call.caller.identity.clone();
            drop(rows);
            drop(call);
            return Ok(fired.pass_with(&[
                (VERSION, int(version)),
                (RECORD_VERSION, int(0)),
                (AUTHOR, text(&author)),
                (ROLE, None),
                (CHANGED_AT, time(Time::now())),
            ]));
        }
        (1, new.get::<String>(EVIDENCE))
    };
    let class = class_of(&call.session, call.storage, &record)?;
    let Some(definition) = class.field(&field) else {
        let message = format!("{} has no field {field}", class.name);
        return Err(Failure::new(Code::NotFound, message)
            .field(&field)
            .record(&record));
    };
    if let Some(value) = new.get::<Jsonb>(VALUE) {
        value
            .check()
            .map_err(|failure| failure.field(&field).record(&record))?;
    }
    let rows = call.session.write(&store::BUMP_RECORD, &[text(&record)])?;
    let record_version: i64 = rows.first().ok_or_else(|| no_record(&record))?.need(0)?;
    if definition.mode == Mode::Task {
        call.session
            .write(&store::CLAIM_FOLLOWS, &[text(&record), text(&field)])?;
    }
    let author = call.caller.identity.clone();
    drop(rows);
    // The columns are allocated once the session is closed: its memory goes with it.
    drop(call);
    Ok(fired.pass_with(&[
        (VERSION, int(version)),
        (RECORD_VERSION, int(record_version)),
        (AUTHOR, text(&author)),
        (ROLE, None),
        (EVIDENCE, evidence.as_deref().and_then(text)),
        (CHANGED_AT, time(Time::now())),
    ]))
}

/// AFTER ROW: the final row, whoever wrote it, meets the gate and goes into history.
pub fn after(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"field"])?;
    let new = fired.new_row()?;
    let old = if fired.event == Event::Update {
        Some(fired.old_row()?)
    } else {
        None
    };
    let call = fired.call()?;
    judge(fired.storage, call.as_ref(), old.as_ref(), &new)?;
    Ok(fired.done())
}

/// The same for our own code, which fires no trigger.
pub fn changed(storage: Storage, old: Option<&Row>, new: &Row) -> Outcome<()> {
    judge(storage, None, old, new)
}

/// `call` is that of a writer who is not our code.
fn judge(storage: Storage, call: Option<&Call>, old: Option<&Row>, new: &Row) -> Outcome<()> {
    let before = old.map_or(Ok(0), |old| old.need::<i64>(VERSION))?;
    let version: i64 = new.need(VERSION)?;
    if version != before.saturating_add(1) {
        return Err(immutable(
            "a field's version counts its changes: write through kslate, or without a trigger that changes versions",
        ));
    }
    let record: String = new.need(RECORD)?;
    let field: String = new.need(FIELD)?;
    let record_version: i64 = new.need(RECORD_VERSION)?;
    if let Some(old) = old {
        let moved = old.get::<String>(RECORD).as_ref() != Some(&record)
            || old.get::<String>(FIELD).as_ref() != Some(&field);
        if moved || record_version <= old.need::<i64>(RECORD_VERSION)? {
            return Err(tampered());
        }
    }
    let own_session = Session::open();
    let session = call.map_or(&own_session, |call| &call.session);
    if let Some(call) = call {
        let author = new.get::<String>(AUTHOR);
        made_by_before(
            call,
            &record,
            record_version,
            author,
            new.get::<String>(ROLE),
        )?;
    }
    let class = class_of(session, storage, &record)?;
    if field == STATUS {
        gate(session, storage, &class, &record, new, old)?;
    }
    // First values stand in the history row of the creation.
    if call.is_none() && record_version == 0 {
        return Ok(());
    }
    let mode = class.field(&field).map_or(Mode::Cas, |field| field.mode);
    let mut entry = Entry {
        record: &record,
        record_version,
        op: "write",
        field: Some(&field),
        version: Some(version),
        value: new.datum(VALUE),
        author: &new.need::<String>(AUTHOR)?,
        role: new.get::<String>(ROLE),
        evidence: new.get::<String>(EVIDENCE),
        changed_at: new.need(CHANGED_AT)?,
        epoch: None,
        took_over_from: None,
        reason: None,
    };
    match mode {
        Mode::Append => entry.op = "append",
        Mode::Task if call.is_none() => {
            let rows = session.write(&store::EPOCH, &[text(&record), text(&field)])?;
            let claim = rows.first();
            entry.epoch = claim.as_ref().and_then(|row| row.get(0));
            entry.reason = claim.as_ref().and_then(|row| row.get(1));
            entry.op = if entry.value.is_some() {
                "complete"
            } else {
                "reopen"
            };
        }
        _ => {}
    }
    history::append(session, storage, &entry)
}

/// What the BEFORE trigger made for a hand-written row must have come through: another trigger may sort later.
pub fn made_by_before(
    call: &Call,
    record: &str,
    record_version: i64,
    author: Option<String>,
    role: Option<String>,
) -> Outcome<()> {
    let rows = call.session.write(&store::RECORD_GET, &[text(record)])?;
    let most: i64 = rows.first().ok_or_else(|| no_record(record))?.need(0)?;
    let own = author.as_ref() == Some(&call.caller.identity) && role.is_none();
    if own && (1..=most).contains(&record_version) {
        return Ok(());
    }
    Err(tampered())
}

/// A trigger of somebody else has set what only kslate sets.
pub fn tampered() -> Failure {
    immutable("keys, versions and authors are kslate's to set: take out the trigger that changes them (see kslate_doctor)")
}

/// `status` becomes `resolved` only when every role that the class requires has saved a checkpoint. Changes that leave it
/// alone never meet the gate.
fn gate(
    session: &Session,
    storage: Storage,
    class: &Class,
    record: &str,
    new: &Row,
    old: Option<&Row>,
) -> Outcome<()> {
    let Some(rules) = class
        .checkpoint
        .as_ref()
        .filter(|rules| !rules.required.is_empty())
    else {
        return Ok(());
    };
    let resolved = |row: &Row| {
        row.get::<Jsonb>(VALUE)
            .is_some_and(|value| value.is_string(RESOLVED))
    };
    if !resolved(new) || old.is_some_and(resolved) {
        return Ok(());
    }
    let missing = missing(session, storage, record, &rules.required)?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Code::InvalidCheckpoint,
        format!(
            "required role(s) have not checkpointed this record yet: {}",
            missing.join(", ")
        ),
    )
    .field(STATUS)
    .record(record))
}

/// The roles among these that have not saved a checkpoint of the record, as it is committed now: one that was saved after the
/// snapshot of a transaction has been saved all the same.
fn missing(
    session: &Session,
    storage: Storage,
    record: &str,
    required: &[String],
) -> Outcome<Vec<String>> {
    let mut missing = Vec::new();
    for role in required {
        match rows::has_saved(storage, &[record, role])? {
            Some(true) => {}
            Some(false) => missing.push(role.clone()),
            None => {
                let roles = required.iter().map(String::as_str);
                let rows = session.write_latest(&store::GATE, &[text(record), texts(roles)])?;
                return Ok(rows.iter().filter_map(|row| row.get(0)).collect());
            }
        }
    }
    Ok(missing)
}

/// The class that a record's name names.
pub fn class_of(session: &Session, storage: Storage, record: &str) -> Outcome<std::rc::Rc<Class>> {
    let class = record.split('/').next().unwrap_or(record);
    catalog::class(session, storage, class).map_err(|failure| failure.record(record))
}

pub fn no_record(record: &str) -> Failure {
    Failure::new(
        Code::NotFound,
        format!("no record {record}: insert it into kslate.record first"),
    )
    .record(record)
}
