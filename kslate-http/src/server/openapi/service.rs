//! Bodies of the service's own routes.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use super::words::{ClassName, Identity, RoleName};

/// The server is alive.
#[derive(ToSchema)]
#[schema(example = json!({"status": "ok"}))]
pub struct Health {
    #[schema(pattern = "^ok$")]
    pub status: String,
}

/// The server and its database can work.
#[derive(ToSchema)]
#[schema(example = json!({"status": "ready", "version": "0.2.0", "storage_version": 2, "read_only": false}))]
pub struct Ready {
    #[schema(pattern = "^ready$")]
    pub status: String,
    /// Version of the extension.
    pub version: String,
    /// Version of the storage that `kslate_setup()` made.
    pub storage_version: i64,
    /// The database is a standby: it answers reads.
    pub read_only: bool,
}

/// Who the caller is.
#[derive(ToSchema)]
#[schema(example = json!({"identity": "apikey:remediator/worker-1", "admin": false, "roles": {"incidents": ["remediator"]}}))]
pub struct Whoami {
    pub identity: Identity,
    /// May apply classes.
    pub admin: bool,
    /// Class to roles held, for each class in which there are any.
    pub roles: BTreeMap<ClassName, Vec<RoleName>>,
}
