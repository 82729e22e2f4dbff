//! What stands in paths, queries and headers.

use utoipa::IntoParams;

use super::words::{
    CheckpointId, ClassName, Cursor, FieldName, Key, RecordName, RoleName, Version,
};

/// A class.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ClassPath {
    /// The class.
    pub class: ClassName,
}

/// A record.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct RecordPath {
    /// The record's class.
    pub class: ClassName,
    /// The record's key.
    pub key: Key,
}

/// A field of a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct FieldPath {
    /// The record's class.
    pub class: ClassName,
    /// The record's key.
    pub key: Key,
    /// The field.
    pub field: FieldName,
}

/// Of every change but renew.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct Idempotency {
    /// Makes the request safe to send again: the same key and the same request get the first answer, and nothing changes.
    #[param(
        rename = "Idempotency-Key",
        pattern = "^[ -~]{1,128}$",
        example = "b2f1c7d0-7"
    )]
    pub key: Option<String>,
}

/// Which version of a class.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ClassVersion {
    /// An earlier version.
    pub version: Option<Version>,
}

/// How a class is applied.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DryRun {
    /// Only tell what would change.
    #[param(default = false)]
    pub dry_run: Option<bool>,
}

/// Which fields of a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Fields {
    /// Names with commas in between; all that the caller may read where it is missing.
    #[param(
        pattern = "^[a-z][a-z0-9_-]{0,62}(,[a-z][a-z0-9_-]{0,62})*$",
        example = "status,remediation"
    )]
    pub fields: Option<String>,
}

/// Which records of a class.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RecordList {
    /// A JSON object: field to value, or to a list of values; all must hold.
    #[param(example = "{\"status\":[\"open\",\"mitigating\"]}")]
    pub filter: Option<String>,
    /// Names of the fields to show, with commas in between; none where it is missing.
    #[param(
        pattern = "^[a-z][a-z0-9_-]{0,62}(,[a-z][a-z0-9_-]{0,62})*$",
        example = "status,remediation"
    )]
    pub fields: Option<String>,
    /// `next` of the page before.
    pub after: Option<RecordName>,
    /// Rows a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub page_size: Option<i32>,
}

/// Which entries of an append field.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EntryList {
    /// `next` of the page before; with newest_first it means below.
    pub after: Option<Cursor>,
    /// Rows a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub page_size: Option<i32>,
    /// From the newest on.
    #[param(default = false)]
    pub newest_first: Option<bool>,
}

/// As which role.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AsRole {
    /// Needed where the caller holds several.
    pub role: Option<RoleName>,
}

/// Which checkpoint.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CheckpointChoice {
    /// Needed where the caller holds several.
    pub role: Option<RoleName>,
    /// An earlier one; the latest where it is missing.
    pub checkpoint_id: Option<CheckpointId>,
}

/// Which checkpoints.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CheckpointList {
    /// Of this role; of all that the caller holds where it is missing.
    pub role: Option<RoleName>,
    /// `next` of the page before.
    pub after: Option<Cursor>,
    /// Rows a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub page_size: Option<i32>,
}

/// Which changes.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct HistoryList {
    /// Of one field.
    pub field: Option<FieldName>,
    /// `next` of the page before; with newest_first it means below.
    pub after: Option<Cursor>,
    /// Rows a page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub page_size: Option<i32>,
    /// From the newest on.
    #[param(default = false)]
    pub newest_first: Option<bool>,
    /// Without, every value is null.
    #[param(default = true)]
    pub with_values: Option<bool>,
}

/// Whose blame.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct BlameList {
    /// Of one field.
    pub field: Option<FieldName>,
    /// Of an append field: the entries behind this one.
    pub after: Option<Cursor>,
}
