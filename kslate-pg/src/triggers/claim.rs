//! kslate.claim: epochs and history of leases.

use kslate_class::Mode;
use pgrx::{pg_sys, Uuid};

use super::field::{class_of, made_by_before, no_record, tampered};
use super::{immutable, Event, Fired};
use crate::columns::claim::*;
use crate::error::{Failure, Outcome};
use crate::guard::Storage;
use crate::history::{self, Entry};
use crate::lease::{default_lease, new_claim_id, state};
use crate::scope::Call;
use crate::spi::{int, opt_text, text, time, uuid, Row, Session};
use crate::store;
use crate::time::Time;

/// BEFORE ROW: for a writer that is not our code, makes epoch, claim_id and record version, and keeps the row consistent.
pub fn before(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"claim"])?;
    if fired.ours() {
        return Ok(fired.pass());
    }
    if fired.event == Event::Insert {
        return Err(immutable(
            "a claim is made with its record: insert into kslate.record, or change the class",
        ));
    }
    let (old, new) = (fired.old_row()?, fired.new_row()?);
    for key in [RECORD, FIELD, CLASS] {
        if old.get::<String>(key) != new.get::<String>(key) {
            return Err(immutable(
                "record, field and class of a claim do not change",
            ));
        }
    }
    if !counts_are_kept(&old, &new) {
        return Err(immutable(
            "epoch, version, record_version and took_over_from of a claim are kept by kslate: leave them out of your UPDATE",
        ));
    }
    if same(&old, &new) {
        return Ok(fired.pass_old());
    }
    let record: String = new.need(RECORD)?;
    let is = new
        .get::<String>(STATE)
        .ok_or_else(|| Failure::missing("state"))?;
    if ![state::OPEN, state::CLAIMED, state::COMPLETED].contains(&is.as_str()) {
        return Err(Failure::malformed(
            "state must be open, claimed or completed",
        ));
    }
    let call = Call::open(None)?;
    let rows = call.session.write(&store::BUMP_RECORD, &[text(&record)])?;
    let record_version: i64 = rows.first().ok_or_else(|| no_record(&record))?.need(0)?;
    let author = call.caller.identity.clone();
    drop(rows);
    let now = Time::now();
    let claimed_until = match new.get::<Time>(EXPIRES_AT) {
        _ if is != state::CLAIMED => None,
        None => Some(now.plus_seconds(lasts(&call, &record, &new)?)),
        said => said,
    };
    drop(call);

    let was: String = old.need(STATE)?;
    let reason = new
        .get::<String>(REASON)
        .filter(|r| Some(r) != old.get::<String>(REASON).as_ref());
    let mut columns = vec![
        (RECORD_VERSION, int(record_version)),
        (CHANGED_BY, text(&author)),
        (CHANGED_ROLE, None),
        (CHANGED_AT, time(now)),
        (REASON, opt_text(reason.as_deref())),
    ];
    let epoch: i64 = old.need(EPOCH)?;
    let version: i64 = old.need(VERSION)?;
    if let Some(expires) = claimed_until {
        if was == state::COMPLETED {
            return Err(Failure::malformed(
                "the task is completed: set its state to open first",
            ));
        }
        let owner = new
            .get::<String>(OWNER)
            .ok_or_else(|| Failure::missing("owner"))?;
        let grant = was != state::CLAIMED
            || old.get::<String>(OWNER).as_ref() != Some(&owner)
            || old.get::<Uuid>(CLAIM_ID) != new.get::<Uuid>(CLAIM_ID);
        columns.push((EXPIRES_AT, time(expires)));
        columns.push((VERSION, int(version)));
        if grant {
            let fresh = new
                .get::<Uuid>(CLAIM_ID)
                .filter(|id| Some(id) != old.get(CLAIM_ID).as_ref());
            let claimed = new
                .get::<Time>(CLAIMED_AT)
                .filter(|t| Some(t) != old.get(CLAIMED_AT).as_ref());
            let ended = history::ended_by_grant(
                &was,
                old.get::<String>(OWNER).as_deref() == Some(&owner),
                old.get::<Time>(EXPIRES_AT).is_some_and(|t| now < t),
                old.get::<String>(ENDED),
            );
            columns.push((CLAIM_ID, uuid(fresh.map_or_else(new_claim_id, Ok)?)));
            columns.push((EPOCH, int(epoch.saturating_add(1))));
            columns.push((CLAIMED_AT, time(claimed.unwrap_or(now))));
            columns.push((RECHECK_AT, time(expires)));
            columns.push((ENDED, opt_text(ended.as_deref())));
            let took_over_from = history::took_over_from(&was, old.get(OWNER), &owner);
            columns.push((TOOK_OVER_FROM, opt_text(took_over_from.as_deref())));
        } else {
            columns.push((EPOCH, int(epoch)));
            columns.push((CLAIM_ID, old.datum(CLAIM_ID)));
            columns.push((CLAIMED_AT, old.datum(CLAIMED_AT)));
            let recheck: Time = old.get(RECHECK_AT).unwrap_or(expires);
            columns.push((RECHECK_AT, time(recheck.min(expires))));
            columns.push((ENDED, old.datum(ENDED)));
        }
    } else {
        let counts = (was == state::COMPLETED) != (is == state::COMPLETED);
        let ended = match (was.as_str(), is.as_str()) {
            (state::CLAIMED, state::OPEN) => Some("force_released".to_owned()),
            (state::COMPLETED, state::OPEN) => Some("reopened".to_owned()),
            (_, state::COMPLETED) => Some("completed".to_owned()),
            _ => old.get(ENDED),
        };
        columns.push((EPOCH, int(epoch)));
        columns.push((VERSION, int(version.saturating_add(i64::from(counts)))));
        columns.push((ENDED, opt_text(ended.as_deref())));
        if was != state::OPEN && is == state::OPEN {
            columns.push((QUEUED_AT, time(now)));
        }
        for gone in [
            OWNER,
            ROLE,
            CLAIM_ID,
            LEASE_SECONDS,
            CLAIMED_AT,
            EXPIRES_AT,
            RECHECK_AT,
            TOOK_OVER_FROM,
        ] {
            columns.push((gone, None));
        }
    }
    Ok(fired.pass_with(&columns))
}

/// For how many seconds a claim is granted that does not say until when.
fn lasts(call: &Call, record: &str, new: &Row) -> Outcome<i64> {
    if let Some(said) = new.get::<i32>(LEASE_SECONDS) {
        return Ok(i64::from(said));
    }
    let class = class_of(&call.session, call.storage, record)?;
    Ok(default_lease(class.field(&new.need::<String>(FIELD)?)))
}

/// Nothing that anybody may change was changed.
fn same(old: &Row, new: &Row) -> bool {
    let times = [CLAIMED_AT, EXPIRES_AT, QUEUED_AT];
    [STATE, OWNER, ROLE, REASON]
        .iter()
        .all(|c| old.get::<String>(*c) == new.get::<String>(*c))
        && times
            .iter()
            .all(|c| old.get::<Time>(*c) == new.get::<Time>(*c))
        && old.get::<Uuid>(CLAIM_ID) == new.get::<Uuid>(CLAIM_ID)
        && old.get::<i32>(LEASE_SECONDS) == new.get::<i32>(LEASE_SECONDS)
}

/// Epoch, versions and who was taken over are kslate's: naming another one is refused, rather than ignored.
fn counts_are_kept(old: &Row, new: &Row) -> bool {
    [EPOCH, VERSION, RECORD_VERSION]
        .iter()
        .all(|count| old.get::<i64>(*count) == new.get::<i64>(*count))
        && old.get::<String>(TOOK_OVER_FROM) == new.get::<String>(TOOK_OVER_FROM)
}

/// AFTER ROW: every change but a renewal by our code is a row of history.
pub fn after(fired: Fired) -> Outcome<pg_sys::Datum> {
    fired.on(&[c"claim"])?;
    let (old, new) = (fired.old_row()?, fired.new_row()?);
    let call = fired.call()?;
    judge(fired.storage, call.as_ref(), &old, &new)?;
    Ok(fired.done())
}

/// The same for our own code, which fires no trigger.
pub fn changed(storage: Storage, old: Option<&Row>, new: &Row) -> Outcome<()> {
    match old {
        Some(old) => judge(storage, None, old, new),
        None => Ok(()),
    }
}

/// `call` is that of a writer who is not our code.
fn judge(storage: Storage, call: Option<&Call>, old: &Row, new: &Row) -> Outcome<()> {
    let ours = call.is_none();
    let (before, record_version) = (
        old.need::<i64>(RECORD_VERSION)?,
        new.need::<i64>(RECORD_VERSION)?,
    );
    let (was, is) = (old.need::<String>(STATE)?, new.need::<String>(STATE)?);
    let (old_epoch, epoch) = (old.need::<i64>(EPOCH)?, new.need::<i64>(EPOCH)?);
    let granted = is == state::CLAIMED && old.get::<Uuid>(CLAIM_ID) != new.get::<Uuid>(CLAIM_ID);
    let versions = new.need::<i64>(VERSION)?.saturating_sub(old.need(VERSION)?);
    let counts = (was == state::COMPLETED) != (is == state::COMPLETED);
    // Our code moves no record version for a renewal, a recheck_at that claim next moves up, or a version that follows a
    // task's value changed by hand.
    let silent = ours && record_version == before;
    let counted = silent || versions == i64::from(counts);
    if epoch != old_epoch.saturating_add(i64::from(granted)) || !counted {
        return Err(immutable(
            "epoch and version of a claim count its grants and results: change it through kslate, or without a trigger that sets them",
        ));
    }
    let moved = [RECORD, FIELD, CLASS]
        .iter()
        .any(|key| old.get::<String>(*key) != new.get::<String>(*key));
    if moved
        || record_version < before
        || (record_version == before && !ours && !(same(old, new) && counts_are_kept(old, new)))
    {
        return Err(tampered());
    }
    if record_version == before {
        return Ok(());
    }
    let took_over_from = if granted {
        history::took_over_from(&was, old.get(OWNER), &new.need::<String>(OWNER)?)
    } else if is == state::CLAIMED {
        old.get(TOOK_OVER_FROM)
    } else {
        None
    };
    if new.get::<String>(TOOK_OVER_FROM) != took_over_from {
        return Err(tampered());
    }
    let record: String = new.need(RECORD)?;
    let field: String = new.need(FIELD)?;
    let author: String = new.get(CHANGED_BY).unwrap_or_default();
    let changed_at: Time = new.need(CHANGED_AT)?;
    if let Some(call) = call {
        let by = new.get::<String>(CHANGED_BY);
        made_by_before(call, &record, record_version, by, new.get(CHANGED_ROLE))?;
    }
    if counts {
        // The value changes with it, and the field's trigger writes history. Our code has brought it along.
        if let Some(call) = call {
            let class = class_of(&call.session, storage, &record)?;
            if class
                .field(&field)
                .is_some_and(|field| field.mode == Mode::Task)
            {
                set_result(&call.session, &record, &field, new, &is)?;
            }
        }
        return Ok(());
    }
    let mut op = "renew";
    if granted {
        op = if took_over_from.is_some() {
            "takeover"
        } else if was == state::CLAIMED && old.get::<Time>(EXPIRES_AT) > new.get::<Time>(CLAIMED_AT)
        {
            "reattach"
        } else {
            "claim"
        };
    } else if was == state::CLAIMED && is == state::OPEN {
        op = match new.get::<String>(ENDED).as_deref() {
            Some("released") => "release",
            _ => "force_release",
        };
    }
    let entry = Entry {
        record: &record,
        record_version,
        op,
        field: Some(&field),
        version: None,
        value: None,
        author: &author,
        role: new.get(CHANGED_ROLE),
        evidence: None,
        changed_at,
        epoch: Some(epoch),
        took_over_from: took_over_from.filter(|_| granted),
        reason: new.get(REASON),
    };
    match call {
        None => history::append(&Session::open(), storage, &entry),
        Some(call) => history::append(&call.session, storage, &entry),
    }
}

/// A task completed or reopened by hand has no value but JSON null, or none.
fn set_result(session: &Session, record: &str, field: &str, new: &Row, is: &str) -> Outcome<()> {
    let value = if is == state::COMPLETED {
        Some(crate::json::Jsonb::parse("null")?)
    } else {
        None
    };
    let author: String = new.get(CHANGED_BY).unwrap_or_default();
    let rows = session.write(
        &store::RESULT,
        &[
            text(record),
            text(field),
            value.as_ref().and_then(crate::spi::jsonb),
            int(new.need(VERSION)?),
            text(&author),
            None,
            None,
            int(new.need(RECORD_VERSION)?),
            time(new.need(CHANGED_AT)?),
        ],
    )?;
    rows.must_have_changed(1)
}
