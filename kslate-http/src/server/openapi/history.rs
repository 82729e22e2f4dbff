//! Bodies of history and blame.

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{
    Cursor, Epoch, Evidence, FieldName, Identity, Op, RecordName, RecordVersion, RoleName, Seq,
    Time, Version,
};

/// The accepted changes of a record.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "history": [
    {"record_version": 0, "op": "create", "field": null, "version": null, "value": {"status": "open"}, "author": "apikey:diagnoser",
     "role": "diagnoser", "evidence": null, "changed_at": "2026-11-29T14:40:12.123456+00:00", "epoch": null, "took_over_from": null, "reason": null},
    {"record_version": 4, "op": "takeover", "field": "remediation", "version": null, "value": null, "author": "apikey:remediator/worker-2",
     "role": "remediator", "evidence": null, "changed_at": "2026-11-29T14:40:25+00:00", "epoch": 2,
     "took_over_from": "apikey:remediator/worker-1", "reason": null}], "next": null}))]
pub struct History {
    pub record: RecordName,
    pub history: Vec<HistoryRow>,
    /// `after` of the next page; null on the last.
    pub next: Option<Cursor>,
}

/// One accepted change.
#[derive(ToSchema)]
pub struct HistoryRow {
    pub record_version: RecordVersion,
    pub op: Op,
    /// Null for create.
    pub field: Option<FieldName>,
    /// Null for create and for claims.
    pub version: Option<Version>,
    /// Null for claims.
    pub value: Value,
    pub author: Identity,
    /// Null where a table was changed by hand.
    pub role: Option<RoleName>,
    pub evidence: Option<Evidence>,
    pub changed_at: Time,
    /// Of claims.
    pub epoch: Option<Epoch>,
    /// Of takeovers.
    pub took_over_from: Option<Identity>,
    pub reason: Option<String>,
}

/// Who is behind what stands there now.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-4471", "blame": [{"field": "planned_action", "key": null, "seq": null, "version": 4,
    "author": "apikey:diagnoser", "role": "diagnoser", "evidence": "hypotheses@2", "points_to": {"field": "hypotheses", "version": 2,
    "value": "replica lag", "author": "apikey:diagnoser", "changed_at": "2026-11-29T14:30:00+00:00"}, "record_version": 20,
    "changed_at": "2026-11-29T14:40:20+00:00"}]}))]
pub struct Blame {
    pub record: RecordName,
    pub blame: Vec<BlameRow>,
}

/// One field, one top-level key of an object, or one entry.
#[derive(ToSchema)]
pub struct BlameRow {
    pub field: FieldName,
    /// Of an object value.
    pub key: Option<String>,
    /// Of an append field.
    pub seq: Option<Seq>,
    pub version: Version,
    pub author: Identity,
    /// Null where a table was changed by hand.
    pub role: Option<RoleName>,
    pub evidence: Option<Evidence>,
    /// What the evidence points at, where it does and the caller may read it.
    pub points_to: Option<PointedTo>,
    pub record_version: RecordVersion,
    pub changed_at: Time,
}

/// A version of a field that evidence points at.
#[derive(ToSchema)]
pub struct PointedTo {
    pub field: FieldName,
    pub version: Version,
    pub value: Value,
    pub author: Identity,
    pub changed_at: Time,
}
