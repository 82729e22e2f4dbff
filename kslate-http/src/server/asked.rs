//! What a request asks for: path, query, headers and body, checked as far as that can be done without the database.
//!
//! The extractor only collects, and refuses what comes before all else (media type, size). What is malformed comes out when
//! a handler asks for it, so that the order of checks is the same on every route (docs/errors.md, "Which comes first").

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body as Stream;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode_str;

use super::body::Body;
use super::error::{shorten, Error};
use super::query::Query;
use super::Server;

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request, its body read.
pub struct Asked {
    parts: Parts,
    path: Vec<(String, String)>,
    path_is_utf8: bool,
    body: Bytes,
    yaml: bool,
}

impl FromRequest<Server> for Asked {
    type Rejection = Error;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Error> {
        let (mut parts, stream) = request.into_parts();
        let (path, path_is_utf8) = match RawPathParams::from_request_parts(&mut parts, server).await
        {
            Ok(path) => (
                path.iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                true,
            ),
            Err(_) => (Vec::new(), false),
        };
        if matches!(parts.method, Method::GET | Method::HEAD) {
            return Ok(Self {
                parts,
                path,
                path_is_utf8,
                body: Bytes::new(),
                yaml: false,
            });
        }
        // Class definitions are the only bodies at a path with a class and nothing behind it.
        let yaml = media_type(
            &parts.headers,
            parts.uri.path().starts_with("/v1/classes/") && parts.method == Method::PUT,
        )?;
        let body = read(stream, &parts.headers, server.limits.body).await?;
        Ok(Self {
            parts,
            path,
            path_is_utf8,
            body,
            yaml,
        })
    }
}

/// Whether the body is YAML; it is JSON otherwise.
fn media_type(headers: &HeaderMap, yaml_too: bool) -> Result<bool, Error> {
    let accepted = if yaml_too {
        "application/json or application/yaml"
    } else {
        "application/json"
    };
    let refused = || Error::media_type(accepted);
    if headers.contains_key(CONTENT_ENCODING) || headers.get_all(CONTENT_TYPE).iter().count() > 1 {
        return Err(refused());
    }
    let Some(sent) = headers.get(CONTENT_TYPE) else {
        return Ok(false);
    };
    let sent = sent.to_str().map_err(|_| refused())?;
    let mut parts = sent.split(';').map(|part| part.trim().to_ascii_lowercase());
    let essence = parts.next().unwrap_or_default();
    for parameter in parts {
        if let Some(charset) = parameter.strip_prefix("charset=") {
            if !matches!(charset.trim_matches('"'), "utf-8" | "utf8") {
                return Err(refused());
            }
        }
    }
    match essence.as_str() {
        "application/json" | "application/x-www-form-urlencoded" => Ok(false),
        "application/yaml" if yaml_too => Ok(true),
        _ => Err(refused()),
    }
}

async fn read(stream: Stream, headers: &HeaderMap, limit: usize) -> Result<Bytes, Error> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Error::body_too_large(limit));
    }
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(stream, limit).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Error::body_too_large(limit)),
        Ok(Err(error)) => Err(Error::malformed_at(
            "",
            format!("the body could not be read: {error}"),
        )),
        Err(_) => Err(Error::malformed_at(
            "",
            "the body did not arrive within 10 s; nothing was changed",
        )),
    }
}

impl Asked {
    fn segment(&self, name: &str) -> Result<&str, Error> {
        if !self.path_is_utf8 {
            return Err(Error::malformed("the path is not UTF-8"));
        }
        let value = self
            .path
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default();
        // Whether a name is good is the database's to say; here it only must not turn into two, or be cut short.
        if value.is_empty() || value.contains('/') || value.chars().any(char::is_control) {
            return Err(Error::malformed(format!("{:?} is no name of a {name}: names in a path have neither slashes nor control characters", shorten(value))));
        }
        Ok(value)
    }

    /// The class in the path.
    pub fn class(&self) -> Result<&str, Error> {
        self.segment("class")
    }

    /// The record in the path, `class/key`.
    pub fn record(&self) -> Result<String, Error> {
        Ok(format!(
            "{}/{}",
            self.segment("class")?,
            self.segment("key")?
        ))
    }

    /// The record and the field in the path.
    pub fn field(&self) -> Result<(String, String), Error> {
        Ok((self.record()?, self.segment("field")?.to_owned()))
    }

    /// The query, of no other parameters than `known`.
    pub fn query(&self, known: &'static [&'static str]) -> Result<Query, Error> {
        Query::read(self.parts.uri.query().unwrap_or_default(), known)
    }

    /// For routes without parameters.
    pub fn no_query(&self) -> Result<(), Error> {
        self.query(&[]).map(|_| ())
    }

    /// The body, of no other keys than `known`.
    pub fn body(&self, known: &'static [&'static str]) -> Result<Body<'_>, Error> {
        Body::read(self.text()?, known)
    }

    /// The body as text, and whether it was sent as YAML.
    pub fn source(&self) -> Result<(&str, bool), Error> {
        Ok((self.text()?, self.yaml))
    }

    fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.body).map_err(|error| {
            Error::malformed_at(
                "",
                format!(
                    "the body is not UTF-8, from byte {} on",
                    error.valid_up_to()
                ),
            )
        })
    }

    /// The `Idempotency-Key`, 1 to 128 printable ASCII characters.
    pub fn idempotency_key(&self) -> Result<Option<String>, Error> {
        let mut sent = self.parts.headers.get_all("idempotency-key").iter();
        let Some(key) = sent.next() else {
            return Ok(None);
        };
        let good = (1..=128).contains(&key.len())
            && key
                .as_bytes()
                .iter()
                .all(|byte| (b' '..=b'~').contains(byte));
        match key.to_str() {
            Ok(key) if good && sent.next().is_none() => Ok(Some(key.to_owned())),
            _ => Err(Error::malformed(
                "Idempotency-Key must be there once, with 1 to 128 printable ASCII characters",
            )),
        }
    }
}

/// Undoes percent-encoding; None if what comes out is not UTF-8, or holds a NUL that no text in the database can.
pub fn decode(encoded: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(encoded)
        .decode_utf8()
        .ok()
        .filter(|decoded| !decoded.contains('\0'))
}
