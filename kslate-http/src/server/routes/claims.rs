//! Claims on task fields.

use axum::extract::State;

use crate::server::answer::{Answer, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi::claims::{
    Claim, ClaimNext, Complete, Completed, ForceRelease, ForceReleased, Granted, NextClaim,
    Release, Released, Renew, Renewed, Reopen, Reopened,
};
use crate::server::openapi::parameters::{ClassPath, FieldPath, Idempotency};
use crate::server::Server;

const CLAIM: Call = call!(
    "kslate_claim(record => $1, field => $2, lease_seconds => $3, reattach => $4, idempotency_key => $5, identity => $6)",
    "r.took_over_from IS NOT NULL"
);
const CLAIM_NEXT: Call = call!(
    "kslate_claim_next(class => $1, field => $2, lease_seconds => $3, filter => $4::text::jsonb, idempotency_key => $5, identity => $6)",
    "r.took_over_from IS NOT NULL"
);
const RENEW: Call = call!("kslate_renew(record => $1, field => $2, claim_id => $3::text::uuid, lease_seconds => $4, identity => $5)");
const RELEASE: Call = call!("kslate_release(record => $1, field => $2, claim_id => $3::text::uuid, reason => $4, idempotency_key => $5, identity => $6)");
const COMPLETE: Call = call!(
    "kslate_complete(record => $1, field => $2, claim_id => $3::text::uuid, value => $4::text::jsonb, evidence => $5, \
     idempotency_key => $6, identity => $7)"
);
const REOPEN: Call = call!(
    "kslate_reopen(record => $1, field => $2, reason => $3, idempotency_key => $4, identity => $5)"
);
const FORCE_RELEASE: Call =
    call!("kslate_force_release(record => $1, field => $2, expected_epoch => $3, reason => $4, idempotency_key => $5, identity => $6)");

/// This record's task.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/claim", operation_id = "claim", tag = "claims",
    params(FieldPath, Idempotency),
    request_body = Option<Claim>,
    responses((status = 200, body = Granted)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "COMPLETED", "HELD", "BUSY"]))),
)]
pub async fn claim(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["lease_seconds", "reattach"])?;
    let args = args![
        record,
        field,
        body.number("lease_seconds")?,
        body.flag("reattach")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(Answer::claim(server.database.one(CLAIM, args).await?))
}

/// The next free task of a class.
#[utoipa::path(
    post, path = "/v1/classes/{class}/claim", operation_id = "claimNext", tag = "claims",
    params(ClassPath, Idempotency),
    request_body = ClaimNext,
    responses((status = 200, body = NextClaim)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "BUSY"]))),
)]
pub async fn claim_next(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let class = asked.class()?;
    asked.no_query()?;
    let body = asked.body(&["field", "lease_seconds", "filter"])?;
    let args = args![
        class,
        body.needed_text("field")?,
        body.number("lease_seconds")?,
        body.object("filter")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    let granted = server.database.maybe(CLAIM_NEXT, args).await?;
    Ok(granted.map_or_else(|| Answer::ok(r#"{"record":null}"#), Answer::claim))
}

/// More time.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/renew", operation_id = "renew", tag = "claims",
    params(FieldPath),
    request_body = Renew,
    responses((status = 200, body = Renewed)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "LEASE_LOST", "BUSY"]))),
)]
pub async fn renew(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["claim_id", "lease_seconds"])?;
    let args = args![
        record,
        field,
        body.needed_uuid("claim_id")?,
        body.number("lease_seconds")?,
        caller.identity
    ];
    Ok(server.database.one(RENEW, args).await?.into())
}

/// Given back.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/release", operation_id = "release", tag = "claims",
    params(FieldPath, Idempotency),
    request_body = Release,
    responses((status = 200, body = Released)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "BUSY"]))),
)]
pub async fn release(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["claim_id", "reason"])?;
    let args = args![
        record,
        field,
        body.needed_uuid("claim_id")?,
        body.text("reason")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(RELEASE, args).await?.into())
}

/// Done, with a result.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/complete", operation_id = "complete", tag = "claims",
    params(FieldPath, Idempotency),
    request_body = Complete,
    responses((status = 200, body = Completed)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "EVIDENCE_REQUIRED", "INVALID_VALUE", "BUSY"]))),
)]
pub async fn complete(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["claim_id", "value", "evidence"])?;
    let value = body
        .optional_value("value")
        .unwrap_or_else(|| "null".to_owned());
    let args = args![
        record,
        field,
        body.needed_uuid("claim_id")?,
        value,
        body.text("evidence")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(COMPLETE, args).await?.into())
}

/// To be done again.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/reopen", operation_id = "reopen", tag = "claims",
    params(FieldPath, Idempotency),
    request_body = Option<Reopen>,
    responses((status = 200, body = Reopened)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "NOT_COMPLETED", "BUSY"]))),
)]
pub async fn reopen(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["reason"])?;
    let args = args![
        record,
        field,
        body.text("reason")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(REOPEN, args).await?.into())
}

/// Taken from its holder.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/force-release", operation_id = "forceRelease", tag = "claims",
    params(FieldPath, Idempotency),
    request_body = ForceRelease,
    responses((status = 200, body = ForceReleased)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "VERSION_CONFLICT", "BUSY"]))),
)]
pub async fn force_release(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["expected_epoch", "reason"])?;
    let args = args![
        record,
        field,
        body.needed_whole("expected_epoch")?,
        body.needed_text("reason")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(FORCE_RELEASE, args).await?.into())
}
