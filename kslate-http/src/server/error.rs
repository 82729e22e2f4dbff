//! Every refusal, as the wire wants it: a status, a body of known keys in a known order, the headers that go with it.
//!
//! Most come from the database with their body ready (DETAIL). What is built here is what the shim itself finds.

use axum::http::header::{HeaderValue, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::json::Fault;

/// A refusal.
#[derive(Debug)]
pub struct Error {
    /// Name of the error on the wire, such as `HELD`.
    pub name: &'static str,
    status: StatusCode,
    body: String,
    retry_after: Option<u64>,
    /// What happened, for the log alone.
    cause: Option<String>,
    /// The gate's refusals are counted apart from other invalid checkpoints.
    gate: bool,
}

/// What the layer around all routes is told about a refusal beside the response itself.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Name of the error on the wire.
    pub name: &'static str,
    /// For the log.
    pub cause: Option<String>,
    /// Refused by the gate.
    pub gate: bool,
}

/// The names of errors and their statuses (docs/errors.md).
pub const STATUS: &[(&str, StatusCode)] = &[
    ("MALFORMED", StatusCode::BAD_REQUEST),
    ("UNAUTHENTICATED", StatusCode::UNAUTHORIZED),
    ("SCOPE_DENIED", StatusCode::FORBIDDEN),
    ("NOT_FOUND", StatusCode::NOT_FOUND),
    ("METHOD_NOT_ALLOWED", StatusCode::METHOD_NOT_ALLOWED),
    ("UNSUPPORTED_MEDIA_TYPE", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ("PAYLOAD_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE),
    ("ALREADY_EXISTS", StatusCode::CONFLICT),
    ("VERSION_CONFLICT", StatusCode::CONFLICT),
    ("HELD", StatusCode::CONFLICT),
    ("LEASE_LOST", StatusCode::CONFLICT),
    ("COMPLETED", StatusCode::CONFLICT),
    ("NOT_COMPLETED", StatusCode::CONFLICT),
    ("IDEMPOTENCY_CONFLICT", StatusCode::CONFLICT),
    ("IMMUTABLE", StatusCode::CONFLICT),
    ("INVALID_CHECKPOINT", StatusCode::UNPROCESSABLE_ENTITY),
    ("INVALID_VALUE", StatusCode::UNPROCESSABLE_ENTITY),
    ("EVIDENCE_REQUIRED", StatusCode::UNPROCESSABLE_ENTITY),
    ("INVALID_CLASS", StatusCode::UNPROCESSABLE_ENTITY),
    ("BUSY", StatusCode::SERVICE_UNAVAILABLE),
    ("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE),
    ("TIMEOUT", StatusCode::GATEWAY_TIMEOUT),
];

const BUSY: &str =
    "the record is locked by another change; nothing was changed, send the same request again";
const TIMEOUT: &str = "no answer within 10 s; whether the change was made is unknown, send the same request with the same Idempotency-Key";
const INTERNAL: &str = "unexpected error; whether the change was made is unknown";

/// A body of the shim's own; the order is the wire's.
#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_one_of: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roles_held: Option<[&'a str; 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl<'a> Body<'a> {
    fn new(error: &'a str, message: &'a str) -> Self {
        Self {
            error,
            message,
            path: None,
            needs_one_of: None,
            roles_held: None,
            retry_after_seconds: None,
            request_id: None,
        }
    }

    fn text(&self) -> String {
        // A struct of strings and numbers has no way to fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What the shim reads of a DETAIL; all else in it is copied unread.
#[derive(Deserialize)]
struct Detail {
    error: String,
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    retry_after_seconds: Option<u64>,
}

impl Error {
    fn new(name: &'static str, status: StatusCode, body: &Body<'_>) -> Self {
        Self {
            name,
            status,
            body: body.text(),
            retry_after: body.retry_after_seconds,
            cause: None,
            gate: false,
        }
    }

    fn plain(name: &'static str, status: StatusCode, message: &str) -> Self {
        Self::new(name, status, &Body::new(name, message))
    }

    fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// 400, about the path, a query parameter or a header.
    pub fn malformed(message: impl AsRef<str>) -> Self {
        Self::plain("MALFORMED", StatusCode::BAD_REQUEST, message.as_ref())
    }

    /// 400, about a place in the body.
    pub fn malformed_at(path: &str, message: impl AsRef<str>) -> Self {
        Self::new(
            "MALFORMED",
            StatusCode::BAD_REQUEST,
            &Body {
                path: Some(path),
                ..Body::new("MALFORMED", message.as_ref())
            },
        )
    }

    /// 401. Says nothing of whether the token was missing, misspelt or unknown.
    pub fn unauthenticated() -> Self {
        Self::plain(
            "UNAUTHENTICATED",
            StatusCode::UNAUTHORIZED,
            "send a known API key as Authorization: Bearer <token>",
        )
    }

    /// 403 for a token that is not an admin's.
    pub fn needs_admin() -> Self {
        let message = "applying a class needs a token with admin: true in the server's key file";
        let body = Body {
            needs_one_of: Some(["admin"]),
            roles_held: Some([]),
            ..Body::new("SCOPE_DENIED", message)
        };
        Self::new("SCOPE_DENIED", StatusCode::FORBIDDEN, &body)
    }

    /// 404 for a path that no route has.
    pub fn no_route(path: &str) -> Self {
        let path = shorten(path);
        let message = format!("there is nothing at {path}; the routes are in /openapi.json");
        Self::plain("NOT_FOUND", StatusCode::NOT_FOUND, &message)
    }

    /// 405; the router adds `Allow`.
    pub fn method_not_allowed(method: &str) -> Self {
        let message = format!("{method} is not possible here; the Allow header has what is");
        Self::plain(
            "METHOD_NOT_ALLOWED",
            StatusCode::METHOD_NOT_ALLOWED,
            &message,
        )
    }

    /// 415; `accepted` is what may be sent.
    pub fn media_type(accepted: &str) -> Self {
        let message =
            format!("send the body as {accepted}, in UTF-8 and without a content encoding");
        Self::plain(
            "UNSUPPORTED_MEDIA_TYPE",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &message,
        )
    }

    /// 413 for a body over the limit.
    pub fn body_too_large(limit: usize) -> Self {
        let message = format!("the body is larger than the {limit} bytes that this server takes: send less at a time, or raise KSLATE_MAX_BODY");
        Self::plain("PAYLOAD_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE, &message)
    }

    /// 503: nothing has been sent to the database.
    pub fn unreached(cause: impl Into<String>) -> Self {
        Self::unavailable(
            "the database cannot be reached now; nothing was changed, send the same request again",
        )
        .because(cause)
    }

    /// 503: all connections to the database are in use.
    pub fn crowded(cause: impl Into<String>) -> Self {
        Self::unavailable("the server is at work on as much as it can; nothing was changed, send the same request again")
            .because(cause)
    }

    /// 503: the database was lost with the request under way.
    pub fn lost(cause: impl Into<String>) -> Self {
        Self::unavailable(
            "the database was lost during the request; whether the change was made is unknown, \
             send the same request with the same Idempotency-Key",
        )
        .because(cause)
    }

    /// 503: the database answers, and cannot do this.
    pub fn refused_by_database(cause: impl Into<String>) -> Self {
        Self::unavailable(
            "the database cannot take this now; nothing was changed, send the same request again",
        )
        .because(cause)
    }

    fn unavailable(message: &str) -> Self {
        let body = Body {
            retry_after_seconds: Some(1),
            ..Body::new("UNAVAILABLE", message)
        };
        Self::new("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, &body)
    }

    /// 503: a lock wait ran out.
    pub fn busy(cause: impl Into<String>) -> Self {
        let body = Body {
            retry_after_seconds: Some(1),
            ..Body::new("BUSY", BUSY)
        };
        Self::new("BUSY", StatusCode::SERVICE_UNAVAILABLE, &body).because(cause)
    }

    /// 504.
    pub fn timeout(cause: impl Into<String>) -> Self {
        Self::plain("TIMEOUT", StatusCode::GATEWAY_TIMEOUT, TIMEOUT).because(cause)
    }

    /// 413, found by the database.
    pub fn value_too_large() -> Self {
        Self::plain(
            "PAYLOAD_TOO_LARGE",
            StatusCode::PAYLOAD_TOO_LARGE,
            "a value of the request is larger than the database takes; nothing was changed: store it elsewhere and point to it",
        )
    }

    /// 413, of what was asked for.
    pub fn answer_too_large() -> Self {
        Self::plain(
            "PAYLOAD_TOO_LARGE",
            StatusCode::PAYLOAD_TOO_LARGE,
            "the answer would be larger than 64 MiB: ask for less, with page_size, fields or field where the route has them",
        )
    }

    /// 500. The body is completed with the request's id where that is known: [`internal_body`].
    pub fn internal(cause: impl Into<String>) -> Self {
        Self::plain("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR, INTERNAL).because(cause)
    }

    /// The refusal whose whole body is the DETAIL of a database error; None if it is no such DETAIL.
    pub fn from_detail(detail: &str) -> Option<Self> {
        if !detail.starts_with("{\"error\":") {
            return None;
        }
        let read: Detail = serde_json::from_str(detail).ok()?;
        let (name, status) = STATUS.iter().find(|(name, _)| *name == read.error)?;
        // These three tell when to come back, and it is a header too.
        let retry_after = matches!(*name, "HELD" | "BUSY" | "UNAVAILABLE")
            .then(|| read.retry_after_seconds.unwrap_or(1).max(1));
        let gate = *name == "INVALID_CHECKPOINT" && read.field.is_some();
        Some(Self {
            name,
            status: *status,
            body: detail.to_owned(),
            retry_after,
            cause: None,
            gate,
        })
    }

    /// The status it is answered with.
    #[cfg(test)]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body it is answered with.
    #[cfg(test)]
    pub fn body(&self) -> &str {
        &self.body
    }
}

/// Body of a 500, with the id under which the log has the cause.
pub fn internal_body(request_id: &str) -> String {
    Body {
        request_id: Some(request_id),
        ..Body::new("INTERNAL", INTERNAL)
    }
    .text()
}

/// What was sent, as far as it helps to see it again.
pub fn shorten(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(80).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::malformed_at(&fault.path, fault.message)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = (
            self.status,
            [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            self.body,
        )
            .into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Refusal {
            name: self.name,
            cause: self.cause,
            gate: self.gate,
        });
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_the_body() {
        let detail = r#"{"error":"HELD","field":"remediation","message":"held","record":"incidents/inc-1","owner":"apikey:a","expires_at":"x","retry_after_seconds":0}"#;
        let response = Error::from_detail(detail)
            .expect("a DETAIL")
            .into_response();
        assert_eq!(response.status(), StatusCode::CONFLICT);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let gate = Error::from_detail(
            r#"{"error":"INVALID_CHECKPOINT","field":"status","message":"m","record":"r"}"#,
        )
        .expect("a DETAIL");
        assert!(gate.gate && gate.status() == StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn what_is_no_detail_of_ours_is_not_copied() {
        for detail in [
            "",
            "Key (record)=(x) already exists.",
            r#"{"error":"INTERNAL","message":"m"}"#,
            r#"{"error":"MADE_UP","message":"m"}"#,
            "{\"error\":\"HELD\",\"message\":\"m\"}\n   0: backtrace",
        ] {
            assert!(Error::from_detail(detail).is_none(), "{detail}");
        }
    }

    #[test]
    fn bodies_of_the_wire() {
        assert_eq!(
            Error::malformed_at(
                "/lease",
                "unknown key \"lease\" in the body; known: lease_seconds, reattach"
            )
            .body(),
            r#"{"error":"MALFORMED","message":"unknown key \"lease\" in the body; known: lease_seconds, reattach","path":"/lease"}"#
        );
        assert_eq!(
            Error::unauthenticated().body(),
            r#"{"error":"UNAUTHENTICATED","message":"send a known API key as Authorization: Bearer <token>"}"#
        );
        assert_eq!(
            Error::busy("").body(),
            r#"{"error":"BUSY","message":"the record is locked by another change; nothing was changed, send the same request again","retry_after_seconds":1}"#
        );
        assert_eq!(
            internal_body("01JDV1X3S8"),
            r#"{"error":"INTERNAL","message":"unexpected error; whether the change was made is unknown","request_id":"01JDV1X3S8"}"#
        );
    }
}
