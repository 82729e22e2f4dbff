//! The whole map.

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::Router;

use super::error::Error;
use super::observe::observe;
use super::routes::{checkpoints, claims, classes, fields, history, records, service};
use super::Server;

/// All routes, one a line.
#[rustfmt::skip]
pub fn router(server: Server) -> Router {
    Router::new()
        .route("/healthz", get(service::health))
        .route("/readyz", get(service::ready))
        .route("/metrics", get(service::metrics))
        .route("/openapi.json", get(service::openapi))
        .route("/v1/whoami", get(service::whoami))
        .route("/v1/classes", get(classes::list))
        .route("/v1/classes/{class}", get(classes::show).put(classes::apply))
        .route("/v1/classes/{class}/claim", post(claims::claim_next))
        .route("/v1/records/{class}", get(records::list))
        .route("/v1/records/{class}/{key}", get(records::get).put(records::create).patch(records::write_many))
        .route("/v1/records/{class}/{key}/fields/{field}", get(fields::get).put(fields::write))
        .route("/v1/records/{class}/{key}/fields/{field}/entries", get(fields::entries).post(fields::append))
        .route("/v1/records/{class}/{key}/fields/{field}/claim", post(claims::claim))
        .route("/v1/records/{class}/{key}/fields/{field}/renew", post(claims::renew))
        .route("/v1/records/{class}/{key}/fields/{field}/release", post(claims::release))
        .route("/v1/records/{class}/{key}/fields/{field}/complete", post(claims::complete))
        .route("/v1/records/{class}/{key}/fields/{field}/reopen", post(claims::reopen))
        .route("/v1/records/{class}/{key}/fields/{field}/force-release", post(claims::force_release))
        .route("/v1/records/{class}/{key}/checkpoint", get(checkpoints::load).put(checkpoints::save))
        .route("/v1/records/{class}/{key}/checkpoints", get(checkpoints::list))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use axum::http::{Method, StatusCode};
    use http_body_util::BodyExt;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;
    use crate::server::connect::Target;
    use crate::server::db::Database;
    use crate::server::keys::Keys;
    use crate::server::openapi;
    use crate::server::Limits;

    /// A server whose database is not there, and which takes bodies of 100 bytes.
    fn server() -> Server {
        let target = Target::read("host=/nowhere user=nobody", true).expect("an address");
        Server {
            database: Database::new(target, 1).expect("a pool"),
            keys: Arc::new(Keys::of(
                "w1-token: remediator/worker-1\nops-token: { identity: ops, admin: true }\n",
            )),
            metrics: Arc::default(),
            claims_held: Arc::default(),
            limits: Limits { body: 100 },
        }
    }

    struct Seen {
        status: u16,
        allow: String,
        error: String,
        body: Value,
    }

    async fn ask(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Body::from(body.to_owned()))
            .expect("a request");
        let response = router(server()).oneshot(request).await.expect("an answer");
        assert!(
            response.headers().contains_key("x-request-id"),
            "{method} {path}"
        );
        let status = response.status();
        assert_eq!(
            response.headers().contains_key("www-authenticate"),
            status == StatusCode::UNAUTHORIZED,
            "{method} {path}"
        );
        assert_eq!(
            response.headers().contains_key("retry-after"),
            status == StatusCode::SERVICE_UNAVAILABLE,
            "{method} {path}"
        );
        let allow = response
            .headers()
            .get("allow")
            .map(|allow| allow.to_str().unwrap_or_default().to_owned())
            .unwrap_or_default();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        Seen {
            status: status.as_u16(),
            allow,
            error: body["error"].as_str().unwrap_or_default().to_owned(),
            body,
        }
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer w1-token");
    const ADMIN: (&str, &str) = ("authorization", "Bearer ops-token");
    const FIELD: &str = "/v1/records/incidents/inc-1/fields/status";

    #[tokio::test]
    async fn what_comes_first_is_answered() {
        let long = format!("{{\"value\":\"{}\"}}", "x".repeat(100));
        let text = ("content-type", "text/plain");
        for (method, path, headers, body, status, error) in [
            ("GET", "/nothing", &[][..], "", 404, "NOT_FOUND"),
            (
                "GET",
                "/v1/records/incidents/inc-1/resume",
                &[],
                "",
                404,
                "NOT_FOUND",
            ),
            (
                "GET",
                "/v1/records/incidents/",
                &[TOKEN],
                "",
                404,
                "NOT_FOUND",
            ),
            ("DELETE", FIELD, &[], "", 405, "METHOD_NOT_ALLOWED"),
            ("PUT", FIELD, &[text], &long, 401, "UNAUTHENTICATED"),
            (
                "PUT",
                FIELD,
                &[("authorization", "Bearer w9-token")],
                "",
                401,
                "UNAUTHENTICATED",
            ),
            (
                "PUT",
                FIELD,
                &[("authorization", "Basic dzE6")],
                "",
                401,
                "UNAUTHENTICATED",
            ),
            ("PUT", FIELD, &[TOKEN, ADMIN], "", 401, "UNAUTHENTICATED"),
            (
                "PUT",
                FIELD,
                &[TOKEN, text],
                &long,
                415,
                "UNSUPPORTED_MEDIA_TYPE",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("content-type", "application/json; charset=latin1")],
                "{}",
                415,
                "UNSUPPORTED_MEDIA_TYPE",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("content-encoding", "gzip")],
                "{}",
                415,
                "UNSUPPORTED_MEDIA_TYPE",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("content-type", "application/yaml")],
                "{}",
                415,
                "UNSUPPORTED_MEDIA_TYPE",
            ),
            ("PUT", FIELD, &[TOKEN], &long, 413, "PAYLOAD_TOO_LARGE"),
            ("PUT", FIELD, &[TOKEN], "[]", 400, "MALFORMED"),
            ("PUT", FIELD, &[TOKEN], "{}", 400, "MALFORMED"),
            (
                "PUT",
                FIELD,
                &[TOKEN],
                "{\"value\":1,\"lease\":2}",
                400,
                "MALFORMED",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("idempotency-key", "")],
                "{\"value\":1}",
                400,
                "MALFORMED",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("content-type", "application/json; charset=UTF-8")],
                "{\"value\":1}",
                503,
                "UNAVAILABLE",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN, ("content-type", "application/x-www-form-urlencoded")],
                "{\"value\":1}",
                503,
                "UNAVAILABLE",
            ),
            (
                "PUT",
                FIELD,
                &[TOKEN],
                "{\"value\":null}",
                503,
                "UNAVAILABLE",
            ),
            (
                "PUT",
                "/v1/classes/incidents",
                &[TOKEN],
                "{\"class\":",
                400,
                "MALFORMED",
            ),
            (
                "PUT",
                "/v1/classes/incidents",
                &[TOKEN],
                "{}",
                403,
                "SCOPE_DENIED",
            ),
            (
                "PUT",
                "/v1/classes/incidents",
                &[ADMIN, ("content-type", "application/yaml")],
                "class: x",
                503,
                "UNAVAILABLE",
            ),
            ("GET", "/v1/whoami?x=1", &[TOKEN], "", 400, "MALFORMED"),
            (
                "GET",
                "/v1/records/incidents/a%2Fb",
                &[TOKEN],
                "",
                400,
                "MALFORMED",
            ),
            (
                "GET",
                "/v1/records/incidents/a%00b",
                &[TOKEN],
                "",
                400,
                "MALFORMED",
            ),
            (
                "GET",
                "/v1/records/incidents/%ff",
                &[TOKEN],
                "",
                400,
                "MALFORMED",
            ),
            (
                "GET",
                "/v1/records/incidents/inc-1%2Fcheckpoint",
                &[TOKEN],
                "",
                400,
                "MALFORMED",
            ),
            (
                "GET",
                "/v1/records/incidents?filter=%7B%22a%22%3A1%2C%22a%22%3A2%7D",
                &[TOKEN],
                "",
                400,
                "MALFORMED",
            ),
            ("GET", "/v1/whoami", &[TOKEN], "", 503, "UNAVAILABLE"),
            ("GET", "/readyz", &[], "", 503, "UNAVAILABLE"),
            ("GET", "/healthz", &[], "", 200, ""),
        ] {
            let seen = ask(method, path, headers, body).await;
            assert_eq!(
                (seen.status, seen.error.as_str()),
                (status, error),
                "{method} {path} {headers:?} {body}: {}",
                seen.body
            );
        }
    }

    /// The paths of the map above, as they stand in this file.
    fn paths() -> Vec<&'static str> {
        let map = include_str!("router.rs")
            .split("#[cfg(test)]")
            .next()
            .unwrap_or_default();
        map.split('"').skip(1).step_by(2).collect()
    }

    #[tokio::test]
    async fn the_openapi_document_has_every_route_and_no_other() {
        let document = ask("GET", "/openapi.json", &[], "").await.body;
        let documented = document["paths"].as_object().expect("paths");
        assert_eq!(
            documented.keys().map(String::as_str).collect::<Vec<_>>(),
            paths()
        );
        for (path, methods) in documented {
            let mut methods: Vec<String> = methods
                .as_object()
                .expect("methods")
                .keys()
                .map(|method| method.to_uppercase())
                .collect();
            if methods.contains(&"GET".to_owned()) {
                methods.push("HEAD".to_owned());
            }
            methods.sort();
            let seen = ask(
                Method::DELETE.as_str(),
                &path.replace(['{', '}'], ""),
                &[],
                "",
            )
            .await;
            let mut allowed: Vec<&str> = seen.allow.split(',').collect();
            allowed.sort_unstable();
            assert_eq!(methods, allowed, "{path}");
        }
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_openapi_document_points_at_what_it_has() {
        let document: Value = serde_json::from_str(openapi::document()).expect("JSON");
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            if let Some(target) = value["$ref"].as_str() {
                assert!(
                    document.pointer(target.trim_start_matches('#')).is_some(),
                    "{target}"
                );
            }
            match value {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(elements) => open.extend(elements),
                _ => {}
            }
        }
    }
}
