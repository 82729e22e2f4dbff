//! One error, one code, everywhere: SQLSTATE, MESSAGE and a DETAIL that is the HTTP body, key by key.
//!
//! Every function of the extension ends in [`crate::entry`], which turns a [`Failure`] into a PostgreSQL ERROR.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::PgSqlErrorCode;
use serde::Serialize;

use crate::time::Time;

/// What went wrong. The names are the `error` of the wire; each has one stock SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Malformed,
    ScopeDenied,
    NotFound,
    AlreadyExists,
    VersionConflict,
    Held,
    LeaseLost,
    Completed,
    NotCompleted,
    IdempotencyConflict,
    InvalidCheckpoint,
    InvalidValue,
    EvidenceRequired,
    InvalidClass,
    Immutable,
    PayloadTooLarge,
    Busy,
    Unavailable,
}

impl Code {
    /// The `error` of the wire.
    pub fn name(self) -> &'static str {
        match self {
            Code::Malformed => "MALFORMED",
            Code::ScopeDenied => "SCOPE_DENIED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::VersionConflict => "VERSION_CONFLICT",
            Code::Held => "HELD",
            Code::LeaseLost => "LEASE_LOST",
            Code::Completed => "COMPLETED",
            Code::NotCompleted => "NOT_COMPLETED",
            Code::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            Code::InvalidCheckpoint => "INVALID_CHECKPOINT",
            Code::InvalidValue => "INVALID_VALUE",
            Code::EvidenceRequired => "EVIDENCE_REQUIRED",
            Code::InvalidClass => "INVALID_CLASS",
            Code::Immutable => "IMMUTABLE",
            Code::PayloadTooLarge => "PAYLOAD_TOO_LARGE",
            Code::Busy => "BUSY",
            Code::Unavailable => "UNAVAILABLE",
        }
    }

    /// The stock SQLSTATE: pgrx cannot carry private ones through an SPI call.
    pub fn sqlstate(self) -> PgSqlErrorCode {
        match self {
            Code::Malformed | Code::InvalidClass => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            Code::ScopeDenied | Code::Immutable => PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            Code::NotFound => PgSqlErrorCode::ERRCODE_NO_DATA_FOUND,
            Code::AlreadyExists | Code::IdempotencyConflict => {
                PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION
            }
            Code::VersionConflict | Code::LeaseLost | Code::Completed | Code::NotCompleted => {
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            Code::Held => PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            Code::InvalidCheckpoint | Code::InvalidValue | Code::EvidenceRequired => {
                PgSqlErrorCode::ERRCODE_CHECK_VIOLATION
            }
            Code::PayloadTooLarge => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Code::Busy => PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Code::Unavailable => PgSqlErrorCode::ERRCODE_CANNOT_CONNECT_NOW,
        }
    }
}

/// A refused operation. `detail()` is the body of the HTTP answer: `error, field?, message, record?`, then the rest
/// in the order given.
#[derive(Debug)]
pub struct Failure {
    code: Code,
    field: Option<String>,
    message: String,
    record: Option<String>,
    rest: Vec<(&'static str, String)>,
}

/// What every rule of the extension returns.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure with a sentence that tells the caller what to do next.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            field: None,
            message: message.into(),
            record: None,
            rest: Vec::new(),
        }
    }

    /// A change of kslate's own that a statement was to make, and that is not there, or another, when it is done.
    pub fn held_back() -> Failure {
        Failure::new(
            Code::Unavailable,
            "a trigger or rule that is not kslate's keeps a change of kslate's from being made as it was meant: take it out (see kslate_doctor)",
        )
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Names the field it is about.
    pub fn field(mut self, field: &str) -> Failure {
        self.field = Some(field.to_owned());
        self
    }

    /// Names the record it is about.
    pub fn record(mut self, record: &str) -> Failure {
        self.record = Some(record.to_owned());
        self
    }

    /// Adds a key that a program needs.
    pub fn with(self, key: &'static str, value: impl Serialize) -> Failure {
        let text = json_text(&value);
        self.with_json(key, text)
    }

    /// Adds a key whose value is JSON text already, so that no digit is lost.
    pub fn with_json(mut self, key: &'static str, json: String) -> Failure {
        self.rest.push((key, json));
        self
    }

    /// Adds a time, in UTC.
    pub fn with_time(self, key: &'static str, time: Time) -> Failure {
        self.with(key, time.iso())
    }

    /// The JSON object of DETAIL and of the HTTP body.
    pub fn detail(&self) -> String {
        let mut body = format!("{{\"error\":{}", json_text(&self.code.name()));
        let mut add = |key: &str, json: &str| {
            body.push_str(&format!(",{}:{json}", json_text(&key)));
        };
        if let Some(field) = &self.field {
            add("field", &json_text(field));
        }
        add("message", &json_text(&self.message));
        if let Some(record) = &self.record {
            add("record", &json_text(record));
        }
        for (key, json) in &self.rest {
            add(key, json);
        }
        // The same request may be sent again: this says when.
        if self.code == Code::Unavailable {
            add("retry_after_seconds", "1");
        }
        body.push('}');
        body
    }

    /// The PostgreSQL error, ready to be raised. BUSY looks as it does where PostgreSQL itself raises it: no DETAIL.
    pub fn report(self) -> ErrorReport {
        let detail = (self.code != Code::Busy).then(|| self.detail());
        let report = ErrorReport::new(self.code.sqlstate(), self.message, "kslate");
        match detail {
            Some(detail) => report.set_detail(detail),
            None => report,
        }
    }

    /// A value that is missing or NULL.
    pub fn missing(argument: &str) -> Failure {
        Failure::new(
            Code::Malformed,
            format!("{argument} is missing: it must not be null"),
        )
    }

    /// Wrong input of another kind.
    pub fn malformed(message: impl Into<String>) -> Failure {
        Failure::new(Code::Malformed, message)
    }
}

/// JSON text of anything that serde can write; what it cannot (never, for our types) becomes null.
pub fn json_text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
