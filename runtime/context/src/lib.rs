//! State that the crates of the runtime share: the poll in progress on a thread, and a way to contain panics.
//!
//! The state of a poll is its budget, its notes, and its deadline. A runtime calls [`begin_poll`] before it polls a
//! task, and reads the [`notes`] after a poll that returned `Pending`. Leaf futures of every crate spend the budget and
//! leave the notes, with or without a runtime. So all leaves of a task share one budget, and a new crate of leaves
//! needs no place of its own here. The objects that a crate's futures work with (a reactor, timers) belong to that
//! crate.
//!
//! The state belongs to one thread, so nothing is atomic, and nothing has a destructor, so an access costs no check.
//!
//! [`Lock`] guards plain state for a few dozen instructions.
//!
//! [`contain`] runs the user's code that must not end a thread of the runtime.
//!
//! # Examples
//!
//! A runtime, for one poll:
//!
//! ```
//! use std::panic::Location;
//! use std::task::{Context, Poll, Waker};
//! use mini_context::{IoKind, Note, Reason, begin_poll, leave_note, notes};
//!
//! let mut leaf = std::future::poll_fn(|_| {
//!     leave_note(Note { reason: Reason::Io(IoKind::Read, 5), location: Location::caller() });
//!     Poll::<()>::Pending
//! });
//!
//! begin_poll(0);
//! let mut cx = Context::from_waker(Waker::noop());
//! assert!(Future::poll(std::pin::Pin::new(&mut leaf), &mut cx).is_pending());
//! assert_eq!(notes().wait.unwrap().reason(), Reason::Io(IoKind::Read, 5));
//! ```

mod budget;
mod crowds;
mod due;
mod holders;
mod location;
mod lock;
#[cfg(loom)]
mod lock_model;
mod notes;
mod others;
mod own_waker;
#[doc(hidden)]
pub mod rules;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(not(feature = "sim"))]
#[path = "not_simulated.rs"]
pub mod sim;
mod unwind;
mod wait;
mod waker_slot;

pub use budget::swap_budget;
pub use budget::{
    ENDLESS, check_budget, check_order, has_budget, poll_budget, poll_call, poll_first, spend, spend_bytes, spend_call,
    spend_calls, spend_if_ready, swap_coin, was_refused,
};
pub use crowds::{crowds, forget_crowd, note_crowd};
pub use due::{Due, DueGuard, due, set_due};
pub use holders::{Holder, end, holder, set_end, set_holder, set_number, taken, untaken};
#[cfg(not(loom))]
pub use lock::{Guard, Lock};
#[cfg(loom)]
pub use lock_model::{Guard, Lock};
pub use notes::{IoKind, Note, NoteMark, Notes, PollAside, Reason, SyncKind};
pub use notes::{
    forget_timer, forget_wait, leave_note, mark_notes, notes, notes_since, set_poll_aside, swap_notes, take_notes,
};
pub use others::{has_others, note_others, others};
pub use own_waker::{WakerOf, note_waker, set_waker};
pub use rules::BUDGET;
use rules::REFUSALS;
pub use unwind::contain;
pub use wait::{ITSELF, Wait};
pub use waker_slot::{SeenWaker, WakerSlot};

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(shuttle)]
use shuttle::thread_local;
#[cfg(not(shuttle))]
use std::thread_local;

/// The poll in progress.
struct Local {
    budget: Cell<u8>,
    /// The number of operations that may still be refused in this poll.
    refusals: Cell<u16>,
    refused: Cell<budget::Refused>,
    /// Whether the first leaf that finds nothing left is refused; see `budget.rs`.
    coin: Cell<u32>,
    /// The number of leaves in `other`, and whether there are more that are not known; see `others.rs`.
    others: Cell<u8>,
    wait: Cell<Option<Wait>>,
    /// Those before `wait` in this poll; see `others.rs`.
    other: [Cell<Option<Wait>>; others::MOST],
    timer: Cell<Option<Wait>>,
    /// The number of notes left; see `notes.rs`.
    noted: Cell<u64>,
    /// The number of notes when `wait` became that of an earlier leaf, because the last one was taken back.
    promoted: Cell<u64>,
    due: Cell<Option<Due>>,
    /// The id of the task that is polled; 0 for none.
    task: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            budget: Cell::new(ENDLESS),
            refusals: Cell::new(REFUSALS),
            refused: Cell::new(budget::NOBODY),
            coin: Cell::new(0),
            others: Cell::new(0),
            wait: Cell::new(None),
            other: [const { Cell::new(None) }; others::MOST],
            timer: Cell::new(None),
            noted: Cell::new(0),
            promoted: Cell::new(u64::MAX),
            due: Cell::new(None),
            task: Cell::new(0),
        }
    };
}

/// Fills the budget, discards the notes of the previous poll, and sets the task that is polled; 0 for none.
///
/// # Examples
///
/// ```
/// mini_context::swap_budget(1);
/// mini_context::begin_poll(7);
/// assert_eq!(mini_context::task(), 7);
/// assert_eq!(mini_context::swap_budget(mini_context::BUDGET), mini_context::BUDGET);
/// assert!(mini_context::notes().is_empty());
/// ```
#[inline]
pub fn begin_poll(task: u64) {
    LOCAL.with(|local| {
        local.budget.set(BUDGET);
        local.refusals.set(REFUSALS);
        local.refused.set(budget::NOBODY);
        local.others.set(0);
        local.wait.set(None);
        local.timer.set(None);
        local.task.set(task);
    });
}

/// A flag in place of a task's id: the future of a `block_on`; see [`new_main`].
pub const MAIN: u64 = 1 << 47;

/// Returns a new id, in place of a task's, for the future of one call of `block_on`. It is unique in this process.
#[must_use]
pub fn new_main() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(MAIN);
    LAST.fetch_add(1, Relaxed) + 1
}

/// Returns `true` if `id` is the id of the future of a `block_on`.
#[must_use]
pub fn is_main(id: u64) -> bool {
    id & MAIN != 0 && id != ITSELF
}

/// Sets the task that is polled, and returns the previous one. For code within a poll that is no part of it.
#[inline]
pub fn swap_task(task: u64) -> u64 {
    LOCAL.with(|local| local.task.replace(task))
}

/// Ends the poll: from now on this thread's work is no part of the task, and has an endless budget. The notes stay.
#[inline]
pub fn end_poll() {
    LOCAL.with(|local| {
        local.task.set(0);
        local.budget.set(ENDLESS);
    });
}

/// Returns the id of the task that this thread polls. It is the id of [`new_main`] for the future of a `block_on`, and
/// 0 if the thread polls none.
#[inline]
pub fn task() -> u64 {
    LOCAL.with(|local| local.task.get())
}
