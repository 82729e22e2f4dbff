//! The command line. All commands but `serve`, `doctor`, `class lint` and `completions` talk HTTP and nothing else.

mod checkpoint;
mod claim;
mod class;
mod doctor;
mod exit;
mod field;
mod history;
mod http;
mod json;
mod output;
mod record;
mod resume;
mod watch;
mod whoami;

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::ServeOptions;
use exit::Failure;
use http::Http;

const EXAMPLES: &str = "\
Examples:
  KSLATE_APIKEY=w1-token kslate claim --next incidents remediation --lease-seconds 60
  kslate set incidents/inc-111 status mitigating --expected-version 1
  kslate resume --server http://127.0.0.1:8080 --role remediator incidents/inc-111

Environment:
  KSLATE_APIKEY   the API key, for every command that talks to a server
  KSLATE_SERVER   the server

Exit codes:
  0 ok   1 failure   2 usage   3 HELD   4 NOT_FOUND   5 denied (UNAUTHENTICATED, SCOPE_DENIED)
  6 conflict (VERSION_CONFLICT, LEASE_LOST, COMPLETED, NOT_COMPLETED, ALREADY_EXISTS, IDEMPOTENCY_CONFLICT, IMMUTABLE)";

/// A shared, structured record for fleets of agents: who wrote what, at which version, on what evidence.
#[derive(Debug, Parser)]
#[command(name = "kslate", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// What all commands have.
#[derive(Debug, Args)]
struct Shared {
    /// The server to talk to
    #[arg(
        long,
        global = true,
        help_heading = "For all commands",
        env = "KSLATE_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    server: String,

    /// Print the server's JSON as it came
    #[arg(long, global = true, help_heading = "For all commands")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the SQL functions over HTTP
    Serve(Box<ServeOptions>),
    /// Who this API key is, and which roles it holds
    Whoami,
    /// Create a record
    Create(record::Create),
    /// Show a record, or one field of it
    Get(record::Get),
    /// List the records of a class
    List(record::List),
    /// Write a cas or lww field
    Set(field::Set),
    /// Add an entry to an append field
    Append(field::Append),
    /// List the entries of an append field
    Entries(field::Entries),
    /// Claim a task: a record's, or with --next the next free one of a class
    Claim(claim::Claim),
    /// Extend a lease
    Renew(claim::Renew),
    /// Give a task back
    Release(claim::Release),
    /// Finish a task, with its result
    Complete(claim::Complete),
    /// Open a completed task again
    Reopen(claim::Reopen),
    /// Take a task from its holder (needs a role in the field's `override`)
    ForceRelease(claim::ForceRelease),
    /// Save, load or list checkpoints
    #[command(subcommand)]
    Checkpoint(checkpoint::Checkpoint),
    /// Load the latest checkpoint and show what changed since
    Resume(resume::Resume),
    /// Show the accepted changes of a record
    History(history::History),
    /// Show who last wrote what, and on what evidence
    Blame(history::Blame),
    /// Follow a record's changes
    Watch(watch::Watch),
    /// Apply, show, list or check class definitions
    #[command(subcommand)]
    Class(class::Class),
    /// Check a database: triggers, rights, leftovers
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Parses the arguments, runs the command, and says how it went.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.shared.json;
    match dispatch(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { shared, command } = cli;
    let json = shared.json;
    let http = || Http::new(&shared.server);
    let text = match command {
        Command::Serve(options) => {
            return crate::server::run(&options)
                .map(|()| ExitCode::SUCCESS)
                .map_err(Failure::Local)
        }
        Command::Watch(command) => return command.run(&http()?, json).map(|()| ExitCode::SUCCESS),
        Command::Doctor(command) => return command.run(json),
        Command::Class(class::Class::Lint(command)) => return command.run(json),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kslate", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        Command::Whoami => whoami::run(&http()?, json)?,
        Command::Create(command) => command.run(&http()?, json)?,
        Command::Get(command) => command.run(&http()?, json)?,
        Command::List(command) => command.run(&http()?, json)?,
        Command::Set(command) => command.run(&http()?, json)?,
        Command::Append(command) => command.run(&http()?, json)?,
        Command::Entries(command) => command.run(&http()?, json)?,
        Command::Claim(command) => command.run(&http()?, json)?,
        Command::Renew(command) => command.run(&http()?, json)?,
        Command::Release(command) => command.run(&http()?, json)?,
        Command::Complete(command) => command.run(&http()?, json)?,
        Command::Reopen(command) => command.run(&http()?, json)?,
        Command::ForceRelease(command) => command.run(&http()?, json)?,
        Command::Checkpoint(command) => command.run(&http()?, json)?,
        Command::Resume(command) => command.run(&http()?, json)?,
        Command::History(command) => command.run(&http()?, json)?,
        Command::Blame(command) => command.run(&http()?, json)?,
        Command::Class(class::Class::OnServer(command)) => command.run(&http()?, json)?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// For every command that changes something.
#[derive(Debug, Args)]
struct Repeatable {
    /// Makes the request safe to send again: the same key and request get the first answer
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_manuals_line() {
        let line = "kslate resume --server http://b:1 --role remediator incidents/inc-4471";
        let cli = Cli::try_parse_from(line.split(' ')).expect("the manual's line");
        assert_eq!(cli.shared.server, "http://b:1");
        assert!(matches!(cli.command, Command::Resume(_)));
    }

    #[test]
    fn shared_options_may_stand_anywhere() {
        for line in [
            "kslate --json whoami --server http://b",
            "kslate --server http://b whoami --json",
            "kslate checkpoint load --json a/b --server http://b",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).expect(line);
            assert!(cli.shared.json && cli.shared.server == "http://b", "{line}");
        }
    }
}
