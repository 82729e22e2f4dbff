//! Plays the fenced commands of a Markdown page as its reader would: one bash and one psql stay open through the page.
//!
//! `sh` blocks go to that bash, `sql` blocks to that psql (as the superuser `kslate`, which is what `make psql` opens). A `text`
//! block right after one is what it prints, errors included: `…` in it stands for anything, blanks at the end of a line and the
//! length of psql's rules do not count. `make run`, `make psql`, `make test` and `. .kslate/env`, which are about the reader's own
//! machine, are only looked up; a line `printf … >/tmp/keys.yaml` makes the keys of the server that the page is played on. `python`
//! and `bash` blocks are for clients/python/tests/examples/pages.py.
//!
//! `KSLATE_DOCS=write cargo test -p kslate-tests --test docs` writes what came into the page, wherever it is not what stands there.

use crate::database::postgres_program;
use crate::play::Stage;
use crate::repository::root;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A fenced block, and the `text` block right after it.
pub struct Block {
    pub language: String,
    pub text: String,
    /// Line of its opening fence, from 1.
    pub line: usize,
    pub prints: Option<String>,
    /// First and last line of what is between the fences of `prints`, from 0, the last excluded.
    printed_at: (usize, usize),
}

/// What a page was played on; its terminals are closed.
pub struct Played {
    pub stage: Stage,
    pub blocks: Vec<Block>,
}

/// Plays a page of the checkout, such as `docs/sql.md`. All differences fail the test together.
pub fn play(path: &str) -> Played {
    let file = root().join(path);
    let page = read(&file);
    let makefile = read(&root().join("Makefile"));
    let blocks = blocks(&page);
    let lines = || blocks.iter().flat_map(|block| block.text.lines());
    let keys: Vec<&str> = lines().filter(|line| makes_keys(line)).collect();
    let stage = Stage::anew(&keys.join("\n"));
    let mut shell = Terminal::bash(&stage);
    let mut psql = Terminal::psql(&stage);
    let mut differences = Vec::new();
    let mut written: Vec<String> = page.lines().map(str::to_string).collect();
    for block in &blocks {
        let at = format!("{path}:{}", block.line);
        let command: String = block
            .text
            .lines()
            .filter(|line| !is_the_readers(line, &makefile, &at))
            .map(|line| format!("{line}\n"))
            .collect();
        let printed = match block.language.as_str() {
            _ if command.trim().is_empty() => continue,
            "sh" => {
                let command = stage.here(&format!("{{\n{command}}} </dev/null\n"));
                stage.there(&shell.run(&command, &at))
            }
            "sql" => psql.run(&command, &at),
            // Not for a terminal: told by the test of the page.
            _ => continue,
        };
        if let Some(expected) = &block.prints {
            if !matches(&printed, expected) {
                differences.push((
                    block.printed_at,
                    format!("{at} prints\n{printed}\nnot\n{expected}"),
                    printed,
                ));
            }
        }
    }
    drop((shell, psql));
    if writing() {
        for ((first, last), _, printed) in differences.drain(..).rev() {
            written.splice(
                first..last,
                steady(&printed)
                    .lines()
                    .map(|line| line.trim_end().to_string()),
            );
        }
        fs::write(&file, written.join("\n") + "\n").expect("the page can be written");
    }
    let told: Vec<String> = differences.into_iter().map(|(_, told, _)| told).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    Played { stage, blocks }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A line that writes the reader's key file.
pub fn makes_keys(line: &str) -> bool {
    line.starts_with("printf ") && line.contains("/tmp/keys.yaml")
}

/// Is this line about the reader's own machine? A target it names must be in the Makefile.
fn is_the_readers(line: &str, makefile: &str, at: &str) -> bool {
    let target = line
        .split("make ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    match target {
        Some(target @ ("run" | "test" | "psql" | "install-extension")) => {
            assert!(
                makefile.contains(&format!("\n{target}:")),
                "{at}: make {target}"
            );
            true
        }
        _ => makes_keys(line) || line == ". .kslate/env",
    }
}

/// Compares with a file of what must be printed, as with a `text` block; `KSLATE_DOCS=write` writes the file.
pub fn expect_printed(file: &Path, printed: &str) {
    if fs::read_to_string(file).is_ok_and(|expected| matches(printed, &expected)) {
        return;
    }
    if writing() {
        return fs::write(file, steady(printed)).expect("the file can be written");
    }
    panic!("{} is not what was printed:\n{printed}", file.display());
}

fn writing() -> bool {
    std::env::var("KSLATE_DOCS").as_deref() == Ok("write")
}

/// The fenced blocks of a page, `text` blocks beside what prints them.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = markdown.lines().enumerate();
    let mut adjacent = false;
    while let Some((index, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            adjacent = false;
            continue;
        };
        let text: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .map(|line| format!("{line}\n"))
            .collect();
        match blocks.last_mut() {
            Some(before) if language == "text" && adjacent => {
                before.printed_at = (index + 1, index + 1 + text.lines().count());
                before.prints = Some(text);
            }
            _ => blocks.push(Block {
                language: language.to_string(),
                text,
                line: index + 1,
                prints: None,
                printed_at: (0, 0),
            }),
        }
        adjacent = true;
    }
    blocks
}

/// `…` in the expected text stands for any run of characters, also of lines. Blanks at the end of a line and the length of
/// psql's rules (`----+----`) do not count.
pub fn matches(printed: &str, expected: &str) -> bool {
    let (printed, expected) = (tidy(printed), tidy(expected));
    let mut pieces = expected.split('…');
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    for (index, piece) in pieces.iter().enumerate() {
        if index + 1 == pieces.len() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty()
}

fn tidy(text: &str) -> String {
    let mut tidied = String::new();
    for line in text.trim_end().lines() {
        let line = line.trim_end();
        let is_rule = line.starts_with('-') && line.contains("--");
        if is_rule {
            let mut previous = ' ';
            for c in line.chars() {
                if !(c == '-' && previous == '-') {
                    tidied.push(c);
                }
                previous = c;
            }
        } else {
            tidied.push_str(line);
        }
        tidied.push('\n');
    }
    tidied
}

/// Replaces what differs from one run to the next: times, uuids, seconds that are left.
fn steady(text: &str) -> String {
    let mut text = text.trim_end().to_string();
    for before in [
        "for another ",
        "\"retry_after_seconds\":",
        "retry-after: ",
        "(in ",
    ] {
        let mut pieces = text.split(before);
        let mut out = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
            let dots = if rest.len() < piece.len() { "…" } else { "" };
            out.extend([before, dots, rest]);
        }
        text = out;
    }
    text.push('\n');
    const VARIES: [&str; 2] = [
        "dddd-dd-dd?dd:dd:dd",
        "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh",
    ];
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let found = VARIES.iter().find(|shape| fits(&chars[at..], shape));
        let Some(shape) = found else {
            out.push(chars[at]);
            at += 1;
            continue;
        };
        at += shape.len();
        // A time's fraction and zone.
        while shape.starts_with('d')
            && chars
                .get(at)
                .is_some_and(|c| c.is_ascii_digit() || matches!(c, '.' | '+' | ':'))
        {
            at += 1;
        }
        out.push('…');
    }
    out
}

fn fits(text: &[char], shape: &str) -> bool {
    text.len() >= shape.len()
        && shape.chars().zip(text).all(|(want, have)| match want {
            'd' => have.is_ascii_digit(),
            'h' => have.is_ascii_hexdigit(),
            '?' => matches!(have, 'T' | ' '),
            want => want == *have,
        })
}

/// A program that reads commands line by line and stays open.
struct Terminal {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// A command that prints the mark.
    says_mark: String,
}

const MARK: &str = "=== the block has ended ===";

impl Terminal {
    fn bash(stage: &Stage) -> Terminal {
        let mut command = Command::new("bash");
        command.args(["-c", "exec 2>&1; exec bash -euo pipefail -s"]);
        for (name, value) in stage.environment() {
            command.env(name, value);
        }
        Terminal::start(command, format!("printf '%s\\n' '{MARK}'\n"))
    }

    fn psql(stage: &Stage) -> Terminal {
        let mut command = Command::new("bash");
        // Errors and answers in the order they come: psql keeps its answers back when nobody watches.
        command.args(["-c", "exec 2>&1; exec stdbuf -oL \"$0\" -X \"$1\""]);
        command.arg(postgres_program("psql"));
        command.arg(stage.database.url("kslate"));
        Terminal::start(command, format!("\\echo '{MARK}'\n"))
    }

    fn start(mut command: Command, says_mark: String) -> Terminal {
        let mut child = command
            .current_dir(root())
            .env("PSQL_PAGER", "")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a terminal starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Terminal {
            input: child.stdin.take(),
            child,
            output,
            says_mark,
        }
    }

    /// Runs a block and gives all that it printed.
    fn run(&mut self, text: &str, at: &str) -> String {
        let input = self.input.as_mut().expect("it is open");
        input
            .write_all(format!("{text}{}", self.says_mark).as_bytes())
            .unwrap_or_else(|error| panic!("{at}: {error}"));
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("it prints UTF-8");
            assert!(read > 0, "{at}: it ended, after\n{printed}");
            if let Some(last) = line.trim_end().strip_suffix(MARK) {
                return printed + last;
            }
            printed += &line;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The Markdown pages in `docs/`, as paths from the root, in order.
pub fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(root().join("docs"))
        .expect("docs/")
        .map(|entry| Path::new("docs").join(entry.expect("a file").file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_must_be_what_stands_there() {
        for (printed, expected, same) in [
            ("a\n", "a\n", true),
            ("a  \n\n", "a\n", true),
            ("a 17 s b\n", "a … s b\n", true),
            ("a\nb\nc\nd\n", "a\n…\nd\n", true),
            ("-[ RECORD 1 ]--+-----\n", "-[ RECORD 1 ]-+--\n", true),
            ("a\nb\n", "a\n", false),
            ("a\n", "a\nb\n", false),
            ("a 17 s c\n", "a … s b\n", false),
            ("ab\n", "a…ab\n", false),
            ("version 2\n", "version 1\n", false),
        ] {
            assert_eq!(matches(printed, expected), same, "{printed:?} {expected:?}");
        }
    }

    #[test]
    fn times_and_ids_do_not_stand_in_a_page() {
        let printed = "at 2026-11-29T14:40:12.123456+00:00, 2026-11-29 14:40:12+00 by 0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10 for another 12 s";
        assert_eq!(steady(printed), "at …, … by … for another … s\n");
    }
}
