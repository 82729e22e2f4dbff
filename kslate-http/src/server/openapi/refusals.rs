//! Bodies of refusals, one for each `error`; the schema is named as the error is.
//!
//! An optional key is there where it applies, and never null.

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{Epoch, LineOrNull, LossReason, RecordVersion, TextOrNull, Time, Version};

/// The request is wrong in itself: correct it.
#[derive(ToSchema)]
#[schema(as = MALFORMED, example = json!({"error": "MALFORMED", "message": "unknown key \"lease\" in the body; known: lease_seconds, reattach", "path": "/lease"}))]
pub struct Malformed {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: Option<String>,
    /// JSON Pointer into the body.
    pub path: Option<String>,
}

/// No API key, or an unknown one.
#[derive(ToSchema)]
#[schema(as = UNAUTHENTICATED, example = json!({"error": "UNAUTHENTICATED", "message": "send a known API key as Authorization: Bearer <token>"}))]
pub struct Unauthenticated {
    pub error: String,
    pub message: String,
}

/// The caller's roles do not allow this.
#[derive(ToSchema)]
#[schema(as = SCOPE_DENIED, example = json!({"error": "SCOPE_DENIED", "field": "planned_action",
    "message": "writing planned_action needs one of: diagnoser; you hold: remediator", "record": "incidents/inc-111",
    "needs_one_of": ["diagnoser"], "roles_held": ["remediator"]}))]
pub struct ScopeDenied {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: Option<String>,
    pub needs_one_of: Option<Vec<String>>,
    pub roles_held: Option<Vec<String>>,
}

/// No such class, record, field, version, checkpoint or route.
#[derive(ToSchema)]
#[schema(as = NOT_FOUND, example = json!({"error": "NOT_FOUND", "message": "no record incidents/inc-999; create it with PUT /v1/records/incidents/inc-999",
    "record": "incidents/inc-999"}))]
pub struct NotFound {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: Option<String>,
}

/// The body is no JSON in UTF-8.
#[derive(ToSchema)]
#[schema(as = UNSUPPORTED_MEDIA_TYPE, example = json!({"error": "UNSUPPORTED_MEDIA_TYPE",
    "message": "send the body as application/json, in UTF-8 and without a content encoding"}))]
pub struct UnsupportedMediaType {
    pub error: String,
    pub message: String,
}

/// A body, a value, a checkpoint or an answer that is too large.
#[derive(ToSchema)]
#[schema(as = PAYLOAD_TOO_LARGE, example = json!({"error": "PAYLOAD_TOO_LARGE", "message": "the body is larger than the 1048576 bytes that this server takes"}))]
pub struct PayloadTooLarge {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: Option<String>,
}

/// The record is there, and the first values were not written: read it.
#[derive(ToSchema)]
#[schema(as = ALREADY_EXISTS, example = json!({"error": "ALREADY_EXISTS",
    "message": "incidents/inc-111 exists already and your first values were not written; read it and write its fields",
    "record": "incidents/inc-111", "record_version": 4}))]
pub struct AlreadyExists {
    pub error: String,
    pub message: String,
    pub record: String,
    pub record_version: RecordVersion,
}

/// Somebody wrote in between: merge with `value`, which is what stands there, and write again. A force release tells epochs.
#[derive(ToSchema)]
#[schema(as = VERSION_CONFLICT, example = json!({"error": "VERSION_CONFLICT", "field": "planned_action",
    "message": "planned_action is at version 3, you expected 2; merge with the value given here and write again with expected_version 3",
    "record": "incidents/inc-111", "expected_version": 2, "current_version": 3, "value": "wait for replica 2", "author": "apikey:diagnoser",
    "evidence": null}))]
pub struct VersionConflict {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
    pub expected_version: Option<Version>,
    pub current_version: Option<Version>,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub value: Value,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub author: TextOrNull,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub evidence: TextOrNull,
    /// All of them, where several changes were asked for.
    pub conflicts: Option<Vec<Conflict>>,
    pub expected_epoch: Option<Epoch>,
    pub current_epoch: Option<Epoch>,
}

/// One of several conflicting changes.
#[derive(ToSchema)]
pub struct Conflict {
    pub field: String,
    pub expected_version: Version,
    pub current_version: Version,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub value: Value,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub author: TextOrNull,
    /// Not there where the caller may not read the field.
    #[schema(required = false)]
    pub evidence: TextOrNull,
}

/// A lease is live: wait, or take other work.
#[derive(ToSchema)]
#[schema(as = HELD, example = json!({"error": "HELD", "field": "remediation",
    "message": "remediation is held by apikey:remediator/worker-1 for another 2 s; claim again after that, or take other work with claim next",
    "record": "incidents/inc-111", "owner": "apikey:remediator/worker-1", "expires_at": "2026-11-29T14:40:22+00:00", "retry_after_seconds": 2}))]
pub struct Held {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
    pub owner: String,
    pub expires_at: Time,
    #[schema(minimum = 1)]
    pub retry_after_seconds: i64,
}

/// The claim is not the live one: write nothing more under it, and claim again.
#[derive(ToSchema)]
#[schema(as = LEASE_LOST, example = json!({"error": "LEASE_LOST", "field": "remediation",
    "message": "your claim on remediation is over: apikey:remediator/worker-2 took it over after it lapsed. Write nothing more under it; load the checkpoint before you claim again",
    "record": "incidents/inc-111", "owner": "apikey:remediator/worker-2", "reason": "taken_over"}))]
pub struct LeaseLost {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: String,
    /// The live holder, or null.
    pub owner: TextOrNull,
    pub reason: LossReason,
}

/// The task is done.
#[derive(ToSchema)]
#[schema(as = COMPLETED, example = json!({"error": "COMPLETED", "field": "remediation",
    "message": "remediation was completed by apikey:remediator/worker-2; there is nothing left to claim", "record": "incidents/inc-111",
    "author": "apikey:remediator/worker-2", "version": 1, "completed_at": "2026-11-29T14:45:00+00:00"}))]
pub struct AlreadyCompleted {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
    pub author: String,
    pub version: Version,
    pub completed_at: Time,
}

/// There is nothing to reopen.
#[derive(ToSchema)]
#[schema(as = NOT_COMPLETED, example = json!({"error": "NOT_COMPLETED", "field": "remediation",
    "message": "remediation is open, not completed: there is nothing to reopen, claim it", "record": "incidents/inc-111", "author": null, "version": 0}))]
pub struct NotCompleted {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
    pub author: TextOrNull,
    pub version: Version,
}

/// The idempotency key was used for another request: take a new one.
#[derive(ToSchema)]
#[schema(as = IDEMPOTENCY_CONFLICT, example = json!({"error": "IDEMPOTENCY_CONFLICT",
    "message": "this Idempotency-Key was used for another request; take a new key for a new request", "record": "incidents/inc-111"}))]
pub struct IdempotencyConflict {
    pub error: String,
    pub message: String,
    pub record: Option<String>,
}

/// With field: status may not become resolved yet (the gate). Without: the document lacks sections.
#[derive(ToSchema)]
#[schema(as = INVALID_CHECKPOINT, example = json!({"error": "INVALID_CHECKPOINT", "field": "status",
    "message": "required role(s) have not checkpointed this record yet: remediator", "record": "incidents/inc-4471"}))]
pub struct InvalidCheckpoint {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: String,
}

/// The class's values or schema refuse the value.
#[derive(ToSchema)]
#[schema(as = INVALID_VALUE, example = json!({"error": "INVALID_VALUE", "field": "status",
    "message": "\"closed\" is not allowed; one of: open, mitigating, resolved", "record": "incidents/inc-111", "path": ""}))]
pub struct InvalidValue {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
    /// JSON Pointer into the value.
    pub path: String,
}

/// The field must say why.
#[derive(ToSchema)]
#[schema(as = EVIDENCE_REQUIRED, example = json!({"error": "EVIDENCE_REQUIRED", "field": "planned_action",
    "message": "planned_action must say why: send evidence, a sentence or a pointer such as hypotheses@2", "record": "incidents/inc-111"}))]
pub struct EvidenceRequired {
    pub error: String,
    pub field: String,
    pub message: String,
    pub record: String,
}

/// The definition has faults, or would orphan data; nothing was changed.
#[derive(ToSchema)]
#[schema(as = INVALID_CLASS, example = json!({"error": "INVALID_CLASS", "message": "2 faults in the definition of incidents; nothing was changed",
    "class": "incidents", "faults": [{"line": 7, "path": "fields.status.mode", "message": "unknown mode \"csa\": one of cas, lww, append, task"},
    {"line": null, "path": "fields.hypotheses", "message": "removed, but 12 records have history of it"}]}))]
pub struct InvalidClass {
    pub error: String,
    pub message: String,
    pub class: TextOrNull,
    pub faults: Vec<Fault>,
}

/// One fault of a definition.
#[derive(ToSchema)]
pub struct Fault {
    /// Line of the source, where the fault stands in one.
    pub line: LineOrNull,
    pub path: String,
    pub message: String,
}

/// A lock was not free in time; nothing was changed, send the same request again.
#[derive(ToSchema)]
#[schema(as = BUSY, example = json!({"error": "BUSY",
    "message": "the record is locked by another change; nothing was changed, send the same request again", "retry_after_seconds": 1}))]
pub struct Busy {
    pub error: String,
    pub message: String,
    #[schema(minimum = 1)]
    pub retry_after_seconds: i64,
}

/// The database is away, read-only, or not set up: send the request again, with its idempotency key.
#[derive(ToSchema)]
#[schema(as = UNAVAILABLE, example = json!({"error": "UNAVAILABLE",
    "message": "the database cannot be reached now; nothing was changed, send the same request again", "retry_after_seconds": 1}))]
pub struct Unavailable {
    pub error: String,
    pub field: Option<String>,
    pub message: String,
    pub record: Option<String>,
    #[schema(minimum = 1)]
    pub retry_after_seconds: i64,
}

/// No answer in time. Whether the change was made is unknown: send it again, with its idempotency key.
#[derive(ToSchema)]
#[schema(as = TIMEOUT, example = json!({"error": "TIMEOUT",
    "message": "no answer within 10 s; whether the change was made is unknown, send the same request with the same Idempotency-Key"}))]
pub struct Timeout {
    pub error: String,
    pub message: String,
}

/// Unexpected; the log has the cause under this id.
#[derive(ToSchema)]
#[schema(as = INTERNAL, example = json!({"error": "INTERNAL", "message": "unexpected error; whether the change was made is unknown", "request_id": "01JDV1X3S8"}))]
pub struct Internal {
    pub error: String,
    pub message: String,
    pub request_id: String,
}
