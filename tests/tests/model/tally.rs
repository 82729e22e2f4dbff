//! How often each operation had each outcome; the table at the end.

use std::collections::BTreeMap;
use std::fmt;

/// Each operation with every outcome that it can have.
#[rustfmt::skip]
pub const REACHABLE: &[(&str, &[&str])] = &[
    ("create", &["ok", "existed", "ALREADY_EXISTS", "SCOPE_DENIED"]),
    ("write cas", &["ok", "VERSION_CONFLICT", "MALFORMED", "SCOPE_DENIED", "NOT_FOUND", "LEASE_LOST", "INVALID_VALUE", "INVALID_CHECKPOINT"]),
    ("write lww", &["ok", "VERSION_CONFLICT", "SCOPE_DENIED", "NOT_FOUND", "LEASE_LOST"]),
    ("append", &["ok", "SCOPE_DENIED", "NOT_FOUND", "LEASE_LOST"]),
    ("claim", &["ok", "takeover", "HELD", "COMPLETED", "MALFORMED", "SCOPE_DENIED", "NOT_FOUND"]),
    ("reattach", &["ok", "takeover", "HELD", "COMPLETED", "MALFORMED", "SCOPE_DENIED", "NOT_FOUND"]),
    ("claim next", &["ok", "takeover", "none", "MALFORMED", "SCOPE_DENIED"]),
    ("renew", &["ok", "LEASE_LOST", "MALFORMED", "SCOPE_DENIED", "NOT_FOUND"]),
    ("release", &["ok", "LEASE_LOST", "SCOPE_DENIED", "NOT_FOUND"]),
    ("complete", &["ok", "LEASE_LOST", "SCOPE_DENIED", "NOT_FOUND"]),
    ("reopen", &["ok", "NOT_COMPLETED", "SCOPE_DENIED", "NOT_FOUND"]),
    ("force release", &["ok", "VERSION_CONFLICT", "SCOPE_DENIED", "NOT_FOUND"]),
    ("save", &["ok", "INVALID_CHECKPOINT", "MALFORMED", "LEASE_LOST", "SCOPE_DENIED", "NOT_FOUND"]),
    ("load", &["ok", "SCOPE_DENIED", "NOT_FOUND"]),
    ("tick", &["ok"]),
    ("LEASE_LOST:", &["lapsed", "taken_over", "reattached", "released", "force_released", "completed", "reopened", "not_claimed"]),
];

#[derive(Default)]
pub struct Tally {
    counts: BTreeMap<(&'static str, String), usize>,
    pub sequences: usize,
    pub steps: usize,
    pub accepted: usize,
}

impl Tally {
    pub fn count(&mut self, operation: &'static str, outcome: &str) {
        *self
            .counts
            .entry((operation, outcome.to_string()))
            .or_default() += 1;
    }

    pub fn add(&mut self, other: Tally) {
        for (pair, count) in other.counts {
            *self.counts.entry(pair).or_default() += count;
        }
        self.sequences += other.sequences;
        self.steps += other.steps;
        self.accepted += other.accepted;
    }

    /// Fails where a pair was seen less often than that, or one was seen that is not to be.
    pub fn check(&self, least: usize) {
        for (operation, outcomes) in REACHABLE {
            for outcome in *outcomes {
                let count = self
                    .counts
                    .get(&(*operation, outcome.to_string()))
                    .copied()
                    .unwrap_or(0);
                assert!(
                    count >= least,
                    "{operation} {outcome} was seen {count} times only\n{self}"
                );
            }
        }
        for (operation, outcome) in self.counts.keys() {
            let known = REACHABLE
                .iter()
                .any(|(name, outcomes)| name == operation && outcomes.contains(&outcome.as_str()));
            assert!(known, "{operation} {outcome} is in no table");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, share) = (
            self.steps as f64 / self.sequences as f64,
            100.0 * self.accepted as f64 / self.steps as f64,
        );
        writeln!(
            out,
            "{} sequences of {mean:.1} steps, {share:.0} % of them accepted",
            self.sequences
        )?;
        for (operation, _) in REACHABLE {
            write!(out, "{operation:<14}")?;
            for ((_, outcome), count) in self
                .counts
                .iter()
                .filter(|((name, _), _)| name == operation)
            {
                write!(out, " {outcome} {count}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}
