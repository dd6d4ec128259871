//! Polls that end early: in a simulation a task yields also at operations that need not wait.
//!
//! Two tasks that take two free locks one after the other, in different orders, never meet if each runs until it has to
//! wait. On several workers they do. So in half of the polls the budget, by which tasks yield now and then anyway
//! (`mini_context::poll_budget`), is drawn: after up to three operations the next one is refused, and the task runs
//! again later. A future of mini must expect that at any time, and a leaf of another crate is not touched.

use std::cell::Cell;

use mini_context::sim::Random;

thread_local! {
    /// Draws budgets, while a simulation runs on this thread.
    static BUDGETS: Cell<Option<Random>> = const { Cell::new(None) };
}

/// The most operations in a poll that ends early.
const MOST: u64 = 3;

/// A poll of a task begins.
#[inline]
pub(crate) fn begin_poll() {
    BUDGETS.with(|budgets| {
        if let Some(mut random) = budgets.get() {
            if random.below(2) == 0 {
                mini_context::swap_budget(random.below(MOST + 1) as u8);
            }
            budgets.set(Some(random));
        }
    });
}

/// Draws budgets on this thread from now on, or no more; returns what did before.
pub(super) fn swap(random: Option<Random>) -> Option<Random> {
    BUDGETS.replace(random)
}
