//! Bodies about records.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::fields::FieldState;
use super::words::{
    ClaimId, Evidence, FieldName, Identity, RecordName, RecordVersion, RoleName, Time, Version,
};

/// A record to create.
#[derive(ToSchema)]
#[schema(example = json!({"fields": {"status": "mitigating"}, "evidence": "pager 4711"}))]
pub struct CreateRecord {
    /// First values of cas and lww fields.
    pub fields: Option<BTreeMap<FieldName, Value>>,
    /// Holds for all first values.
    pub evidence: Option<Evidence>,
}

/// A record that is there now.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "record_version": 0, "created": true, "created_by": "apikey:diagnoser",
    "created_at": "2026-11-29T14:40:12.123456+00:00"}))]
pub struct CreatedRecord {
    pub record: RecordName,
    pub record_version: RecordVersion,
    /// False where it was there already.
    pub created: bool,
    pub created_by: Identity,
    pub created_at: Time,
}

/// A record, and those of its fields that were asked for and may be read, in the class's order.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "record_version": 5, "created_by": "apikey:diagnoser",
    "created_at": "2026-11-29T14:40:12.123456+00:00", "fields": [
    {"field": "status", "mode": "cas", "value": "open", "version": 1, "author": "apikey:diagnoser", "role": "diagnoser", "evidence": null,
     "record_version": 0, "changed_at": "2026-11-29T14:40:12.123456+00:00", "claim": null},
    {"field": "remediation", "mode": "task", "value": null, "version": 0, "author": null, "role": null, "evidence": null, "record_version": null,
     "changed_at": null, "claim": {"state": "claimed", "live": true, "owner": "apikey:remediator/worker-2", "role": "remediator", "epoch": 2,
     "claimed_at": "2026-11-29T14:40:25+00:00", "expires_at": "2026-11-29T14:41:25+00:00"}}]}))]
pub struct Record {
    pub record: RecordName,
    pub record_version: RecordVersion,
    pub created_by: Identity,
    pub created_at: Time,
    pub fields: Vec<FieldState>,
}

/// The records of a class, in order of the key.
#[derive(ToSchema)]
pub struct Records {
    pub records: Vec<Record>,
    /// `after` of the next page; null on the last.
    pub next: Option<RecordName>,
}

/// Several fields to write, all or nothing.
#[derive(ToSchema)]
#[schema(example = json!({"changes": [{"field": "hypotheses", "value": "replica lag", "expected_version": 0},
    {"field": "planned_action", "value": "wait for replica 2", "expected_version": 2, "evidence": "hypotheses@1"}]}))]
pub struct WriteMany {
    /// No field twice.
    #[schema(min_items = 1, max_items = 64)]
    pub changes: Vec<Change>,
    pub claim_id: Option<ClaimId>,
}

/// One of them: of a cas or lww field.
#[derive(ToSchema)]
pub struct Change {
    pub field: FieldName,
    pub value: Value,
    /// Needed for cas.
    pub expected_version: Option<Version>,
    pub evidence: Option<Evidence>,
}

/// Several fields written.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "record_version": 7, "changed_at": "2026-11-29T14:42:00+00:00",
    "changes": [{"field": "hypotheses", "version": 1, "record_version": 6, "role": "diagnoser"},
    {"field": "planned_action", "version": 3, "record_version": 7, "role": "diagnoser"}]}))]
pub struct WrittenMany {
    pub record: RecordName,
    pub record_version: RecordVersion,
    pub changed_at: Time,
    /// In the order given.
    pub changes: Vec<Changed>,
}

/// One of them.
#[derive(ToSchema)]
pub struct Changed {
    pub field: FieldName,
    pub version: Version,
    pub record_version: RecordVersion,
    pub role: RoleName,
}
