//! What happened, and who is behind what stands there now.

use axum::extract::State;

use super::records::one_more;
use crate::server::answer::{self, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi::history::{Blame, History};
use crate::server::openapi::parameters::{BlameList, HistoryList, RecordPath};
use crate::server::Server;

const HISTORY: Call = call!(
    "kslate_history(record => $1, field => $2, after => $3, page_size => $4::bigint::int, newest_first => $5, with_values => $6, identity => $7)",
    "r.record_version"
);
const BLAME: Call = call!("kslate_blame(record => $1, field => $2, after => $3, identity => $4)");

/// The accepted changes of a record.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/history", operation_id = "history", tag = "history",
    params(RecordPath, HistoryList),
    responses((status = 200, body = History)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn history(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let query = asked.query(&["field", "after", "page_size", "newest_first", "with_values"])?;
    let size = query.page_size()?;
    let args = args![
        record.as_str(),
        query.text("field"),
        query.whole("after")?,
        one_more(size),
        query.flag("newest_first", false)?,
        query.flag("with_values", true)?,
        caller.identity
    ];
    let lines = server.database.all(HISTORY, args).await?;
    Ok(answer::list(&[("record", &record)], "history", lines, size))
}

/// Who last wrote what, and on what evidence.
#[utoipa::path(
    get, path = "/v1/records/{class}/{key}/blame", operation_id = "blame", tag = "history",
    params(RecordPath, BlameList),
    responses((status = 200, body = Blame)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "NOT_FOUND", "PAYLOAD_TOO_LARGE"]))),
)]
pub async fn blame(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let record = asked.record()?;
    let query = asked.query(&["field", "after"])?;
    let lines = server
        .database
        .all(
            BLAME,
            args![
                record.as_str(),
                query.text("field"),
                query.whole("after")?,
                caller.identity
            ],
        )
        .await?;
    Ok(answer::whole_list(&[("record", &record)], "blame", &lines))
}
