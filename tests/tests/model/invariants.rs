//! What must hold whatever the model says, judged by the answers alone.

use crate::model::role;
use crate::settle::Call;
use crate::steps::{Op, KEYS};
use serde_json::Value;

/// What the answers so far tell about one record.
#[derive(Clone, Default)]
struct Seen {
    version: i64,
    epoch: i64,
    /// The grant that is not over by any answer: its number, its owner, the second that it ends at.
    holder: Option<(usize, &'static str, i64)>,
    checkpointed: bool,
    resolved: bool,
}

#[derive(Default)]
pub struct Invariants {
    records: [Seen; KEYS],
    grants: usize,
}

macro_rules! hold {
    ($condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err(format!($($what)*));
        }
    };
}

impl Invariants {
    /// Takes an accepted call in. `key` is the record that the answer is about.
    pub fn accepted(
        &mut self,
        call: &Call,
        key: usize,
        row: &Value,
        now: i64,
    ) -> Result<(), String> {
        let (who, grants) = (call.who, self.grants);
        let seen = &mut self.records[key];
        let live = seen.holder.filter(|(_, _, until)| now < *until);
        if let Some(claim) = call.claim {
            let mine = live.is_some_and(|(number, owner, _)| number == claim && owner == who);
            hold!(
                mine,
                "a fenced call landed: {call:?}, the live grant is {live:?}"
            );
        }
        let steps = !matches!(
            call.op,
            Op::Renew { .. } | Op::Save { .. } | Op::Load | Op::Create { .. }
        );
        if steps {
            hold!(
                row["record_version"] == seen.version + 1,
                "the record went from {} to {row}",
                seen.version
            );
            seen.version += 1;
        }
        match &call.op {
            Op::Claim { reattach, .. } => {
                let own = live.is_some_and(|(_, owner, _)| owner == who) && *reattach;
                hold!(
                    live.is_none() || own,
                    "two live holders: {live:?} and {who}"
                );
            }
            Op::ClaimNext { .. } => hold!(live.is_none(), "two live holders: {live:?} and {who}"),
            Op::Write {
                field: "cursor", ..
            } => hold!(call.claim.is_some(), "{call:?} needed a claim"),
            Op::Write {
                field: "status",
                value,
                ..
            } => {
                let resolved = *value == "\"resolved\"";
                hold!(
                    !resolved || seen.resolved || seen.checkpointed,
                    "the gate stood open"
                );
                seen.resolved = resolved;
            }
            Op::Save { .. } => seen.checkpointed |= role(who) == Some("worker"),
            _ => {}
        }
        match &call.op {
            Op::Claim { seconds, .. } | Op::ClaimNext { seconds } => {
                hold!(
                    row["epoch"] == seen.epoch + 1,
                    "epoch {} and then {row}",
                    seen.epoch
                );
                seen.epoch += 1;
                seen.holder = Some((grants, who, now + seconds));
                self.grants += 1;
            }
            Op::Renew { .. } => {
                let seconds = row["lease_seconds"].as_i64().ok_or("no lease")?;
                seen.holder = live.map(|(number, owner, _)| (number, owner, now + seconds));
            }
            Op::Release { .. } | Op::Complete { .. } | Op::ForceRelease { .. } => {
                seen.holder = None
            }
            _ => {}
        }
        Ok(())
    }
}
