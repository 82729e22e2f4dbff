//! The one way to the database: a connection from the pool, one statement, its rows as text.
//!
//! Every request is one call of one SQL function and so one transaction; none is ever left open.

use std::error::Error as _;
use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use deadpool::managed::{Object, Pool, PoolError, QueueMode, TimeoutType, Timeouts};
use deadpool::{Runtime, Status};
use futures_util::TryStreamExt;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::{IsNull, ToSql, Type};

use super::completion::ToCompletion;
use super::connect::{because, Connection, Target};
use super::error::Error;

/// A full pool is worth this much waiting.
const WAIT: Duration = Duration::from_secs(2);
/// The database ends a statement after 10 s itself; this is for a database that no longer says anything.
const SILENCE: Duration = Duration::from_secs(13);
/// A page of large values could be more than this machine holds.
const LARGEST_ANSWER: usize = 64 << 20;

/// A statement: its rows have the answer's JSON as text, then a note for the shim (a cursor, a flag) or NULL.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// SQL with `{kslate}` where the extension's schema goes.
    pub sql: &'static str,
}

/// `call!("kslate_x(a => $1, …)")` selects each row of the function as JSON; a second string is the note, an expression
/// over the row `r`.
macro_rules! call {
    ($function:literal) => {
        call!($function, "NULL")
    };
    ($function:literal, $note:literal) => {
        $crate::server::db::Call {
            sql: concat!(
                "SELECT row_to_json(r)::text, (",
                $note,
                ")::text FROM {kslate}.",
                $function,
                " r"
            ),
        }
    };
}

/// A list of arguments, each of any type that [`Arg`] is made from.
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$($crate::server::db::Arg::from($arg)),*] };
}

pub(crate) use {args, call};

/// An argument. JSON goes as text and is cast in the statement, so that it keeps every digit.
#[derive(Debug)]
pub enum Arg {
    /// text
    Text(Option<String>),
    /// text[]
    Texts(Option<Vec<String>>),
    /// bigint
    Whole(Option<i64>),
    /// float8
    Number(Option<f64>),
    /// boolean
    Flag(bool),
}

macro_rules! arg_from {
    ($($from:ty => |$it:ident| $to:expr),* $(,)?) => {
        $(impl From<$from> for Arg { fn from($it: $from) -> Self { $to } })*
    };
}

arg_from! {
    String => |it| Self::Text(Some(it)),
    &str => |it| Self::Text(Some(it.to_owned())),
    Option<String> => |it| Self::Text(it),
    Option<Vec<String>> => |it| Self::Texts(it),
    i64 => |it| Self::Whole(Some(it)),
    Option<i64> => |it| Self::Whole(it),
    Option<f64> => |it| Self::Number(it),
    bool => |it| Self::Flag(it),
}

impl Arg {
    fn type_of(&self) -> Type {
        match self {
            Self::Text(_) => Type::TEXT,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Whole(_) => Type::INT8,
            Self::Number(_) => Type::FLOAT8,
            Self::Flag(_) => Type::BOOL,
        }
    }
}

impl ToSql for Arg {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
            Self::Whole(whole) => whole.to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Flag(flag) => flag.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [
            Type::TEXT,
            Type::TEXT_ARRAY,
            Type::INT8,
            Type::FLOAT8,
            Type::BOOL,
        ]
        .contains(ty)
    }

    tokio_postgres::types::to_sql_checked!();
}

/// One row of an answer.
#[derive(Debug)]
pub struct Line {
    /// JSON, as the database wrote it.
    pub json: String,
    /// What the call's note said.
    pub note: Option<String>,
}

/// The pool.
#[derive(Clone)]
pub struct Database {
    pool: Pool<Target>,
}

impl Database {
    /// A pool of at most `size` connections; none is made before it is needed.
    ///
    /// # Errors
    /// A message, if the pool cannot be set up.
    pub fn new(target: Target, size: usize) -> Result<Self, String> {
        let timeouts = Timeouts {
            wait: Some(WAIT),
            create: Some(target.patience()),
            recycle: Some(WAIT),
        };
        let pool = Pool::builder(target)
            .max_size(size)
            .timeouts(timeouts)
            // The connection that rested least: its backend is warm, where taking each in turn would find all of them cold.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { pool })
    }

    /// The one row of a call that always has one.
    pub async fn one(&self, call: Call, args: Vec<Arg>) -> Result<Line, Error> {
        self.maybe(call, args)
            .await?
            .ok_or_else(|| Error::internal("a call that must have one row had none"))
    }

    /// The row of a call that may have none.
    pub async fn maybe(&self, call: Call, args: Vec<Arg>) -> Result<Option<Line>, Error> {
        Ok(self.all(call, args).await?.into_iter().next())
    }

    /// All rows of a call.
    pub async fn all(&self, call: Call, args: Vec<Arg>) -> Result<Vec<Line>, Error> {
        let mut connection = self.pool.get().await.map_err(unreached)?;
        // A client that hangs up drops this future; the statement is under way by then.
        ToCompletion::of(async move { run(&mut connection, call, &args).await }).await
    }

    /// Connections in use and at rest.
    pub fn status(&self) -> Status {
        self.pool.status()
    }
}

async fn run(
    connection: &mut Object<Target>,
    call: Call,
    args: &[Arg],
) -> Result<Vec<Line>, Error> {
    connection.sound = false;
    match tokio::time::timeout(SILENCE, query(connection, call, args)).await {
        Err(_) => Err(Error::timeout("the database has not answered at all")),
        Ok(Err(error)) => {
            let (error, sound) = judge(&error);
            if sound {
                connection.answered();
            }
            Err(error)
        }
        // The rest of the rows is still on its way: the connection stays marked, and goes.
        Ok(Ok(None)) => Err(Error::answer_too_large()),
        // Committed here, perhaps nowhere else. The same request again waits for the standby: it takes the record's lock, so it
        // has a commit of its own to wait for.
        Ok(Ok(Some(_))) if connection.unreplicated.happened() => Err(Error::lost(
            "the wait for the synchronous standby was given up",
        )),
        Ok(Ok(Some(lines))) => {
            connection.answered();
            Ok(lines)
        }
    }
}

/// The rows; None if they are too much.
async fn query(
    connection: &mut Connection,
    call: Call,
    args: &[Arg],
) -> Result<Option<Vec<Line>>, tokio_postgres::Error> {
    let Connection {
        client,
        schema,
        kept,
        ..
    } = connection;
    let text = || call.sql.replace("{kslate}", schema);
    let rows = match kept {
        None => {
            client
                .query_typed_raw(&text(), args.iter().map(|arg| (arg, arg.type_of())))
                .await?
        }
        Some(kept) => {
            let statement = match kept.get(call.sql) {
                Some(statement) => statement.clone(),
                None => {
                    let types: Vec<Type> = args.iter().map(Arg::type_of).collect();
                    let statement = client.prepare_typed(&text(), &types).await?;
                    kept.insert(call.sql, statement.clone());
                    statement
                }
            };
            client.query_raw(&statement, args).await?
        }
    };
    let mut rows = pin!(rows);
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let line = Line {
            json: row.try_get(0)?,
            note: row.try_get(1)?,
        };
        bytes += line.json.len();
        if bytes > LARGEST_ANSWER {
            return Ok(None);
        }
        lines.push(line);
    }
    Ok(Some(lines))
}

fn unreached(error: PoolError<super::connect::ConnectError>) -> Error {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => Error::crowded("no connection was free in time"),
        PoolError::Timeout(kind) => Error::unreached(format!("no connection in time: {kind:?}")),
        PoolError::Backend(error) => Error::unreached(error.to_string()),
        other => Error::unreached(other.to_string()),
    }
}

/// What a failed call is to the caller, and whether its connection may serve another.
fn judge(error: &tokio_postgres::Error) -> (Error, bool) {
    let Some(db) = error
        .source()
        .and_then(|source| source.downcast_ref::<DbError>())
    else {
        return (Error::lost(because(error)), false);
    };
    let fatal = matches!(
        db.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    );
    let state = db.code().code();
    let cause = format!("{state}: {}", db.message());
    if !fatal {
        if let Some(error) = db.detail().and_then(Error::from_detail) {
            return (error, !doubtful(state));
        }
    }
    let error = match verdict(state) {
        Verdict::Busy => Error::busy(cause),
        Verdict::Timeout => Error::timeout(cause),
        Verdict::Malformed => Error::malformed(format!(
            "the database cannot store what was sent: {}",
            db.message()
        )),
        Verdict::TooLarge => Error::value_too_large(),
        Verdict::Lost => Error::lost(cause),
        Verdict::Refused => Error::refused_by_database(cause),
        Verdict::Internal if fatal => Error::lost(cause),
        Verdict::Internal => Error::internal(cause),
    };
    (
        error,
        !fatal && !doubtful(state) && !matches!(verdict(state), Verdict::Lost | Verdict::Refused),
    )
}

/// What a SQLSTATE without a DETAIL of ours means (docs/errors.md).
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Busy,
    Timeout,
    Malformed,
    TooLarge,
    /// The session went away with the statement under way.
    Lost,
    /// The database answers, but cannot do this: read-only, no extension, no rights, no room.
    Refused,
    Internal,
}

fn verdict(state: &str) -> Verdict {
    match state {
        "55P03" | "40001" | "40P01" => Verdict::Busy,
        "57014" => Verdict::Timeout,
        "22P02" | "22P05" | "22003" | "54001" | "22021" => Verdict::Malformed,
        "54000" => Verdict::TooLarge,
        "25006" | "3F000" | "42883" | "42P01" | "42501" | "42703" | "26000" | "0A000" | "57P03" => {
            Verdict::Refused
        }
        "57P01" | "57P02" | "57P04" | "57P05" => Verdict::Lost,
        _ if state.starts_with("08") => Verdict::Lost,
        _ if state.starts_with("53") => Verdict::Refused,
        _ => Verdict::Internal,
    }
}

/// States after which a session is not to be used again: a standby's, one about to end, one whose kept plans are stale, or
/// one that is in a transaction in spite of all.
fn doubtful(state: &str) -> bool {
    matches!(
        state,
        "25006" | "0A000" | "26000" | "25P02" | "57P01" | "57P02" | "57P03" | "57P04" | "57P05"
    ) || state.starts_with("08")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_without_detail() {
        for (state, expected) in [
            ("55P03", Verdict::Busy),
            ("40001", Verdict::Busy),
            ("40P01", Verdict::Busy),
            ("57014", Verdict::Timeout),
            ("22P02", Verdict::Malformed),
            ("22P05", Verdict::Malformed),
            ("22003", Verdict::Malformed),
            ("22021", Verdict::Malformed),
            ("54001", Verdict::Malformed),
            ("54000", Verdict::TooLarge),
            ("08006", Verdict::Lost),
            ("57P01", Verdict::Lost),
            ("57P03", Verdict::Refused),
            ("25006", Verdict::Refused),
            ("42883", Verdict::Refused),
            ("3F000", Verdict::Refused),
            ("42P01", Verdict::Refused),
            ("53300", Verdict::Refused),
            ("28000", Verdict::Internal),
            ("XX000", Verdict::Internal),
            ("23505", Verdict::Internal),
        ] {
            assert_eq!(verdict(state), expected, "{state}");
        }
        for state in ["25006", "57P01", "08003", "0A000", "25P02"] {
            assert!(doubtful(state), "{state}");
        }
        assert!(!doubtful("55P03"));
    }

    #[test]
    fn a_call_is_one_select_of_one_function() {
        const CALL: Call = call!("kslate_x(record => $1)", "r.seq");
        assert_eq!(
            CALL.sql,
            "SELECT row_to_json(r)::text, (r.seq)::text FROM {kslate}.kslate_x(record => $1) r"
        );
    }
}
