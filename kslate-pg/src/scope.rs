//! What an operation is about: one record, the class it belongs to, and the roles that the caller holds there.
//!
//! Checks go in the order of the wire: class, a role in it at all, record, field, mode, role for the operation.

use std::cell::RefCell;
use std::rc::Rc;

use kslate_class::{Class, Field, Mode};

use crate::caller::Caller;
use crate::catalog;
use crate::columns;
use crate::error::{Code, Failure, Outcome};
use crate::guard::{Guard, Storage};
use crate::rows::{self, Change, Locked};
use crate::spi::{int, Session};

/// A caller at work: the connection, the rights and the identity of one call.
pub struct Call {
    // Fields are dropped in this order: the connection is closed before the rights are given back.
    pub session: Session,
    _guard: Guard,
    pub storage: Storage,
    pub caller: Caller,
}

impl Call {
    /// Finds out who is calling, then switches to the owner of the storage, which is of the version that this library needs.
    pub fn open(identity: Option<&str>) -> Outcome<Call> {
        let call = Call::open_on_any_storage(identity)?;
        catalog::check_storage(&call.session, call.storage)?;
        Ok(call)
    }

    /// The same whatever the storage's version is.
    pub fn open_on_any_storage(identity: Option<&str>) -> Outcome<Call> {
        let caller = Caller::identify(identity)?;
        let storage = Storage::find()?;
        let guard = Guard::enter(storage)?;
        let session = Session::open();
        Ok(Call {
            session,
            _guard: guard,
            storage,
            caller,
        })
    }

    /// The scope of a record, whether or not the record exists.
    pub fn scope<'c>(&'c self, record: &str) -> Outcome<Scope<'c>> {
        let Some((class, key)) = kslate_class::name::split_record(record) else {
            return Err(Failure::malformed(format!(
                "{} is no record name: write class/key, the key of letters, digits and . _ ~ -, at most 128",
                quoted(record)
            )));
        };
        let generation = catalog::generation();
        let class = catalog::class(&self.session, self.storage, class)
            .map_err(|failure| failure.record(record))?;
        let roles = self.caller.roles(&class, Some(record))?;
        Ok(Scope {
            call: self,
            record: record.to_owned(),
            key: key.to_owned(),
            class,
            roles,
            generation,
            locked: RefCell::new(None),
            claim: RefCell::new(None),
        })
    }

    /// The scope of a class as a whole: no record is named in its failures.
    pub fn class_scope<'c>(&'c self, class: &str) -> Outcome<Scope<'c>> {
        if !kslate_class::name::is_class(class) {
            return Err(Failure::malformed(format!(
                "{} is no class name",
                quoted(class)
            )));
        }
        let generation = catalog::generation();
        let class = catalog::class(&self.session, self.storage, class)?;
        let roles = self.caller.roles(&class, None)?;
        Ok(Scope {
            call: self,
            record: String::new(),
            key: String::new(),
            class,
            roles,
            generation,
            locked: RefCell::new(None),
            claim: RefCell::new(None),
        })
    }
}

/// One record as the caller stands to it.
pub struct Scope<'c> {
    pub call: &'c Call,
    pub record: String,
    pub key: String,
    pub class: Rc<Class>,
    pub roles: Vec<String>,
    generation: u64,
    /// The record's row, from its lock to the next change.
    locked: RefCell<Option<Locked<'static>>>,
    /// The row of the claim that the call is about, from its lock to its change (see [`crate::lease`]).
    pub claim: RefCell<Option<Locked<'static>>>,
}

impl Scope<'_> {
    /// Locks the record's row, which puts this change in order, and returns the record's version. NOT_FOUND without a row.
    pub fn lock(&mut self) -> Outcome<i64> {
        let version = self.lock_if_there()?;
        version.ok_or_else(|| self.no_record())
    }

    /// The same, None without a row.
    pub fn lock_if_there(&mut self) -> Outcome<Option<i64>> {
        let version = self.lock_row()?;
        self.refresh()?;
        Ok(version)
    }

    fn lock_row(&self) -> Outcome<Option<i64>> {
        let locked = rows::lock(self.call.storage, c"record", &[&self.record])?;
        let version = locked
            .as_ref()
            .map(|locked| locked.row().need(columns::record::VERSION))
            .transpose()?;
        self.locked.replace(locked);
        Ok(version)
    }

    /// Counts a change that is about to be made, and returns the record version that it makes. Ask [`Scope::counts_by_statement`]
    /// before, which locks the record's row.
    pub fn count(&self) -> Outcome<i64> {
        let (locked, version) = self.next_version()?;
        match locked.update(|_| Ok(((), vec![(columns::record::VERSION, int(version))])))? {
            Change::Made(()) => Ok(version),
            Change::Missing | Change::Foreign => Err(Failure::held_back()),
        }
    }

    /// The record's row as it was locked, which is used up by this, and the version that a change of it makes.
    fn next_version(&self) -> Outcome<(Locked<'static>, i64)> {
        let locked = self.locked.take().ok_or_else(|| self.no_record())?;
        let version: i64 = locked.row().need(columns::record::VERSION)?;
        Ok((locked, version.saturating_add(1)))
    }

    /// Whether the record is counted up by a statement. What somebody else's trigger on `record` does then may change the row that
    /// is to be changed next, so that must be one statement with it.
    pub fn counts_by_statement(&self) -> Outcome<bool> {
        if self.locked.borrow().is_none() {
            self.lock_row()?;
        }
        let locked = self.locked.borrow();
        Ok(locked.as_ref().is_some_and(|locked| !locked.is_ours()))
    }

    /// [`Scope::count`] where a statement has counted: up by one, or somebody else's trigger counts too.
    pub fn counted(&self, version: i64) -> Outcome<()> {
        let (_, next) = self.next_version()?;
        if version == next {
            return Ok(());
        }
        Err(Failure::held_back())
    }

    /// Takes the class anew where it has changed since the scope was made. Whoever holds a lock on the record's table
    /// knows that it stays as it is now.
    pub fn refresh(&mut self) -> Outcome<()> {
        while self.generation != catalog::generation() {
            self.generation = catalog::generation();
            self.class = catalog::class(&self.call.session, self.call.storage, &self.class.name)?;
            self.roles = self.call.caller.roles(&self.class, Some(&self.record))?;
        }
        Ok(())
    }

    /// Adds what the failure is about.
    pub fn about(&self, failure: Failure) -> Failure {
        if self.record.is_empty() {
            return failure;
        }
        failure.record(&self.record)
    }

    /// NOT_FOUND for a record that does not exist.
    pub fn no_record(&self) -> Failure {
        Failure::new(
            Code::NotFound,
            format!(
                "no record {0}; create it with PUT /v1/records/{0}",
                self.record
            ),
        )
        .record(&self.record)
    }

    /// A field of the class; NOT_FOUND names those there are.
    pub fn field(&self, name: &str) -> Outcome<&Field> {
        self.class.field(name).ok_or_else(|| {
            let names: Vec<&str> = self.class.fields.iter().map(|f| f.name.as_str()).collect();
            let message = format!(
                "{} has no field {name}; it has: {}",
                self.class.name,
                names.join(", ")
            );
            self.about(Failure::new(Code::NotFound, message).field(name))
        })
    }

    /// A field with one of these modes, else MALFORMED says which operation fits.
    pub fn field_of_mode(&self, name: &str, modes: &[Mode]) -> Outcome<&Field> {
        let field = self.field(name)?;
        if modes.contains(&field.mode) {
            return Ok(field);
        }
        let hint = match field.mode {
            Mode::Append => "append to it",
            Mode::Task => "claim it, then renew, release or complete it",
            Mode::Cas | Mode::Lww => "write it",
        };
        Err(self.wrong_mode(field, hint))
    }

    /// MALFORMED for what a field's mode does not have; the hint says what to do instead.
    pub fn wrong_mode(&self, field: &Field, hint: &str) -> Failure {
        let message = format!("{} has mode {}: {hint}", field.name, field.mode.as_str());
        self.about(Failure::malformed(message).field(&field.name))
    }

    /// The role that a change of this field is recorded under; SCOPE_DENIED where none is held.
    pub fn writer(&self, field: &Field, doing: &str) -> Outcome<String> {
        self.one_of(&field.write, Some(&field.name), doing)
    }

    /// The first of these roles that is held.
    pub fn one_of(&self, needed: &[String], field: Option<&str>, doing: &str) -> Outcome<String> {
        if let Some(role) = needed.iter().find(|role| self.roles.contains(role)) {
            return Ok(role.clone());
        }
        let held = self.roles.join(", ");
        let message = if needed.is_empty() {
            format!(
                "{doing} needs a role that {} does not name; you hold: {held}",
                self.class.name
            )
        } else {
            format!(
                "{doing} needs one of: {}; you hold: {held}",
                needed.join(", ")
            )
        };
        let failure = self.about(Failure::new(Code::ScopeDenied, message));
        let failure = match field {
            Some(field) => failure.field(field),
            None => failure,
        };
        Err(failure
            .with("needs_one_of", needed)
            .with("roles_held", &self.roles))
    }

    /// May the caller read this field?
    pub fn may_read(&self, field: &Field) -> bool {
        field.read.iter().any(|role| self.roles.contains(role))
    }

    /// The fields that the caller may read, in the class's order.
    pub fn readable(&self) -> impl Iterator<Item = &Field> {
        self.class
            .fields
            .iter()
            .filter(|field| self.may_read(field))
    }

    /// A field that the caller may read; SCOPE_DENIED otherwise.
    pub fn readable_field(&self, name: &str) -> Outcome<&Field> {
        let field = self.field(name)?;
        self.one_of(&field.read, Some(name), &format!("reading {name}"))?;
        Ok(field)
    }
}

/// User text in a message: quoted, shortened, control characters escaped.
pub fn quoted(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{dots}\"", short.escape_debug())
}

/// An argument that must be given.
pub fn need<T>(argument: Option<T>, name: &str) -> Outcome<T> {
    argument.ok_or_else(|| Failure::missing(name))
}

/// An evidence or reason: free text of at most 64 KiB.
pub fn check_text(text: Option<&str>, name: &str) -> Outcome<()> {
    const MOST: usize = 65_536;
    match text {
        Some(text) if text.len() > MOST => Err(Failure::malformed(format!(
            "{name} has {} bytes, {MOST} are allowed: store it elsewhere and point to it",
            text.len()
        ))),
        _ => Ok(()),
    }
}
