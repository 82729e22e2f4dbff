//! Waiting for what must come, instead of sleeping and hoping.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);

/// Asks again and again until `condition` holds; fails the test, naming `what`, when it does not within 30 s.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain: {what}"
        );
        std::thread::sleep(STEP);
    }
}

/// The same for a condition that is a future.
pub async fn until_async<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let begun = Instant::now();
    while !condition().await {
        assert!(
            begun.elapsed() < PATIENCE,
            "waited {PATIENCE:?} in vain: {what}"
        );
        tokio::time::sleep(STEP).await;
    }
}

/// Sets a flag when it is dropped: threads that go on until then end where the test fails, too.
pub struct SetAtEnd<'f>(pub &'f AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
