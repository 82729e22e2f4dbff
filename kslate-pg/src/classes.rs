//! Classes: apply, show, list; and who the caller is in them.

use std::collections::BTreeMap;

use kslate_class::{Class, Difference, Fault, Mode, Orphans};
use pgrx::prelude::*;

use crate::catalog;
use crate::error::{json_text, Code, Failure, Outcome};
use crate::json::{Json, Jsonb};
use crate::scope::{need, quoted, Call};
use crate::spi::{int, jsonb, opt_int, text, time};
use crate::store;
use crate::time::Time;

fn invalid(name: &str, faults: &[Fault]) -> Failure {
    let count = faults.len();
    let noun = if count == 1 { "fault" } else { "faults" };
    let what = if name.is_empty() {
        "the class".to_owned()
    } else {
        name.to_owned()
    };
    Failure::new(
        Code::InvalidClass,
        format!("{count} {noun} in the definition of {what}; nothing was changed"),
    )
    .with("class", (!name.is_empty()).then_some(name))
    .with("faults", faults)
}

/// The name that a faulty definition gives itself, as far as it can be told.
fn declared_name(source: &str) -> String {
    let line = source.lines().find_map(|line| line.strip_prefix("class:"));
    let name = line
        .map(|rest| rest.split('#').next().unwrap_or(rest).trim())
        .unwrap_or_default();
    let name = name.trim_matches(|c| c == '"' || c == '\'');
    if kslate_class::name::is_class(name) {
        name.to_owned()
    } else {
        String::new()
    }
}

/// What would be orphaned by a difference, asked of the data.
fn orphaned(call: &Call, class: &str, difference: &Difference) -> Outcome<Option<Fault>> {
    let (first, last) = (format!("{class}/"), format!("{class}0"));
    let uses = |statement, name: &str| -> Outcome<i64> {
        let parameters = [text(&first), text(&last), text(name)];
        let rows = call.session.read_latest(statement, &parameters)?;
        rows.first().map_or(Ok(0), |row| row.need(0))
    };
    let records = |count: i64| {
        if count == 1 {
            "1 record has".to_owned()
        } else {
            format!("{count} records have")
        }
    };
    let message = match &difference.orphans {
        None => return Ok(None),
        Some(Orphans::FieldRemoved { field }) => match uses(&store::FIELD_USES, field)? {
            0 => return Ok(None),
            count => format!("removed, but {} history of it", records(count)),
        },
        Some(Orphans::ModeChanged { field, from, to }) => match uses(&store::FIELD_USES, field)? {
            0 => return Ok(None),
            count => format!(
                "mode changed from {} to {}, but {} history of it",
                from.as_str(),
                to.as_str(),
                records(count)
            ),
        },
        Some(Orphans::RoleRemoved { role }) => match uses(&store::ROLE_USES, role)? {
            0 => return Ok(None),
            count => format!("removed, but {} checkpoints of it", records(count)),
        },
    };
    Ok(Some(Fault {
        line: None,
        path: difference.path.clone(),
        message,
    }))
}

/// Applies a class definition (YAML or JSON): a new version where it differs from the one in force, else nothing.
/// With `dry_run` it only tells what would change. May be called by members of kslate_admin and kslate_gateway.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn kslate_class_apply(
    source: Option<&str>,
    dry_run: default!(Option<bool>, "false"),
    idempotency_key: default!(Option<&str>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(class, String),
        name!(version, i64),
        name!(changed, bool),
        name!(dry_run, bool),
        name!(changes, Json),
    ),
> {
    crate::entry(|| {
        let source = need(source, "source")?;
        let dry_run = dry_run.unwrap_or(false);
        // The same definition applied again changes nothing anyway: a key has nothing to add but its conflict.
        let request = crate::idempotency::Request::new(idempotency_key, "class_apply")?
            .part(Some(source))
            .number(Some(dry_run));
        let class = kslate_class::parse(source)
            .map_err(|faults| invalid(&declared_name(source), &faults))?;
        let call = Call::open(identity)?;
        if !dry_run {
            call.session.write(&store::CLASS_LOCK, &[])?;
        }
        if let Some(applied) = request.replay::<Applied>(&call, &class.name)? {
            return Ok(TableIterator::once(applied.row(dry_run)));
        }
        let applied = apply(&call, &class, source, dry_run)?;
        if applied.changed && !dry_run {
            request.remember(&call, &class.name, &applied)?;
        }
        Ok(TableIterator::once(applied.row(dry_run)))
    })
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Applied {
    class: String,
    version: i64,
    changed: bool,
    changes: Vec<String>,
}

impl Applied {
    fn row(self, dry_run: bool) -> (String, i64, bool, bool, Json) {
        let changes = json_text(&self.changes);
        (
            self.class,
            self.version,
            self.changed,
            dry_run,
            changes.into(),
        )
    }
}

/// Works on what is committed now, whatever the isolation level: an older snapshot would not show what a change orphans.
fn apply(call: &Call, class: &Class, source: &str, dry_run: bool) -> Outcome<Applied> {
    let rows = call
        .session
        .read_latest(&store::CLASS_GET, &[text(&class.name), None])?;
    let present = match rows.first() {
        None => None,
        Some(row) => {
            let stored: String = row.need(1)?;
            let parsed =
                kslate_class::parse(&stored).map_err(|faults| invalid(&class.name, &faults))?;
            Some((row.need::<i64>(0)?, parsed))
        }
    };
    drop(rows);
    let (version, differences) = match &present {
        None => (0, Vec::new()),
        Some((version, parsed)) => {
            let differences = parsed.differences(class);
            if differences.is_empty() && parsed == class {
                return Ok(Applied {
                    class: class.name.clone(),
                    version: *version,
                    changed: false,
                    changes: Vec::new(),
                });
            }
            (*version, differences)
        }
    };
    if present.is_some() && !dry_run {
        call.session.write(&store::RECORDS_LOCK, &[])?;
    }
    let mut faults = Vec::new();
    for difference in &differences {
        pgrx::check_for_interrupts!();
        faults.extend(orphaned(call, &class.name, difference)?);
    }
    if !faults.is_empty() {
        return Err(invalid(&class.name, &faults));
    }
    let changes = match &present {
        None => vec![format!("class {} is new", class.name)],
        Some(_) => differences
            .iter()
            .map(|difference| difference.text.clone())
            .collect(),
    };
    let applied = Applied {
        class: class.name.clone(),
        version: version + 1,
        changed: true,
        changes,
    };
    if dry_run {
        return Ok(applied);
    }
    let now = Time::now();
    if let Some((_, parsed)) = &present {
        adjust_claims(call, parsed, class, now)?;
    }
    let definition = Jsonb::parse(&class.definition_json())?;
    let parameters = [
        text(&class.name),
        int(applied.version),
        text(source),
        jsonb(&definition),
        text(&call.caller.identity),
        time(now),
    ];
    let rows = call
        .session
        .write_latest(&store::CLASS_INSERT, &parameters)?;
    rows.must_have_changed(1)?;
    Ok(applied)
}

/// Every record of the class has a claim row for every task field.
fn adjust_claims(call: &Call, old: &Class, new: &Class, now: Time) -> Outcome<()> {
    let is_task =
        |class: &Class, name: &str| class.field(name).is_some_and(|f| f.mode == Mode::Task);
    for task in old.fields.iter().filter(|field| field.mode == Mode::Task) {
        if !is_task(new, &task.name) {
            call.session
                .write_latest(&store::TASK_DROP, &[text(&new.name), text(&task.name)])?;
        }
    }
    for task in new.fields.iter().filter(|field| field.mode == Mode::Task) {
        if !is_task(old, &task.name) {
            call.session.write_latest(
                &store::TASK_ADD,
                &[text(&new.name), text(&task.name), time(now)],
            )?;
        }
    }
    Ok(())
}

/// A class: its definition with every default filled in, and its source as written.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_class(
    class: Option<&str>,
    version: default!(Option<i64>, "NULL"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(class, String),
        name!(version, i64),
        name!(description, Option<String>),
        name!(definition, Json),
        name!(source, String),
        name!(applied_by, String),
        name!(applied_at, Time),
    ),
> {
    crate::entry(|| {
        let class = need(class, "class")?;
        if !kslate_class::name::is_class(class) {
            return Err(Failure::malformed(format!(
                "{} is no class name",
                quoted(class)
            )));
        }
        let call = Call::open(identity)?;
        let rows = call
            .session
            .read(&store::CLASS_GET, &[text(class), opt_int(version)])?;
        let Some(row) = rows.first() else {
            // Tells which classes there are.
            catalog::class(&call.session, call.storage, class)?;
            let version = version.unwrap_or_default();
            return Err(Failure::new(
                Code::NotFound,
                format!("{class} has no version {version}"),
            ));
        };
        let source: String = row.need(1)?;
        let parsed = kslate_class::parse(&source).map_err(|faults| invalid(class, &faults))?;
        Ok(TableIterator::once((
            class.to_owned(),
            row.need(0)?,
            parsed.description.clone(),
            parsed.definition_json().into(),
            source,
            row.need(2)?,
            row.need(3)?,
        )))
    })
}

/// The classes, in order of name.
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_class_list(
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(class, String),
        name!(version, i64),
        name!(description, Option<String>),
        name!(applied_by, String),
        name!(applied_at, Time),
    ),
> {
    crate::entry(|| {
        let call = Call::open(identity)?;
        let mut rows = Vec::new();
        for row in call.session.read(&store::CLASS_LIST, &[])?.iter() {
            let source: String = row.need(2)?;
            let description = kslate_class::parse(&source)
                .ok()
                .and_then(|class| class.description);
            rows.push((
                row.need(0)?,
                row.need(1)?,
                description,
                row.need(3)?,
                row.need(4)?,
            ));
        }
        Ok(TableIterator::new(rows))
    })
}

/// Who is calling, and as which roles in which classes.
#[pg_extern(stable)]
fn kslate_whoami(
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<'static, (name!(identity, String), name!(roles, Jsonb))> {
    crate::entry(|| {
        let call = Call::open(identity)?;
        let mut names = Vec::new();
        for row in call.session.read(&store::CLASS_NAMES, &[])?.iter() {
            names.push(row.need::<String>(0)?);
        }
        let mut roles: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in names {
            let class = catalog::class(&call.session, call.storage, &name)?;
            let held = class.roles_of(&call.caller.identity);
            if !held.is_empty() {
                roles.insert(name, held.into_iter().map(str::to_owned).collect());
            }
        }
        let roles = Jsonb::parse(&json_text(&roles))?;
        Ok(TableIterator::once((call.caller.identity.clone(), roles)))
    })
}
