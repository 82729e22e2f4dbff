//! Bodies that nobody read.
//!
//! A request is often refused before its body has arrived. Were the connection closed then, the client would be cut off in
//! the middle of sending, and could lose the answer, or find the connection gone at its next request. So the rest is read and
//! thrown away, within bounds, and where that is too much the answer says `Connection: close`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// The client is given this long to finish sending.
const PATIENCE: Duration = Duration::from_secs(1);

/// The body of a request, of which a hold is kept while a handler reads it.
#[derive(Clone)]
pub struct Lent(Arc<Mutex<Body>>);

impl Lent {
    /// Lends the body of `request`, if it has one.
    pub fn lend(request: Request) -> (Request, Option<Self>) {
        // Who waits to be asked for a body is not asked for it by a refusal.
        if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
            return (request, None);
        }
        let (parts, body) = request.into_parts();
        let lent = Self(Arc::new(Mutex::new(body)));
        (
            Request::from_parts(parts, Body::new(lent.clone())),
            Some(lent),
        )
    }

    /// Reads what is left, `limit` bytes of it at most; false if that was not all.
    pub async fn finish(mut self, limit: usize) -> bool {
        if self.is_end_stream() {
            return true;
        }
        let rest = async {
            let mut left = limit;
            while let Some(frame) = self.frame().await {
                let Ok(frame) = frame else { return false };
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(still) = left.checked_sub(length) else {
                    return false;
                };
                left = still;
            }
            true
        };
        tokio::time::timeout(PATIENCE, rest).await.unwrap_or(false)
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: Body) -> Request {
        Request::builder().body(body).expect("a request")
    }

    #[tokio::test]
    async fn the_rest_is_read_within_bounds() {
        assert!(Lent::lend(request(Body::empty())).1.is_none());

        let (untouched, lent) = Lent::lend(request(Body::from("0123456789")));
        drop(untouched);
        assert!(lent.expect("a body").finish(10).await);

        let (untouched, lent) = Lent::lend(request(Body::from("0123456789")));
        drop(untouched);
        assert!(!lent.expect("a body").finish(9).await);

        let (read, lent) = Lent::lend(request(Body::from("0123456789")));
        assert_eq!(
            read.into_body().collect().await.expect("a body").to_bytes(),
            "0123456789"
        );
        assert!(lent.expect("a body").finish(0).await);
    }
}
