//! `kslate serve`: the SQL functions over HTTP.
//!
//! A request goes straight through: `router` → `identity` → a handler in `routes` → `db` → the SQL function, whose JSON is the
//! body. The only rules that live here are whose a token is, and that an administrator's alone applies classes.

mod answer;
mod asked;
mod body;
mod claims_held;
mod completion;
pub mod connect;
mod db;
mod drain;
mod error;
mod hosts;
mod identity;
pub mod json;
mod keys;
mod listener;
mod metrics;
mod observe;
mod openapi;
mod poll_again;
mod query;
mod router;
mod routes;

use std::io::Write as _;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

pub use self::asked::decode;
use crate::config::{LogFormat, ServeOptions, Switch};

/// What every handler may need.
#[derive(Clone)]
pub(crate) struct Server {
    database: db::Database,
    keys: Arc<keys::Keys>,
    metrics: Arc<metrics::Metrics>,
    claims_held: Arc<claims_held::ClaimsHeld>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    /// Most bytes of a body.
    body: usize,
}

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// A message that says what to do, if the server cannot start.
pub fn run(options: &ServeOptions) -> Result<(), String> {
    start_log(options);
    let server = set_up(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(serve(options, server))
}

fn set_up(options: &ServeOptions) -> Result<Server, String> {
    let path = options.apikeys.as_ref().ok_or(
        "no key file: nobody could call this server. Write one `token: name` a line into a file, such as\n\n    \
         printf 'diag-token: diagnoser\\nw1-token: remediator/worker-1\\n' > keys.yaml\n\n\
         and name it with --apikeys keys.yaml or KSLATE_APIKEYS=keys.yaml",
    )?;
    let url = options.database_url.as_ref().ok_or("no database: give --database-url or DATABASE_URL, such as postgresql:///kslate?host=/run/postgresql")?;
    let keys =
        keys::Keys::open(path).map_err(|error| format!("key file {}: {error}", path.display()))?;
    let target = connect::Target::read(url, options.prepare == Switch::On)
        .map_err(|error| format!("database address: {error}"))?;
    Ok(Server {
        database: db::Database::new(target, usize::from(options.pool))?,
        keys: Arc::new(keys),
        metrics: Arc::default(),
        claims_held: Arc::default(),
        limits: Limits {
            body: options.max_body,
        },
    })
}

async fn serve(options: &ServeOptions, server: Server) -> Result<(), String> {
    let listener = TcpListener::bind(&options.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", options.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let stop = stop_signal()?;

    let keys = Arc::clone(&server.keys);
    tokio::spawn(async move { keys.watch().await });

    // For whoever started this with port 0; a closed stdout is no reason not to serve.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "kslate listening on http://{address}").and_then(|()| stdout.flush());
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "listening beyond this machine without TLS: tokens can be read on the way; put a TLS proxy in front");
    }
    listener::serve(
        listener,
        router::router(server),
        usize::from(options.max_connections),
        stop,
    )
    .await;
    Ok(())
}

fn stop_signal() -> Result<impl std::future::Future<Output = ()>, String> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn start_log(options: &ServeOptions) {
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    use tracing_subscriber::Layer;

    let filter: Targets = options.log.clone();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match options.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
        LogFormat::Text => lines
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_filter(filter)
            .boxed(),
    };
    // Only a second server in one process could find a log in place, and then it is used.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tracing_subscriber::filter::Targets;

    use super::*;

    fn options(apikeys: Option<&str>, database_url: Option<&str>) -> ServeOptions {
        ServeOptions {
            listen: "127.0.0.1:0".to_owned(),
            apikeys: apikeys.map(PathBuf::from),
            database_url: database_url.map(str::to_owned),
            pool: 1,
            prepare: Switch::On,
            max_body: 1,
            max_connections: 1,
            log: Targets::new(),
            log_format: LogFormat::Text,
        }
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        for (apikeys, url, word) in [
            (None, Some("postgresql:///k"), "KSLATE_APIKEYS=keys.yaml"),
            (Some("/nowhere/keys.yaml"), None, "DATABASE_URL"),
            (
                Some("/nowhere/keys.yaml"),
                Some("postgresql:///k"),
                "/nowhere/keys.yaml",
            ),
        ] {
            let message = set_up(&options(apikeys, url)).err().unwrap_or_default();
            assert!(message.contains(word), "{message}");
        }
    }
}
