//! Bodies about checkpoints.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{
    CheckpointId, ClaimId, Cursor, Evidence, FieldName, Identity, RecordName, RecordVersion,
    RoleName, Time, Version,
};

/// An agent's account of itself.
#[derive(ToSchema)]
#[schema(example = json!({"document": {"goal": "restore payments-api error budget", "progress": "failover done; awaiting rollout verification",
    "decisions": [], "open_questions": ["is replica 2 keeping up"]}, "seen_version": 19}))]
pub struct SaveCheckpoint {
    /// Has at least the class's sections.
    pub document: BTreeMap<String, Value>,
    /// The record version that the agent last read; the record's own where it is missing.
    pub seen_version: Option<RecordVersion>,
    pub claim_id: Option<ClaimId>,
}

/// An account saved.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-4471", "role": "remediator", "checkpoint_id": 1, "record_version": 19}))]
pub struct SavedCheckpoint {
    pub record: RecordName,
    pub role: RoleName,
    pub checkpoint_id: CheckpointId,
    pub record_version: RecordVersion,
}

/// An account, and what changed since.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-4471", "role": "remediator", "document": {"goal": "restore payments-api error budget",
    "progress": "failover done; awaiting rollout verification", "decisions": [], "open_questions": ["is replica 2 keeping up"]},
    "record_version": 19, "changed_fields": [{"field": "planned_action", "version": 4, "author": "apikey:diagnoser", "evidence": "hypotheses@2"}]}))]
pub struct Checkpoint {
    pub record: RecordName,
    pub role: RoleName,
    /// Null where none was saved.
    pub document: Option<BTreeMap<String, Value>>,
    /// 0 where none was saved.
    pub record_version: RecordVersion,
    /// In the order of the fields' last changes; own writes included, task fields never.
    pub changed_fields: Vec<ChangedField>,
}

/// A field that changed since.
#[derive(ToSchema)]
pub struct ChangedField {
    pub field: FieldName,
    pub version: Version,
    pub author: Identity,
    pub evidence: Option<Evidence>,
}

/// Which accounts there are, newest first.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-4471", "checkpoints": [{"checkpoint_id": 1, "role": "remediator", "record_version": 19,
    "author": "apikey:remediator/worker-1", "saved_at": "2026-11-29T14:40:18+00:00", "bytes": 311}], "next": null}))]
pub struct Checkpoints {
    pub record: RecordName,
    pub checkpoints: Vec<CheckpointSummary>,
    /// `after` of the next page; null on the last.
    pub next: Option<Cursor>,
}

/// One of them.
#[derive(ToSchema)]
pub struct CheckpointSummary {
    pub checkpoint_id: CheckpointId,
    pub role: RoleName,
    pub record_version: RecordVersion,
    pub author: Identity,
    pub saved_at: Time,
    /// Size of the document.
    #[schema(minimum = 0)]
    pub bytes: i64,
}
