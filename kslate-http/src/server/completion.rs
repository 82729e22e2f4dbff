//! Work that is brought to its end, whoever stops waiting for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use tokio::runtime::Handle;

/// A future whose rest becomes a task of its own when it is dropped: until then it needs none, and no waking of one.
pub struct ToCompletion<F>(Option<Pin<Box<F>>>)
where
    F: Future + Send + 'static,
    F::Output: Send;

impl<F> ToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// `work`, not begun.
    pub fn of(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F> Future for ToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = self.0.as_mut() else {
            return Poll::Pending;
        };
        let output = ready!(work.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<F> Drop for ToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        // Without a runtime there is nothing left that it could wait for.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn waited_for_or_not() {
        assert_eq!(ToCompletion::of(async { 7 }).await, 7);

        let (go, gone) = oneshot::channel();
        let (done, was_done) = oneshot::channel();
        let work = ToCompletion::of(async move {
            let _ = done.send(gone.await);
        });
        // Begun and dropped.
        let waited = tokio::time::timeout(Duration::ZERO, work).await;
        assert!(waited.is_err());
        go.send(8).expect("still waited for");
        assert_eq!(was_done.await.expect("brought to its end"), Ok(8));
    }
}
