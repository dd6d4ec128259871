//! The smallest runtime that can run the examples and tests of this crate: one future, on a paused clock.
//!
//! The examples call it in lines that the reader does not see; a program uses `mini::block_on`.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::{Clock, Timers, enter};

/// Whether the future was woken since it was last polled.
struct Woken(AtomicBool);

/// Polls `future` until it is ready, moving a paused clock to the next deadline when it waits.
///
/// # Examples
///
/// ```
/// assert_eq!(mini_time::doc::block_on(async { 7 }), 7);
/// ```
///
/// # Panics
///
/// If the future waits for something other than a timer.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let timers = Timers::new(Clock::pausable(true), Waker::noop().clone());
    let _entered = enter(&timers);
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        timers.turn();
        while !woken.0.swap(false, Ordering::Relaxed) {
            assert!(timers.auto_advance(), "the future waits for something other than a timer");
            timers.turn();
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
