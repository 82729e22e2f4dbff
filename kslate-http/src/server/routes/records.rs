//! Records: create, read, list, and several fields at once.

use axum::extract::State;

use crate::server::answer::{self, Answer, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi::parameters::{ClassPath, Fields, Idempotency, RecordList, RecordPath};
use crate::server::openapi::records::{
    CreateRecord, CreatedRecord, Record, Records, WriteMany, WrittenMany,
};
use crate::server::Server;

const CREATE: Call = call!("kslate_create(record => $1, fields => $2::text::jsonb, evidence => $3, idempotency_key => $4, identity => $5)", "r.created");
const GET: Call = call!("kslate_get(record => $1, fields => $2, identity => $3)");
const LIST: Call = call!(
    "kslate_list(class => $1, filter => $2::text::jsonb, fields => $3, after => $4, page_size => $5::bigint::int, identity => $6)",
    "to_json(r.record)"
);
const WRITE_MANY: Call = call!("kslate_write_many(record => $1, changes => $2::text::jsonb, claim_id => $3::text::uuid, idempotency_key => $4, identity => $5)");

/// A new record, or the one that is there.
#[utoipa::path(
    put, path = "/v1/records/{class}/{key}", operation_id = "createRecord", tag = "records",
    params(RecordPath, Idempotency),
    request_body = Option<CreateRecord>,
    responses((status = 201, body = CreatedRecord), (status = 200, description = "It exists already, and no first values were sent.", body = CreatedRecord)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "ALREADY_EXISTS", "EVIDENCE_REQUIRED", "INVALID_VALUE", "INVALID_CHECKPOINT", "BUSY"]))),
)]
pub async fn create(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    asked.no_query()?;
    let body = asked.body(&["fields", "evidence"])?;
    let args = args![
        record,
        body.object("fields")?,
        body.text("evidence")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    let line = server.database.one(CREATE, args).await?;
    let created = line.note.as_deref() == Some("true");
    Ok(if created {
        Answer::created(line.json)
    } else {
        line.into()
    })
}

/// A record as the caller may see it.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}", operation_id = "getRecord", tag = "records",
    params(RecordPath, Fields),
    responses((status = 200, body = Record)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn get(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let fields = asked.query(&["fields"])?.names("fields")?;
    Ok(server
        .database
        .one(GET, args![record, fields, caller.identity])
        .await?
        .into())
}

/// The records of a class.
#[utoipa::path(
    get, path = "/v1/records/{class}", operation_id = "listRecords", tag = "records",
    params(ClassPath, RecordList),
    responses((status = 200, body = Records)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn list(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let class = asked.class()?;
    let query = asked.query(&["filter", "fields", "after", "page_size"])?;
    let (filter, fields, after, size) = (
        query.object("filter")?,
        query.names("fields")?,
        query.text("after"),
        query.page_size()?,
    );
    let lines = server
        .database
        .all(
            LIST,
            args![
                class,
                filter,
                fields,
                after,
                one_more(size),
                caller.identity
            ],
        )
        .await?;
    Ok(answer::list(&[], "records", lines, size))
}

/// Several fields, all or nothing.
#[utoipa::path(
    patch, path = "/v1/records/{class}/{key}", operation_id = "writeMany", tag = "records",
    params(RecordPath, Idempotency),
    request_body = WriteMany,
    responses((status = 200, body = WrittenMany)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "LEASE_LOST", "VERSION_CONFLICT", "EVIDENCE_REQUIRED", "INVALID_VALUE", "INVALID_CHECKPOINT", "BUSY"]))),
)]
pub async fn write_many(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    asked.no_query()?;
    let body = asked.body(&["changes", "claim_id"])?;
    let args = args![
        record,
        body.needed_array("changes")?,
        body.uuid("claim_id")?,
        asked.idempotency_key()?,
        caller.identity
    ];
    Ok(server.database.one(WRITE_MANY, args).await?.into())
}

/// Rows to ask for: one more than a page tells whether there is another.
pub fn one_more(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX).saturating_add(1)
}
