//! A step says "the right version" and "the latest claim"; settled, it says which.

use crate::model::Model;
use crate::steps::{Claim as Named, Op, Step, Version, Who};

/// A step with everything in it settled: versions are numbers, claims are numbers of grants.
#[derive(Clone, Debug)]
pub struct Call {
    pub key: usize,
    pub who: &'static str,
    pub op: Op,
    pub version: Option<i64>,
    /// None: no claim is named. A number that no grant has is a claim_id made up.
    pub claim: Option<usize>,
}

impl Model {
    /// Settles what a step leaves open.
    pub fn settle(&self, step: &Step) -> Call {
        let record = self.records[step.key].as_ref();
        let holder = record.and_then(|record| record.task.owner);
        let who = match step.who {
            Who::Named(who) => who,
            Who::Holder => holder.unwrap_or("worker/1"),
            Who::Rival if holder == Some("worker/1") => "worker/2",
            Who::Rival => "worker/1",
        };
        let of_this: Vec<usize> = (0..self.grants.len())
            .filter(|grant| self.grants[*grant] == step.key)
            .collect();
        let claim = |named: Named| {
            let back = match named {
                Named::No => return None,
                Named::Latest => 1,
                Named::Older => 2,
                Named::MadeUp => usize::MAX,
            };
            let at = of_this.len().checked_sub(back);
            Some(at.map_or(usize::MAX, |at| of_this[at]))
        };
        let near = |version: Version, right: i64| match version {
            Version::No => None,
            Version::Right => Some(right),
            Version::Wrong => Some(if right == 0 { 1 } else { right - 1 }),
        };
        let (version, claim) = match &step.op {
            Op::Write {
                field,
                expected,
                claim: named,
                ..
            } => {
                let right = record
                    .and_then(|record| record.fields.get(field))
                    .map_or(0, |field| field.version);
                (near(*expected, right), claim(*named))
            }
            Op::ForceRelease { epoch } => (
                near(*epoch, record.map_or(0, |record| record.task.epoch)),
                None,
            ),
            Op::Save {
                seen, claim: named, ..
            } => {
                let right = record.map_or(0, |record| record.version);
                let seen = if *seen == Version::Wrong {
                    Some(right + 1)
                } else {
                    near(*seen, right / 2)
                };
                (seen, claim(*named))
            }
            Op::Append { claim: named } => (None, claim(*named)),
            Op::Renew { claim: named, .. }
            | Op::Release { claim: named }
            | Op::Complete { claim: named } => (None, claim(*named)),
            _ => (None, None),
        };
        Call {
            key: step.key,
            who,
            op: step.op.clone(),
            version,
            claim,
        }
    }
}
