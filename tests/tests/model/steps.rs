//! What a sequence is made of: operations of several identities, said in terms of what is there (the right version, the latest
//! claim), so that a shorter sequence still means something.

use proptest::prelude::*;

/// How many records a sequence has.
pub const KEYS: usize = 2;
/// Leases and ticks are multiples of it: the real clock, which runs on meanwhile, tips no scale.
pub const UNIT: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Who {
    /// `apikey:<this>`
    Named(&'static str),
    /// Whoever holds the task, else worker 1.
    Holder,
    /// The worker that does not.
    Rival,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    No,
    Latest,
    /// The one before the latest.
    Older,
    MadeUp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Version {
    No,
    Right,
    /// Too low, or too high where it is 0.
    Wrong,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Create {
        values: bool,
    },
    Write {
        field: &'static str,
        value: &'static str,
        expected: Version,
        claim: Claim,
    },
    Append {
        claim: Claim,
    },
    Claim {
        seconds: i64,
        reattach: bool,
    },
    ClaimNext {
        seconds: i64,
    },
    Renew {
        claim: Claim,
        seconds: Option<i64>,
    },
    Release {
        claim: Claim,
    },
    Complete {
        claim: Claim,
    },
    Reopen,
    ForceRelease {
        epoch: Version,
    },
    Save {
        whole: bool,
        seen: Version,
        claim: Claim,
    },
    Load,
    Tick {
        seconds: i64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub key: usize,
    pub who: Who,
    pub op: Op,
}

/// Who comes: mostly one that fits.
fn who(fitting: &'static [Who]) -> impl Strategy<Value = Who> {
    let strangers = [
        "planner", "worker/1", "worker/2", "boss", "nobody", "nobody", "nobody",
    ]
    .map(Who::Named);
    prop_oneof![7 => prop::sample::select(fitting), 1 => prop::sample::select(strangers.to_vec())]
}

fn claim(required: bool) -> impl Strategy<Value = Claim> {
    let (none, latest) = if required { (1, 12) } else { (8, 4) };
    prop_oneof![none => Just(Claim::No), latest => Just(Claim::Latest), 2 => Just(Claim::Older), 1 => Just(Claim::MadeUp)]
}

fn named() -> impl Strategy<Value = Claim> {
    prop_oneof![5 => Just(Claim::Latest), 4 => Just(Claim::Older), 1 => Just(Claim::MadeUp)]
}

fn version(right: u32, none: u32, wrong: u32) -> impl Strategy<Value = Version> {
    prop_oneof![right => Just(Version::Right), none => Just(Version::No), wrong => Just(Version::Wrong)]
}

/// Whole leases, and now and then one that is too long.
fn seconds() -> impl Strategy<Value = i64> {
    prop_oneof![5 => Just(UNIT), 4 => (2..=3i64).prop_map(|n| n * UNIT), 2 => Just(5 * UNIT)]
}

const PLANNER: &[Who] = &[Who::Named("planner")];
const ANY_WORKER: &[Who] = &[Who::Named("worker/1"), Who::Named("worker/2")];
const CLAIMANT: &[Who] = &[Who::Named("worker/1"), Who::Named("worker/2"), Who::Rival];
const HOLDER: &[Who] = &[Who::Holder];
const BOSS: &[Who] = &[Who::Named("boss")];

fn write(field: &'static str, fitting: &'static [Who]) -> impl Strategy<Value = (Who, Op)> {
    let cas = !matches!(field, "rate" | "secret");
    let values: &'static [&'static str] = match field {
        "status" => &["\"open\"", "\"resolved\"", "\"resolved\"", "\"odd\""],
        _ => &["1", "2", "{\"a\": [1.0, null]}"],
    };
    let expected = if cas {
        version(12, 1, 2)
    } else {
        version(2, 6, 2)
    };
    (
        who(fitting),
        prop::sample::select(values),
        expected,
        claim(field == "cursor"),
    )
        .prop_map(move |(who, value, expected, claim)| {
            (
                who,
                Op::Write {
                    field,
                    value,
                    expected,
                    claim,
                },
            )
        })
}

pub fn step() -> impl Strategy<Value = Step> {
    let free = |fitting, op: BoxedStrategy<Op>| (who(fitting), op).boxed();
    let leased = (named(), prop::option::weighted(0.7, seconds()));
    let done = prop_oneof![
        3 => free(PLANNER, any::<bool>().prop_map(|values| Op::Create { values }).boxed()),
        4 => write("status", ANY_WORKER),
        2 => write("plan", PLANNER),
        2 => write("rate", PLANNER),
        4 => write("cursor", HOLDER),
        2 => write("secret", BOSS),
        4 => free(HOLDER, claim(false).prop_map(|claim| Op::Append { claim }).boxed()),
        13 => free(CLAIMANT, (seconds(), any::<bool>()).prop_map(|(seconds, reattach)| Op::Claim { seconds, reattach }).boxed()),
        6 => free(CLAIMANT, seconds().prop_map(|seconds| Op::ClaimNext { seconds }).boxed()),
        4 => free(HOLDER, leased.prop_map(|(claim, seconds)| Op::Renew { claim, seconds }).boxed()),
        4 => free(HOLDER, named().prop_map(|claim| Op::Release { claim }).boxed()),
        6 => free(HOLDER, named().prop_map(|claim| Op::Complete { claim }).boxed()),
        5 => free(ANY_WORKER, Just(Op::Reopen).boxed()),
        3 => free(BOSS, version(4, 0, 1).prop_map(|epoch| Op::ForceRelease { epoch }).boxed()),
        7 => free(ANY_WORKER, (prop::bool::weighted(0.85), version(2, 6, 2), claim(false))
            .prop_map(|(whole, seen, claim)| Op::Save { whole, seen, claim }).boxed()),
        6 => free(ANY_WORKER, Just(Op::Load).boxed()),
        7 => free(ANY_WORKER, (1..=3i64).prop_map(|n| Op::Tick { seconds: n * UNIT }).boxed()),
    ];
    (prop_oneof![5 => Just(0usize), 1 => Just(1usize)], done).prop_map(|(key, (who, op))| Step {
        key,
        who,
        op,
    })
}

/// A sequence begins with a record.
pub fn sequence() -> impl Strategy<Value = Vec<Step>> {
    let first = Step {
        key: 0,
        who: Who::Named("planner"),
        op: Op::Create { values: false },
    };
    prop::collection::vec(step(), 1..44).prop_map(move |mut steps| {
        steps.insert(0, first.clone());
        steps
    })
}
