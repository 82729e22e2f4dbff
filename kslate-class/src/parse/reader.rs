//! Builds the tree out of the parser's events. Budgets are kept event by event, so that a bomb stops early.

use super::scalar::resolve_plain;
use super::tree::{Entry, Kind, Node};
use crate::fault::{quoted, shortened, Fault, Faults};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};
use std::collections::HashSet;

const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 20_000;

/// Why there is no tree.
pub(crate) enum Stop {
    /// A bound was exceeded; nothing else about the source is worth saying.
    OverBudget(Fault),
    /// The syntax is broken; the fault is among the others.
    Unreadable,
}
pub(crate) use Stop::{OverBudget, Unreadable};

/// Reads the one document of a source; `None` if it is empty.
pub(crate) fn read(source: &str, faults: &mut Faults) -> Result<Option<Node>, Stop> {
    if let Some(at) = source.find('\0') {
        let line = source[..at].matches('\n').count() as u64 + 1;
        faults.add(line, "", "the definition has a NUL character; remove it");
        return Err(Unreadable);
    }
    let mut options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        // The scanner looks this far for the colon of a key; a JSON key may be as long as it likes.
        simple_key_max_lookahead: 4096
    };
    options.set_emit_comments(false);
    let mut builder = Builder {
        open: Vec::new(),
        root: None,
        nodes: 0,
        skipped: 0,
        faults,
    };
    let mut documents = 0;
    for step in Parser::new_from_str_with_options(source, options) {
        let (event, span) = step.map_err(|error| builder.stopped_by(&error))?;
        let line = span.start.line() as u64;
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    builder.faults.add(
                        line,
                        "",
                        "a second document starts here; a definition is one document",
                    );
                    return Err(Unreadable);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                builder.count(line)?;
                let tagged = builder.properties(line, anchor, tag.is_some());
                builder.scalar(&text, style, line, tagged);
            }
            Event::SequenceStart(_, anchor, tag) => {
                builder.count(line)?;
                builder.properties(line, anchor, tag.is_some());
                builder.start(Open::List {
                    line,
                    items: Vec::new(),
                })?;
            }
            Event::MappingStart(_, anchor, tag) => {
                builder.count(line)?;
                builder.properties(line, anchor, tag.is_some());
                builder.start(Open::Map {
                    line,
                    entries: Vec::new(),
                    seen: HashSet::new(),
                    key: None,
                })?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.end(),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                builder.count(line)?;
                builder.fault(line, "aliases (*name) are not allowed; write the value out, or quote it if text is meant");
                builder.scalar_node(Node {
                    line,
                    kind: Kind::Faulty,
                });
            }
            _ => {}
        }
    }
    Ok(builder.root)
}

/// A collection that is still being read.
enum Open {
    List {
        line: u64,
        items: Vec<Node>,
    },
    Map {
        line: u64,
        entries: Vec<Entry>,
        seen: HashSet<String>,
        key: Option<Key>,
    },
}

/// A key whose value comes next. `keep` is false where the key is at fault: its value is read, reported on, dropped.
struct Key {
    text: String,
    line: u64,
    keep: bool,
}

struct Builder<'f> {
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
    /// How many collections are open inside a key, where only scalars belong.
    skipped: usize,
    faults: &'f mut Faults,
}

impl Builder<'_> {
    fn count(&mut self, line: u64) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(over(
                line,
                format!("the definition has more than {MAX_NODES} values and keys"),
            ));
        }
        Ok(())
    }

    fn stopped_by(&mut self, error: &ScanError) -> Stop {
        let line = error.marker().line() as u64;
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(line),
            ErrorKind::DirectiveDisallowed => {
                self.faults.add(
                    line,
                    "",
                    "directives (%YAML, %TAG) are not allowed; remove the line",
                );
                Unreadable
            }
            _ => {
                self.fault(
                    line,
                    &format!(
                        "the YAML cannot be read: {} (column {})",
                        error.info(),
                        error.marker().col() + 1
                    ),
                );
                Unreadable
            }
        }
    }

    /// Reports anchor and tag; true if there was a tag.
    fn properties(&mut self, line: u64, anchor: usize, tagged: bool) -> bool {
        if anchor != 0 {
            self.fault(line, "anchors (&name) are not allowed; write the value out, or quote it if text is meant");
        }
        if tagged {
            self.fault(
                line,
                "tags (!name) are not allowed; remove it, or quote the value if text is meant",
            );
        }
        tagged
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, line: u64, tagged: bool) {
        if self.skipped > 0 {
            return;
        }
        if self.awaits_key() && style == ScalarStyle::Plain && text == "<<" {
            self.faults.add(
                line,
                self.path_with(text),
                "merge keys (<<) are not allowed; write the keys out",
            );
            self.set_key(Key {
                text: text.to_owned(),
                line,
                keep: false,
            });
            return;
        }
        let kind = if tagged {
            Kind::Faulty
        } else if style != ScalarStyle::Plain {
            Kind::Text(text.to_owned())
        } else {
            match resolve_plain(text) {
                Ok(kind) => kind,
                Err(message) => {
                    let path = if self.awaits_key() {
                        self.path_with(text)
                    } else {
                        self.path()
                    };
                    self.faults.add(line, path, message);
                    Kind::Faulty
                }
            }
        };
        let kind = match kind {
            Kind::Text(text) if text.contains('\0') => {
                self.fault(
                    line,
                    "text with a NUL character (\\0) cannot be stored; remove it",
                );
                Kind::Faulty
            }
            other => other,
        };
        self.scalar_node(Node { line, kind });
    }

    /// Puts a scalar where it belongs: the next key, or a value.
    fn scalar_node(&mut self, node: Node) {
        if self.skipped > 0 {
            return;
        }
        if !self.awaits_key() {
            return self.place(node);
        }
        let line = node.line;
        let key = match node.kind {
            Kind::Text(text) => self.text_key(text, line),
            Kind::Faulty => Key {
                text: "?".to_owned(),
                line,
                keep: false,
            },
            _ => {
                self.fault(line, "a key must be text; write it in quotes");
                Key {
                    text: "?".to_owned(),
                    line,
                    keep: false,
                }
            }
        };
        self.set_key(key);
    }

    fn text_key(&mut self, text: String, line: u64) -> Key {
        let is_new = match self.open.last_mut() {
            Some(Open::Map { seen, .. }) => seen.insert(text.clone()),
            _ => true,
        };
        if !is_new {
            let message = format!(
                "duplicate key {}; the second would replace the first",
                quoted(&text)
            );
            self.faults.add(line, self.path_with(&text), message);
        }
        Key {
            text,
            line,
            keep: is_new,
        }
    }

    fn start(&mut self, collection: Open) -> Result<(), Stop> {
        let line = match collection {
            Open::List { line, .. } | Open::Map { line, .. } => line,
        };
        if self.open.len() + self.skipped >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        if self.skipped > 0 {
            self.skipped += 1;
        } else if self.awaits_key() {
            self.fault(line, "a key must be text, not a list or a mapping");
            self.skipped = 1;
        } else {
            self.open.push(collection);
        }
        Ok(())
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
            if self.skipped == 0 {
                self.set_key(Key {
                    text: "?".to_owned(),
                    line: 0,
                    keep: false,
                });
            }
            return;
        }
        match self.open.pop() {
            Some(Open::List { line, items }) => self.place(Node {
                line,
                kind: Kind::List(items),
            }),
            Some(Open::Map { line, entries, .. }) => self.place(Node {
                line,
                kind: Kind::Map(entries),
            }),
            None => {}
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Open::Map { key, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                if let Some(Key {
                    text,
                    line,
                    keep: true,
                }) = key.take()
                {
                    entries.push(Entry {
                        key: text,
                        line,
                        value: node,
                    });
                }
            }
            None => self.root = Some(node),
        }
    }

    fn fault(&mut self, line: u64, message: &str) {
        let path = self.path();
        self.faults.add(line, path, message);
    }

    /// Where the reader stands, in the terms of [`Fault::path`].
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::List { items, .. } => path.push_str(&format!("[{}]", items.len())),
                Open::Map { key: Some(key), .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&shortened(&key.text));
                }
                Open::Map { .. } => {}
            }
        }
        path
    }

    fn path_with(&self, key: &str) -> String {
        let path = self.path();
        let dot = if path.is_empty() { "" } else { "." };
        format!("{path}{dot}{}", shortened(key))
    }
}

fn too_deep(line: u64) -> Stop {
    over(
        line,
        format!("the definition is nested more than {MAX_DEPTH} levels deep"),
    )
}

fn over(line: u64, message: String) -> Stop {
    OverBudget(Fault {
        line: Some(line),
        path: String::new(),
        message,
    })
}
