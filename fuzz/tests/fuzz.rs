//! The fuzz targets without a fuzzer: the committed corpora, and what comes of changing them at random. The numbers are the same
//! in each run; `KSLATE_FUZZ_ROUNDS` says how many inputs for each target (20000), `make fuzz` runs the targets under libFuzzer.
//!
//! Red without the check of duplicate keys, of `\u0000` or of trailing text in kslate-http/src/server/json.rs, and with
//! `>=` for `>` in `Pattern::matches`.

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

use kslate_fuzz::{Target, TARGETS};

/// What mutation alone would not find.
const WORDS: [&str; 28] = [
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    "\\",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "1e400",
    "-0",
    "/*",
    "*",
    "apikey:",
    "pg:",
    "%2F",
    "%00",
    "%C0%AE",
    "..",
    "&a [*a]",
    "<<: *a",
    "!!binary ",
    "|\n ",
    "\u{feff}",
    "\u{85}",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("a corpus")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| fs::read(file).expect("an input"))
        .collect()
}

fn change(input: &mut Vec<u8>, all: &[Vec<u8>], random: &mut Random) {
    let (from, to) = (random.below(input.len() + 1), random.below(input.len() + 1));
    let (from, to) = (from.min(to), from.max(to));
    match random.below(6) {
        0 if from < input.len() => input[from] ^= 1 << random.below(8),
        1 => drop(input.drain(from..to)),
        2 => {
            let again = input[from..to].to_vec();
            input.splice(from..from, again);
        }
        3 => {
            let other = &all[random.below(all.len())];
            input.splice(
                from..to,
                other[random.below(other.len() + 1)..].iter().copied(),
            );
        }
        _ => drop(input.splice(
            from..to.min(from + 1),
            WORDS[random.below(WORDS.len())].bytes(),
        )),
    }
    input.truncate(4096);
}

fn play(name: &str, target: Target) {
    let rounds = std::env::var("KSLATE_FUZZ_ROUNDS")
        .map_or(20_000, |rounds| rounds.parse().expect("a number"));
    let all = corpus(name);
    assert!(all.len() >= 5, "{name} has a corpus");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..rounds + all.len() {
        let mut input = all[round % all.len()].clone();
        for _ in 0..if round < all.len() {
            0
        } else {
            1 + random.below(4)
        } {
            change(&mut input, &all, &mut random);
        }
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            panic!(
                "{name}, round {round}: {:?}",
                String::from_utf8_lossy(&input)
            );
        }
    }
}

#[test]
fn whatever_is_sent() {
    std::thread::scope(|scope| {
        let threads = TARGETS.map(|(name, target)| (name, scope.spawn(move || play(name, target))));
        for (name, thread) in threads {
            thread.join().unwrap_or_else(|_| panic!("{name}"));
        }
    });
}

/// Each target has its program and its corpus.
#[test]
fn no_target_is_left_out() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["corpus", "targets"] {
        let mut found: Vec<String> = fs::read_dir(here.join(folder))
            .expect("a folder")
            .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_string()))
            .collect();
        found.sort();
        let mut names = TARGETS.map(|(name, _)| name);
        names.sort_unstable();
        assert_eq!(found, names, "{folder}");
    }
}
