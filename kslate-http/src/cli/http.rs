//! One request, one answer.

use std::time::Duration;

use percent_encoding::{utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use serde::de::DeserializeOwned;
use ureq::http::{Method, Request};
use ureq::Agent;

use super::exit::Failure;

const TIMEOUT: Duration = Duration::from_secs(30);
/// What RFC 3986 calls unreserved stays as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A server to talk to.
pub struct Http {
    agent: Agent,
    base: String,
    token: Option<String>,
}

/// A request in the making.
pub struct Ask {
    method: Method,
    path: String,
    query: Vec<String>,
    body: Option<(&'static str, String)>,
    idempotency_key: Option<String>,
}

impl Ask {
    fn new(method: Method, segments: &[&str]) -> Self {
        let path = segments
            .iter()
            .map(|segment| format!("/{}", escape(segment)))
            .collect();
        Self {
            method,
            path,
            query: Vec::new(),
            body: None,
            idempotency_key: None,
        }
    }

    /// To read.
    pub fn get(segments: &[&str]) -> Self {
        Self::new(Method::GET, segments)
    }

    /// To change, by PUT.
    pub fn put(segments: &[&str]) -> Self {
        Self::new(Method::PUT, segments)
    }

    /// To change, by POST.
    pub fn post(segments: &[&str]) -> Self {
        Self::new(Method::POST, segments)
    }

    /// A query parameter, if there is a value for it.
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.query
                .push(format!("{name}={}", escape(&value.to_string())));
        }
        self
    }

    /// A JSON body.
    pub fn json(mut self, body: String) -> Self {
        self.body = Some(("application/json", body));
        self
    }

    /// A YAML body.
    pub fn yaml(mut self, body: String) -> Self {
        self.body = Some(("application/yaml", body));
        self
    }

    /// Makes it safe to send again.
    pub fn idempotency_key(mut self, key: Option<&str>) -> Self {
        self.idempotency_key = key.map(str::to_owned);
        self
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

impl Http {
    /// For the server at `base`, with the key in `KSLATE_APIKEY`.
    pub fn new(base: &str) -> Result<Self, Failure> {
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Failure::Usage(format!(
                "--server {base}: an address such as http://127.0.0.1:8080 is wanted"
            )));
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .user_agent(concat!("kslate/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let token = std::env::var("KSLATE_APIKEY")
            .ok()
            .filter(|token| !token.is_empty());
        Ok(Self {
            agent,
            base: base.trim_end_matches('/').to_owned(),
            token,
        })
    }

    /// The body of a 2xx, as it came.
    pub fn ask(&self, ask: Ask) -> Result<String, Failure> {
        let mut url = format!("{}{}", self.base, ask.path);
        if !ask.query.is_empty() {
            url.push('?');
            url.push_str(&ask.query.join("&"));
        }
        let mut request = Request::builder().method(ask.method).uri(&url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(key) = &ask.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let unsent =
            |error: &dyn std::fmt::Display| Failure::Local(format!("{}: {error}", self.base));
        let answer = match ask.body {
            Some((kind, body)) => {
                let request = request
                    .header("content-type", kind)
                    .body(body)
                    .map_err(|error| unsent(&error))?;
                self.agent.run(request)
            }
            None => self
                .agent
                .run(request.body(()).map_err(|error| unsent(&error))?),
        };
        let mut answer = answer.map_err(|error| unsent(&error))?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_string()
            .map_err(|error| unsent(&error))?;
        match answer.status().as_u16() {
            200..=299 => Ok(body),
            _ if body.starts_with('{') => Err(Failure::Refused { body }),
            status => Err(Failure::Local(format!(
                "{} answered {status}; is it a kslate server?",
                self.base
            ))),
        }
    }
}

/// Reads an answer.
pub fn read<T: DeserializeOwned>(body: &str) -> Result<T, Failure> {
    serde_json::from_str(body)
        .map_err(|error| Failure::Local(format!("the server's answer cannot be read: {error}")))
}

/// `class/key`, taken apart.
pub fn record(name: &str) -> Result<(&str, &str), Failure> {
    name.split_once('/')
        .filter(|(class, key)| !class.is_empty() && !key.is_empty())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{name:?} is no record: a class and a key are wanted, such as incidents/inc-111"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped() {
        let ask = Ask::get(&["v1", "records", "a/b", "é ~x.y"])
            .query("filter", Some("{\"a\":1}"))
            .query("after", None::<u64>);
        assert_eq!(ask.path, "/v1/records/a%2Fb/%C3%A9%20~x.y");
        assert_eq!(ask.query, ["filter=%7B%22a%22%3A1%7D"]);
    }

    #[test]
    fn records() {
        assert!(record("incidents/inc-1").is_ok());
        for bad in ["incidents", "/x", "x/", ""] {
            assert!(record(bad).is_err(), "{bad}");
        }
    }
}
