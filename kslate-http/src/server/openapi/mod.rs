//! The OpenAPI document, made of what stands above each handler and of the bodies described here.
//!
//! No handler builds these bodies: answers are the database's JSON, copied unread. That they are as described is what the
//! black-box tests are for. `kslate-http/openapi.json` is the document as it was last looked at; a test tells when it differs.

#![allow(
    dead_code,
    reason = "bodies are described here, and built in the database"
)]

mod rules;
mod words;

pub mod checkpoints;
pub mod claims;
pub mod classes;
pub mod fields;
pub mod history;
pub mod parameters;
pub mod records;
pub mod refusals;
pub mod service;

use std::sync::LazyLock;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::routes;

/// Every handler, in the router's order.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "kslate",
        description = "A shared, structured record for fleets of agents. Answers have exactly the keys shown; clients ignore keys that they do not know.",
    ),
    servers((url = "/")),
    security(("token" = [])),
    modifiers(&Token),
    paths(
        routes::service::health,
        routes::service::ready,
        routes::service::metrics,
        routes::service::openapi,
        routes::service::whoami,
        routes::classes::list,
        routes::classes::show,
        routes::classes::apply,
        routes::claims::claim_next,
        routes::records::list,
        routes::records::get,
        routes::records::create,
        routes::records::write_many,
        routes::fields::get,
        routes::fields::write,
        routes::fields::entries,
        routes::fields::append,
        routes::claims::claim,
        routes::claims::renew,
        routes::claims::release,
        routes::claims::complete,
        routes::claims::reopen,
        routes::claims::force_release,
        routes::checkpoints::load,
        routes::checkpoints::save,
        routes::checkpoints::list,
        routes::history::history,
        routes::history::blame,
    ),
    components(schemas(
        words::Key,
        refusals::Malformed,
        refusals::Unauthenticated,
        refusals::ScopeDenied,
        refusals::NotFound,
        refusals::UnsupportedMediaType,
        refusals::PayloadTooLarge,
        refusals::AlreadyExists,
        refusals::VersionConflict,
        refusals::Held,
        refusals::LeaseLost,
        refusals::AlreadyCompleted,
        refusals::NotCompleted,
        refusals::IdempotencyConflict,
        refusals::InvalidCheckpoint,
        refusals::InvalidValue,
        refusals::EvidenceRequired,
        refusals::InvalidClass,
        refusals::Busy,
        refusals::Unavailable,
        refusals::Timeout,
        refusals::Internal,
    )),
)]
struct Document;

struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key of the server's key file."))
            .build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The document, as `/openapi.json` serves it.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        // Strings, numbers and maps have no way to fail.
        let mut document = serde_json::to_value(Document::openapi()).unwrap_or_default();
        rules::apply(&mut document);
        let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text.push('\n');
        text
    });
    &DOCUMENT
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    /// `KSLATE_OPENAPI=write cargo test -p kslate-http openapi` writes it anew.
    #[test]
    fn the_document_is_the_one_checked_in() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
        if std::env::var("KSLATE_OPENAPI").as_deref() == Ok("write") {
            std::fs::write(&file, document()).expect("the checkout can be written to");
        }
        let kept = std::fs::read_to_string(&file).expect("openapi.json");
        let differs = kept
            .lines()
            .zip(document().lines())
            .find(|(kept, made)| kept != made);
        assert_eq!(
            differs, None,
            "openapi.json is not what the handlers say: KSLATE_OPENAPI=write cargo test -p kslate-http openapi"
        );
        assert_eq!(kept.len(), document().len());
    }

    /// What `docs/errors.md` says of an operation: its own row, and those that begin with "any".
    fn promised(page: &str, method: &str, path: &str, body: bool) -> BTreeSet<String> {
        let matrix = page
            .split("## Who can raise what")
            .nth(1)
            .unwrap_or_default();
        let short = path.replace("/v1/records/{class}/{key}/", "…/");
        let own = [format!("`{method} {path}`"), format!("`{method} {short}`")];
        let mut rows = 0;
        let mut errors = BTreeSet::new();
        for row in matrix.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, operation, _, http, names, _] = cells[..] else {
                panic!("{row}");
            };
            let is_own = own.iter().any(|own| own == http);
            let holds = match operation {
                "any route under /v1" => path.starts_with("/v1/"),
                "any route with a body" => body,
                "any route" => true,
                _ => is_own,
            };
            rows += usize::from(is_own);
            if holds {
                errors.extend(names.split_whitespace().map(str::to_owned));
            }
        }
        assert!(
            rows == 1 || !path.starts_with("/v1/"),
            "{method} {path} has {rows} rows in docs/errors.md"
        );
        // Of a method that is no operation's.
        errors.remove("METHOD_NOT_ALLOWED");
        errors
    }

    /// The errors of an operation in the document.
    fn documented(document: &Value, operation: &Value) -> BTreeSet<String> {
        let mut errors = BTreeSet::new();
        let mut open = vec![&operation["responses"]];
        while let Some(value) = open.pop() {
            if let Some(target) = value["$ref"].as_str() {
                let name = target.rsplit('/').next().unwrap_or_default();
                if target.contains("/schemas/") && rules::is_error(name) {
                    errors.insert(name.to_owned());
                } else if target.contains("/responses/") {
                    open.extend(document.pointer(target.trim_start_matches('#')));
                }
            }
            match value {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(elements) => open.extend(elements),
                _ => {}
            }
        }
        errors
    }

    #[test]
    fn each_operation_has_the_errors_of_the_page() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
        let page = std::fs::read_to_string(page).expect("docs/errors.md");
        let document: Value = serde_json::from_str(document()).expect("JSON");
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                let body = operation["requestBody"].is_object();
                let mut documented = documented(&document, operation);
                if !body {
                    // Not of what was sent: an answer beyond what the server holds in memory.
                    documented.remove("PAYLOAD_TOO_LARGE");
                }
                assert_eq!(
                    documented,
                    promised(&page, &method.to_uppercase(), path, body),
                    "{method} {path}"
                );
            }
        }
    }

    #[test]
    fn bodies_are_closed_and_have_their_examples_keys() {
        let document: Value = serde_json::from_str(document()).expect("JSON");
        let schemas = document["components"]["schemas"]
            .as_object()
            .expect("schemas");
        let mut examples = 0;
        for (name, schema) in schemas {
            let Some(properties) = schema["properties"].as_object() else {
                continue;
            };
            assert_eq!(schema["additionalProperties"], false, "{name}");
            let Some(example) = schema["example"].as_object() else {
                continue;
            };
            examples += 1;
            for key in example.keys() {
                assert!(properties.contains_key(key), "{name}: {key}");
            }
            for key in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    key.as_str().is_some_and(|key| example.contains_key(key)),
                    "{name}: {key}"
                );
            }
        }
        assert!(examples > 50, "{examples}");
    }
}
