//! Checkpoints: an agent's own account of itself, which outlives it. Stored per record and role, never read by kslate.

use kslate_class::{CheckpointRules, Mode};
use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};

use crate::columns;
use crate::columns::field::{AUTHOR, EVIDENCE, FIELD, RECORD_VERSION, VERSION};
use crate::error::{json_text, Code, Failure, Outcome};
use crate::fence;
use crate::history::check_page;
use crate::idempotency::Request;
use crate::json::{Json, Jsonb};
use crate::record::must_exist;
use crate::rows;
use crate::scope::{need, Call, Scope};
use crate::spi::{int, jsonb, text, texts, time};
use crate::store;
use crate::time::Time;

/// The role that a checkpoint belongs to: the one named, or the only one held.
fn role_of(scope: &Scope<'_>, named: Option<&str>) -> Outcome<String> {
    let held = scope.roles.join(", ");
    let class = &scope.class.name;
    match (named, scope.roles.as_slice()) {
        (Some(role), roles) if roles.iter().any(|held| held == role) => Ok(role.to_owned()),
        (Some(role), roles) => Err(scope
            .about(Failure::new(
                Code::ScopeDenied,
                format!("you do not hold the role {role} in {class}; you hold: {held}"),
            ))
            .with("needs_one_of", [role])
            .with("roles_held", roles)),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(scope.about(Failure::malformed(format!(
            "you hold several roles in {class} ({held}): name one with ?role="
        )))),
    }
}

#[derive(Serialize, Deserialize)]
struct Saved {
    role: String,
    checkpoint_id: i64,
    record_version: i64,
}

/// Saves a checkpoint of the caller's role, stored at the record's version of that moment, or at `seen_version`, the one
/// that the agent last read. Changes neither record version nor history.
#[pg_extern]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kslate_checkpoint_save(
    record: Option<&str>,
    document: Option<Jsonb>,
    role: default!(Option<&str>, "NULL"),
    seen_version: default!(Option<i64>, "NULL"),
    claim_id: default!(Option<Uuid>, "NULL"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(role, String),
        name!(checkpoint_id, i64),
        name!(record_version, i64),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let document = need(document, "document")?;
        document
            .check_depth("the document", 0)
            .map_err(|f| f.record(record))?;
        if !document.is_object() {
            return Err(Failure::malformed("document must be a JSON object")
                .record(record)
                .with("path", "/document"));
        }
        let request = Request::new(idempotency_key, "checkpoint_save")?
            .value(Some(&document))
            .part(role)
            .number(seen_version)
            .number(claim_id);
        let call = Call::open(identity)?;
        let mut scope = call.scope(record)?;
        let record_version = scope.lock()?;
        let role = role_of(&scope, role)?;
        let saved = request.once(&call, record, || {
                let task = scope
                    .class
                    .checkpoint
                    .as_ref()
                    .and_then(|c| c.requires_claim.as_deref());
                fence::check(&scope, None, task, claim_id)?;
                let stored_at = seen_version.unwrap_or(record_version);
                if !(0..=record_version).contains(&stored_at) {
                    return Err(scope.about(Failure::malformed(format!(
                        "seen_version is {stored_at}, the record is at version {record_version}: send the record_version that you last read"
                    ))));
                }
                check_document(&scope, &document)?;
                save(&scope, &document, &role, stored_at)
        })?;
        Ok(TableIterator::once((
            record.to_owned(),
            saved.role,
            saved.checkpoint_id,
            saved.record_version,
        )))
    })
}

fn save(scope: &Scope<'_>, document: &Jsonb, role: &str, stored_at: i64) -> Outcome<Saved> {
    let now = Time::now();
    let checkpoint_id = match insert(scope, document, role, stored_at, now)? {
        Some(id) => id,
        None => insert_by_statement(scope, document, role, stored_at, now)?,
    };
    let saved = Saved {
        role: role.to_owned(),
        checkpoint_id,
        record_version: stored_at,
    };
    Ok(saved)
}

/// Inserts the checkpoint and returns its number; None where that is left to the statement.
fn insert(
    scope: &Scope<'_>,
    document: &Jsonb,
    role: &str,
    stored_at: i64,
    now: Time,
) -> Outcome<Option<i64>> {
    // A number taken by somebody whom the snapshot does not show must end in 40001.
    if rows::one_snapshot() {
        return Ok(None);
    }
    let (storage, record) = (scope.call.storage, scope.record.as_str());
    let last = rows::last(storage, c"checkpoint", &[record], |row| {
        row.need::<i64>(columns::checkpoint::CHECKPOINT_ID)
    })?;
    let id = last.unwrap_or(0).saturating_add(1);
    let values = [
        text(record),
        int(id),
        text(role),
        jsonb(document),
        int(stored_at),
        text(&scope.call.caller.identity),
        time(now),
    ];
    Ok(rows::insert(storage, c"checkpoint", &values)?.then_some(id))
}

fn insert_by_statement(
    scope: &Scope<'_>,
    document: &Jsonb,
    role: &str,
    stored_at: i64,
    now: Time,
) -> Outcome<i64> {
    let parameters = [
        text(&scope.record),
        text(role),
        jsonb(document),
        int(stored_at),
        text(&scope.call.caller.identity),
        time(now),
    ];
    let rows = scope
        .call
        .session
        .write(&store::CHECKPOINT_INSERT, &parameters)?;
    // Under the record's lock the number is free; only a snapshot older than the lock could miss one, and gets 40001.
    let row = rows.first().ok_or_else(|| {
        if !rows::one_snapshot() {
            return Failure::held_back();
        }
        Failure::new(
            Code::Busy,
            "another checkpoint was saved meanwhile; send the same request again",
        )
    })?;
    row.need(0)
}

/// Size and sections. A section is there when its key is, whatever its value.
fn check_document(scope: &Scope<'_>, document: &Jsonb) -> Outcome<()> {
    const DEFAULT_MAX_BYTES: usize = CheckpointRules::DEFAULT_MAX_BYTES as usize;
    let rules = scope.class.checkpoint.as_ref();
    let most = rules.map_or(DEFAULT_MAX_BYTES, |rules| rules.max_bytes as usize);
    if let Some(bytes) = document.longer_than(most) {
        return Err(scope.about(Failure::new(
            Code::PayloadTooLarge,
            format!(
                "the document has {bytes} bytes as jsonb text, {} allows {most}: shorten it, or store the bulk elsewhere and point to it",
                scope.class.name
            ),
        )));
    }
    let Some(rules) = rules.filter(|rules| !rules.sections.is_empty()) else {
        return Ok(());
    };
    let missing: Vec<&str> = rules
        .sections
        .iter()
        .map(String::as_str)
        .filter(|section| !document.has_key(section))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(scope.about(Failure::new(
        Code::InvalidCheckpoint,
        format!("missing required section(s): {}", missing.join(", ")),
    )))
}

/// Loads the latest checkpoint of a role (or the one named) and tells what changed since: the latest version of each field
/// that changed above the checkpoint's record version, in the order of the changes. Without a checkpoint: all that was
/// written. Task fields never, nor what the caller may not read.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_checkpoint_load(
    record: Option<&str>,
    role: default!(Option<&str>, "NULL"),
    checkpoint_id: default!(Option<i64>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record, String),
        name!(role, String),
        name!(document, Option<Jsonb>),
        name!(record_version, i64),
        name!(changed_fields, Json),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        must_exist(&scope)?;
        let role = role_of(&scope, role)?;
        let found = match checkpoint_id {
            None => latest(&scope, &role)?,
            Some(id) => {
                let parameters = [text(record), text(&role), int(id)];
                let rows = call.session.read(&store::CHECKPOINT_GET, &parameters)?;
                let row = rows.first().ok_or_else(|| {
                    let message = format!("{record} has no checkpoint {id} of {role}; list its checkpoints to see which there are");
                    scope.about(Failure::new(Code::NotFound, message))
                })?;
                Some((row.need(0)?, row.need(1)?))
            }
        };
        let since = found.as_ref().map_or(-1, |(_, version)| *version);
        let (document, version): (Option<Jsonb>, i64) = match found {
            Some((document, version)) => (Some(document), version),
            None => (None, 0),
        };
        let changed = changed_fields(&scope, since)?;
        Ok(TableIterator::once((
            record.to_owned(),
            role,
            document,
            version,
            changed.into(),
        )))
    })
}

/// A role's latest checkpoint: its document and record version.
fn latest(scope: &Scope<'_>, role: &str) -> Outcome<Option<(Jsonb, i64)>> {
    use columns::checkpoint::{DOCUMENT, RECORD_VERSION};
    let (storage, key) = (scope.call.storage, [scope.record.as_str(), role]);
    let found = rows::read_latest(storage, &key, |row| {
        Ok((row.need(DOCUMENT)?, row.need(RECORD_VERSION)?))
    })?;
    if let Some(found) = found {
        return Ok(found);
    }
    let parameters = [text(&scope.record), text(role)];
    let rows = scope
        .call
        .session
        .read(&store::CHECKPOINT_LATEST, &parameters)?;
    rows.first()
        .map(|row| Ok((row.need(0)?, row.need(1)?)))
        .transpose()
}

/// The JSON array of what changed above a record version.
fn changed_fields(scope: &Scope<'_>, since: i64) -> Outcome<String> {
    let place = |name: &str| {
        scope
            .class
            .fields
            .iter()
            .position(|field| field.name == name)
    };
    let mut changes = Vec::new();
    rows::each(scope.call.storage, c"field", &[&scope.record], |row| {
        let record_version: i64 = row.need(RECORD_VERSION)?;
        if record_version <= since {
            return Ok(());
        }
        let name: String = row.need(FIELD)?;
        let Some(field) = scope.class.field(&name) else {
            return Ok(());
        };
        if field.mode == Mode::Task || !scope.may_read(field) {
            return Ok(());
        }
        let json = format!(
            "{{\"field\":{},\"version\":{},\"author\":{},\"evidence\":{}}}",
            json_text(&name),
            row.need::<i64>(VERSION)?,
            json_text(&row.get::<String>(AUTHOR)),
            json_text(&row.get::<String>(EVIDENCE)),
        );
        // First values share record version 0: they come in the class's order.
        changes.push((record_version, place(&name), json));
        Ok(())
    })?;
    changes.sort_by_key(|(record_version, place, _)| (*record_version, *place));
    let parts: Vec<String> = changes.into_iter().map(|(_, _, json)| json).collect();
    Ok(format!("[{}]", parts.join(",")))
}

/// The checkpoints of a record, newest first, without their documents: of one role, or of all that the caller holds.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_checkpoint_list(
    record: Option<&str>,
    role: default!(Option<&str>, "NULL"),
    after: default!(Option<i64>, "NULL"),
    page_size: default!(Option<i32>, "100"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(checkpoint_id, i64),
        name!(role, String),
        name!(record_version, i64),
        name!(author, String),
        name!(saved_at, Time),
        name!(bytes, i64),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let page = check_page(page_size)?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        must_exist(&scope)?;
        let roles = match role {
            Some(_) => vec![role_of(&scope, role)?],
            None => scope.roles.clone(),
        };
        let roles = texts(roles.iter().map(String::as_str));
        let below = int(after.unwrap_or(i64::MAX));
        let parameters = [text(record), roles, below, int(page)];
        let mut rows = Vec::new();
        for row in call
            .session
            .read(&store::CHECKPOINT_LIST, &parameters)?
            .iter()
        {
            rows.push((
                row.need(0)?,
                row.need(1)?,
                row.need(2)?,
                row.need(3)?,
                row.need(4)?,
                row.need(5)?,
            ));
        }
        Ok(TableIterator::new(rows))
    })
}
