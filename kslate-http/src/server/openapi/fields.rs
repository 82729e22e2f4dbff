//! Bodies about fields and entries.

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{
    ClaimId, Cursor, Epoch, Evidence, FieldName, Identity, Mode, RecordName, RecordVersion,
    RoleName, Seq, TaskState, Time, Version,
};

/// A field as it stands.
#[derive(ToSchema)]
pub struct FieldState {
    pub field: FieldName,
    pub mode: Mode,
    /// Null where nothing was written; of an append field the newest 20 entries, oldest first.
    pub value: Value,
    pub version: Version,
    pub author: Option<Identity>,
    pub role: Option<RoleName>,
    pub evidence: Option<Evidence>,
    pub record_version: Option<RecordVersion>,
    pub changed_at: Option<Time>,
    /// Of task fields.
    pub claim: Option<ClaimState>,
}

/// A field of a record as it stands.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "status", "mode": "cas", "value": "open", "version": 1, "author": "apikey:diagnoser",
    "role": "diagnoser", "evidence": null, "record_version": 0, "changed_at": "2026-11-29T14:40:12.123456+00:00", "claim": null}))]
pub struct Field {
    pub record: RecordName,
    pub field: FieldName,
    pub mode: Mode,
    /// Null where nothing was written; of an append field the newest 20 entries, oldest first.
    pub value: Value,
    pub version: Version,
    pub author: Option<Identity>,
    pub role: Option<RoleName>,
    pub evidence: Option<Evidence>,
    pub record_version: Option<RecordVersion>,
    pub changed_at: Option<Time>,
    /// Of task fields.
    pub claim: Option<ClaimState>,
}

/// Who holds a task, and until when.
#[derive(ToSchema)]
pub struct ClaimState {
    pub state: TaskState,
    /// The lease has not run out.
    pub live: bool,
    pub owner: Option<Identity>,
    pub role: Option<RoleName>,
    pub epoch: Epoch,
    pub claimed_at: Option<Time>,
    pub expires_at: Option<Time>,
}

/// A value to write.
#[derive(ToSchema)]
#[schema(example = json!({"value": "wait for replica 2", "expected_version": 1, "evidence": "eviction caused a second outage on node-4"}))]
pub struct WriteField {
    /// Any JSON value; every digit of a number is kept.
    pub value: Value,
    /// Needed for cas.
    pub expected_version: Option<Version>,
    pub evidence: Option<Evidence>,
    /// Needed where the class says requires_claim.
    pub claim_id: Option<ClaimId>,
}

/// A value written.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "planned_action", "version": 2, "record_version": 3, "author": "apikey:diagnoser",
    "role": "diagnoser", "evidence": "eviction caused a second outage on node-4", "changed_at": "2026-11-29T14:40:20+00:00"}))]
pub struct WrittenField {
    pub record: RecordName,
    pub field: FieldName,
    pub version: Version,
    pub record_version: RecordVersion,
    pub author: Identity,
    pub role: RoleName,
    pub evidence: Option<Evidence>,
    pub changed_at: Time,
}

/// An entry to add to an append field.
#[derive(ToSchema)]
#[schema(example = json!({"value": "uncordoned node-7", "evidence": "planned_action@2"}))]
pub struct AppendEntry {
    /// Any JSON value; every digit of a number is kept.
    pub value: Value,
    pub evidence: Option<Evidence>,
    /// Needed where the class says requires_claim.
    pub claim_id: Option<ClaimId>,
    /// How many entries there are.
    pub expected_version: Option<Version>,
}

/// An entry added.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "actions_taken", "version": 1, "record_version": 5,
    "author": "apikey:remediator/worker-2", "role": "remediator", "evidence": "planned_action@2", "added_at": "2026-11-29T14:40:40+00:00"}))]
pub struct AppendedEntry {
    pub record: RecordName,
    pub field: FieldName,
    /// Its `seq`: the field has as many entries now.
    pub version: Version,
    pub record_version: RecordVersion,
    pub author: Identity,
    pub role: RoleName,
    pub evidence: Option<Evidence>,
    pub added_at: Time,
}

/// Entries of an append field.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "actions_taken", "entries": [{"seq": 1, "value": "uncordoned node-7",
    "author": "apikey:remediator/worker-2", "role": "remediator", "evidence": "planned_action@2", "record_version": 5,
    "added_at": "2026-11-29T14:40:40+00:00"}], "next": null}))]
pub struct Entries {
    pub record: RecordName,
    pub field: FieldName,
    pub entries: Vec<Entry>,
    /// `after` of the next page; null on the last.
    pub next: Option<Cursor>,
}

/// One of them.
#[derive(ToSchema)]
pub struct Entry {
    pub seq: Seq,
    pub value: Value,
    pub author: Identity,
    /// Null where a table was changed by hand.
    pub role: Option<RoleName>,
    pub evidence: Option<Evidence>,
    pub record_version: RecordVersion,
    pub added_at: Time,
}
