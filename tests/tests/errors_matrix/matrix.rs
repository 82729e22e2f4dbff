//! The two tables of docs/errors.md.

use kslate_tests::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A row of the table of codes.
#[derive(Debug)]
pub struct Code {
    pub status: u16,
    pub sqlstates: Vec<String>,
    /// Keys beside `error`, `field`, `message` and `record`, in order; false where they do not always apply.
    pub keys: Vec<(String, bool)>,
}

/// A row of the table of who can raise what.
#[derive(Debug)]
pub struct Operation {
    /// The SQL function; None where there is none.
    pub function: Option<String>,
    /// Method and path, `{class}` standing for a part of it; None where there is none.
    pub route: Option<(String, String)>,
    pub errors: Vec<String>,
}

/// docs/errors.md.
pub struct Matrix {
    pub codes: BTreeMap<String, Code>,
    pub operations: BTreeMap<String, Operation>,
    /// The rows that begin with *any*.
    pub any: BTreeMap<String, Vec<String>>,
}

impl Matrix {
    /// Reads the page.
    pub fn read() -> Matrix {
        let page = fs::read_to_string(root().join("docs/errors.md")).expect("the page");
        let codes = rows(&page, "error")
            .into_iter()
            .map(|row| {
                let keys = row[3].split(" or ").flat_map(str::split_whitespace);
                let either = row[3].contains(" or ");
                let code = Code {
                    status: row[1].parse().expect("a status"),
                    sqlstates: words(&row[2].replace(',', " ")),
                    keys: keys
                        .map(|key| key.trim_matches('`'))
                        .map(|key| {
                            (
                                key.trim_end_matches('?').to_string(),
                                !key.ends_with('?') && !either,
                            )
                        })
                        .collect(),
                };
                (row[0].clone(), code)
            })
            .collect();
        let (mut operations, mut any) = (BTreeMap::new(), BTreeMap::new());
        for row in rows(&page, "operation") {
            let errors = words(&row[3]);
            if row[0].starts_with("any ") {
                any.insert(row[0].clone(), errors);
                continue;
            }
            let route = row[2]
                .trim_matches('`')
                .replace('…', "/v1/records/{class}/{key}");
            let operation = Operation {
                function: Some(row[1].trim_matches('`').to_string())
                    .filter(|name| name.starts_with("kslate_")),
                route: route
                    .split_once(' ')
                    .map(|(method, path)| (method.to_string(), path.to_string())),
                errors,
            };
            operations.insert(row[0].clone(), operation);
        }
        Matrix {
            codes,
            operations,
            any,
        }
    }

    /// Every cell of the rows that are operations.
    pub fn cells(&self) -> BTreeSet<(String, String)> {
        let cells = self.operations.iter().flat_map(|(name, operation)| {
            operation
                .errors
                .iter()
                .map(|error| (name.clone(), error.clone()))
        });
        cells.collect()
    }

    /// Fails where a refusal is not what the table of codes says.
    #[track_caller]
    pub fn judge(&self, about: &str, error: &str, body: &serde_json::Value) {
        let code = &self.codes[error];
        assert_eq!(body["error"], error, "{about}: {body}");
        assert!(
            body["message"]
                .as_str()
                .is_some_and(|message| message.len() > 10),
            "{about}: {body}"
        );
        let have: Vec<&str> = body
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        let mut order = vec!["error", "field", "message", "record"];
        order.extend(code.keys.iter().map(|(key, _)| key.as_str()));
        let sorted: Vec<&str> = order
            .iter()
            .copied()
            .filter(|key| have.contains(key))
            .collect();
        assert_eq!(
            have, sorted,
            "{about}: the keys of docs/errors.md, in its order: {body}"
        );
        for (key, always) in &code.keys {
            assert!(
                !always || have.contains(&key.as_str()),
                "{about}: {key} is missing: {body}"
            );
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// The body rows of the table whose first heading is this.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let rows: Vec<Vec<String>> = page
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {heading} |")))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_string())
                .collect()
        })
        .collect();
    assert!(rows.len() > 10, "no table of {heading}");
    rows
}
