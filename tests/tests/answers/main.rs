//! Every answer has exactly the keys of the wire, in its order; every refusal is the same over HTTP and in SQL.

mod accepted;
mod order;
mod refused;

use kslate_tests::{Answer, Api, Cluster, Database, Shim, KEYS};
use serde_json::Value;

/// Someone for each role of `migrations`, and one who holds two roles of a class.
const MORE_KEYS: &str =
    "stranger-token: stranger\nplan-token: planner\nmig-token: migrator\nver-token: verifier\n\
                         op-token: operator\nboth-token: both\n";

const BOTH: &str = "
class: both
roles: { first: [apikey:both], second: [apikey:both], third: [apikey:third] }
fields:
  x: { mode: cas, write: [second, first] }
  hidden: { mode: lww, write: [third], read: [third] }
  counted: { mode: cas, write: [first], requires_claim: task }
  task: { mode: task, write: [first] }
  other: { mode: task, write: [first] }
";

struct Stage {
    database: Database<'static>,
    shim: Shim,
}

impl Stage {
    fn new() -> Stage {
        Stage::on(Cluster::shared().fresh_database())
    }

    fn on(database: Database<'static>) -> Stage {
        let shim = Shim::start(&database, &format!("{KEYS}{MORE_KEYS}"));
        Stage { database, shim }
    }

    fn api(&self, token: &str) -> Api {
        match token {
            "" => self.shim.anonymous(),
            token => self.shim.api(&format!("{token}-token")),
        }
    }

    fn send(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.api(token).request(method, path, &[], body.as_bytes())
    }

    /// An accepted request whose body has these keys; gives the body.
    #[track_caller]
    fn told(&self, request: &str, status: u16, keys: &str) -> Value {
        let mut parts = request.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (token, method, path, body) = (part(), part(), part(), part());
        let answer = self.send(token, method, path, body);
        let told = answer.expect(status);
        let flat: String = keys.split_whitespace().collect();
        assert_eq!(shape(&told), flat, "{request}: {told}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.header("x-request-id").is_some(), "{request}");
        told
    }
}

/// The keys of a value in their order: `{record,fields[{field,value}]}`. What is free within is left out; of an array the
/// first element counts, all others must be like it but for parts that are null.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let parts: Vec<String> = members
                .iter()
                .map(|(key, value)| match key.as_str() {
                    "value" | "document" | "definition" | "roles" => key.clone(),
                    _ => format!("{key}{}", shape(value)),
                })
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(elements) => {
            let Some(first) = elements.first().filter(|first| !first.is_string()) else {
                return "[]".to_string();
            };
            for element in elements {
                let keys = |value: &Value| -> Vec<String> {
                    value
                        .as_object()
                        .map(|members| members.keys().cloned().collect())
                        .unwrap_or_default()
                };
                assert_eq!(keys(element), keys(first), "{value}");
            }
            format!("[{}]", shape(first))
        }
        _ => String::new(),
    }
}
