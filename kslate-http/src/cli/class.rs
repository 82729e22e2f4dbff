//! `kslate class apply`, `show`, `list`, `lint`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exit::{fault_line, Code, Failure};
use super::http::{read, Ask, Http};
use super::json::{indent, read_file, Object};
use super::output::{self, safe, when, Table};
use super::Repeatable;

/// Apply, show, list or check class definitions.
#[derive(Debug, Subcommand)]
pub enum Class {
    #[command(flatten)]
    OnServer(OnServer),
    /// Check definitions without a server; exit code 1 if there are faults
    Lint(Lint),
}

/// What goes to the server.
#[derive(Debug, Subcommand)]
pub enum OnServer {
    /// Apply a definition (needs an admin's key)
    Apply(Apply),
    /// Show a class
    Show(Show),
    /// List all classes
    List,
}

impl OnServer {
    pub(super) fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        match self {
            Self::Apply(command) => command.run(http, json),
            Self::Show(command) => command.run(http, json),
            Self::List => list(http, json),
        }
    }
}

/// Apply a definition.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kslate class apply classes/incidents.yaml --dry-run\n  KSLATE_APIKEY=ops-token kslate class apply classes/incidents.yaml"
)]
pub struct Apply {
    /// File with the definition; `-` is stdin
    file: String,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    repeatable: Repeatable,
}

#[derive(Deserialize)]
struct Applied {
    class: String,
    version: u64,
    changed: bool,
    dry_run: bool,
    changes: Vec<String>,
}

impl Apply {
    fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let source = read_file(&self.file)?;
        let class = kslate_class::parse(&source).map_err(|faults| {
            let faults: Vec<String> = faults
                .iter()
                .map(|fault| format!("  {}", fault_line(fault.line, &fault.path, &fault.message)))
                .collect();
            Failure::Local(format!(
                "{} has faults; nothing was sent:\n{}",
                self.file,
                faults.join("\n")
            ))
        })?;
        let ask = Ask::put(&["v1", "classes", &class.name])
            .query("dry_run", self.dry_run.then_some(true))
            .yaml(source)
            .idempotency_key(self.repeatable.idempotency_key.as_deref());
        let body = http.ask(ask)?;
        if json {
            return Ok(body + "\n");
        }
        let applied: Applied = read(&body)?;
        let class = safe(&applied.class);
        if !applied.changed {
            return Ok(format!(
                "{class} is at version {} already; nothing changed\n",
                applied.version
            ));
        }
        let mut text = match applied.dry_run {
            true => format!("{class} would become version {}:\n", applied.version),
            false => format!("{class} is at version {}:\n", applied.version),
        };
        for change in &applied.changes {
            text.push_str(&format!("  {}\n", safe(change)));
        }
        Ok(text)
    }
}

/// Show a class.
#[derive(Debug, Args)]
pub struct Show {
    /// The class
    class: String,
    /// An earlier version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// The definition with every default filled in, instead of the YAML as written
    #[arg(long)]
    definition: bool,
}

#[derive(Deserialize)]
struct Shown {
    class: String,
    version: u64,
    definition: Box<RawValue>,
    source: String,
    applied_by: String,
    applied_at: String,
}

impl Show {
    fn run(&self, http: &Http, json: bool) -> Result<String, Failure> {
        let body =
            http.ask(Ask::get(&["v1", "classes", &self.class]).query("version", self.version))?;
        if json {
            return Ok(body + "\n");
        }
        let shown: Shown = read(&body)?;
        let mut text = format!(
            "# {} version {}, applied by {} {}\n",
            safe(&shown.class),
            shown.version,
            safe(&shown.applied_by),
            when(&shown.applied_at)
        );
        if self.definition {
            text.push_str(&indent(shown.definition.get()));
            text.push('\n');
        } else {
            for line in shown.source.lines() {
                text.push_str(&safe(line));
                text.push('\n');
            }
        }
        Ok(text)
    }
}

#[derive(Deserialize)]
struct Classes {
    classes: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    class: String,
    version: u64,
    description: Option<String>,
    applied_by: String,
    applied_at: String,
}

fn list(http: &Http, json: bool) -> Result<String, Failure> {
    let body = http.ask(Ask::get(&["v1", "classes"]))?;
    if json {
        return Ok(body + "\n");
    }
    let list: Classes = read(&body)?;
    let mut table = Table::new(&["CLASS", "VERSION", "APPLIED BY", "APPLIED", "DESCRIPTION"]);
    for class in list.classes {
        table.row(vec![
            class.class,
            class.version.to_string(),
            class.applied_by,
            when(&class.applied_at),
            class.description.unwrap_or_default(),
        ]);
    }
    Ok(table.text())
}

/// Check definitions without a server.
#[derive(Debug, Args)]
pub struct Lint {
    /// Files with definitions; `-` is stdin
    #[arg(required = true)]
    files: Vec<String>,
}

impl Lint {
    pub(super) fn run(&self, json: bool) -> Result<ExitCode, Failure> {
        let mut good = true;
        for file in &self.files {
            let source = read_file(file)?;
            let text = match kslate_class::parse(&source) {
                Ok(class) if json => report(file, Some(&class.name), &[]),
                Ok(class) => format!("{}: {} is good\n", safe(file), class.name),
                Err(faults) => {
                    good = false;
                    if json {
                        report(file, None, &faults)
                    } else {
                        faults
                            .iter()
                            .map(|fault| {
                                format!(
                                    "{}: {}\n",
                                    safe(file),
                                    fault_line(fault.line, &fault.path, &fault.message)
                                )
                            })
                            .collect()
                    }
                }
            };
            output::print(&text)?;
        }
        Ok(if good {
            ExitCode::SUCCESS
        } else {
            Code::Failure.into()
        })
    }
}

/// One object a file, in the words of INVALID_CLASS.
fn report(file: &str, class: Option<&str>, faults: &[kslate_class::Fault]) -> String {
    let faults: Vec<String> = faults
        .iter()
        .map(|fault| {
            Object::default()
                .plain(
                    "line",
                    Some(
                        fault
                            .line
                            .map_or_else(|| "null".to_owned(), |line| line.to_string()),
                    ),
                )
                .text("path", Some(&fault.path))
                .text("message", Some(&fault.message))
                .finish()
        })
        .collect();
    let class = class.map_or_else(
        || "null".to_owned(),
        |class| serde_json::Value::from(class).to_string(),
    );
    Object::default()
        .text("file", Some(file))
        .raw("class", Some(class))
        .raw("faults", Some(format!("[{}]", faults.join(","))))
        .finish()
        + "\n"
}
