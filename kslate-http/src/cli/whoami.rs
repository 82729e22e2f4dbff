//! `kslate whoami`

use std::collections::BTreeMap;

use serde::Deserialize;

use super::exit::Failure;
use super::http::{read, Ask, Http};
use super::output::safe;

#[derive(Deserialize)]
struct Whoami {
    identity: String,
    admin: bool,
    roles: BTreeMap<String, Vec<String>>,
}

/// Who the key is.
pub fn run(http: &Http, json: bool) -> Result<String, Failure> {
    let body = http.ask(Ask::get(&["v1", "whoami"]))?;
    if json {
        return Ok(body + "\n");
    }
    let who: Whoami = read(&body)?;
    let mut text = format!(
        "{}{}\n",
        safe(&who.identity),
        if who.admin { " (admin)" } else { "" }
    );
    if who.roles.is_empty() {
        text.push_str("  no role in any class\n");
    }
    for (class, roles) in &who.roles {
        text.push_str(&format!(
            "  {:20} {}\n",
            safe(class),
            safe(&roles.join(", "))
        ));
    }
    Ok(text)
}
