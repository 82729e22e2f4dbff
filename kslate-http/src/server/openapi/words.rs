//! The words of the wire: names, numbers, times. Each is one schema that all bodies point at.

use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, SchemaType};
use utoipa::openapi::{KnownFormat, Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::server::query::LARGEST_WHOLE;

/// `words! { /// what it is \n Name: how(…) }`
macro_rules! words {
    ($($(#[doc = $says:literal])+ $name:ident: $schema:expr;)+) => {
        $(
            $(#[doc = $says])+
            pub enum $name {}

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let says = concat!($($says),+).trim();
                    $schema.description(Some(says)).into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

words! {
    /// Name of a class.
    ClassName: text("^[a-z][a-z0-9_-]{0,62}$", "incidents");
    /// Key of a record, unique in its class.
    Key: text("^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", "inc-111");
    /// A record: its class and its key.
    RecordName: text("^[a-z][a-z0-9_-]{0,62}/[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$", "incidents/inc-111");
    /// Name of a field.
    FieldName: text("^[a-z][a-z0-9_-]{0,62}$", "planned_action");
    /// Name of a task field.
    TaskName: text("^[a-z][a-z0-9_-]{0,62}$", "remediation");
    /// Name of a role of the class.
    RoleName: text("^[a-z][a-z0-9_-]{0,62}$", "remediator");
    /// Who: `apikey:<name>` over HTTP, `pg:<role>` in SQL.
    Identity: text("^(apikey|pg):", "apikey:remediator/worker-2");
    /// Why: a sentence, or a pointer such as hypotheses@2.
    Evidence: string("hypotheses@2");
    /// The secret that proves a claim; told to its holder alone.
    ClaimId: string("0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10").format(Some(SchemaFormat::Custom("uuid".to_owned())));
    /// A moment, in UTC, with up to six digits of a second's fraction.
    Time: string("2026-11-29T14:40:12.123456+00:00").format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    /// The version of a field: 0 is never written.
    Version: whole(0, 2);
    /// The version of a record: it counts the record's accepted changes.
    RecordVersion: whole(0, 5);
    /// Counts the grants of a task, and never restarts.
    Epoch: whole(0, 2);
    /// Counts the checkpoints of a record, from 1.
    CheckpointId: whole(1, 1);
    /// Place of an entry in its field, from 1.
    Seq: whole(1, 1);
    /// Where a page ended: its `next`.
    Cursor: whole(0, 100);
    /// Length of a lease: whole seconds, at most the field's max_seconds.
    LeaseSeconds: ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(LARGEST_WHOLE)).examples([60]);
    /// How a field may change.
    Mode: one_of(&["cas", "lww", "append", "task"]);
    /// Where a task stands; a lapsed lease is claimed, and not live.
    TaskState: one_of(&["open", "claimed", "completed"]);
    /// What an accepted change was.
    Op: one_of(&["create", "write", "append", "claim", "takeover", "reattach", "renew", "release", "force_release", "complete", "reopen"]);
    /// How a claim came to be over, as the task's present state tells it.
    LossReason: one_of(&["lapsed", "taken_over", "reattached", "released", "force_released", "completed", "reopened", "not_claimed"]);
    /// A text, or null where there is none.
    TextOrNull: or_null(Type::String);
    /// A line, counted from 1, or null where there is none.
    LineOrNull: or_null(Type::Integer);
}

/// Of a key that is always null.
pub fn null() -> Object {
    ObjectBuilder::new().schema_type(Type::Null).build()
}

fn string(example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .examples([example])
}

fn text(pattern: &str, example: &str) -> ObjectBuilder {
    string(example).pattern(Some(pattern))
}

fn or_null(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([kind, Type::Null]))
}

fn whole(least: i64, example: i64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(least))
        .maximum(Some(LARGEST_WHOLE))
        .examples([example])
}

fn one_of(words: &[&str]) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
}
