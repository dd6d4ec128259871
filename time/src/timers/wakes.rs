//! Wakers that were taken out under a lock, to be woken when it is free.
//!
//! `Timers` alone calls it. A waker that panics costs the others nothing.

use std::task::Waker;

use mini_context::contain;

#[derive(Default)]
pub(crate) struct Wakes(pub(crate) Vec<Waker>);

impl Wakes {
    /// Wakes all, first in, first out, and returns their number.
    pub(crate) fn wake_all(&mut self) -> usize {
        let count = self.0.len();
        // Each leaves the list before it is woken, so that none is woken twice.
        self.0.reverse();
        while let Some(waker) = self.0.pop() {
            contain(|| waker.wake());
        }
        count
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.wake_all();
    }
}
