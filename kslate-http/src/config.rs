//! Options of `kslate serve`: each is a flag and an environment variable.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;

const EXAMPLES: &str = "\
Examples:
  printf 'diag-token: diagnoser\\nw1-token: remediator/worker-1\\n' > keys.yaml
  kslate serve --apikeys keys.yaml --database-url 'postgresql:///kslate?host=/run/postgresql'
  kslate serve --listen 127.0.0.1:0          a free port; it is in the first line of stdout
  DATABASE_URL='postgresql://kslate_server@db-1,db-2/kslate?target_session_attrs=read-write&sslmode=require' kslate serve

Key file (read again when it changes; the faulty new one is refused, the old keys stay):
  w1-token: remediator/worker-1              the identity apikey:remediator/worker-1
  \"sha256:<64 hex digits>\": diagnoser        the SHA-256 of the token, so that the file holds no secret
  ops-token: { identity: ops, admin: true }  may apply classes

Log: KSLATE_LOG=warn, KSLATE_LOG=info,kslate_http=debug";

/// Options of `kslate serve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeOptions {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        env = "KSLATE_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: String,

    /// YAML file of API keys, `token: name` a line
    #[arg(long, env = "KSLATE_APIKEYS", value_name = "FILE")]
    pub apikeys: Option<PathBuf>,

    /// The database, as postgresql:// address (TLS: ?sslmode=verify-full&sslrootcert=FILE) or key=value string; its login must be a member of kslate_gateway
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,

    /// Most connections to the database
    #[arg(long, env = "KSLATE_POOL", value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pool: u16,

    /// Keep prepared statements; `off` behind a pooler in transaction mode
    #[arg(
        long,
        env = "KSLATE_PREPARE",
        value_name = "on|off",
        default_value = "on"
    )]
    pub prepare: Switch,

    /// Most bytes of a request's body
    #[arg(
        long,
        env = "KSLATE_MAX_BODY",
        value_name = "BYTES",
        default_value = "1048576"
    )]
    pub max_body: usize,

    /// Most connections from clients at once; more wait
    #[arg(long, env = "KSLATE_MAX_CONNECTIONS", value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,

    /// What is logged: a level, or levels by module
    #[arg(
        long,
        env = "KSLATE_LOG",
        value_name = "FILTER",
        default_value = "info"
    )]
    pub log: Targets,

    /// How it is logged, to stderr
    #[arg(
        long,
        env = "KSLATE_LOG_FORMAT",
        value_name = "text|json",
        default_value = "text"
    )]
    pub log_format: LogFormat,
}

/// A switch with words that also read well in an environment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// As usual.
    On,
    /// Not.
    Off,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line, for programs.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ServeOptions,
    }

    fn parse(line: &str) -> Result<ServeOptions, clap::Error> {
        Line::try_parse_from(["kslate"].into_iter().chain(line.split_whitespace()))
            .map(|line| line.options)
    }

    #[test]
    fn flags() {
        let options = parse(
            "--listen 127.0.0.1:0 --apikeys k.yaml --database-url postgresql:///k --pool 3 --prepare off --max-body 10 \
             --max-connections 5 --log warn,kslate_http=debug --log-format json",
        )
        .expect("good flags");
        assert_eq!(options.listen, "127.0.0.1:0");
        assert_eq!(
            (options.pool, options.max_body, options.max_connections),
            (3, 10, 5)
        );
        assert_eq!(
            (options.prepare, options.log_format),
            (Switch::Off, LogFormat::Json)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--pool 0",
            "--pool many",
            "--max-connections 0",
            "--prepare maybe",
            "--log-format xml",
            "--log kslate=loud",
            "extra",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
