//! Bodies about classes.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{null, ClassName, FieldName, Identity, Mode, RoleName, TaskName, Time, Version};

/// A class in a list.
#[derive(ToSchema)]
pub struct ClassSummary {
    pub class: ClassName,
    /// Counts the accepted definitions of the class, from 1.
    pub version: Version,
    pub description: Option<String>,
    pub applied_by: Identity,
    pub applied_at: Time,
}

/// All classes, in order of name.
#[derive(ToSchema)]
#[schema(example = json!({"classes": [{"class": "incidents", "version": 1, "description": "Incidents worked by a diagnoser and a remediator.",
    "applied_by": "pg:kslate", "applied_at": "2026-11-29T14:40:12.123456+00:00"}], "next": null}))]
pub struct Classes {
    pub classes: Vec<ClassSummary>,
    /// Always null: the list has one page.
    #[schema(schema_with = null)]
    pub next: (),
}

/// A class at one version.
#[derive(ToSchema)]
pub struct Class {
    pub class: ClassName,
    /// Counts the accepted definitions of the class, from 1.
    pub version: Version,
    pub description: Option<String>,
    pub definition: Definition,
    /// The YAML or JSON as it was written.
    pub source: String,
    pub applied_by: Identity,
    pub applied_at: Time,
}

/// A definition with every default filled in. What has no default and was not written is not there.
#[derive(ToSchema)]
#[schema(example = json!({"roles": {"diagnoser": ["apikey:diagnoser", "apikey:diagnoser/*"], "remediator": ["apikey:remediator"]},
    "create": ["diagnoser"],
    "fields": {"status": {"mode": "cas", "write": ["diagnoser", "remediator"], "read": ["diagnoser", "remediator"], "evidence": "optional",
        "values": ["open", "mitigating", "resolved"], "initial": "open"}},
    "checkpoint": {"required": ["remediator"], "sections": ["goal", "decisions", "progress", "open_questions"], "max_bytes": 262144}}))]
pub struct Definition {
    /// Role to patterns of the identities that hold it.
    pub roles: BTreeMap<RoleName, Vec<String>>,
    /// Roles that may create records.
    pub create: Vec<RoleName>,
    pub fields: BTreeMap<FieldName, FieldDefinition>,
    pub checkpoint: Option<CheckpointRules>,
}

/// What a definition says of a field.
#[derive(ToSchema)]
pub struct FieldDefinition {
    pub mode: Mode,
    /// Roles that may write it.
    pub write: Vec<RoleName>,
    /// Roles that may read it.
    pub read: Vec<RoleName>,
    /// Whether a write must say why: optional or required.
    #[schema(pattern = "^(optional|required)$")]
    pub evidence: String,
    pub description: Option<String>,
    /// The values that are allowed.
    pub values: Option<Vec<Value>>,
    /// The value that a record is created with.
    pub initial: Option<Value>,
    /// JSON Schema of the value.
    pub schema: Option<Value>,
    pub requires_claim: Option<TaskName>,
    pub lease: Option<Lease>,
    /// Roles that may force a release.
    pub r#override: Option<Vec<RoleName>>,
}

/// Lengths of a task's leases.
#[derive(ToSchema)]
pub struct Lease {
    pub default_seconds: i64,
    pub max_seconds: i64,
}

/// What a definition says of checkpoints.
#[derive(ToSchema)]
pub struct CheckpointRules {
    /// Roles that must have saved one before status may become resolved.
    pub required: Vec<RoleName>,
    /// Keys that a document must have.
    pub sections: Vec<String>,
    /// Most bytes of a document.
    pub max_bytes: i64,
    pub requires_claim: Option<TaskName>,
}

/// A definition as it is written: docs/design-a-class.md.
#[derive(ToSchema)]
#[schema(example = json!({"class": "notes", "roles": {"writer": ["apikey:writer"]},
    "fields": {"text": {"mode": "lww", "write": ["writer"]}}}))]
pub struct WrittenDefinition {
    /// That of the path.
    pub class: ClassName,
    pub description: Option<String>,
    /// Role to patterns of the identities that hold it.
    pub roles: BTreeMap<RoleName, Vec<String>>,
    /// Roles that may create records; every role that may write a field where it is missing.
    pub create: Option<Vec<RoleName>>,
    pub fields: BTreeMap<FieldName, WrittenFieldDefinition>,
    pub checkpoint: Option<WrittenCheckpointRules>,
}

/// A field as it is written.
#[derive(ToSchema)]
pub struct WrittenFieldDefinition {
    pub mode: Mode,
    /// Roles that may write it.
    pub write: Vec<RoleName>,
    /// Roles that may read it; all where it is missing.
    pub read: Option<Vec<RoleName>>,
    /// Whether a write must say why: optional or required.
    #[schema(pattern = "^(optional|required)$")]
    pub evidence: Option<String>,
    pub description: Option<String>,
    /// The values that are allowed.
    pub values: Option<Vec<Value>>,
    /// The value that a record is created with.
    pub initial: Option<Value>,
    /// JSON Schema of the value.
    pub schema: Option<Value>,
    pub requires_claim: Option<TaskName>,
    pub lease: Option<WrittenLease>,
    /// Roles that may force a release.
    pub r#override: Option<Vec<RoleName>>,
}

/// Lengths of a task's leases, as they are written.
#[derive(ToSchema)]
pub struct WrittenLease {
    pub default_seconds: Option<i64>,
    pub max_seconds: Option<i64>,
}

/// Rules for checkpoints, as they are written.
#[derive(ToSchema)]
pub struct WrittenCheckpointRules {
    pub required: Option<Vec<RoleName>>,
    pub sections: Option<Vec<String>>,
    pub max_bytes: Option<i64>,
    pub requires_claim: Option<TaskName>,
}

/// What applying a definition did, or would do.
#[derive(ToSchema)]
#[schema(example = json!({"class": "incidents", "version": 2, "changed": true, "dry_run": false,
    "changes": ["field rollback added (cas, written by remediator)"]}))]
pub struct Applied {
    pub class: ClassName,
    /// The version that is in force now; with dry_run, that would be.
    pub version: Version,
    /// False where the definition is the one in force.
    pub changed: bool,
    pub dry_run: bool,
    /// A sentence for each difference.
    pub changes: Vec<String>,
}
