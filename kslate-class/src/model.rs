//! A class as it stands after parsing: every default filled in, every name checked.

use crate::pattern::Pattern;
use crate::schema::Schema;
use serde_json::Value;
use std::fmt;

/// A kind of record. Only [`crate::parse`] makes one, so the names in it refer to each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub name: String,
    pub description: Option<String>,
    /// In the order of the definition, as are all lists here.
    pub roles: Vec<Role>,
    /// Roles that may create records.
    pub create: Vec<String>,
    pub fields: Vec<Field>,
    pub checkpoint: Option<CheckpointRules>,
}

/// What an identity may do in a class, and which identities hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub patterns: Vec<Pattern>,
}

/// How a field may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Compare and set: a write names the version it was decided on.
    Cas,
    /// The last writer wins.
    Lww,
    /// Entries are added and never rewritten.
    Append,
    /// Work that is claimed under a lease.
    Task,
}

/// Whether a change must say why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    Optional,
    Required,
}

/// One named value of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub mode: Mode,
    pub description: Option<String>,
    pub write: Vec<String>,
    pub read: Vec<String>,
    /// The value at create, cas and lww only. `Some(Null)` is a value, `None` is none.
    pub initial: Option<Value>,
    /// The only values allowed, compared as jsonb compares.
    pub values: Option<Vec<Value>>,
    pub schema: Option<Schema>,
    pub evidence: Evidence,
    /// The task field whose live holder alone may write this one.
    pub requires_claim: Option<String>,
    /// Always there for tasks, never for others.
    pub lease: Option<Lease>,
    /// Roles that may force a release; the key `override`.
    pub overriders: Vec<String>,
}

/// How long a claim of a task is granted, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub default_seconds: u32,
    pub max_seconds: u32,
}

/// What a checkpoint must have, and who must have saved one before `status` may become `resolved`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRules {
    pub required: Vec<String>,
    pub sections: Vec<String>,
    pub max_bytes: u32,
    pub requires_claim: Option<String>,
}

impl Class {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The fields that are claimed.
    pub fn task_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.mode == Mode::Task)
    }

    /// The roles that an identity holds, in the order of the definition.
    pub fn roles_of(&self, identity: &str) -> Vec<&str> {
        self.roles
            .iter()
            .filter(|role| {
                role.patterns
                    .iter()
                    .any(|pattern| pattern.matches(identity))
            })
            .map(|role| role.name.as_str())
            .collect()
    }
}

impl Field {
    /// True if one of these roles may read the field.
    pub fn may_be_read_by(&self, roles: &[&str]) -> bool {
        self.read.iter().any(|role| roles.contains(&role.as_str()))
    }

    /// The role a change is recorded under: the first of the field's `write` list among those held.
    pub fn writer_role(&self, roles: &[&str]) -> Option<&str> {
        self.write
            .iter()
            .map(String::as_str)
            .find(|role| roles.contains(role))
    }
}

impl Mode {
    pub(crate) const ALL: [Mode; 4] = [Mode::Cas, Mode::Lww, Mode::Append, Mode::Task];

    /// The word used in definitions and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Cas => "cas",
            Mode::Lww => "lww",
            Mode::Append => "append",
            Mode::Task => "task",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Evidence {
    /// The word used in definitions and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::Optional => "optional",
            Evidence::Required => "required",
        }
    }
}

impl Lease {
    /// The longest lease a class may allow: a year.
    pub const LONGEST_SECONDS: u32 = 31_536_000;
}

impl Default for Lease {
    fn default() -> Self {
        Self {
            default_seconds: 60,
            max_seconds: 3600,
        }
    }
}

impl CheckpointRules {
    /// The size of a document where the class does not say.
    pub const DEFAULT_MAX_BYTES: u32 = 262_144;
    /// The largest size a class may allow.
    pub const LARGEST_MAX_BYTES: u32 = 1_048_576;
}
