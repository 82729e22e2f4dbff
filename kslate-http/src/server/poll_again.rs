//! A task that wakes itself, kept on the thread that runs it.
//!
//! hyper wakes its own connection twice for each request with a body: the handler's first read asks for the body, and what arrives
//! is told to the handler. tokio takes a task that is woken while it runs for one that yields: it goes to the back of the queue, and
//! another thread is woken to come and take it. For one short request that was a third of the server's processor time.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Polls in a row. Who has more to do lets others have their turn.
const TURNS: u8 = 8;

/// A future that is polled again at once where it was woken while it was polled.
pub struct PollAgain<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What the future has for a waker.
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

/// Nobody polls; a wake goes to the task.
const RESTS: u8 = 0;
/// A poll is under way, and nobody has woken the future since it began.
const RUNS: u8 = 1;
/// A poll is under way, and another has to follow.
const WOKEN: u8 = 2;

impl<F: Future> PollAgain<F> {
    /// `future`, not begun.
    pub fn of(future: F) -> Self {
        let bell = Arc::new(Bell {
            state: AtomicU8::new(RESTS),
            task: AtomicWaker::new(),
        });
        Self {
            future: Box::pin(future),
            waker: Arc::clone(&bell).into(),
            bell,
        }
    }
}

impl<F: Future> Future for PollAgain<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.bell.task.register(context.waker());
        for _ in 0..TURNS {
            this.bell.state.store(RUNS, Ordering::SeqCst);
            let mut within = Context::from_waker(&this.waker);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut within) {
                return Poll::Ready(output);
            }
            // Who wakes the future from here on wakes the task.
            if this.bell.state.swap(RESTS, Ordering::SeqCst) == RUNS {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self
            .state
            .compare_exchange(RUNS, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if noted.is_err_and(|state| state == RESTS) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Rings(AtomicUsize);

    impl Wake for Rings {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once; how it ended, and how often the task had been woken by then.
    fn once<F: Future>(future: &mut PollAgain<F>, rings: &Arc<Rings>) -> (Poll<F::Output>, usize) {
        let waker = Waker::from(Arc::clone(rings));
        let poll = Pin::new(future).poll(&mut Context::from_waker(&waker));
        (poll, rings.0.load(Ordering::SeqCst))
    }

    /// Wakes itself so many times, then is done.
    fn woken(mut times: usize) -> impl Future<Output = ()> {
        poll_fn(move |context| {
            if times == 0 {
                return Poll::Ready(());
            }
            times -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn who_wakes_itself_is_polled_again_and_the_task_is_not_woken() {
        let rings = Arc::default();
        assert_eq!(
            once(&mut PollAgain::of(woken(7)), &rings),
            (Poll::Ready(()), 0)
        );
    }

    #[test]
    fn who_never_stops_lets_others_have_their_turn() {
        let rings = Arc::default();
        let mut future = PollAgain::of(woken(11));
        assert_eq!(once(&mut future, &rings), (Poll::Pending, 1));
        assert_eq!(once(&mut future, &rings), (Poll::Ready(()), 1));
    }

    #[test]
    fn who_is_woken_while_nobody_polls_wakes_the_task() {
        let rings = Arc::default();
        let (send, receive) = oneshot::channel();
        let mut future = PollAgain::of(receive);
        assert_eq!(once(&mut future, &rings), (Poll::Pending, 0));
        assert_eq!(once(&mut future, &rings), (Poll::Pending, 0));
        send.send(7).expect("still waited for");
        assert_eq!(once(&mut future, &rings), (Poll::Ready(Ok(7)), 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost_between_threads() {
        for _ in 0..20_000 {
            let (send, receive) = oneshot::channel();
            let waits = tokio::spawn(PollAgain::of(receive));
            tokio::spawn(async move { send.send(()) });
            waits.await.expect("no panic").expect("sent");
        }
    }
}
