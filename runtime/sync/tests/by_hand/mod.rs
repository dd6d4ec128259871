//! Futures polled by hand, with wakers that count.

#![allow(dead_code)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future in a task of its own.
pub(crate) struct Spawned<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

pub(crate) fn spawn<F: Future>(future: F) -> Spawned<F> {
    Spawned { future: Box::pin(future), wakes: Arc::default() }
}

impl<F: Future> Spawned<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.wakes.clone());
        let outside = mini_context::swap_budget(mini_context::BUDGET); // as in a task
        let polled = self.future.as_mut().poll(&mut Context::from_waker(&waker));
        mini_context::swap_budget(outside);
        polled
    }

    /// Polls as another task, which gets the wakes from now on.
    pub(crate) fn move_and_poll(&mut self) -> Poll<F::Output> {
        self.wakes = Arc::default();
        self.poll()
    }

    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[track_caller]
    pub(crate) fn waits(&mut self) {
        assert!(self.poll().is_pending(), "it does not wait");
    }

    /// How often its task was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    pub(crate) fn future(&mut self) -> Pin<&mut F> {
        self.future.as_mut()
    }
}

#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    spawn(future).ready()
}

/// A waker that runs `f` where it is called.
pub(crate) fn calling(f: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Calling<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Calling<F> {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }
    Waker::from(Arc::new(Calling(f)))
}

#[allow(unused_imports)] // as above
pub(crate) use futures_lite::future::block_on;

struct Count<F> {
    wakes: AtomicUsize,
    call: F,
}

impl<F: Fn() + Send + Sync + 'static> Wake for Count<F> {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        (self.call)();
    }
}

/// A task that is polled by hand.
pub(crate) struct Task {
    waker: Waker,
    wakes: Box<dyn Fn() -> usize>,
}

impl Task {
    pub(crate) fn new() -> Self {
        Self::calling(|| ())
    }

    /// Each wake calls `call`.
    pub(crate) fn calling(call: impl Fn() + Send + Sync + 'static) -> Self {
        let count = Arc::new(Count { wakes: AtomicUsize::new(0), call });
        Self { waker: count.clone().into(), wakes: Box::new(move || count.wakes.load(Ordering::Relaxed)) }
    }

    pub(crate) fn cx(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(crate) fn wakes(&self) -> usize {
        (self.wakes)()
    }
}
