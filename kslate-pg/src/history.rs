//! History: one row per accepted change, append-only.

use pgrx::prelude::*;

use crate::error::{json_text, Failure, Outcome};
use crate::guard::Storage;
use crate::json::Jsonb;
use crate::rows;
use crate::scope::{need, Call, Scope};
use crate::spi::{int, opt_int, opt_text, text, texts, time, Parameter, Session};
use crate::store;
use crate::time::Time;

/// A row to be.
pub struct Entry<'e> {
    pub record: &'e str,
    pub record_version: i64,
    pub op: &'static str,
    pub field: Option<&'e str>,
    pub version: Option<i64>,
    /// The jsonb datum of the value, as it stands in the row that is written.
    pub value: Parameter,
    pub author: &'e str,
    pub role: Option<String>,
    pub evidence: Option<String>,
    pub changed_at: Time,
    pub epoch: Option<i64>,
    pub took_over_from: Option<String>,
    pub reason: Option<String>,
}

/// Appends a row. Only our own code may: the table's trigger refuses everybody else.
pub fn append(session: &Session, storage: Storage, entry: &Entry<'_>) -> Outcome<()> {
    let values = [
        text(entry.record),
        int(entry.record_version),
        text(entry.op),
        opt_text(entry.field),
        opt_int(entry.version),
        entry.value,
        text(entry.author),
        opt_text(entry.role.as_deref()),
        opt_text(entry.evidence.as_deref()),
        time(entry.changed_at),
        opt_int(entry.epoch),
        opt_text(entry.took_over_from.as_deref()),
        opt_text(entry.reason.as_deref()),
        text(&crate::caller::login()?),
    ];
    if !rows::insert(storage, c"history", &values)? {
        let rows = session.write(&store::HISTORY_INSERT, &values)?;
        rows.must_have_changed(1)?;
    }
    Ok(())
}

/// How the claim before a new grant ended, out of the claim's state then.
pub fn ended_by_grant(
    was: &str,
    same_owner: bool,
    live: bool,
    ended: Option<String>,
) -> Option<String> {
    if was != crate::lease::state::CLAIMED {
        return ended;
    }
    let how = match (same_owner, live) {
        (true, true) => "reattached",
        (true, false) => "lapsed",
        (false, _) => "taken_over",
    };
    Some(how.to_owned())
}

/// Whose claim a grant to `owner` displaces: another one's, which was not given back.
pub fn took_over_from(was: &str, before: Option<String>, owner: &str) -> Option<String> {
    before.filter(|before| was == crate::lease::state::CLAIMED && before != owner)
}

const MAX_PAGE: i32 = 1_001;

/// A page size: 1 to 1000 (and one more, so that a caller can see whether there is a next page).
pub fn check_page(page_size: Option<i32>) -> Outcome<i64> {
    let size = page_size.unwrap_or(100);
    if (1..=MAX_PAGE).contains(&size) {
        return Ok(i64::from(size));
    }
    Err(Failure::malformed("page_size must be 1 to 1000"))
}

/// The first values of a `create` row, less those that the caller may not read; of one field only where it is asked for.
fn readable_part(scope: &Scope<'_>, value: &Jsonb, only: Option<&str>) -> Outcome<Jsonb> {
    type Raw = std::collections::BTreeMap<String, Box<serde_json::value::RawValue>>;
    let values: Raw = serde_json::from_str(&value.text()).unwrap_or_default();
    let shown = values.iter().filter(|(name, _)| {
        only.is_none_or(|only| only == *name)
            && scope
                .class
                .field(name)
                .is_some_and(|field| scope.may_read(field))
    });
    let parts: Vec<String> = shown
        .map(|(name, value)| format!("{}:{}", json_text(name), value.get()))
        .collect();
    Jsonb::parse(&format!("{{{}}}", parts.join(",")))
}

/// The changes of a record in record-version order, those of unreadable fields left out. With `newest_first`, `after` means
/// "below". Without it the row of the creation comes first.
#[pg_extern(stable)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
fn kslate_history(
    record: Option<&str>,
    field: default!(Option<&str>, "NULL"),
    after: default!(Option<i64>, "NULL"),
    page_size: default!(Option<i32>, "100"),
    newest_first: default!(Option<bool>, "false"),
    with_values: default!(Option<bool>, "true"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(record_version, i64),
        name!(op, String),
        name!(field, Option<String>),
        name!(version, Option<i64>),
        name!(value, Option<Jsonb>),
        name!(author, String),
        name!(role, Option<String>),
        name!(evidence, Option<String>),
        name!(changed_at, Time),
        name!(epoch, Option<i64>),
        name!(took_over_from, Option<String>),
        name!(reason, Option<String>),
    ),
> {
    crate::entry(|| {
        let record = need(record, "record")?;
        let page = check_page(page_size)?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        crate::record::must_exist(&scope)?;
        if let Some(field) = field {
            scope.readable_field(field)?;
        }
        let (statement, from) = if newest_first == Some(true) {
            (&store::HISTORY_NEWEST, after.unwrap_or(i64::MAX))
        } else {
            (&store::HISTORY, after.unwrap_or(-1))
        };
        let readable = texts(scope.readable().map(|field| field.name.as_str()));
        let parameters = [
            text(record),
            readable,
            opt_text(field),
            int(from),
            int(page),
        ];
        let mut rows = Vec::new();
        for row in call.session.read(statement, &parameters)?.iter() {
            let op: String = row.need(1)?;
            let value = match (row.get::<Jsonb>(4), with_values.unwrap_or(true)) {
                (Some(value), true) if op == "create" => {
                    Some(readable_part(&scope, &value, field)?)
                }
                (value, true) => value,
                (_, false) => None,
            };
            rows.push((
                row.need(0)?,
                op,
                row.get(2),
                row.get(3),
                value,
                row.need(5)?,
                row.get(6),
                row.get(7),
                row.need(8)?,
                row.get(9),
                row.get(10),
                row.get(11),
            ));
        }
        Ok(TableIterator::new(rows))
    })
}
