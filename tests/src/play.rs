//! Plays a page of the manual: `tests/manual/*.txt` hold its requests, answers, commands and printed lines in the page's order.
//!
//! A file is made of steps, each begun by a line `=== KIND`; lines before the first are comment.
//!
//! ```text
//! === anew                  a fresh database and a server on it; without text the keys are `KEYS`, else the text is a command
//!                           that writes /tmp/keys.yaml
//! === given TOKEN [N times] not on the page: METHOD, PATH and body on one line, a request a line, each accepted
//! === request TOKEN         METHOD and PATH, then the body, as the page has them
//! === HTTP STATUS           what that request is answered, compared as JSON with the order of keys
//! === command               run by bash in the root of the checkout; http://127.0.0.1:8080 and /tmp/keys.yaml stand for the
//!                           test's own server and key file, $B for the server too
//! === prints                what that command prints, compared byte by byte
//! ```

use crate::{bash, postgres_program, root, Answer, Cluster, Database, Shim, KEYS};
use serde_json::Value;
use std::fs;
use std::path::Path;

struct Step {
    kind: String,
    text: String,
    line: usize,
}

/// What the page's last `anew` made, for assertions of the test's own.
pub struct Stage {
    pub database: Database<'static>,
    pub shim: Shim,
}

impl Stage {
    /// A fresh database and a server on it; the keys are `KEYS`, or what a command writes to /tmp/keys.yaml.
    pub fn anew(keys_command: &str) -> Stage {
        let database = Cluster::shared().fresh_database();
        let mut keys = KEYS.to_string();
        if !keys_command.trim().is_empty() {
            let file = database.cluster().dir().join("page-keys.yaml");
            let output = bash(
                &keys_command.replace("/tmp/keys.yaml", &file.display().to_string()),
                &[],
            );
            assert!(output.status.success(), "{output:?}");
            keys = fs::read_to_string(&file).expect("the command wrote the keys");
        }
        let shim = Shim::start(&database, &keys);
        Stage { database, shim }
    }

    /// Runs a command as the manual's reader would, and gives what it prints; it must succeed.
    pub fn command(&self, command: &str) -> String {
        let output = self.try_command(command);
        assert!(
            output.status.success(),
            "{command}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same, whatever its end.
    pub fn try_command(&self, command: &str) -> std::process::Output {
        let environment = self.environment();
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        bash(&self.here(command), &environment)
    }

    /// What a reader's terminal has: the programs, and the test's own server and database.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let programs = Path::new(&postgres_program("psql")).with_file_name("");
        // Before the machine's own, which may be too old for the test's server.
        let path = format!(
            "{}:{}:{}",
            root().join("bin").display(),
            programs.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        vec![
            ("B", self.shim.url()),
            ("PATH", path),
            ("KSLATE_SERVER", self.shim.url()),
            ("KSLATE_LISTEN", self.shim.address().to_string()),
            ("KSLATE_APIKEYS", self.shim.keys().display().to_string()),
            ("DATABASE_URL", self.database.url("kslate")),
        ]
    }

    /// A reader's command with the test's own server, key file and folder for what lies in /tmp.
    pub(crate) fn here(&self, command: &str) -> String {
        let keys = self.shim.keys().display().to_string();
        command
            .replace(SERVER, &self.shim.url())
            .replace("/tmp/", &self.tmp())
            .replace(&format!("{}keys.yaml", self.tmp()), &keys)
    }

    /// What the test's own server, key file and folder are called on the reader's side.
    pub fn there(&self, printed: &str) -> String {
        let keys = self.shim.keys().display().to_string();
        printed
            .replace(&self.shim.url(), SERVER)
            .replace(&keys, "/tmp/keys.yaml")
            .replace(&self.tmp(), "/tmp/")
    }

    fn tmp(&self) -> String {
        format!("{}/", self.database.cluster().dir().display())
    }
}

const SERVER: &str = "http://127.0.0.1:8080";

/// Plays `tests/manual/<page>.txt`; the first difference fails the test and tells the line.
pub fn page(page: &str) -> Stage {
    let file = root().join("tests/manual").join(page).with_extension("txt");
    let text =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut stage = None;
    let mut answer: Option<Answer> = None;
    let mut printed: Option<String> = None;
    for step in steps(&text) {
        let at = format!("{page}.txt:{}", step.line);
        let (kind, rest) = step.kind.split_once(' ').unwrap_or((&step.kind, ""));
        if kind == "anew" {
            stage = Some(Stage::anew(&step.text));
            continue;
        }
        let on = stage
            .as_ref()
            .unwrap_or_else(|| panic!("{at}: the page begins with anew"));
        match kind {
            "given" => {
                let (token, times) = rest.split_once(' ').unwrap_or((rest, "1 times"));
                let times = times
                    .trim_end_matches(" times")
                    .parse()
                    .unwrap_or_else(|_| panic!("{at}: {times}"));
                for line in step.text.lines().filter(|line| !line.is_empty()) {
                    for _ in 0..times {
                        let answer = send(&on.shim, token, line);
                        assert!(answer.status < 300, "{at}: {line}\n{}", answer.text());
                    }
                }
            }
            "request" => answer = Some(send(&on.shim, rest, &step.text)),
            "HTTP" => {
                let came = answer
                    .take()
                    .unwrap_or_else(|| panic!("{at}: an answer without a request"));
                assert_eq!(came.status.to_string(), rest, "{at}: {}", came.text());
                let page: Value = serde_json::from_str(&step.text)
                    .unwrap_or_else(|error| panic!("{at}: {error}"));
                assert_eq!(came.json().to_string(), page.to_string(), "{at}");
            }
            "command" => printed = Some(on.command(&step.text)),
            "prints" => {
                let came = printed
                    .take()
                    .unwrap_or_else(|| panic!("{at}: printed lines without a command"));
                assert_eq!(came, step.text, "{at}");
            }
            _ => panic!("{at}: unknown step {kind}"),
        }
    }
    stage.unwrap_or_else(|| panic!("{page} is empty"))
}

/// `METHOD PATH` and, after a blank or a line's end, the body.
fn send(shim: &Shim, token: &str, text: &str) -> Answer {
    let mut parts = text.trim().splitn(3, [' ', '\n']);
    let (method, path) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    shim.api(token).request(
        method,
        path,
        &[],
        parts.next().unwrap_or_default().as_bytes(),
    )
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(kind) = line.strip_prefix("=== ") {
            steps.push(Step {
                kind: kind.trim().to_string(),
                text: String::new(),
                line: index + 1,
            });
        } else if let Some(step) = steps.last_mut() {
            step.text += line;
            step.text.push('\n');
        }
    }
    steps
}
