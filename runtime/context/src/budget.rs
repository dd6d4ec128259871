//! The budget of a poll: what a task may complete before it has to let others run.
//!
//! Rejected: a budget that the runtime alone refills. A future that a foreign executor polls would starve once it is
//! spent, so it is full again as soon as it has made the task yield.

use std::task::{Context, Poll};

use crate::LOCAL;
use crate::rules::{BUDGET, CALL};

/// Spends one unit of the running task's budget.
///
/// Once [`BUDGET`] units are spent this wakes the task and returns `Pending` once, so that an operation that is always
/// ready starves nobody. The budget is then full again, so where no runtime refills it, it lasts for several polls.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// # mini_context::begin_poll();
/// for _ in 0..mini_context::BUDGET {
///     assert!(mini_context::poll_budget(&mut cx).is_ready());
/// }
/// assert!(mini_context::poll_budget(&mut cx).is_pending());
/// assert!(mini_context::poll_budget(&mut cx).is_ready());
/// ```
#[inline]
pub fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    let left = check_budget(cx);
    if left.is_ready() {
        spend(1);
    }
    left
}

/// As [`poll_budget`], for an operation that makes a system call, which costs four units.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// # mini_context::begin_poll();
/// for _ in 0..mini_context::BUDGET / 4 {
///     assert!(mini_context::poll_call(&mut cx).is_ready());
/// }
/// assert!(mini_context::poll_call(&mut cx).is_pending());
/// ```
#[inline]
pub fn poll_call(cx: &mut Context<'_>) -> Poll<()> {
    let left = check_budget(cx);
    if left.is_ready() {
        spend_call();
    }
    left
}

/// `Pending`, with the task woken and the budget full again, if nothing is left of it; spends nothing.
///
/// For an operation that knows only later whether it completes: see [`spend_call`].
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let left = mini_context::swap_budget(0);
/// assert!(mini_context::check_budget(&mut cx).is_pending());
/// assert!(mini_context::check_budget(&mut cx).is_ready());
/// # mini_context::swap_budget(left);
/// ```
#[inline]
pub fn check_budget(cx: &mut Context<'_>) -> Poll<()> {
    if LOCAL.with(|local| local.budget.get()) == 0 {
        return yield_now(cx);
    }
    Poll::Ready(())
}

#[cold]
fn yield_now(cx: &mut Context<'_>) -> Poll<()> {
    swap_budget(BUDGET);
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Counts one completed operation that has made a system call.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll();
/// mini_context::spend_call();
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 4);
/// ```
#[inline]
pub fn spend_call() {
    spend(CALL);
}

#[inline]
fn spend(units: u8) {
    LOCAL.with(|local| match local.budget.get() {
        u8::MAX => {}
        left => local.budget.set(left.saturating_sub(units)),
    });
}

/// Sets what is left of the budget, and returns what was left. `u8::MAX` is a budget that never ends.
///
/// # Examples
///
/// ```
/// let left = mini_context::swap_budget(u8::MAX);
/// // Nothing polled here is made to yield.
/// mini_context::swap_budget(left);
/// ```
#[inline]
pub fn swap_budget(left: u8) -> u8 {
    LOCAL.with(|local| local.budget.replace(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_budget_is_not_spent() {
        let before = swap_budget(u8::MAX);
        for _ in 0..1_000 {
            spend_call();
        }
        assert_eq!(swap_budget(before), u8::MAX);
    }
}
