//! The budget of a poll: the number of operations that a task may complete before it has to let others run.
//!
//! Only the poll of a task has one: [`begin_poll`](crate::begin_poll) sets it, and at the end of the poll it is endless
//! again. Outside of tasks no other task waits for the thread, and a caller that knows no budgets may not poll twice.
//!
//! Once the budget is spent, each refusal leaves one unit for the next leaf. So if a task joins several futures and
//! polls the busy one first, the others make progress too. A coin decides whether the first leaf in a poll that finds
//! nothing left is refused or gets that unit: it may be a leaf that always comes after a future which spends all and
//! waits for something else. After as many refusals as there were units, no leaf continues until the poll is over.
//! Otherwise a `select` in a loop over two sockets that are always ready would always find one. The next poll begins
//! with a full budget.
//!
//! An executor inside of a task does not let the poll end: it polls the same leaf again and again. A set of futures, or
//! a stream of chunks, does so a few times within a poll. So the first leaf that is refused is remembered by its
//! address; refused [`IN_A_ROW`] times more, it gets a full budget. After [`REFUSALS`] refusals each one fills the
//! budget, as a leaf may have no address, or be gone.
//!
//! Rejected: one that every refusal refills (the loop of two sockets ran for ever). One of which nothing is left after
//! the first refusal (a timer joined to a socket that is always ready was never asked). A budget outside of tasks that
//! each refusal refills (one poll in 129 found nothing, which `now_or_never` takes for an answer).

use std::cell::Cell;
use std::ptr;
use std::task::{Context, Poll};

use crate::LOCAL;
use crate::rules::{BUDGET, CALL, CALL_BYTES, IN_A_ROW, REFUSALS};

/// No leaf was refused.
pub(crate) const NOBODY: Refused = (ptr::null(), 0);

/// The leaf that was refused first since all that was left is spent, and how often since.
pub(crate) type Refused = (*const (), u8);

/// A budget that is never spent: that of a thread which polls no task.
pub const ENDLESS: u8 = u8::MAX;

/// Spends one unit of the running task's budget.
///
/// Once [`BUDGET`](crate::BUDGET) units are spent, this wakes the task and returns `Pending`, so that an operation that
/// is always ready starves no task. Other leaves in the same poll may get a unit now and then. If this thread polls no
/// task, the budget is endless.
///
/// `leaf` is the address of the future that asks, or null. It is used to detect an executor inside of the poll.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
/// use mini_context::{BUDGET, begin_poll, end_poll, poll_budget};
///
/// let (mut cx, leaf) = (Context::from_waker(Waker::noop()), 0_u8);
/// begin_poll(7);
/// assert!((0..BUDGET).all(|_| poll_budget(&mut cx, &leaf).is_ready()));
/// while poll_budget(&mut cx, &leaf).is_ready() {}
/// end_poll();
/// assert!((0..1_000).all(|_| poll_budget(&mut cx, &leaf).is_ready()));
/// ```
#[inline]
pub fn poll_budget<L>(cx: &mut Context<'_>, leaf: *const L) -> Poll<()> {
    let left = check_budget(cx, leaf);
    if left.is_ready() {
        spend(1);
    }
    left
}

/// Spends one unit like [`poll_budget`], for a leaf that others must not overtake: once it is refused, all are refused
/// until the poll is over.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let (mut cx, [first, second]) = (Context::from_waker(Waker::noop()), [0_u8; 2]);
/// mini_context::begin_poll(7);
/// mini_context::spend(mini_context::BUDGET);
/// assert!(mini_context::poll_first(&mut cx, &first).is_pending());
/// assert!(mini_context::poll_budget(&mut cx, &second).is_pending());
/// # mini_context::end_poll();
/// ```
pub fn poll_first<L>(cx: &mut Context<'_>, leaf: *const L) -> Poll<()> {
    if !has_budget() {
        LOCAL.with(|local| local.refusals.set(local.refusals.get().min(REFUSALS - u16::from(BUDGET))));
    }
    poll_budget(cx, leaf)
}

/// Spends eight units, like [`poll_budget`] spends one, for an operation that makes a system call.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let (mut cx, leaf) = (Context::from_waker(Waker::noop()), 0_u8);
/// mini_context::begin_poll(7);
/// let calls = (0..).take_while(|_| mini_context::poll_call(&mut cx, &leaf).is_ready()).count();
/// assert!((16..=17).contains(&calls)); // a coin decides about the last one
/// # mini_context::end_poll();
/// ```
#[inline]
pub fn poll_call<L>(cx: &mut Context<'_>, leaf: *const L) -> Poll<()> {
    let left = check_budget(cx, leaf);
    if left.is_ready() {
        spend_call();
    }
    left
}

/// Wakes the task and returns `Pending` if the budget is spent; spends nothing itself.
///
/// For an operation that knows only later whether it completes: see [`spend_if_ready`] and [`spend_call`].
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let (mut cx, leaf) = (Context::from_waker(Waker::noop()), 0_u8);
/// mini_context::begin_poll(7);
/// assert!(mini_context::check_budget(&mut cx, &leaf).is_ready());
/// mini_context::spend(mini_context::BUDGET);
/// while mini_context::check_budget(&mut cx, &leaf).is_ready() {
///     mini_context::spend(1); // a coin has left one
/// }
/// # mini_context::end_poll();
/// ```
#[inline]
pub fn check_budget<L>(cx: &mut Context<'_>, leaf: *const L) -> Poll<()> {
    if LOCAL.with(|local| local.budget.get()) == 0 {
        return refuse(cx, leaf.cast());
    }
    Poll::Ready(())
}

/// Checks the budget like [`check_budget`], for a future that polls others in an order that matters: the first is to
/// win if it is ready. If the first is refused, another one may get the next unit, or need none. So this checks before
/// any of them does.
///
/// If no leaf may continue until the poll is over, a coin decides whether one unit is left for the first. So such a
/// future makes progress even if it always comes after one that spends everything.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let (mut cx, leaf) = (Context::from_waker(Waker::noop()), 0_u8);
/// let left = mini_context::swap_budget(0);
/// while mini_context::check_order(&mut cx, &leaf).is_pending() {}
/// assert!(mini_context::has_budget());
/// # mini_context::swap_budget(left);
/// ```
#[inline]
pub fn check_order<L>(cx: &mut Context<'_>, leaf: *const L) -> Poll<()> {
    if LOCAL.with(|local| local.budget.get()) == 0 {
        return refuse_in_order(cx, leaf.cast());
    }
    Poll::Ready(())
}

#[cold]
fn refuse_in_order(cx: &mut Context<'_>, leaf: *const ()) -> Poll<()> {
    let goes_on = LOCAL.with(|local| {
        let leaves_none = (1..=REFUSALS - u16::from(BUDGET)).contains(&local.refusals.get());
        let goes_on = leaves_none && toss(&local.coin);
        if goes_on {
            local.budget.set(1);
        }
        goes_on
    });
    if goes_on { Poll::Ready(()) } else { refuse(cx, leaf) }
}

/// Spends one unit if `polled` is ready. A leaf that only waits spends nothing, so any number of waiting leaves fits
/// into a poll.
///
/// # Examples
///
/// ```
/// use std::task::Poll;
///
/// # mini_context::begin_poll(0);
/// assert!(mini_context::spend_if_ready(Poll::<()>::Pending).is_pending());
/// assert!(mini_context::spend_if_ready(Poll::Ready(())).is_ready());
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 1);
/// ```
#[inline]
pub fn spend_if_ready<T>(polled: Poll<T>) -> Poll<T> {
    if polled.is_ready() {
        spend(1);
    }
    polled
}

/// Returns `true` if something is left of the budget of the poll in progress.
///
/// # Examples
///
/// ```
/// assert!(mini_context::has_budget());
/// let left = mini_context::swap_budget(0);
/// assert!(!mini_context::has_budget());
/// # mini_context::swap_budget(left);
/// ```
pub fn has_budget() -> bool {
    LOCAL.with(|local| local.budget.get()) > 0
}

/// Returns `true` if the poll in progress, or the last one, was refused an operation since its budget was spent.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// mini_context::begin_poll(1);
/// assert!(!mini_context::was_refused());
/// mini_context::spend(mini_context::BUDGET);
/// while mini_context::poll_budget(&mut Context::from_waker(Waker::noop()), &0_u8).is_ready() {}
/// assert!(mini_context::was_refused());
/// # mini_context::end_poll();
/// ```
#[inline]
pub fn was_refused() -> bool {
    LOCAL.with(|local| local.refusals.get()) < REFUSALS
}

#[cold]
fn refuse(cx: &mut Context<'_>, leaf: *const ()) -> Poll<()> {
    let goes_on = LOCAL.with(|local| {
        let left = local.refusals.get();
        local.refusals.set(left.saturating_sub(1));
        if left > REFUSALS - u16::from(BUDGET) {
            local.budget.set(1);
            local.refused.set(NOBODY);
            return left == REFUSALS && toss(&local.coin);
        }
        let (refused, times) = local.refused.get();
        let times = if refused == leaf { times.saturating_add(1) } else { 0 };
        let goes_on = !leaf.is_null() && times > IN_A_ROW;
        if goes_on {
            local.refused.set(NOBODY);
        } else if refused.is_null() || refused == leaf {
            local.refused.set((leaf, times));
        }
        if goes_on || left == 0 {
            local.budget.set(BUDGET);
        }
        goes_on
    });
    if goes_on {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// As good as random for leaves that are refused in turn. (A linear congruential generator; Knuth, "The Art of Computer
/// Programming", 3.3.4.)
fn toss(coin: &Cell<u32>) -> bool {
    coin.set(coin.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    coin.get() >> 31 == 0
}

/// Sets the coin that decides which leaf in a poll is refused first, and returns the previous one. For simulations.
///
/// # Examples
///
/// ```
/// let before = mini_context::swap_coin(7);
/// assert_eq!(mini_context::swap_coin(before), 7);
/// ```
pub fn swap_coin(coin: u32) -> u32 {
    LOCAL.with(|local| local.coin.replace(coin))
}

/// Counts one completed operation that has made a system call.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll(0);
/// mini_context::spend_call();
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 8);
/// ```
#[inline]
pub fn spend_call() {
    spend(CALL);
}

/// Counts further calls that an operation has made, or that its result will cause: an opened descriptor must be closed.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll(0);
/// mini_context::spend_calls(3);
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 3 * 8);
/// ```
pub fn spend_calls(calls: u8) {
    spend(calls.saturating_mul(CALL));
}

/// Counts the bytes that an operation has copied: 16 KiB are as much as a call.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll(0);
/// mini_context::spend_bytes(64 << 10);
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 4 * 8);
/// ```
#[inline]
pub fn spend_bytes(bytes: usize) {
    const UNIT: usize = CALL_BYTES / CALL as usize;
    if bytes >= UNIT {
        spend(u8::try_from(bytes / UNIT).unwrap_or(u8::MAX));
    }
}

/// Spends `units` units of the budget.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll(0);
/// mini_context::spend(3);
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET - 3);
/// ```
#[inline]
pub fn spend(units: u8) {
    LOCAL.with(|local| match local.budget.get() {
        ENDLESS => {}
        left => local.budget.set(left.saturating_sub(units)),
    });
}

/// Sets the rest of the budget, and returns the previous rest. [`ENDLESS`] is a budget that never ends.
///
/// # Examples
///
/// ```
/// let left = mini_context::swap_budget(mini_context::ENDLESS);
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

    /// A leaf that is not known when it asks again.
    const UNKNOWN: *const () = ptr::null();

    #[test]
    fn each_refusal_leaves_a_unit_for_the_next_leaf_until_the_poll_has_lasted() {
        let mut cx = Context::from_waker(Waker::noop());
        crate::begin_poll(0);
        swap_budget(0);
        let is_first_refused = poll_call(&mut cx, UNKNOWN).is_pending();
        let is_ready = [is_first_refused, !is_first_refused];
        for nth in 0..2 * usize::from(BUDGET) - 2 {
            assert_eq!(poll_call(&mut cx, UNKNOWN).is_ready(), is_ready[nth % 2]);
        }
        while poll_call(&mut cx, UNKNOWN).is_ready() {}
        for _ in 0..BUDGET {
            assert!(poll_budget(&mut cx, UNKNOWN).is_pending());
        }
        crate::begin_poll(0);
        assert!(poll_budget(&mut cx, UNKNOWN).is_ready());
    }

    /// Two tasks take turns; each polls two leaves after a future that has spent the budget.
    #[test]
    fn each_leaf_goes_on_now_and_then_whatever_comes_before_it() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut went_on = [[0; 2]; 2];
        for poll in 0..200 {
            crate::begin_poll(0);
            swap_budget(0);
            for leaf in &mut went_on[poll % 2] {
                *leaf += usize::from(poll_call(&mut cx, UNKNOWN).is_ready());
            }
        }
        assert!(went_on.as_flattened().iter().all(|times| (20..=80).contains(times)), "{went_on:?}");
    }

    #[test]
    fn an_executor_inside_of_a_poll_is_refused_a_few_times_in_a_row() {
        let mut cx = Context::from_waker(Waker::noop());
        for count in 1..=3 {
            crate::begin_poll(7);
            let leaves = vec![0_u8; count];
            let (mut in_a_row, mut longest) = (0, 0);
            for _ in 0..10_000 {
                let is_refused = leaves.iter().filter(|leaf| poll_call(&mut cx, *leaf).is_ready()).count() == 0;
                in_a_row = if is_refused { in_a_row + 1 } else { 0 };
                longest = longest.max(in_a_row);
            }
            assert!((1..=usize::from(IN_A_ROW) + 1).contains(&longest), "{longest}");
        }
    }

    #[test]
    fn a_leaf_without_an_address_goes_on_in_the_end() {
        let mut cx = Context::from_waker(Waker::noop());
        crate::begin_poll(7);
        swap_budget(0);
        let mut refusals = 0;
        while check_budget(&mut cx, UNKNOWN).is_pending() || swap_budget(0) < BUDGET {
            refusals += 1;
        }
        assert!((REFUSALS..REFUSALS + 2 * u16::from(BUDGET)).contains(&refusals), "{refusals}");
    }

    #[test]
    fn outside_of_polls_the_budget_is_endless() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_endless = || (0..1_000).all(|_| poll_call(&mut cx, &0_u8).is_ready());
        assert!(is_endless());
        crate::begin_poll(7);
        assert!(!is_endless());
        let aside = crate::set_poll_aside();
        assert!(is_endless());
        drop(aside);
        assert!(!is_endless());
        crate::end_poll();
        assert!(is_endless());
    }

    #[test]
    fn an_endless_budget_is_not_spent() {
        let before = swap_budget(ENDLESS);
        for _ in 0..1_000 {
            spend_call();
        }
        assert_eq!(swap_budget(before), ENDLESS);
    }
}
