//! The key file: which token is whose (docs/operations.md). Read again when it changes; a faulty one is refused and the old keys stay.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_yaml::options::DuplicateKeyPolicy;
use serde_yaml::Spanned;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::identity::Caller;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is wrong with a key file. Never tells a token.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyFileError {
    line: Option<u64>,
    message: String,
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The keys in force.
#[derive(Debug)]
pub struct Keys {
    path: PathBuf,
    table: RwLock<Arc<Table>>,
}

impl Keys {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`KeyFileError`] if it cannot be read or has a fault.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let table = Table::load(path)?;
        Ok(Self {
            path: path.to_owned(),
            table: RwLock::new(Arc::new(table)),
        })
    }

    /// The keys of a text, for tests.
    #[cfg(test)]
    pub fn of(text: &str) -> Self {
        let table = Table::read(text).expect("a good key file");
        Self {
            path: PathBuf::new(),
            table: RwLock::new(Arc::new(table)),
        }
    }

    /// Whose token this is.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        table.caller(token)
    }

    /// Watches the file for ever, and takes over what it says.
    pub async fn watch(&self) {
        let mut seen = Mark::of(&self.path);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = Mark::of(&self.path);
            if now == seen {
                continue;
            }
            seen = now;
            match Table::load(&self.path) {
                Ok(table) => {
                    tracing::info!(keys = table.entries.len(), "key file read again");
                    *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
                }
                Err(error) => {
                    tracing::error!(file = %self.path.display(), %error, "key file refused; the old keys stay in force")
                }
            }
        }
    }
}

/// Tells a file from a changed one without reading it.
#[derive(PartialEq, Eq)]
struct Mark(Option<(u64, u64, i64, i64, i64, i64)>);

impl Mark {
    fn of(path: &Path) -> Self {
        let meta = std::fs::metadata(path).ok();
        Self(meta.map(|meta| {
            (
                meta.ino(),
                meta.len(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            )
        }))
    }
}

type Sha = [u8; 32];

/// SHA-256 of each token, and whose it is.
#[derive(Debug)]
struct Table {
    entries: Vec<(Sha, Caller)>,
}

impl Table {
    fn load(path: &Path) -> Result<Self, KeyFileError> {
        let text = std::fs::read_to_string(path).map_err(|error| KeyFileError {
            line: None,
            message: format!("{}: {error}", path.display()),
        })?;
        Self::read(&text)
    }

    fn read(text: &str) -> Result<Self, KeyFileError> {
        let options = serde_yaml::options! { duplicate_keys: DuplicateKeyPolicy::PassThrough, strict_booleans: true, with_snippet: false };
        let rows: Rows = serde_yaml::from_str_with_options(text, options).map_err(|error| {
            // The parser's own words may quote the file, and the file is all secrets.
            let message = OUR_FAULTS.iter().find(|fault| error.to_string().contains(*fault)).copied();
            KeyFileError {
                line: error.location().map(|at| at.line()),
                message: message.unwrap_or("not readable: one `token: name` a line is wanted, names with special characters in quotes").to_owned(),
            }
        })?;
        let mut table = Self {
            entries: Vec::new(),
        };
        for (token, owner) in rows.0 {
            let line = Some(token.referenced.line());
            let fault = |message: &str| KeyFileError {
                line,
                message: message.to_owned(),
            };
            let digest = digest_of(&token.value).map_err(fault)?;
            if !is_name(&owner.identity) {
                return Err(fault("the name must be 1 to 200 letters, digits or any of . _ ~ @ : / + -, such as remediator/worker-1, without `apikey:` before it"));
            }
            if table.entries.iter().any(|(seen, _)| *seen == digest) {
                return Err(fault("this token is in the file twice"));
            }
            table.entries.push((
                digest,
                Caller {
                    identity: format!("apikey:{}", owner.identity),
                    admin: owner.admin,
                },
            ));
        }
        if table.entries.is_empty() {
            return Err(KeyFileError {
                line: None,
                message: "no keys in it: one `token: name` a line is wanted".to_owned(),
            });
        }
        Ok(table)
    }

    /// Compares with every entry, in a time that tells nothing of how near a guess came.
    fn caller(&self, token: &str) -> Option<Caller> {
        let digest: Sha = Sha256::digest(token.as_bytes()).into();
        let mut found = u32::MAX;
        for (index, (entry, _)) in (0_u32..).zip(&self.entries) {
            let same: Choice = entry.ct_eq(&digest);
            found = u32::conditional_select(&found, &index, same);
        }
        self.entries
            .get(usize::try_from(found).ok()?)
            .map(|(_, caller)| caller.clone())
    }
}

fn digest_of(token: &str) -> Result<Sha, &'static str> {
    let Some(hex) = token.strip_prefix("sha256:") else {
        // What a header cannot carry would never match.
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token must be printable ASCII without blanks");
        }
        return Ok(Sha256::digest(token.as_bytes()).into());
    };
    let mut digest = [0; 32];
    let wrong = "sha256: must be followed by the 64 hex digits of the token's SHA-256";
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong);
    }
    for (at, byte) in digest.iter_mut().enumerate() {
        let pair = hex.get(2 * at..2 * at + 2).ok_or(wrong)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong)?;
    }
    Ok(digest)
}

fn is_name(name: &str) -> bool {
    (1..=200).contains(&name.len())
        && !name.starts_with("apikey:")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._~@:/+-".contains(&byte))
}

const NOT_OWNER: &str = "a name is wanted, or { identity: name, admin: true }";
const NO_IDENTITY: &str = "identity is missing in { identity: name, admin: true }";
/// The messages of this file that may come back through the parser.
const OUR_FAULTS: &[&str] = &[NOT_OWNER, NO_IDENTITY];

/// The file's lines, in order, duplicates too.
struct Rows(Vec<(Spanned<String>, Owner)>);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lines of token: name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rows, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = map.next_entry()? {
                    rows.push(row);
                }
                Ok(Rows(rows))
            }

            fn visit_unit<E>(self) -> Result<Rows, E> {
                Ok(Rows(Vec::new()))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// `name`, or `{ identity: name, admin: true }`.
struct Owner {
    identity: String,
    admin: bool,
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Owner;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(NOT_OWNER)
            }

            fn visit_str<E>(self, name: &str) -> Result<Owner, E> {
                Ok(Owner {
                    identity: name.to_owned(),
                    admin: false,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Owner, A::Error> {
                let (mut identity, mut admin) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "identity" if identity.is_none() => identity = Some(map.next_value()?),
                        "admin" if admin.is_none() => admin = Some(map.next_value()?),
                        _ => return Err(A::Error::custom(NOT_OWNER)),
                    }
                }
                let identity = identity.ok_or_else(|| A::Error::custom(NO_IDENTITY))?;
                Ok(Owner {
                    identity,
                    admin: admin.unwrap_or(false),
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> KeyFileError {
        match Table::read(text) {
            Err(fault) => fault,
            Ok(table) => panic!("{text:?} was read as {table:?}"),
        }
    }

    #[test]
    fn the_three_forms() {
        let sha = "d32ac21f4ae4e63df8a8ba0e83f5e8a5ac0c1a2b8b5cd2e0ad3c3c0a9a7b6f10";
        let text = format!(
            "diag-token: diagnoser\nw1-token: remediator/worker-1\n\"quoted token\\u0021\": x\n\"sha256:{sha}\": hashed\nroot-token: {{ identity: ops, admin: true }}\n12345: x678\nno: on\n"
        );
        assert_eq!(fault(&text).line, Some(3));
        let table =
            Table::read(&text.replace("quoted token", "quoted-token")).expect("a good file");
        assert_eq!(table.entries.len(), 7);
        let caller = |token: &str| {
            table
                .caller(token)
                .map(|caller| (caller.identity, caller.admin))
        };
        assert_eq!(
            caller("diag-token"),
            Some(("apikey:diagnoser".to_owned(), false))
        );
        assert_eq!(
            caller("w1-token"),
            Some(("apikey:remediator/worker-1".to_owned(), false))
        );
        assert_eq!(caller("root-token"), Some(("apikey:ops".to_owned(), true)));
        assert_eq!(caller("12345"), Some(("apikey:x678".to_owned(), false)));
        assert_eq!(caller("no"), Some(("apikey:on".to_owned(), false)));
        for unknown in [
            "",
            "w1-toke",
            "w1-token ",
            "W1-TOKEN",
            &format!("sha256:{sha}"),
            sha,
        ] {
            assert_eq!(caller(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_hashed_token_is_the_same_as_the_token() {
        let digest = Sha256::digest(b"w1-token");
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let table = Table::read(&format!("\"sha256:{hex}\": w1")).expect("a good file");
        assert_eq!(
            table
                .caller("w1-token")
                .map(|caller| caller.identity)
                .as_deref(),
            Some("apikey:w1")
        );
        assert_eq!(
            fault(&format!("w1-token: a\n\"sha256:{hex}\": b\n")).line,
            Some(2)
        );
    }

    #[test]
    fn faults_have_their_line_and_never_a_token() {
        for (text, line) in [
            ("secret1: a\nsecret2: b\nsecret1: c\n", Some(3)),
            ("secret1: a\nsecret2:\n", Some(2)),
            ("secret1: a\nsecret2: [b]\n", Some(2)),
            (
                "secret1: a\nsecret2: { identity: b, admin: yes }\n",
                Some(2),
            ),
            (
                "secret1: a\nsecret2: { identity: b, secret3: true }\n",
                Some(2),
            ),
            ("secret1: a\nsecret2: { admin: true }\n", Some(2)),
            ("secret1: a\nsecret2: apikey:b\n", Some(2)),
            ("secret1: a\nsecret2: \"b c\"\n", Some(2)),
            ("secret1: a\nsecret2: \"b*\"\n", Some(2)),
            ("secret1: a\n\"sha256:abc\": b\n", Some(2)),
            ("secret1: a\nsecret2 b\n", Some(2)),
            ("- secret1\n", Some(1)),
            ("secret1", Some(1)),
            ("", None),
            ("# nothing\n", None),
        ] {
            let fault = fault(text);
            assert_eq!(fault.line, line, "{text:?}: {fault}");
            assert!(!fault.to_string().contains("secret"), "{text:?}: {fault}");
        }
    }
}
