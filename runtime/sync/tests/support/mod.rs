//! A task that is polled by hand, and counts its wakes.
#![allow(dead_code)] // each test file uses its part

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};

pub(crate) use futures_lite::future::block_on;

struct Count<F> {
    wakes: AtomicUsize,
    call: F,
}

impl<F: Fn() + Send + Sync + 'static> Wake for Count<F> {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, SeqCst);
        (self.call)();
    }
}

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
        Self { waker: count.clone().into(), wakes: Box::new(move || count.wakes.load(SeqCst)) }
    }

    pub(crate) fn cx(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(crate) fn wakes(&self) -> usize {
        (self.wakes)()
    }
}
