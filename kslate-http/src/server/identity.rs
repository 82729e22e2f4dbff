//! Who is calling: an extractor, so that a handler's signature shows that its callers are known.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::error::Error;
use super::Server;

/// A caller whose token is in the key file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `apikey:<name>`.
    pub identity: String,
    /// May apply classes.
    pub admin: bool,
}

impl FromRequestParts<Server> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Error> {
        let mut sent = parts.headers.get_all(AUTHORIZATION).iter();
        let (Some(header), None) = (sent.next(), sent.next()) else {
            return Err(Error::unauthenticated());
        };
        let token = header
            .to_str()
            .ok()
            .and_then(bearer)
            .ok_or_else(Error::unauthenticated)?;
        server.keys.caller(token).ok_or_else(Error::unauthenticated)
    }
}

/// The token in `Bearer <token>`.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer() {
        assert_eq!(bearer("Bearer w1-token"), Some("w1-token"));
        assert_eq!(bearer("bearer  w1-token "), Some("w1-token"));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic dzE6",
            "w1-token",
            "Bearerw1-token x",
        ] {
            assert_eq!(bearer(bad), None, "{bad}");
        }
    }
}
