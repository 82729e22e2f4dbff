//! Of the server itself.

use axum::extract::State;
use axum::http::header::{HeaderValue, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::server::answer::{Answer, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::identity::Caller;
use crate::server::openapi;
use crate::server::openapi::service::{Health, Ready, Whoami};
use crate::server::Server;

/// A call that reads, as every other is: it is refused where extension, library and storage do not fit.
const READY: Call = Call {
    sql: "SELECT row_to_json(r)::text, (SELECT count(*)::text FROM {kslate}.kslate_class_list()) \
          FROM (SELECT 'ready' AS status, {kslate}.kslate_version() AS version, \
          (SELECT max(s.version) FROM kslate.storage s) AS storage_version, pg_catalog.pg_is_in_recovery() AS read_only) r",
};
const WHOAMI: Call = call!("kslate_whoami(identity => $1)", "r.roles");

/// Alive, whatever the database is.
#[utoipa::path(
    get, path = "/healthz", operation_id = "health", tag = "service",
    security(()),
    responses((status = 200, body = Health)),
)]
pub async fn health() -> Answer {
    Answer::ok(r#"{"status":"ok"}"#)
}

/// Able to work: the database answers, with extension and storage in place.
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready", tag = "service",
    security(()),
    responses((status = 200, body = Ready)),
    extensions(("x-errors" = json!(["UNAVAILABLE", "TIMEOUT"]))),
)]
pub async fn ready(State(server): State<Server>) -> Answered {
    Ok(server.database.one(READY, Vec::new()).await?.into())
}

/// Every route, for programs.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "service",
    security(()),
    responses((status = 200, body = serde_json::Value)),
)]
pub async fn openapi() -> Answer {
    Answer::ok(openapi::document())
}

/// For Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "service",
    security(()),
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub async fn metrics(State(server): State<Server>) -> Response {
    let claims_held = server.claims_held.ask(&server.database).await;
    let text = server.metrics.text(server.database.status(), claims_held);
    (
        [(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
        )],
        text,
    )
        .into_response()
}

/// Who the caller is, and as what. `admin` is the one thing here that the database does not know.
#[utoipa::path(
    get, path = "/v1/whoami", operation_id = "whoami", tag = "service",
    responses((status = 200, body = Whoami)),
)]
pub async fn whoami(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    asked.no_query()?;
    let line = server
        .database
        .one(WHOAMI, args![caller.identity.as_str()])
        .await?;
    let identity = serde_json::Value::from(caller.identity);
    let roles = line.note.as_deref().unwrap_or("{}");
    Ok(Answer::ok(format!(
        "{{\"identity\":{identity},\"admin\":{},\"roles\":{roles}}}",
        caller.admin
    )))
}
