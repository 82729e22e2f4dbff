//! Every pair of claim, renew, release, complete, write, checkpoint save, resolve and class apply races for one record, under each
//! isolation level. The rule is one: what the two are told, and what they leave, is what they are told and leave one after the
//! other; above READ COMMITTED the second may be told 40001 instead, as PostgreSQL says it. What comes of them one after the
//! other stands in the tables of scenes.rs.
//!
//! Red without, in kslate-pg/src: `scope.lock()?;` of a single write in write.rs (two writes at one version); the lock of the claim in
//! `lease::lock` and of a renewal (two holders, a renewal of a lease that is over);
//! `call.session.write(&store::RECORDS_LOCK, &[])?;` in classes.rs (a change judged by a class that is no longer in force); and
//! `on conflict do nothing` of CHECKPOINT_INSERT in store.rs (23505 for what is a serialization failure).
//!
//! `KSLATE_RACES_ROUNDS` runs all of them so many times (1).

mod crowds;
mod operations;
mod pairs;
mod scenes;

/// How many times each race is run.
fn rounds() -> usize {
    std::env::var("KSLATE_RACES_ROUNDS").map_or(1, |text| text.parse().expect("a number"))
}
