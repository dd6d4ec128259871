//! A number that one side raises and the other waits for, with nothing but a waker between them.
//!
//! Used by the workloads where a channel would be more than what is measured.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use atomic_waker::AtomicWaker;

#[derive(Default)]
pub(crate) struct Bell {
    number: AtomicU64,
    waiter: AtomicWaker,
}

impl Bell {
    /// Raises the number to `number` and wakes the task that waits.
    pub(crate) fn ring(&self, number: u64) {
        // Release: pairs with the Acquire in `reached`, so that the waiter sees what happened before the ring.
        self.number.store(number, Ordering::Release);
        self.waiter.wake();
    }

    /// Waits until the number is `number` or more. One task at a time may wait.
    pub(crate) async fn wait(&self, number: u64) {
        poll_fn(|cx| {
            if self.reached(number) {
                return Poll::Ready(());
            }
            self.waiter.register(cx.waker());
            // Again: the bell may have rung before the waker was there.
            if self.reached(number) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Whether the number is `number` or more.
    pub(crate) fn reached(&self, number: u64) -> bool {
        self.number.load(Ordering::Acquire) >= number
    }
}
