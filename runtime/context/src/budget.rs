//! The budget of a poll: what a task may complete before it has to let others run.
//!
//! Once it is spent, all leaves of the task refuse until the poll is over, whatever the task polls next: of two sockets
//! that are always ready, a `select` in a loop would find one that goes on. The next poll begins with a full budget.
//!
//! A foreign executor begins no poll. On a thread without a runtime the first refusal fills the budget. Inside of a
//! task or a job the poll in progress is the runtime's, and does not end while such an executor runs: after as many
//! refusals as there are units the budget is filled by each.
//!
//! Rejected: a budget that the runtime alone refills (a future that a foreign executor polls would starve once it is
//! spent). One that every refusal refills (the loop of two sockets ran for good).

use std::task::{Context, Poll};

use crate::LOCAL;
use crate::rules::{BUDGET, CALL};

/// Spends one unit of the running task's budget.
///
/// Once [`BUDGET`](crate::BUDGET) units are spent this wakes the task and returns `Pending` until the next poll
/// begins, so that an operation that is always ready starves nobody. Where no runtime begins polls, it does so once,
/// and the budget is full again.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
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

/// As [`poll_budget`], for an operation that makes a system call, which costs eight units.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// for _ in 0..mini_context::BUDGET / 8 {
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

/// `Pending`, with the task woken, if nothing is left of the budget; spends nothing.
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
        return refuse(cx);
    }
    Poll::Ready(())
}

#[cold]
fn refuse(cx: &mut Context<'_>) -> Poll<()> {
    LOCAL.with(|local| match local.refusals.get().checked_sub(1) {
        Some(left) => local.refusals.set(left),
        None => local.budget.set(BUDGET),
    });
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
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 8);
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
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_spent_budget_refuses_everything_until_the_next_poll_begins() {
        let mut cx = Context::from_waker(Waker::noop());
        crate::begin_poll();
        swap_budget(0);
        for _ in 0..BUDGET {
            assert!(poll_budget(&mut cx).is_pending());
        }
        crate::begin_poll();
        assert!(poll_budget(&mut cx).is_ready());
    }

    #[test]
    fn an_executor_inside_of_a_poll_goes_on_after_as_many_refusals_as_there_are_units() {
        let mut cx = Context::from_waker(Waker::noop());
        crate::begin_poll();
        let polls = (0..3 * u32::from(BUDGET)).filter(|_| poll_budget(&mut cx).is_ready()).count();
        assert_eq!(polls, 2 * usize::from(BUDGET) - 1);
    }

    #[test]
    fn an_endless_budget_is_not_spent() {
        let before = swap_budget(u8::MAX);
        for _ in 0..1_000 {
            spend_call();
        }
        assert_eq!(swap_budget(before), u8::MAX);
    }
}
