//! Bodies about claims.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::words::{
    null, ClaimId, Epoch, Evidence, FieldName, Identity, LeaseSeconds, RecordName, RecordVersion,
    RoleName, TaskName, Time, Version,
};

/// A claim to a record's task.
#[derive(ToSchema)]
#[schema(example = json!({"lease_seconds": 60}))]
pub struct Claim {
    /// The field's default_seconds where it is missing.
    pub lease_seconds: Option<LeaseSeconds>,
    /// Take the caller's own live claim back, after a restart.
    pub reattach: Option<bool>,
}

/// A claim to the next free task of a class.
#[derive(ToSchema)]
#[schema(example = json!({"field": "remediation", "lease_seconds": 60, "filter": {"status": ["open", "mitigating"]}}))]
pub struct ClaimNext {
    pub field: TaskName,
    /// The field's default_seconds where it is missing.
    pub lease_seconds: Option<LeaseSeconds>,
    /// Field to value, or to a list of values; all must hold.
    pub filter: Option<BTreeMap<FieldName, Value>>,
}

/// A claim granted.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "owner": "apikey:remediator/worker-2", "role": "remediator",
    "claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10", "epoch": 2, "claimed_at": "2026-11-29T14:40:25+00:00",
    "expires_at": "2026-11-29T14:41:25+00:00", "lease_seconds": 60, "took_over_from": "apikey:remediator/worker-1", "record_version": 4}))]
pub struct Granted {
    pub record: RecordName,
    pub field: TaskName,
    pub owner: Identity,
    pub role: RoleName,
    pub claim_id: ClaimId,
    pub epoch: Epoch,
    pub claimed_at: Time,
    pub expires_at: Time,
    pub lease_seconds: LeaseSeconds,
    /// Whose lapsed lease was displaced, where it was another identity's.
    pub took_over_from: Option<Identity>,
    pub record_version: RecordVersion,
}

/// Nothing is free now.
#[derive(ToSchema)]
#[schema(example = json!({"record": null}))]
pub struct NothingFree {
    #[schema(schema_with = null)]
    pub record: (),
}

/// The next task, or that there is none.
pub enum NextClaim {}

impl utoipa::PartialSchema for NextClaim {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::OneOfBuilder::new()
            .item(utoipa::openapi::Ref::from_schema_name(Granted::name()))
            .item(utoipa::openapi::Ref::from_schema_name(NothingFree::name()))
            .description(Some("The next task, or that there is none."))
            .into()
    }
}

impl ToSchema for NextClaim {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        for (name, schema) in [
            (
                Granted::name(),
                <Granted as utoipa::PartialSchema>::schema(),
            ),
            (
                NothingFree::name(),
                <NothingFree as utoipa::PartialSchema>::schema(),
            ),
        ] {
            schemas.push((name.into_owned(), schema));
        }
        Granted::schemas(schemas);
        NothingFree::schemas(schemas);
    }
}

/// More time for a claim, counted from now.
#[derive(ToSchema)]
#[schema(example = json!({"claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10", "lease_seconds": 60}))]
pub struct Renew {
    pub claim_id: ClaimId,
    /// The claim's own last length where it is missing.
    pub lease_seconds: Option<LeaseSeconds>,
}

/// A claim extended.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "owner": "apikey:remediator/worker-2",
    "claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10", "epoch": 2, "expires_at": "2026-11-29T14:41:45+00:00", "lease_seconds": 60}))]
pub struct Renewed {
    pub record: RecordName,
    pub field: TaskName,
    pub owner: Identity,
    pub claim_id: ClaimId,
    pub epoch: Epoch,
    pub expires_at: Time,
    pub lease_seconds: LeaseSeconds,
}

/// A claim to give back.
#[derive(ToSchema)]
#[schema(example = json!({"claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10", "reason": "the node is drained for the night"}))]
pub struct Release {
    pub claim_id: ClaimId,
    pub reason: Option<String>,
}

/// A claim given back.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "epoch": 2, "record_version": 6,
    "released_at": "2026-11-29T14:41:00+00:00"}))]
pub struct Released {
    pub record: RecordName,
    pub field: TaskName,
    pub epoch: Epoch,
    pub record_version: RecordVersion,
    pub released_at: Time,
}

/// A task's end, and its result.
#[derive(ToSchema)]
#[schema(example = json!({"claim_id": "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10", "value": "failed over", "evidence": "planned_action@2"}))]
pub struct Complete {
    pub claim_id: ClaimId,
    /// The result; null where it is missing.
    #[schema(required = false)]
    pub value: Value,
    pub evidence: Option<Evidence>,
}

/// A task completed.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "epoch": 2, "version": 1, "record_version": 6,
    "completed_at": "2026-11-29T14:45:00+00:00"}))]
pub struct Completed {
    pub record: RecordName,
    pub field: TaskName,
    pub epoch: Epoch,
    pub version: Version,
    pub record_version: RecordVersion,
    pub completed_at: Time,
}

/// A completed task to open again.
#[derive(ToSchema)]
#[schema(example = json!({"reason": "the replica fell behind again"}))]
pub struct Reopen {
    pub reason: Option<String>,
}

/// A task open again; its result is null.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "version": 2, "record_version": 7,
    "reopened_at": "2026-11-29T14:50:00+00:00"}))]
pub struct Reopened {
    pub record: RecordName,
    pub field: TaskName,
    pub version: Version,
    pub record_version: RecordVersion,
    pub reopened_at: Time,
}

/// A task to take from its holder.
#[derive(ToSchema)]
#[schema(example = json!({"expected_epoch": 2, "reason": "worker-2 is stuck and the pager is loud"}))]
pub struct ForceRelease {
    /// The epoch that is meant: a claim granted since is left alone.
    pub expected_epoch: Epoch,
    #[schema(min_length = 1)]
    pub reason: String,
}

/// A task taken from its holder.
#[derive(ToSchema)]
#[schema(example = json!({"record": "incidents/inc-111", "field": "remediation", "released_from": "apikey:remediator/worker-2", "epoch": 2,
    "record_version": 6, "released_at": "2026-11-29T14:41:00+00:00"}))]
pub struct ForceReleased {
    pub record: RecordName,
    pub field: FieldName,
    pub released_from: Identity,
    pub epoch: Epoch,
    pub record_version: RecordVersion,
    pub released_at: Time,
}
