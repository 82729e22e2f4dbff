//! Checkpoints.

use axum::extract::State;

use super::records::one_more;
use crate::server::answer::{self, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi::checkpoints::{
    Checkpoint, Checkpoints, SaveCheckpoint, SavedCheckpoint,
};
use crate::server::openapi::parameters::{
    AsRole, CheckpointChoice, CheckpointList, Idempotency, RecordPath,
};
use crate::server::Server;

const SAVE: Call = call!(
    "kslate_checkpoint_save(record => $1, document => $2::text::jsonb, role => $3, seen_version => $4, claim_id => $5::text::uuid, \
     idempotency_key => $6, identity => $7)"
);
const LOAD: Call =
    call!("kslate_checkpoint_load(record => $1, role => $2, checkpoint_id => $3, identity => $4)");
const LIST: Call = call!("kslate_checkpoint_list(record => $1, role => $2, after => $3, page_size => $4::bigint::int, identity => $5)", "r.checkpoint_id");

/// An agent's account of itself.
#[utoipa::path(
    put, path = "/v1/records/{class}/{key}/checkpoint", operation_id = "saveCheckpoint", tag = "checkpoints",
    params(RecordPath, AsRole, Idempotency),
    request_body = SaveCheckpoint,
    responses((status = 200, body = SavedCheckpoint)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "INVALID_CHECKPOINT", "BUSY"]))),
)]
pub async fn save(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let role = asked.query(&["role"])?.text("role");
    let body = asked.body(&["document", "seen_version", "claim_id"])?;
    let args = args![
        record,
        body.needed_object("document")?,
        role,
        body.whole("seen_version")?,
        body.uuid("claim_id")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(SAVE, args).await?.into())
}

/// The latest account of a role, and what changed since.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/checkpoint", operation_id = "loadCheckpoint", tag = "checkpoints",
    params(RecordPath, CheckpointChoice),
    responses((status = 200, body = Checkpoint)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND"]))),
)]
pub async fn load(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let query = asked.query(&["role", "checkpoint_id"])?;
    Ok(server
        .database
        .one(
            LOAD,
            args![
                record,
                query.text("role"),
                query.whole("checkpoint_id")?,
                caller.identity
            ],
        )
        .await?
        .into())
}

/// Which accounts there are.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/checkpoints", operation_id = "listCheckpoints", tag = "checkpoints",
    params(RecordPath, CheckpointList),
    responses((status = 200, body = Checkpoints)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn list(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let query = asked.query(&["role", "after", "page_size"])?;
    let (role, after, size) = (
        query.text("role"),
        query.whole("after")?,
        query.page_size()?,
    );
    let lines = server
        .database
        .all(
            LIST,
            args![
                record.as_str(),
                role,
                after,
                one_more(size),
                caller.identity
            ],
        )
        .await?;
    Ok(answer::list(
        &[("record", &record)],
        "checkpoints",
        lines,
        size,
    ))
}
