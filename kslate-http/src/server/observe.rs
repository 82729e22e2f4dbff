//! Around all routes: the request's id, one line in the log, the counters. Neither tokens nor bodies come here.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{HeaderName, HeaderValue, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::TookOver;
use super::drain::Lent;
use super::error::{internal_body, Refusal};
use super::Server;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The layer.
pub async fn observe(State(server): State<Server>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (id, header) = request_id(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);

    let (request, lent) = Lent::lend(request);
    let mut response = next.run(request).await;
    if let Some(lent) = lent {
        if !lent.finish(server.limits.body).await {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    let refusal = response.extensions_mut().remove::<Refusal>();
    let took_over = response.extensions_mut().remove::<TookOver>().is_some();
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        response = (StatusCode::INTERNAL_SERVER_ERROR, json, internal_body(&id)).into_response();
    }
    response.headers_mut().insert(REQUEST_ID, header);

    let status = response.status().as_u16();
    let took = started.elapsed();
    server.metrics.request(method.as_str(), route, status, took);
    count(&server, refusal.as_ref(), took_over);
    let ms = took.as_micros() as f64 / 1000.0;
    match refusal {
        Some(Refusal {
            name,
            cause: Some(cause),
            ..
        }) if status >= 500 => {
            tracing::error!(
                request_id = id,
                method = method.as_str(),
                route,
                status,
                ms,
                error = name,
                cause,
                "request"
            );
        }
        Some(Refusal { name, .. }) => tracing::info!(
            request_id = id,
            method = method.as_str(),
            route,
            status,
            ms,
            error = name,
            "request"
        ),
        None => tracing::info!(
            request_id = id,
            method = method.as_str(),
            route,
            status,
            ms,
            "request"
        ),
    }
    response
}

fn count(server: &Server, refusal: Option<&Refusal>, took_over: bool) {
    let metrics = &server.metrics;
    let counter = match refusal {
        None if took_over => &metrics.takeovers,
        Some(refusal) if refusal.name == "HELD" => &metrics.held_refusals,
        Some(refusal) if refusal.name == "LEASE_LOST" => &metrics.lease_lost,
        Some(refusal) if refusal.gate => &metrics.gate_refusals,
        _ => return,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The id that came with the request, if it is one that may stand in a log, else a new one.
fn request_id(headers: &HeaderMap) -> (String, HeaderValue) {
    if let Some(header) = headers.get(REQUEST_ID) {
        let sane = |id: &&str| {
            (1..=128).contains(&id.len())
                && id
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte))
        };
        if let Some(id) = header.to_str().ok().filter(sane) {
            return (id.to_owned(), header.clone());
        }
    }
    let id = new_id();
    // The alphabet is ASCII letters and digits.
    let header = HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"));
    (id, header)
}

/// Ten characters of time and six of a per-process hash of a counter, in Crockford's base 32: sorts by time, as a ULID does.
fn new_id() -> String {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    let hash = SEED.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
    let mut id = String::with_capacity(16);
    base32(millis, 10, &mut id);
    base32(hash, 6, &mut id);
    id
}

fn base32(number: u64, digits: u32, out: &mut String) {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for place in (0..digits).rev() {
        let digit = usize::try_from((number >> (5 * place)) & 31).unwrap_or(0);
        out.push(char::from(ALPHABET[digit]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let (first, second) = (new_id(), new_id());
        assert_ne!(first, second);
        assert_eq!(first.len(), 16);
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_static("trace-1"));
        assert_eq!(request_id(&headers).0, "trace-1");
        for bad in ["", "a b", "a\"b", "é"] {
            headers.insert(
                REQUEST_ID,
                HeaderValue::from_bytes(bad.as_bytes()).expect("a header"),
            );
            assert_ne!(request_id(&headers).0, bad);
        }
    }
}
