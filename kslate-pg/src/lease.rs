//! Leases: what a task's claim says, who holds it live, and how it is granted.
//!
//! The states of a task: open → claimed → open (release, force release) or completed → open (reopen). A lease is live until
//! its expiry, and over from that instant on; nothing sweeps it, the next claim finds it lapsed.

use kslate_class::{Field, Mode};
use pgrx::prelude::*;
use pgrx::Uuid;
use serde::{Deserialize, Serialize};

use crate::columns::claim::*;
use crate::error::{Code, Failure, Outcome};
use crate::history::{ended_by_grant, took_over_from};
use crate::rows::{self, Change, Columns};
use crate::scope::Scope;
use crate::spi::{int, opt_text, text, time, uuid, Row};
use crate::store;
use crate::time::Time;

/// What `kslate.claim.state` may say.
pub mod state {
    pub const OPEN: &str = "open";
    pub const CLAIMED: &str = "claimed";
    pub const COMPLETED: &str = "completed";
}

/// The one comparison of leases: the interval is half-open, `expires_at = now` is free.
pub fn is_live(state: &str, expires_at: Time, now: Time) -> bool {
    state == state::CLAIMED && now < expires_at
}

/// A fresh claim_id: a random uuid (version 4), since an epoch can come back after a failover or a restore.
pub fn new_claim_id() -> Outcome<Uuid> {
    let mut bytes = [0u8; 16];
    // SAFETY: fills exactly these bytes.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        return Err(Failure::new(
            Code::Unavailable,
            "the server has no randomness to give",
        ));
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Ok(Uuid::from_bytes(bytes))
}

/// A task's claim as it stands.
pub struct Lease {
    pub state: String,
    pub owner: Option<String>,
    pub claim_id: Option<Uuid>,
    pub epoch: i64,
    pub lease_seconds: Option<i32>,
    pub expires_at: Option<Time>,
    pub version: i64,
    pub ended: Option<String>,
}

impl Lease {
    /// Reads a row of the table.
    pub fn of_row(row: &Row) -> Outcome<Lease> {
        Ok(Lease {
            state: row.need(STATE)?,
            owner: row.get(OWNER),
            claim_id: row.get(CLAIM_ID),
            epoch: row.need(EPOCH)?,
            lease_seconds: row.get(LEASE_SECONDS),
            expires_at: row.get(EXPIRES_AT),
            version: row.need(VERSION)?,
            ended: row.get(ENDED),
        })
    }

    /// Reads the columns of CLAIM_STATES and its likes; `first` is the one of the record's version.
    pub fn read(row: &Row, first: usize) -> Outcome<Lease> {
        Ok(Lease {
            state: row.need(first + 1)?,
            owner: row.get(first + 2),
            claim_id: row.get(first + 4),
            epoch: row.need(first + 5)?,
            lease_seconds: row.get(first + 6),
            expires_at: row.get(first + 7),
            version: row.need(first + 8)?,
            ended: row.get(first + 9),
        })
    }
}

/// A task field of the class.
pub fn task<'s>(scope: &'s Scope<'_>, field: &str) -> Outcome<&'s Field> {
    scope.field_of_mode(field, &[Mode::Task])
}

/// Locks the record's row and the claim's. A field that is no task, or no field, or a record that is not there, is told.
pub fn lock(scope: &mut Scope<'_>, field: &str) -> Outcome<Lease> {
    scope.lock()?;
    let lease = lock_row(scope, field)?;
    task(scope, field)?;
    match lease {
        Some(lease) => Ok(lease),
        // The class has gained the task since this transaction's snapshot was taken.
        None if rows::one_snapshot() => Err(scope.about(Failure::new(
            Code::Busy,
            "the class was changed after your transaction began; begin it anew",
        ))),
        None => Err(scope.about(Failure::new(
            Code::Unavailable,
            format!("the claim of {field} is missing: see kslate_doctor()"),
        ))),
    }
}

/// Locks the claim's row and reads it as it is then.
pub fn lock_row(scope: &Scope<'_>, field: &str) -> Outcome<Option<Lease>> {
    let key = [scope.record.as_str(), field];
    let locked = rows::lock(scope.call.storage, c"claim", &key)?;
    let lease = locked
        .as_ref()
        .map(|locked| Lease::of_row(&locked.row()))
        .transpose();
    scope.claim.replace(locked);
    lease
}

/// Reads the claim's row as it is committed now, whatever the transaction's snapshot shows.
pub fn latest(scope: &Scope<'_>, field: &str) -> Outcome<Option<Lease>> {
    let key = [scope.record.as_str(), field];
    rows::last(scope.call.storage, c"claim", &key, Lease::of_row)
}

/// Changes the claim's row, locked before or not (see [`rows::update`]).
pub fn change<T>(
    scope: &Scope<'_>,
    field: &str,
    change: impl FnOnce(&Row) -> Outcome<(T, Columns)>,
) -> Outcome<Change<T>> {
    match scope.claim.take() {
        Some(locked) => locked.update(change),
        None => {
            let key = [scope.record.as_str(), field];
            rows::update(scope.call.storage, c"claim", &key, change)
        }
    }
}

/// The same for a change that counts the record up.
pub fn counted_change<T>(
    scope: &Scope<'_>,
    field: &str,
    make: impl FnOnce(&Row) -> Outcome<(T, Columns)>,
) -> Outcome<Change<T>> {
    if scope.counts_by_statement()? {
        return Ok(Change::Foreign);
    }
    change(scope, field, make)
}

/// A lease in whole seconds, 1 to the field's most; never clamped.
pub fn lease_seconds(
    scope: &Scope<'_>,
    asked: Option<f64>,
    field: &Field,
    default: i64,
) -> Outcome<i64> {
    let most = field
        .lease
        .as_ref()
        .map_or(i64::MAX, |lease| i64::from(lease.max_seconds));
    let Some(asked) = asked else {
        return Ok(default);
    };
    if asked.fract() == 0.0 && asked >= 1.0 && asked <= most as f64 {
        return Ok(asked as i64);
    }
    let message = format!(
        "lease_seconds must be a whole number from 1 to {most} for {}",
        field.name
    );
    Err(scope
        .about(Failure::malformed(message).field(&field.name))
        .with("path", "/lease_seconds"))
}

/// How many seconds a claim lasts that does not say.
pub fn default_lease(field: Option<&Field>) -> i64 {
    field
        .and_then(|field| field.lease.as_ref())
        .map_or(60, |lease| i64::from(lease.default_seconds))
}

/// A lease that was granted.
#[derive(Serialize, Deserialize)]
pub struct Granted {
    pub role: String,
    #[serde(with = "uuid_bytes")]
    pub claim_id: Uuid,
    pub epoch: i64,
    pub claimed_at: Time,
    pub expires_at: Time,
    pub lease_seconds: i64,
    pub took_over_from: Option<String>,
    pub record_version: i64,
}

/// A uuid in a remembered answer.
mod uuid_bytes {
    use pgrx::Uuid;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        uuid.as_bytes().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        <[u8; 16]>::deserialize(deserializer).map(Uuid::from_bytes)
    }
}

/// The row of claim and claim next.
pub type GrantedRow = (
    String,
    String,
    String,
    String,
    Uuid,
    i64,
    Time,
    Time,
    i64,
    Option<String>,
    i64,
);

impl Granted {
    /// The answer on the wire.
    pub fn row(self, record: &str, field: &str, owner: &str) -> GrantedRow {
        (
            record.to_owned(),
            field.to_owned(),
            owner.to_owned(),
            self.role,
            self.claim_id,
            self.epoch,
            self.claimed_at,
            self.expires_at,
            self.lease_seconds,
            self.took_over_from,
            self.record_version,
        )
    }
}

/// Grants a free or lapsed task (or, to its own holder, a live one). The rows are locked, `now` was read after that.
pub fn grant(
    scope: &Scope<'_>,
    field: &str,
    lease: &Lease,
    role: String,
    seconds: i64,
    now: Time,
) -> Outcome<Granted> {
    let caller = scope.call.caller.identity.as_str();
    let live = lease
        .expires_at
        .is_some_and(|expires| is_live(&lease.state, expires, now));
    let same = lease.owner.as_deref() == Some(caller);
    let ended = ended_by_grant(&lease.state, same, live, lease.ended.clone());
    let took_over_from = took_over_from(&lease.state, lease.owner.clone(), caller);
    let (claim_id, expires_at) = (new_claim_id()?, now.plus_seconds(seconds));
    let changed = counted_change(scope, field, |row| {
        let epoch = row.need::<i64>(EPOCH)?.saturating_add(1);
        let record_version = scope.count()?;
        Ok((
            (epoch, record_version),
            vec![
                (STATE, text(state::CLAIMED)),
                (OWNER, text(caller)),
                (ROLE, text(&role)),
                (CLAIM_ID, uuid(claim_id)),
                (EPOCH, int(epoch)),
                (LEASE_SECONDS, (seconds as i32).into_datum()),
                (CLAIMED_AT, time(now)),
                (EXPIRES_AT, time(expires_at)),
                (RECHECK_AT, time(expires_at)),
                (RECORD_VERSION, int(record_version)),
                (CHANGED_BY, text(caller)),
                (CHANGED_ROLE, text(&role)),
                (CHANGED_AT, time(now)),
                (REASON, None),
                (ENDED, opt_text(ended.as_deref())),
                (TOOK_OVER_FROM, opt_text(took_over_from.as_deref())),
            ],
        ))
    })?;
    let (epoch, record_version) = match changed {
        Change::Made(made) => made,
        Change::Missing => return Err(scope.no_record()),
        Change::Foreign => {
            // There is something of somebody else's on the table, or on `kslate.record`.
            let parameters = [
                text(&scope.record),
                text(field),
                text(caller),
                text(&role),
                uuid(claim_id),
                (seconds as i32).into_datum(),
                time(now),
                time(expires_at),
                opt_text(ended.as_deref()),
                opt_text(took_over_from.as_deref()),
            ];
            let rows = scope.call.session.write(&store::GRANT, &parameters)?;
            let row = rows.first().ok_or_else(Failure::held_back)?;
            let record_version = row.need(1)?;
            scope.counted(record_version)?;
            (row.need(0)?, record_version)
        }
    };
    Ok(Granted {
        role,
        claim_id,
        epoch,
        claimed_at: now,
        expires_at,
        lease_seconds: seconds,
        took_over_from,
        record_version,
    })
}
