//! Fencing: an operation that names a claim is accepted only while that claim is the live one.

use kslate_class::Field;
use pgrx::Uuid;

use crate::error::{Code, Failure, Outcome};
use crate::lease::{self, is_live, state, Lease};
use crate::rows;
use crate::scope::Scope;
use crate::spi::text;
use crate::store;
use crate::time::Time;

/// Checks the claim that a write names: any of the record's, or that of the field's `requires_claim`. Call it under the
/// record's lock.
pub fn check(
    scope: &Scope<'_>,
    field: Option<&Field>,
    required: Option<&str>,
    claim_id: Option<Uuid>,
) -> Outcome<()> {
    let Some(claim_id) = claim_id else {
        return match required {
            Some(task) => Err(needs_a_claim(
                scope,
                field.map(|field| field.name.as_str()),
                task,
            )),
            None => Ok(()),
        };
    };
    let mut leases = Vec::new();
    for row in scope
        .call
        .session
        .write(&store::CLAIM_STATES, &[text(&scope.record)])?
        .iter()
    {
        let task: String = row.need(0)?;
        // A renewal does not touch the record, so that its lock tells nothing of one since this transaction's snapshot was taken.
        let latest = if rows::one_snapshot() {
            lease::latest(scope, &task)?
        } else {
            None
        };
        leases.push((task, latest.map_or_else(|| Lease::read(&row, 1), Ok)?));
    }
    let now = Time::now();
    let candidates: Vec<&(String, Lease)> = leases
        .iter()
        .filter(|(task, _)| required.is_none_or(|required| required == task))
        .collect();
    let named = candidates
        .iter()
        .find(|(_, lease)| lease.claim_id == Some(claim_id));
    match (named, candidates.as_slice()) {
        (Some((task, lease)), _) => lease.must_be_held(scope, task, claim_id, now),
        // One task only: its state tells what became of the claim.
        (None, [(task, lease)]) => lease.must_be_held(scope, task, claim_id, now),
        (None, _) => Err(scope
            .about(Failure::new(
                Code::LeaseLost,
                "this claim_id is no live claim of the record. Write nothing more under it; load the checkpoint before you claim again",
            ))
            .with("owner", None::<&str>)
            .with("reason", "not_claimed")),
    }
}

/// A write that needs a claim came without one.
pub fn needs_a_claim(scope: &Scope<'_>, field: Option<&str>, task: &str) -> Failure {
    let what = match field {
        Some(field) => format!("{field} may be written"),
        None => "a checkpoint may be saved".to_owned(),
    };
    let message =
        format!("{what} by the live holder of {task} only: claim {task} and send its claim_id");
    scope
        .about(Failure::new(Code::LeaseLost, message).field(field.unwrap_or(task)))
        .with("owner", None::<&str>)
        .with("reason", "not_claimed")
}

impl Lease {
    /// Is the caller the live holder under this claim_id? Else LEASE_LOST tells what became of it.
    pub fn must_be_held(
        &self,
        scope: &Scope<'_>,
        task: &str,
        claim_id: Uuid,
        now: Time,
    ) -> Outcome<()> {
        let live = self
            .expires_at
            .is_some_and(|expires| is_live(&self.state, expires, now));
        let caller = scope.call.caller.identity.as_str();
        if live && self.claim_id == Some(claim_id) && self.owner.as_deref() == Some(caller) {
            return Ok(());
        }
        let may_read = scope
            .class
            .field(task)
            .is_some_and(|task| scope.may_read(task));
        let owner = self.owner.as_deref().filter(|_| live && may_read);
        let theirs = self.owner.as_deref().is_some_and(|owner| owner != caller);
        let reason = self.lost_because(claim_id, live, theirs);
        let holder = owner.unwrap_or("somebody");
        let what = match reason {
            "lapsed" => "its lease has run out".to_owned(),
            "taken_over" if self.ended.as_deref() != Some(reason) => {
                "somebody else has claimed the task since".to_owned()
            }
            "taken_over" if live => format!("{holder} took it over after it lapsed"),
            "taken_over" => "it was taken over after it lapsed".to_owned(),
            "reattached" => "another process of yours has reattached to it".to_owned(),
            "released" => "it was released".to_owned(),
            "force_released" => "it was released by force".to_owned(),
            "completed" => "the task was completed".to_owned(),
            "reopened" => "the task was completed and opened again".to_owned(),
            _ if live => format!("this claim_id is not yours, {holder} holds the task"),
            _ => "nobody holds the task under this claim_id".to_owned(),
        };
        let message = format!(
            "your claim on {task} is over: {what}. Write nothing more under it; load the checkpoint before you claim again"
        );
        Err(scope
            .about(Failure::new(Code::LeaseLost, message).field(task))
            .with("owner", owner)
            .with("reason", reason))
    }

    /// What the task's present state tells about a claim that is not the live one.
    fn lost_because(&self, claim_id: Uuid, live: bool, theirs: bool) -> &str {
        if self.claim_id == Some(claim_id) {
            return if live { "not_claimed" } else { "lapsed" };
        }
        match self.state.as_str() {
            state::COMPLETED => "completed",
            // What ended the claim before theirs, which was theirs too.
            _ if theirs && matches!(self.ended.as_deref(), Some("lapsed" | "reattached")) => {
                "taken_over"
            }
            _ => self.ended.as_deref().unwrap_or("not_claimed"),
        }
    }
}
