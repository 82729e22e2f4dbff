//! Class definitions.

use axum::extract::State;

use crate::server::answer::{self, Answered};
use crate::server::asked::Asked;
use crate::server::db::{args, call, Call};
use crate::server::error::Error;
use crate::server::identity::Caller;
use crate::server::json;
use crate::server::openapi::classes::{Applied, Class, Classes, WrittenDefinition};
use crate::server::openapi::parameters::{ClassPath, ClassVersion, DryRun, Idempotency};
use crate::server::Server;

const LIST: Call = call!("kslate_class_list(identity => $1)");
const SHOW: Call = call!("kslate_class(class => $1, version => $2, identity => $3)");
const APPLY: Call =
    call!("kslate_class_apply(source => $1, dry_run => $2, idempotency_key => $3, identity => $4)");

/// All classes.
#[utoipa::path(
    get, path = "/v1/classes", operation_id = "listClasses", tag = "classes",
    responses((status = 200, body = Classes)),
)]
pub async fn list(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    asked.no_query()?;
    let lines = server.database.all(LIST, args![caller.identity]).await?;
    let count = lines.len();
    Ok(answer::list(&[], "classes", lines, count))
}

/// One class, at its present version or an earlier one.
#[utoipa::path(
    get, path = "/v1/classes/{class}", operation_id = "getClass", tag = "classes",
    params(ClassPath, ClassVersion),
    responses((status = 200, body = Class)),
    extensions(("x-errors" = json!(["NOT_FOUND"]))),
)]
pub async fn show(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let class = asked.class()?;
    let version = asked.query(&["version"])?.whole("version")?;
    Ok(server
        .database
        .one(SHOW, args![class, version, caller.identity])
        .await?
        .into())
}

/// A new definition, from an admin.
#[utoipa::path(
    put, path = "/v1/classes/{class}", operation_id = "applyClass", tag = "classes",
    params(ClassPath, DryRun, Idempotency),
    request_body(content((WrittenDefinition = "application/json"), (String = "application/yaml"))),
    responses((status = 200, body = Applied)),
    extensions(("x-errors" = json!(["SCOPE_DENIED", "IDEMPOTENCY_CONFLICT", "INVALID_CLASS", "BUSY"]))),
)]
pub async fn apply(State(server): State<Server>, caller: Caller, asked: Asked) -> Answered {
    let class = asked.class()?;
    let dry_run = asked.query(&["dry_run"])?.flag("dry_run", false)?;
    let (source, yaml) = asked.source()?;
    // curl sends YAML under its own default type; what begins as an object is JSON, and strict JSON.
    if !yaml && source.trim_start().starts_with('{') {
        json::object(source)?;
    }
    if source.contains('\0') {
        return Err(Error::malformed_at(
            "",
            "the definition holds a NUL character",
        ));
    }
    if !caller.admin {
        return Err(Error::needs_admin());
    }
    // A definition that cannot be read is left to the database, which names all its faults.
    if let Ok(definition) = kslate_class::parse(source) {
        if definition.name != class {
            return Err(Error::malformed_at(
                "/class",
                format!(
                    "the definition is of {}, the path says {class}",
                    definition.name
                ),
            ));
        }
    }
    Ok(server
        .database
        .one(
            APPLY,
            args![source, dry_run, asked.idempotency_key()?, caller.identity],
        )
        .await?
        .into())
}
