//! How a command ends.

use std::process::ExitCode;

use serde::Deserialize;

use super::output;

/// Exit codes, in the order of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Anything that has no code of its own.
    Failure = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Another lease is live.
    Held = 3,
    /// No such class, record, field.
    NotFound = 4,
    /// Not known, or not allowed.
    Denied = 5,
    /// The state is not what the caller took it for.
    Conflict = 6,
}

impl Code {
    /// The code for an error of the wire.
    pub fn of(error: &str) -> Self {
        match error {
            "HELD" => Self::Held,
            "NOT_FOUND" => Self::NotFound,
            "UNAUTHENTICATED" | "SCOPE_DENIED" => Self::Denied,
            "VERSION_CONFLICT"
            | "LEASE_LOST"
            | "COMPLETED"
            | "NOT_COMPLETED"
            | "ALREADY_EXISTS"
            | "IDEMPOTENCY_CONFLICT"
            | "IMMUTABLE" => Self::Conflict,
            _ => Self::Failure,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The server's refusal, as it came.
    Refused {
        /// Body of the answer.
        body: String,
    },
    /// The command line makes no sense.
    Usage(String),
    /// All else, said in full.
    Local(String),
    /// Whoever read the output has gone.
    Unheard,
}

/// What is read of a refusal.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    message: String,
    #[serde(default)]
    faults: Vec<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    line: Option<u64>,
    path: String,
    message: String,
}

impl Failure {
    /// Says it on stderr, or with `json` gives the body to stdout, and tells the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("kslate: {message}");
                Code::Usage.into()
            }
            Self::Local(message) => {
                eprintln!("kslate: {message}");
                Code::Failure.into()
            }
            Self::Unheard => ExitCode::SUCCESS,
            Self::Refused { body } => {
                let refusal: Option<Refusal> = serde_json::from_str(body).ok();
                let code = refusal
                    .as_ref()
                    .map_or(Code::Failure, |refusal| Code::of(&refusal.error));
                if json {
                    // If nobody reads it, the exit code still tells.
                    let _ = output::print(&format!("{body}\n"));
                } else {
                    eprintln!(
                        "{}",
                        refusal.map_or_else(
                            || format!("kslate: {}", output::safe(body)),
                            |refusal| refusal.text()
                        )
                    );
                }
                code.into()
            }
        }
    }
}

impl Refusal {
    fn text(&self) -> String {
        let mut text = format!("kslate: {}: {}", self.error, output::safe(&self.message));
        for fault in &self.faults {
            text.push_str(&format!(
                "\n  {}",
                fault_line(fault.line, &fault.path, &fault.message)
            ));
        }
        if self.error == "UNAUTHENTICATED" {
            text.push_str("\n(kslate takes the key from the environment variable KSLATE_APIKEY)");
        }
        text
    }
}

/// One fault of a class definition.
pub fn fault_line(line: Option<u64>, path: &str, message: &str) -> String {
    let line = line.map_or_else(String::new, |line| format!("line {line}: "));
    let path = if path.is_empty() {
        String::new()
    } else {
        format!("{path}: ")
    };
    output::safe(&format!("{line}{path}{message}")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for (error, code) in [
            ("HELD", 3),
            ("NOT_FOUND", 4),
            ("UNAUTHENTICATED", 5),
            ("SCOPE_DENIED", 5),
            ("VERSION_CONFLICT", 6),
            ("LEASE_LOST", 6),
            ("INVALID_CHECKPOINT", 1),
            ("BUSY", 1),
        ] {
            assert_eq!(Code::of(error) as u8, code, "{error}");
        }
    }

    #[test]
    fn a_refusal_in_words() {
        let body = r#"{"error":"HELD","field":"f","message":"held by \u001b[31m x","record":"r"}"#;
        let refusal: Refusal = serde_json::from_str(body).expect("a refusal");
        assert_eq!(refusal.text(), "kslate: HELD: held by \\u001b[31m x");
        let body = r#"{"error":"INVALID_CLASS","message":"1 fault","class":"c","faults":[{"line":7,"path":"fields.x","message":"no"}]}"#;
        let refusal: Refusal = serde_json::from_str(body).expect("a refusal");
        assert_eq!(
            refusal.text(),
            "kslate: INVALID_CLASS: 1 fault\n  line 7: fields.x: no"
        );
    }
}
