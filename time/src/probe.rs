//! Probes for the tests of this crate: a waker that counts, and timers whose notifier counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::clock::Clock;
use crate::timers::Timers;

/// Counts how often its waker was woken.
#[derive(Clone, Default)]
pub(crate) struct Probe(Arc<Count>);

#[derive(Default)]
struct Count(AtomicUsize);

impl Probe {
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    /// The number of wakers.
    pub(crate) fn wakers(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        std::pin::Pin::new(future).poll(&mut Context::from_waker(&self.waker()))
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Timers on a paused clock, with their notifier.
pub(crate) fn paused_timers() -> (Timers, Probe) {
    let notifier = Probe::default();
    (Timers::new(Clock::pausable(true), notifier.waker()), notifier)
}

/// Moves the clock of `timers` on and fires what is due.
pub(crate) fn pass(timers: &Timers, duration: Duration) -> usize {
    timers.clock().advance(duration).unwrap();
    timers.turn()
}
