//! Idempotency keys: the same key with the same request gives the first answer again and changes nothing.
//!
//! Looked up under the record's lock and written in the same transaction as the change, so that only accepted changes are
//! remembered.

use pgrx::prelude::*;
use serde::de::DeserializeOwned;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{json_text, Code, Failure, Outcome};
use crate::json::Jsonb;
use crate::scope::{need, Call};
use crate::spi::{text, time};
use crate::store;
use crate::time::Time;

const MAX_KEY_CHARS: usize = 128;

/// A request that may carry a key, and what makes it the same request: operation and parameters.
pub struct Request {
    key: Option<String>,
    hash: Sha256,
}

impl Request {
    /// Begins a request; a key must be 1 to 128 printable ASCII characters.
    pub fn new(key: Option<&str>, operation: &str) -> Outcome<Request> {
        if let Some(key) = key {
            let fits = !key.is_empty()
                && key.len() <= MAX_KEY_CHARS
                && key.bytes().all(|b| (b' '..=b'~').contains(&b));
            if !fits {
                return Err(Failure::malformed(
                    "an idempotency key has 1 to 128 printable ASCII characters",
                ));
            }
        }
        Ok(Request {
            key: key.map(str::to_owned),
            hash: Sha256::new(),
        }
        .part(Some(operation)))
    }

    /// Adds a parameter. Values come as jsonb text, which is the same for the same value.
    pub fn part(mut self, value: Option<impl AsRef<str>>) -> Request {
        if self.key.is_some() {
            match value {
                None => self.hash.update([0]),
                Some(value) => {
                    let value = value.as_ref().as_bytes();
                    self.hash.update([1]);
                    self.hash.update((value.len() as u64).to_le_bytes());
                    self.hash.update(value);
                }
            }
        }
        self
    }

    /// Adds a value, as its jsonb text.
    pub fn value(self, value: Option<&Jsonb>) -> Request {
        if self.key.is_none() {
            return self;
        }
        self.part(value.map(Jsonb::text))
    }

    /// Adds a number or other plain parameter.
    pub fn number(self, value: Option<impl ToString>) -> Request {
        if self.key.is_none() {
            return self;
        }
        self.part(value.map(|value| value.to_string()))
    }

    /// Makes the change, unless the key was used for this request before: then the first answer is given again. Only an
    /// accepted change is remembered. `about` is the record, or the class where no record is named. Call it under the lock.
    pub fn once<T: Serialize + DeserializeOwned>(
        &self,
        call: &Call,
        about: &str,
        change: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        if let Some(first) = self.replay(call, about)? {
            return Ok(first);
        }
        let answer = change()?;
        self.remember(call, about, &answer)?;
        Ok(answer)
    }

    /// The first answer, if the key was used for this request before.
    pub fn replay<T: DeserializeOwned>(&self, call: &Call, about: &str) -> Outcome<Option<T>> {
        let Some(key) = &self.key else {
            return Ok(None);
        };
        let parameters = [text(about), text(&call.caller.identity), text(key)];
        let rows = call.session.write(&store::KEY_GET, &parameters)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let hash: Vec<u8> = row.need(0)?;
        let answer: String = row.need(1)?;
        if hash == self.hash.clone().finalize().as_slice() {
            return serde_json::from_str(&answer).map(Some).map_err(|_| {
                Failure::new(
                    Code::Unavailable,
                    "a remembered answer cannot be read by this version",
                )
            });
        }
        let failure = Failure::new(
            Code::IdempotencyConflict,
            "this Idempotency-Key was used for another request; take a new key for a new request",
        );
        Err(if about.contains('/') {
            failure.record(about)
        } else {
            failure
        })
    }

    /// Remembers the answer of an accepted change.
    pub fn remember(&self, call: &Call, about: &str, answer: &impl Serialize) -> Outcome<()> {
        let Some(key) = &self.key else { return Ok(()) };
        let hash = self.hash.clone().finalize();
        let parameters = [
            text(about),
            text(&call.caller.identity),
            text(key),
            hash.as_slice().into_datum(),
            text(&json_text(answer)),
            time(Time::now()),
        ];
        if call
            .session
            .write(&store::KEY_INSERT, &parameters)?
            .changed()
            == 0
        {
            // Two requests at once with one key, on no common record lock (claim next, class apply): the first one wins.
            return Err(Failure::new(
                Code::Busy,
                "another request with the same key was answered meanwhile; send the same request again",
            ));
        }
        Ok(())
    }
}

/// Forgets keys that are older; run it daily (docs/operations.md). Returns how many were forgotten.
#[pg_extern]
fn kslate_forget_keys(older_than: Option<Interval>) -> i64 {
    crate::entry(|| {
        let older_than = need(older_than, "older_than")?;
        let micros = older_than.as_micros();
        let micros = i64::try_from(micros).unwrap_or(i64::MAX);
        if micros < 0 {
            return Err(Failure::malformed("older_than must not be negative"));
        }
        let call = Call::open(None)?;
        let before = Time(Time::now().0.saturating_sub(micros));
        let rows = call.session.write(&store::KEYS_FORGET, &[time(before)])?;
        Ok(rows.changed() as i64)
    })
}
