//! The entries of append fields.

use kslate_class::Mode;
use pgrx::prelude::*;

use crate::history::check_page;
use crate::json::Jsonb;
use crate::scope::{need, Call};
use crate::spi::{int, text};
use crate::store;
use crate::time::Time;

/// The entries of an append field by their number; with `newest_first`, `after` means "below".
#[pg_extern(stable)]
#[allow(clippy::type_complexity)]
fn kslate_entries(
    record: Option<&str>,
    field: Option<&str>,
    after: default!(Option<i64>, "NULL"),
    page_size: default!(Option<i32>, "100"),
    newest_first: default!(Option<bool>, "false"),
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(seq, i64),
        name!(value, Option<Jsonb>),
        name!(author, String),
        name!(role, Option<String>),
        name!(evidence, Option<String>),
        name!(record_version, i64),
        name!(added_at, Time),
    ),
> {
    crate::entry(|| {
        let (record, field) = (need(record, "record")?, need(field, "field")?);
        let page = check_page(page_size)?;
        let call = Call::open(identity)?;
        let scope = call.scope(record)?;
        crate::record::must_exist(&scope)?;
        let definition = scope.field(field)?;
        if definition.mode != Mode::Append {
            return Err(scope.wrong_mode(definition, "it has no entries, read the field"));
        }
        scope.readable_field(field)?;
        let (statement, from) = if newest_first == Some(true) {
            (&store::ENTRIES_NEWEST, after.unwrap_or(i64::MAX))
        } else {
            (&store::ENTRIES, after.unwrap_or(0))
        };
        let parameters = [text(record), text(field), int(from), int(page)];
        let mut rows = Vec::new();
        for row in call.session.read(statement, &parameters)?.iter() {
            rows.push((
                row.need(0)?,
                row.get(1),
                row.need(2)?,
                row.get(3),
                row.get(4),
                row.need(5)?,
                row.need(6)?,
            ));
        }
        Ok(TableIterator::new(rows))
    })
}
