//! What holds for all operations and bodies (docs/http.md), said once instead of above each of them.

use serde_json::{json, Map, Value};

use crate::server::error::STATUS;

/// Names of the refusals that a handler's own list adds to those of every route; taken out of the document again.
const OWN: &str = "x-errors";
/// In a definition are the keys that its author wrote and those with defaults, unlike in all other answers; null is no value there.
const PARTLY: [&str; 7] = [
    "Definition",
    "FieldDefinition",
    "CheckpointRules",
    "WrittenDefinition",
    "WrittenFieldDefinition",
    "WrittenLease",
    "WrittenCheckpointRules",
];

/// Applies them all.
pub fn apply(document: &mut Value) {
    if let Some(license) = document.pointer_mut("/info/license") {
        *license = json!({"name": "Apache-2.0", "identifier": "Apache-2.0"});
    }
    refusals(document);
    components(document);
    let answers = reachable(document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        for (name, schema) in schemas.iter_mut() {
            if is_error(name) {
                schema["properties"]["error"] = json!({"const": name});
                never_null(schema);
            } else if answers.contains(name) && !PARTLY.contains(&name.as_str()) {
                every_key_is_there(schema);
            } else if PARTLY.contains(&name.as_str()) {
                never_null(schema);
            }
            close(schema);
        }
    }
}

/// The errors of operations in the order of docs/errors.md, with their statuses. The database has no way to say INTERNAL; only somebody's
/// own trigger on the tables makes an operation IMMUTABLE, and what has no such method is no operation.
fn errors() -> impl Iterator<Item = (&'static str, u16)> {
    let told = STATUS.iter().map(|(name, status)| (*name, status.as_u16()));
    told.filter(|(name, _)| !matches!(*name, "IMMUTABLE" | "METHOD_NOT_ALLOWED"))
        .chain([("INTERNAL", 500)])
}

/// Whether a schema of this name is a refusal's.
pub fn is_error(name: &str) -> bool {
    errors().any(|(found, _)| found == name)
}

fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    let paths = document["paths"].as_object_mut();
    paths.into_iter().flatten().flat_map(|(path, methods)| {
        let methods = methods.as_object_mut();
        methods
            .into_iter()
            .flatten()
            .map(move |(_, operation)| (path, operation))
    })
}

/// Writes each operation's refusals as responses, one a status, each with its headers.
fn refusals(document: &mut Value) {
    for (path, operation) in operations(document) {
        let Some(operation) = operation.as_object_mut() else {
            continue;
        };
        let own = operation.shift_remove(OWN).unwrap_or_default();
        let mut names: Vec<String> = own
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let mut add = |more: &[&str]| names.extend(more.iter().map(|name| (*name).to_owned()));
        if path.starts_with("/v1/") {
            add(&["MALFORMED", "UNAUTHENTICATED", "UNAVAILABLE", "TIMEOUT"]);
        }
        if operation.contains_key("requestBody") {
            add(&["UNSUPPORTED_MEDIA_TYPE", "PAYLOAD_TOO_LARGE"]);
        }
        add(&["INTERNAL"]);
        // An Option is what may be left out, and not null either.
        for parameter in operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            without_null(&mut parameter["schema"]);
        }
        if let Some(body) = operation
            .get_mut("requestBody")
            .and_then(|body| body.pointer_mut("/content/application~1json/schema"))
        {
            without_null(body);
        }
        let Some(Value::Object(responses)) = operation.get_mut("responses") else {
            continue;
        };
        for response in responses.values_mut() {
            if response["description"].as_str().is_none_or(str::is_empty) {
                response["description"] = json!("Done.");
            }
            response["headers"] =
                json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
        }
        // In the order of the table, whatever the order of the lists.
        let mut statuses: Vec<(u16, Vec<&str>)> = Vec::new();
        for (name, status) in errors().filter(|(name, _)| names.iter().any(|found| found == name)) {
            match statuses.iter_mut().find(|(seen, _)| *seen == status) {
                Some((_, names)) => names.push(name),
                None => statuses.push((status, vec![name])),
            }
        }
        for (status, names) in statuses {
            responses.insert(status.to_string(), refusal(&names));
        }
        responses.sort_keys();
    }
}

/// A refusal that stands alone is a component; for several of one status, `error` tells which it is.
fn refusal(names: &[&str]) -> Value {
    if let [name] = names {
        return json!({"$ref": format!("#/components/responses/{name}")});
    }
    let schemas: Vec<Value> = names.iter().map(|name| schema(name)).collect();
    let schema = json!({"oneOf": schemas, "discriminator": {"propertyName": "error"}});
    response(names, &schema)
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn response(names: &[&str], schema: &Value) -> Value {
    let is = |wanted: &[&str]| names.iter().any(|name| wanted.contains(name));
    let header = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    let mut headers = Map::new();
    headers.insert("X-Request-Id".to_owned(), header("RequestId"));
    if is(&["UNAUTHENTICATED"]) {
        headers.insert("WWW-Authenticate".to_owned(), header("Scheme"));
    }
    if is(&["BUSY", "UNAVAILABLE"]) {
        headers.insert("Retry-After".to_owned(), header("RetryAfter"));
    } else if is(&["HELD"]) {
        headers.insert("Retry-After".to_owned(), header("RetryAfterHeld"));
    }
    json!({"description": names.join(", "), "headers": headers, "content": {"application/json": {"schema": schema}}})
}

/// What the responses point at.
fn components(document: &mut Value) {
    let seconds = |says: &str, required: bool| json!({"description": says, "required": required, "schema": {"type": "integer", "minimum": 1}});
    document["components"]["headers"] = json!({
        "RequestId": {"description": "The request's id, which the log has too; the one that was sent, where one was.", "required": true,
            "schema": {"type": "string"}},
        "Scheme": {"description": "How to say who is calling.", "required": true, "schema": {"type": "string", "const": "Bearer"}},
        "RetryAfter": seconds("Whole seconds after which to send it again.", true),
        "RetryAfterHeld": seconds("With HELD: whole seconds after which the lease may be over.", false),
    });
    let responses: Map<String, Value> = errors()
        .map(|(name, _)| (name.to_owned(), response(&[name], &schema(name))))
        .collect();
    document["components"]["responses"] = Value::Object(responses);
}

/// Names of the schemas that 2xx answers are made of.
fn reachable(document: &Value) -> Vec<String> {
    let mut open: Vec<&Value> = Vec::new();
    for methods in document["paths"].as_object().into_iter().flatten() {
        for operation in methods.1.as_object().into_iter().flatten() {
            let responses = operation.1["responses"].as_object();
            let done = responses
                .into_iter()
                .flatten()
                .filter(|(status, _)| status.starts_with('2'));
            open.extend(done.map(|(_, response)| response));
        }
    }
    let mut found: Vec<String> = Vec::new();
    while let Some(value) = open.pop() {
        if let Some(name) = value["$ref"]
            .as_str()
            .and_then(|target| target.strip_prefix("#/components/schemas/"))
        {
            if !found.iter().any(|seen| seen == name) {
                found.push(name.to_owned());
                open.push(&document["components"]["schemas"][name]);
            }
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(elements) => open.extend(elements),
            _ => {}
        }
    }
    found
}

/// Nothing is ever added to a body.
fn close(schema: &mut Value) {
    let named = schema["properties"].is_object() && schema["additionalProperties"].is_null();
    if let (true, Some(schema)) = (named, schema.as_object_mut()) {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// A key of an answer is always there, null where there is no value.
fn every_key_is_there(schema: &mut Value) {
    let keys = schema["properties"]
        .as_object()
        .map(|properties| properties.keys().cloned().collect::<Vec<_>>());
    if let Some(keys) = keys {
        schema["required"] = json!(keys);
    }
}

/// A key that need not be there is never null: a Rust Option is both in utoipa's eyes.
fn never_null(schema: &mut Value) {
    let required = schema["required"].clone();
    let needed = |key: &str| {
        required
            .as_array()
            .is_some_and(|keys| keys.iter().any(|found| found == key))
    };
    let properties = schema["properties"].as_object_mut();
    for (key, property) in properties.into_iter().flatten() {
        if needed(key) {
            continue;
        }
        without_null(property);
    }
}

fn without_null(schema: &mut Value) {
    if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice) {
        if null == "null" {
            schema["type"] = kind.clone();
        }
    }
    if let Some([one, null]) = schema["oneOf"].as_array().map(Vec::as_slice) {
        if *null == json!({"type": "null"}) {
            *schema = one.clone();
        }
    }
}
