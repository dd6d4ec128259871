//! The hand-over of a task's output to its join handle.
//!
//! Called by the runner (once, when the future is gone) and by the one join handle of the task. The two may sit on
//! different threads; the word decides who drops the output and who may touch the waiter.
//!
//! ```text
//!                     2 withdraw
//!           .-----------------------------.
//!           v                             |
//!      NO WAITER ------ 1 offer -----> WAITER
//!          |                              |            5 leave: GONE is set in any state. Before DONE the
//!          | 3 complete: nothing          | 4 complete:   runner drops the output (6), after it the handle.
//!          v                              v   wake
//!        DONE <---------------------------'
//! ```
//!
//! Field rights. `output`: the runner until DONE, then the handle (if GONE came first: the runner). `waiter`: the
//! handle while WAITER is not set; while it is set nobody writes, and the runner may wake it through a shared
//! reference; after DONE the handle leaves it alone and it is dropped with the task.

use crate::sync::atomic::{AtomicU8, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

const DONE: u8 = 1;
const WAITER: u8 = 2;
const GONE: u8 = 4;

/// What the runner owes after the output is in place.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnComplete {
    /// Wake the waiter, by reference.
    Wake,
    /// The handle will come by itself.
    Nothing,
    /// There is no handle: drop the output.
    DropOutput,
}

/// What the handle found.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnJoin {
    /// The output is the handle's.
    Done,
    /// The runner has not finished.
    Pending,
}

/// The word of the hand-over.
#[derive(Debug)]
pub(crate) struct Handshake(AtomicU8);

impl Handshake {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Whether the output has been handed over. Acquire: pairs with `complete`.
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Acquire) & DONE != 0
    }

    /// Whether the handle has left a waiter. Only the handle changes this before DONE.
    pub(crate) fn has_waiter(&self) -> bool {
        self.0.load(Relaxed) & WAITER != 0
    }

    /// Edges 3, 4 and 6: the output is in place.
    pub(crate) fn complete(&self) -> OnComplete {
        // AcqRel: releases the output to `is_done`, acquires the waiter from `offer`.
        match self.0.fetch_or(DONE, AcqRel) & (WAITER | GONE) {
            0 => OnComplete::Nothing,
            WAITER => OnComplete::Wake,
            _ => OnComplete::DropOutput,
        }
    }

    /// Edge 1: the handle has written the waiter.
    pub(crate) fn offer(&self) -> OnJoin {
        on_join(self.0.fetch_or(WAITER, AcqRel))
    }

    /// Edge 2: if pending, the waiter is the handle's to write again.
    pub(crate) fn withdraw(&self) -> OnJoin {
        match self.0.compare_exchange(WAITER, 0, AcqRel, Acquire) {
            Ok(before) => on_join(before),
            Err(before) => on_join(before),
        }
    }

    /// Edge 5. If done, the handle drops the output.
    pub(crate) fn leave(&self) -> OnJoin {
        on_join(self.0.fetch_or(GONE, AcqRel))
    }
}

fn on_join(before: u8) -> OnJoin {
    if before & DONE != 0 { OnJoin::Done } else { OnJoin::Pending }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn edges_1_and_4_a_waiter_is_woken() {
        let word = Handshake::new();
        assert_eq!(word.offer(), OnJoin::Pending);
        assert_eq!(word.complete(), OnComplete::Wake);
        assert!(word.is_done());
    }

    #[test]
    fn edge_2_a_withdrawn_waiter_is_not_woken() {
        let word = Handshake::new();
        assert_eq!(word.offer(), OnJoin::Pending);
        assert_eq!(word.withdraw(), OnJoin::Pending);
        assert_eq!(word.complete(), OnComplete::Nothing);
    }

    #[test]
    fn edge_3_an_offer_after_the_end_finds_it() {
        let word = Handshake::new();
        assert_eq!(word.complete(), OnComplete::Nothing);
        assert_eq!(word.offer(), OnJoin::Done);
    }

    #[test]
    fn edge_5_leaving_after_the_end_takes_the_output_along() {
        let word = Handshake::new();
        assert_eq!(word.complete(), OnComplete::Nothing);
        assert_eq!(word.leave(), OnJoin::Done);
    }

    #[test]
    fn edge_6_leaving_before_the_end_lets_the_runner_drop_the_output() {
        let word = Handshake::new();
        assert_eq!(word.leave(), OnJoin::Pending);
        assert_eq!(word.complete(), OnComplete::DropOutput);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// The output is read by the handle xor dropped by one side; a waiter offered in time is woken.
    ///
    /// Fails when `complete` or `offer` is Relaxed, or when `withdraw` ignores DONE.
    #[test]
    fn the_output_has_one_owner_and_a_waiter_is_not_forgotten() {
        loom::model(|| {
            let shared = Arc::new((Handshake::new(), UnsafeCell::new(0u32), UnsafeCell::new(0u32)));
            let runner = {
                let shared = shared.clone();
                thread::spawn(move || {
                    #[allow(unsafe_code)]
                    // SAFETY: the model checks that nobody else touches the cell now.
                    shared.1.with_mut(|output| unsafe { *output = 7 });
                    let next = shared.0.complete();
                    if next == OnComplete::Wake {
                        #[allow(unsafe_code)]
                        // SAFETY: as above, for the waiter, which the handle no longer writes.
                        shared.2.with(|waiter| assert_ne!(unsafe { *waiter }, 0));
                    }
                    next
                })
            };
            let set = |value| {
                #[allow(unsafe_code)]
                // SAFETY: as above.
                shared.2.with_mut(|waiter| unsafe { *waiter = value });
            };
            let mut found = if shared.0.is_done() { OnJoin::Done } else { OnJoin::Pending };
            if found == OnJoin::Pending {
                set(1);
                found = shared.0.offer();
            }
            if found == OnJoin::Pending {
                found = shared.0.withdraw();
            }
            if found == OnJoin::Pending {
                set(2);
                found = shared.0.offer();
            }
            if found == OnJoin::Done {
                #[allow(unsafe_code)]
                // SAFETY: as above, for the output.
                shared.1.with(|output| assert_eq!(unsafe { *output }, 7));
            } else {
                assert_eq!(runner.join().unwrap(), OnComplete::Wake);
            }
        });
    }

    /// Fails when `leave` and `complete` are a load and a store each.
    #[test]
    fn a_leaving_handle_and_the_runner_drop_the_output_once() {
        loom::model(|| {
            let word = Arc::new(Handshake::new());
            let other = word.clone();
            let runner = thread::spawn(move || other.complete() == OnComplete::DropOutput);
            let handle_drops = word.leave() == OnJoin::Done;
            assert!(handle_drops ^ runner.join().unwrap());
        });
    }
}
