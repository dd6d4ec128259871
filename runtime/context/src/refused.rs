//! The sources of which the poll in progress was refused an operation, so that later ones of the same source wait too.
//!
//! Each refusal leaves a unit for the next leaf (`budget.rs`). If that is for the same lock or channel, it would pass
//! one that was polled before: of 300 sends that a task joins, every second one after the 128th came first.
//!
//! A source is known by its address. There is room for few, as each one that is refused leaves its unit to the next:
//! of more sources in one poll those that come late may be served out of order.
//!
//! Rejected: a set of hashed addresses (which of them collide differs from run to run, also of a simulation). All
//! operations of a poll after the first refused one (a timer joined to a busy socket would never be asked).

use std::cell::Cell;
use std::task::{Context, Poll};

use crate::LOCAL;
use crate::budget::{check_budget, refuse, was_refused};

/// So many sources are known.
const MOST: usize = 4;

pub(crate) struct Refused {
    sources: [Cell<usize>; MOST],
    count: Cell<usize>,
}

impl Refused {
    pub(crate) const fn new() -> Self {
        Self { sources: [const { Cell::new(0) }; MOST], count: Cell::new(0) }
    }

    fn contains(&self, source: usize) -> bool {
        self.sources[..self.count.get()].iter().any(|known| known.get() == source)
    }

    fn note(&self, source: usize) {
        if let Some(free) = self.sources.get(self.count.get()) {
            free.set(source);
            self.count.set(self.count.get() + 1);
        }
    }
}

/// As [`check_budget`](crate::check_budget), for an operation that others of the same source, which were polled
/// before, must not be passed by: of a lock or a channel, say, that serves first who comes first. `source` is its
/// address.
///
/// # Examples
///
/// ```
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// mini_context::begin_poll(0);
/// mini_context::swap_budget(0);
/// while mini_context::check_budget_in_order(&mut cx, 7).is_ready() {
///     mini_context::spend(1);
/// }
/// // Now there is a unit for another one.
/// assert!(mini_context::check_budget_in_order(&mut cx, 7).is_pending());
/// assert!(mini_context::check_budget_in_order(&mut cx, 8).is_ready());
/// # mini_context::end_poll();
/// # mini_context::end_polls();
/// ```
#[inline]
pub fn check_budget_in_order(cx: &mut Context<'_>, source: usize) -> Poll<()> {
    // A refusal leaves one unit.
    if LOCAL.with(|local| local.budget.get()) <= 1 {
        return check_order(cx, source);
    }
    Poll::Ready(())
}

#[cold]
fn check_order(cx: &mut Context<'_>, source: usize) -> Poll<()> {
    let is_behind = LOCAL.with(|local| {
        if !was_refused() {
            local.refused.count.set(0); // they are of a poll before
        }
        local.refused.contains(source)
    });
    if is_behind {
        return refuse(cx);
    }
    let checked = check_budget(cx);
    if checked.is_pending() {
        LOCAL.with(|local| local.refused.note(source));
    }
    checked
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Which of the operations, each of a source, go on in a poll that has nothing left.
    fn ready(sources: &[usize]) -> Vec<bool> {
        let mut cx = Context::from_waker(Waker::noop());
        crate::begin_poll(0);
        crate::swap_budget(0);
        let checks = sources.iter().map(|&source| {
            let is_ready = check_budget_in_order(&mut cx, source).is_ready();
            if is_ready {
                crate::spend(1);
            }
            is_ready
        });
        checks.collect()
    }

    #[test]
    fn nothing_passes_an_operation_of_its_source_and_others_go_on() {
        let mut went_on = [0; 6];
        for _ in 0..200 {
            let sources = [1, 2, 1, 3, 2, 1];
            let ready = ready(&sources);
            for (at, source) in sources.iter().enumerate() {
                let earlier = sources[..at].iter().position(|other| other == source);
                assert!(!ready[at] || earlier.is_none_or(|earlier| ready[earlier]), "{ready:?}");
                went_on[at] += u32::from(ready[at]);
            }
        }
        assert!(went_on[0] > 0 && went_on[1] > 0 && went_on[3] > 0, "{went_on:?}");
    }

    #[test]
    fn of_many_sources_each_goes_on_now_and_then() {
        let sources: Vec<usize> = (1..=10).collect();
        let mut went_on = [0; 10];
        for _ in 0..200 {
            ready(&sources).into_iter().zip(&mut went_on).for_each(|(is_ready, count)| *count += u32::from(is_ready));
        }
        assert!(went_on.iter().all(|&count| count > 20), "{went_on:?}");
    }
}
