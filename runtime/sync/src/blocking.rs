//! Waiting for a future on a thread that may block.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks the thread until `future` is ready, for the method `name`.
///
/// In a simulation each blocking job is a task too, so the first advice would lead nowhere there.
#[track_caller]
pub(crate) fn block_on<F: Future>(name: &str, future: F) -> F::Output {
    let is_task = mini_context::task() != 0;
    assert!(
        !is_task || !mini_context::sim::is_simulated(),
        "`{name}` would block the only thread of the simulation for ever, as jobs of spawn_blocking run on it too: \
         await the method without `blocking` in a task instead"
    );
    assert!(!is_task, "`{name}` would block the thread of a task: await the method without `blocking` instead");
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
