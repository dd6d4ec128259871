//! Polls that end early: in a simulation a task yields also at operations that need not wait.
//!
//! Two tasks that take two free locks one after the other, in different orders, never meet if each runs until it has to
//! wait. On several workers they do. So in half of the polls the budget, by which tasks yield now and then anyway
//! (`mini_context::check_budget`), is drawn: after up to three operations the next one is refused, and the task runs
//! again later. A future of mini must expect that at any time, and a leaf of another crate is not touched.
//!
//! The children of a scope take turns inside of one task, as tasks do on a worker. So each poll of a child may end
//! early by a budget of its own, and who of several comes first is drawn too.

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
    if let Some(budget) = draw_budget() {
        mini_context::swap_budget(budget);
    }
}

/// A poll of a child begins, and ends when this is dropped. A budget that is drawn is the child's alone: what is left
/// to the task stays.
#[inline]
pub(crate) fn begin_child() -> ChildPoll {
    ChildPoll(draw_budget().map(mini_context::swap_budget))
}

/// A poll of a child, with what is left to the task if the child has a budget of its own.
#[must_use = "the poll ends when this is dropped"]
pub(crate) struct ChildPoll(Option<u8>);

impl Drop for ChildPoll {
    #[inline]
    fn drop(&mut self) {
        if let Some(left) = self.0 {
            mini_context::swap_budget(left);
        }
    }
}

/// The budget of a poll that ends early.
#[inline]
fn draw_budget() -> Option<u8> {
    draw(|random| (random.below(2) == 0).then(|| random.below(MOST + 1) as u8)).flatten()
}

/// Puts `items` into an order that is drawn, while a simulation runs on this thread. (Knuth, "The Art of Computer
/// Programming", 3.4.2, algorithm P.)
#[inline]
pub(crate) fn shuffle<T>(items: &mut [T]) {
    draw(|random| {
        for end in (1..items.len()).rev() {
            items.swap(end, random.below(end as u64 + 1) as usize);
        }
    });
}

/// Calls `f` with the random numbers of the simulation that runs on this thread.
#[inline]
fn draw<T>(f: impl FnOnce(&mut Random) -> T) -> Option<T> {
    BUDGETS.with(|budgets| {
        let mut random = budgets.get()?;
        let drawn = f(&mut random);
        budgets.set(Some(random));
        Some(drawn)
    })
}

/// Draws budgets on this thread from now on, or no more; returns what did before.
pub(super) fn swap(random: Option<Random>) -> Option<Random> {
    BUDGETS.replace(random)
}
