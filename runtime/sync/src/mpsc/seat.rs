//! The place where the receiver of a channel waits: its waker, and room for one message that a sender hands over
//! directly.
//!
//! With the lock alone, a message for a receiver that waits costs five locked instructions: the lock of the sender, a
//! waker that is cloned and dropped, the lock to leave that, and the lock to fetch the message. Here it costs two. The
//! waker stays in the seat and is called in place, and the message is fetched without the lock.
//!
//! ```text
//!          1 sit (receiver, locked)            3 call (sender, locked)           4 called (that sender)
//!   EMPTY -------------------------> TAKEN ---------------------------> CALLING ----------------------> EMPTY
//!     ^                                |
//!     '--------------------------------'
//!       2 sit with a spare (the receiver has moved to another task), stand_up
//! ```
//!
//! While CALLING, or after edge 2, the receiver is seated by its spare waker alone, which leaves the state as it is.
//!
//! | field | whose |
//! |---|---|
//! | `waker` | the receiver's while EMPTY (it alone takes the seat); of the sender that called, to read, while CALLING |
//! | `spare` | who holds the lock |
//! | `message` | the receiver's while `is_full`; otherwise of who holds the lock and calls |
//!
//! A receiver that comes back while its last caller is still at the waker does not wait for that: it leaves a clone,
//! the spare, which the next sender takes and uses up. So no thread waits for another one here.
//!
//! Memory order: the caller has seen TAKEN under the lock, in which the receiver wrote it after the waker. Edge 4
//! releases, and the receiver's look acquires. `is_full` is stored with Release after the message, and loaded with
//! Acquire; the next message comes only after the receiver sat down again, under the lock. The message comes after
//! CALLING: a receiver that sees the message sees CALLING too, and does not sit down at a waker that is being called.

#![allow(unsafe_code)]

use std::task::Waker;

use crate::primitives::UnsafeCell;
use crate::primitives::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{Acquire, Relaxed, Release},
};

const EMPTY: u8 = 0;
const TAKEN: u8 = 1;
const CALLING: u8 = 2;

/// Beside the lock of the channel.
pub(super) struct Seat<T> {
    state: AtomicU8,
    waker: UnsafeCell<Option<Waker>>,
    is_full: AtomicBool,
    message: UnsafeCell<Option<T>>,
}

/// The part of a [`Seat`] under the lock of the channel.
#[derive(Default)]
pub(super) struct Occupant {
    spare: Option<Waker>,
    is_seated: bool,
}

// SAFETY: see the table: each field is used by one thread at a time, and goes from thread to thread in the order that
// the states give. Tests: models `seat_*`.
unsafe impl<T: Send> Sync for Seat<T> {}

/// A call that the sender owes to the receiver, when it has released the lock.
#[must_use]
pub(super) enum Call {
    Nobody,
    InPlace,
    Spare(Waker),
}

/// What the receiver brings to sit down.
pub(super) enum Ticket {
    /// The seat has a waker for its task.
    InPlace,
    Spare(Waker),
}

impl<T> Seat<T> {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            waker: UnsafeCell::new(None),
            is_full: AtomicBool::new(false),
            message: UnsafeCell::new(None),
        }
    }

    /// For the receiver, without the lock, before it sits down: something that wakes the task of `waker`.
    #[inline]
    pub(super) fn prepare(&self, waker: &Waker) -> Ticket {
        let state = self.state.load(Acquire);
        // SAFETY: nobody but the receiver, which this is, writes the cell.
        let is_same = self.waker.with(|own| unsafe { (*own).as_ref() }.is_some_and(|own| own.will_wake(waker)));
        if state != CALLING && is_same {
            return Ticket::InPlace;
        }
        let waker = waker.clone();
        if state != EMPTY {
            return Ticket::Spare(waker);
        }
        // SAFETY: EMPTY, and this is the receiver: no sender uses the cell before the next edge 1.
        self.waker.with_mut(|own| unsafe { *own = Some(waker) });
        Ticket::InPlace
    }

    /// Edges 1 and 2. The receiver, under the lock. A waker that is no longer needed comes back, to be dropped without
    /// the lock.
    #[inline]
    pub(super) fn sit(&self, occupant: &mut Occupant, ticket: Ticket) -> Option<Waker> {
        occupant.is_seated = true;
        match ticket {
            Ticket::InPlace => {
                self.state.store(TAKEN, Relaxed); // the lock orders it
                occupant.spare.take()
            }
            Ticket::Spare(waker) => {
                self.leave_taken();
                occupant.spare.replace(waker)
            }
        }
    }

    /// The receiver is dropped, under the lock. Its wakers come back, to be dropped without the lock; one that a sender
    /// is calling stays until the channel is gone.
    pub(super) fn stand_up(&self, occupant: &mut Occupant) -> [Option<Waker>; 2] {
        occupant.is_seated = false;
        self.leave_taken();
        let own = match self.state.load(Acquire) {
            CALLING => None,
            // SAFETY: EMPTY, and this is the receiver.
            _ => self.waker.with_mut(|own| unsafe { (*own).take() }),
        };
        [own, occupant.spare.take()]
    }

    /// Under the lock no end continues from TAKEN.
    fn leave_taken(&self) {
        if self.state.load(Relaxed) == TAKEN {
            self.state.store(EMPTY, Relaxed);
        }
    }

    /// Edge 3, under the lock.
    #[inline]
    pub(super) fn call(&self, occupant: &mut Occupant) -> Call {
        if !std::mem::take(&mut occupant.is_seated) {
            return Call::Nobody;
        }
        match occupant.spare.take() {
            Some(waker) => Call::Spare(waker),
            None => {
                self.state.store(CALLING, Relaxed); // only this sender leaves that state
                Call::InPlace
            }
        }
    }

    /// Hands the message to the receiver, which sat there until [`call`](Self::call), just now.
    #[inline]
    pub(super) fn hand(&self, message: T) {
        // SAFETY: the receiver sat, so it has emptied the place before it took the lock, which is held since. In `keep`
        // the caller is the receiver, which has found the place empty under the lock and does not sit.
        self.message.with_mut(|place| unsafe { *place = Some(message) });
        self.is_full.store(true, Release);
    }

    /// For the receiver, under the lock: keeps a message of the queue, until it takes it. While there was one it did
    /// not sit, so nothing was handed to it, and nothing will be before it sits.
    #[inline]
    pub(super) fn keep(&self, message: T) {
        self.hand(message);
    }

    /// The message that was handed over. For the receiver.
    #[inline]
    pub(super) fn take(&self) -> Option<T> {
        if !self.is_full.load(Acquire) {
            return None;
        }
        self.is_full.store(false, Relaxed); // the next sender comes after the lock in which the receiver sits down
        // SAFETY: `is_full`, and this is the receiver.
        self.message.with_mut(|place| unsafe { (*place).take() })
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Acquire)
    }

    /// Makes the call. The lock is not held.
    #[inline]
    pub(super) fn make(&self, call: Call) {
        match call {
            Call::Nobody => {}
            Call::Spare(waker) => waker.wake(),
            Call::InPlace => {
                let _done = Done(&self.state);
                // SAFETY: CALLING was set by this sender, so the receiver leaves the waker alone until `Done`.
                self.waker.with(|waker| unsafe { (*waker).as_ref() }.into_iter().for_each(Waker::wake_by_ref));
            }
        }
    }
}

impl Occupant {
    #[inline]
    pub(super) fn is_seated(&self) -> bool {
        self.is_seated
    }
}

/// Edge 4, even if the waker panics.
struct Done<'a>(&'a AtomicU8);

impl Drop for Done<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(EMPTY, Release);
    }
}
