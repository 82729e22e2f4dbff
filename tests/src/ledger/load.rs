//! Writers at work while something is done to what they talk to.

use super::writer::{Attempt, Patience, Writer};
use crate::http::Api;
use crate::wait::SetAtEnd;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How far the writers are: what the faults wait for.
#[derive(Default)]
pub struct Counts {
    pub stop: AtomicBool,
    /// Requests that were answered with success.
    pub acknowledged: AtomicUsize,
    /// Sendings of which nobody knows whether they changed something.
    pub unknown: AtomicUsize,
    /// Refusals because all of the server's connections were in use.
    pub crowded: AtomicUsize,
}

impl Counts {
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub fn unknown(&self) -> usize {
        self.unknown.load(Ordering::Relaxed)
    }

    pub fn crowded(&self) -> usize {
        self.crowded.load(Ordering::Relaxed)
    }
}

/// Writers that have not begun.
pub struct Load {
    apis: Vec<Api>,
    records: Vec<Vec<String>>,
    patience: Patience,
}

/// What they tell at the end.
#[derive(Default)]
pub struct Told {
    pub attempts: Vec<Attempt>,
    /// How often each answer came: `200`, `409 HELD`, `no answer`.
    pub answers: BTreeMap<String, usize>,
    /// Answers that must never come, word for word.
    pub wrong: Vec<String>,
}

impl Load {
    /// Writers 0 to `writers`, with the tokens of [`super::keys`]; each works on the records that it is given.
    pub fn new(
        address: SocketAddr,
        writers: usize,
        records: impl Fn(usize) -> Vec<String>,
        patience: Patience,
    ) -> Load {
        Load {
            apis: (0..writers)
                .map(|number| Api::new(address, Some(&format!("t{number}"))))
                .collect(),
            records: (0..writers).map(records).collect(),
            patience,
        }
    }

    /// Lets them write while `faults` runs; then they come to an end.
    pub fn run(self, faults: impl FnOnce(&Counts)) -> Told {
        let counts = Counts::default();
        let mut told = Told::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .apis
                .into_iter()
                .zip(self.records)
                .enumerate()
                .map(|(number, (api, records))| {
                    let writer = Writer::new(number, api, records, self.patience, &counts);
                    scope.spawn(|| writer.run())
                })
                .collect();
            let stop = SetAtEnd(&counts.stop);
            faults(&counts);
            drop(stop);
            for thread in threads {
                let writer = thread.join().expect("a writer does not panic");
                told.attempts.extend(writer.attempts);
                told.wrong.extend(writer.wrong);
                for (answer, times) in writer.answers {
                    *told.answers.entry(answer).or_default() += times;
                }
            }
        });
        told
    }
}
