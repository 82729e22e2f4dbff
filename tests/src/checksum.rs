//! What the whole storage holds, in one line, to show that something left no trace.

use crate::database::Database;

/// A checksum over every row of every table of schema kslate, in an order of its own.
pub fn checksum(database: &Database) -> String {
    // One statement, and so one snapshot, made of the catalog: each table gives one md5 over its ordered rows.
    database.psql(
        "kslate",
        "set bytea_output = hex;
         select format('select md5(concat_ws('' '', %s))', string_agg(format(
             '(select %L || count(*) || '':'' || md5(coalesce(string_agg(md5(t::text), '''' order by md5(t::text)), '''')) from %s t)',
             c.relname || ' ', c.oid::regclass), ', ' order by c.relname))
         from pg_class c where c.relnamespace = 'kslate'::regnamespace and c.relkind = 'r' \\gexec",
    )
}

/// What PostgreSQL says about a refused statement.
#[derive(Debug)]
pub struct SqlRefusal {
    pub sqlstate: String,
    pub message: String,
    /// Of kslate's own errors: the body of the HTTP answer. Empty where there is none.
    pub detail: String,
}

/// Runs SQL that must be refused, as psql's verbose form tells it.
#[track_caller]
pub fn refused_in_sql(database: &Database, role: &str, sql: &str) -> SqlRefusal {
    let told = match database.try_psql(role, sql) {
        Err(told) => told,
        Ok(printed) => panic!("not refused, it printed {printed}\n{sql}"),
    };
    let line = |mark: &str| {
        told.lines()
            .find_map(|line| line.split_once(mark).map(|(_, rest)| rest.to_string()))
            .unwrap_or_default()
    };
    let error = line("ERROR:  ");
    let (sqlstate, message) = error
        .split_once(": ")
        .unwrap_or_else(|| panic!("not an error of SQL: {told}"));
    SqlRefusal {
        sqlstate: sqlstate.to_string(),
        message: message.to_string(),
        detail: line("DETAIL:  "),
    }
}
