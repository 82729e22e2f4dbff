//! The whole map.

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::Router;

use super::error::Error;
use super::observe::observe;
use super::routes::{checkpoints, claims, classes, fields, history, records, service};
use super::Server;

/// All routes of SPEC §7.
pub fn router(server: Server) -> Router {
    Router::new()
        .route("/healthz", get(service::health))
        .route("/readyz", get(service::ready))
        .route("/metrics", get(service::metrics))
        .route("/v1/whoami", get(service::whoami))
        .route("/v1/classes", get(classes::list))
        .route(
            "/v1/classes/{class}",
            get(classes::show).put(classes::apply),
        )
        .route("/v1/classes/{class}/claim", post(claims::claim_next))
        .route("/v1/records/{class}", get(records::list))
        .route(
            "/v1/records/{class}/{key}",
            get(records::get)
                .put(records::create)
                .patch(records::write_many),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}",
            get(fields::get).put(fields::write),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/entries",
            get(fields::entries).post(fields::append),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/claim",
            post(claims::claim),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/renew",
            post(claims::renew),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/release",
            post(claims::release),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/complete",
            post(claims::complete),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/reopen",
            post(claims::reopen),
        )
        .route(
            "/v1/records/{class}/{key}/fields/{field}/force-release",
            post(claims::force_release),
        )
        .route(
            "/v1/records/{class}/{key}/checkpoint",
            get(checkpoints::load).put(checkpoints::save),
        )
        .route(
            "/v1/records/{class}/{key}/checkpoints",
            get(checkpoints::list),
        )
        .route("/v1/records/{class}/{key}/history", get(history::history))
        .route("/v1/records/{class}/{key}/blame", get(history::blame))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(server.clone(), observe))
        .with_state(server)
}

async fn no_route(request: Request) -> Error {
    Error::no_route(request.uri().path())
}

async fn no_method(request: Request) -> Error {
    Error::method_not_allowed(request.method().as_str())
}
