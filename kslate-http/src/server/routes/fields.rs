//! One field: read, write, append, entries.

use axum::extract::State;

use super::records::one_more;
use crate::server::answer::{self, Answer, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi::fields::{
    AppendEntry, AppendedEntry, Entries, Field, WriteField, WrittenField,
};
use crate::server::openapi::parameters::{EntryList, FieldPath, Idempotency};
use crate::server::Server;

const GET: Call = call!("kslate_fields(record => $1, fields => ARRAY[$2], identity => $3)");
const WRITE: Call = call!(
    "kslate_write(record => $1, field => $2, value => $3::text::jsonb, expected_version => $4, evidence => $5, \
     claim_id => $6::text::uuid, idempotency_key => $7, identity => $8)"
);
const APPEND: Call = call!(
    "kslate_append(record => $1, field => $2, value => $3::text::jsonb, evidence => $4, claim_id => $5::text::uuid, \
     expected_version => $6, idempotency_key => $7, identity => $8)"
);
const ENTRIES: Call = call!(
    "kslate_entries(record => $1, field => $2, after => $3, page_size => $4::bigint::int, newest_first => $5, identity => $6)",
    "r.seq"
);

/// A field as it stands.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/fields/{field}", operation_id = "getField", tag = "fields",
    params(FieldPath),
    responses((status = 200, body = Field)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND"]))),
)]
pub async fn get(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    Ok(server
        .database
        .one(GET, args![record, field, caller.identity])
        .await?
        .into())
}

/// A new value.
#[utoipa::path(
    put, path = "/v1/records/{class}/{key}/fields/{field}", operation_id = "writeField", tag = "fields",
    params(FieldPath, Idempotency),
    request_body = WriteField,
    responses((status = 200, body = WrittenField)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "VERSION_CONFLICT", "EVIDENCE_REQUIRED", "INVALID_VALUE", "INVALID_CHECKPOINT", "BUSY"]))),
)]
pub async fn write(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["value", "expected_version", "evidence", "claim_id"])?;
    let args = args![
        record,
        field,
        body.value("value")?,
        body.whole("expected_version")?,
        body.text("evidence")?,
        body.uuid("claim_id")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(WRITE, args).await?.into())
}

/// A new entry.
#[utoipa::path(
    post, path = "/v1/records/{class}/{key}/fields/{field}/entries", operation_id = "appendEntry", tag = "fields",
    params(FieldPath, Idempotency),
    request_body = AppendEntry,
    responses((status = 201, body = AppendedEntry)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "VERSION_CONFLICT", "EVIDENCE_REQUIRED", "INVALID_VALUE", "BUSY"]))),
)]
pub async fn append(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    asked.no_query()?;
    let body = asked.body(&["value", "evidence", "claim_id", "expected_version"])?;
    let args = args![
        record,
        field,
        body.value("value")?,
        body.text("evidence")?,
        body.uuid("claim_id")?,
        body.whole("expected_version")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(Answer::created(
        server.database.one(APPEND, args).await?.json,
    ))
}

/// The entries of an append field.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/fields/{field}/entries", operation_id = "listEntries", tag = "fields",
    params(FieldPath, EntryList),
    responses((status = 200, body = Entries)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn entries(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let (record, field) = asked.field()?;
    let query = asked.query(&["after", "page_size", "newest_first"])?;
    let (after, size, newest_first) = (
        query.whole("after")?,
        query.page_size()?,
        query.flag("newest_first", false)?,
    );
    let args = args![
        record.as_str(),
        field.as_str(),
        after,
        one_more(size),
        newest_first,
        caller.identity
    ];
    let lines = server.database.all(ENTRIES, args).await?;
    Ok(answer::list(
        &[("record", &record), ("field", &field)],
        "entries",
        lines,
        size,
    ))
}
