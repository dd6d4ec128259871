//! Waiters that leave all at once when a round ends: the common part of a notification of all, a barrier, and channels
//! to all receivers.
//!
//! To end a round is one step, however many wait: the list of waiting waiters is appended to the list of leaving ones.
//! They are woken from there, a batch at a time, and the lock is free in between. A waiter that joins in between waits
//! for the next round, and does not prolong this one.
//!
//! ```text
//!              1 join              2 end              3 take_leaving, leave
//!   not queued -------> waiting ----------> leaving ------------------------> not queued
//!                          |  4 leave, pop_front, pop_back
//!                          '--------------------------> not queued
//! ```
//!
//! A queued waiter is in the list of leaving ones exactly if it joined in an earlier round.
//!
//! Rejected: waking from the one list until it is empty (waiters that join again at once keep it busy). A mark in each
//! waiter (all of them are touched under one lock).

#![allow(unsafe_code)]

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Note, Reason, SyncKind};
use pin_project_lite::pin_project;

use crate::waiters::{WaitList, Waiter, Wakes};

/// A waiter's data, and the round in which it joined.
#[derive(Debug)]
pub(crate) struct Entry<D> {
    round: u64,
    pub(crate) data: D,
}

impl<D> Waiter<Entry<D>> {
    pub(crate) const fn of_round(data: D) -> Self {
        Self::new(Entry { round: 0, data })
    }
}

/// The methods with `unsafe` have the same conditions as those of [`WaitList`].
#[derive(Debug)]
pub(crate) struct Rounds<D> {
    round: u64,
    waiting: WaitList<Entry<D>>,
    leaving: WaitList<Entry<D>>,
}

impl<D> Rounds<D> {
    pub(crate) const fn new() -> Self {
        Self { round: 0, waiting: WaitList::new(), leaving: WaitList::new() }
    }

    /// The round that has begun.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Returns `true` if no waiter waits for the end of this round.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Edge 2. The caller takes out the leaving waiters until there are none.
    pub(crate) fn end(&mut self, wakes: &mut Wakes) {
        self.round += 1;
        self.leaving.append(&mut self.waiting);
        self.take_leaving(wakes);
    }

    /// Edge 3, for as many as there is room for.
    pub(crate) fn take_leaving(&mut self, wakes: &mut Wakes) {
        while !wakes.is_full() && !self.leaving.is_empty() {
            wakes.push(self.leaving.pop_front(|_| ()));
        }
    }

    /// Edge 4, for the first waiter, after `tell` has written into its data.
    pub(crate) fn pop_front(&mut self, tell: impl FnOnce(&mut D)) -> Option<Waker> {
        self.waiting.pop_front(|entry| tell(&mut entry.data))
    }

    /// Edge 4, for the last waiter, after `tell` has written into its data.
    pub(crate) fn pop_back(&mut self, tell: impl FnOnce(&mut D)) -> Option<Waker> {
        self.waiting.pop_back(|entry| tell(&mut entry.data))
    }

    /// Edge 1, from wherever the waiter is. The waker that comes back is to be dropped without the lock.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn join(&mut self, waiter: Pin<&Waiter<Entry<D>>>, waker: Waker) -> Option<Waker> {
        // SAFETY: the caller's promise.
        let (entry, is_queued) = unsafe { self.waiting.look(waiter) };
        if is_queued && entry.round == self.round {
            // SAFETY: the caller's promise.
            return unsafe { self.waiting.exchange(waiter, waker) };
        }
        // SAFETY: the caller's promise.
        let old = unsafe { self.leave(waiter) };
        // SAFETY: the caller's promise.
        unsafe { self.waiting.look(waiter) }.0.round = self.round;
        // SAFETY: the caller's promise. The waiter has left.
        unsafe { self.waiting.push_back(waiter, waker) };
        old
    }

    /// Edges 3 and 4, if the waiter is queued. The waker that comes back is to be dropped without the lock.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn leave(&mut self, waiter: Pin<&Waiter<Entry<D>>>) -> Option<Waker> {
        // SAFETY: the caller's promise.
        let (entry, _) = unsafe { self.waiting.look(waiter) };
        let list = if entry.round == self.round { &mut self.waiting } else { &mut self.leaving };
        // SAFETY: the caller's promise; this is the list that the waiter is in, if it is in one.
        unsafe { list.remove(waiter) }
    }

    /// The data of the waiter.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn data(&mut self, waiter: Pin<&Waiter<Entry<D>>>) -> &mut D {
        // SAFETY: the caller's promise.
        let (entry, _) = unsafe { self.waiting.look(waiter) };
        &mut entry.data
    }

    /// Returns `true` if the waiter waits for the end of this round, with a waker equivalent to `waker`.
    ///
    /// # Safety
    ///
    /// See [`WaitList`].
    pub(crate) unsafe fn waits(&mut self, waiter: Pin<&Waiter<Entry<D>>>, waker: &Waker) -> bool {
        // SAFETY: the caller's promise.
        let (entry, is_queued) = unsafe { self.waiting.look(waiter) };
        let waits = is_queued && entry.round == self.round;
        // SAFETY: the caller's promise.
        waits && !unsafe { self.waiting.has_moved(waiter, waker) }
    }
}

/// The place of rounds: under the lock of a primitive.
pub(crate) trait HasRounds {
    /// The name of a wait there.
    const KIND: SyncKind;
    type State;

    fn with<R>(&self, f: impl FnOnce(&mut Self::State) -> R) -> R;

    fn rounds(state: &mut Self::State) -> &mut Rounds<()>;
}

/// Calls `change` under the lock of `place`, and wakes all waiters if it returns that the round has ended.
pub(crate) fn end_if<P: HasRounds + ?Sized>(place: &P, change: impl FnOnce(&mut P::State) -> bool) -> bool {
    let mut wakes = Wakes::new();
    let is_over = place.with(|state| {
        let is_over = change(state);
        if is_over {
            P::rounds(state).end(&mut wakes);
        }
        is_over
    });
    crate::waiters::wake_all(wakes, |wakes| place.with(|state| P::rounds(state).take_leaving(wakes)));
    is_over
}

pin_project! {
    /// Waits until something holds of the state of `P`, whose round ends whenever that may have changed.
    #[derive(Debug)]
    pub(crate) struct RoundWait<P: HasRounds> {
        place: P,
        // Whether the waiter may be queued.
        is_waiting: bool,
        location: &'static Location<'static>,
        #[pin]
        waiter: Waiter<Entry<()>>,
    }

    impl<P: HasRounds> PinnedDrop for RoundWait<P> {
        fn drop(this: Pin<&mut Self>) {
            if this.is_waiting {
                this.leave();
            }
        }
    }
}

impl<P: HasRounds> RoundWait<P> {
    #[track_caller]
    pub(crate) fn new(place: P) -> Self {
        Self { place, is_waiting: false, location: Location::caller(), waiter: Waiter::of_round(()) }
    }

    pub(crate) fn place(&self) -> &P {
        &self.place
    }

    /// Ready with what `find` finds, which is called under the lock and may be called twice.
    pub(crate) fn poll_until<R>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        find: impl FnMut(&mut P::State) -> Option<R>,
    ) -> Poll<R> {
        ready!(mini_context::check_budget(cx, &*self));
        mini_context::spend_if_ready(self.poll_found(cx, find))
    }

    #[inline]
    fn poll_found<R>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut find: impl FnMut(&mut P::State) -> Option<R>,
    ) -> Poll<R> {
        let this = self.project();
        let (waiter, place) = (this.waiter.into_ref(), &*this.place);
        let is_waiting = *this.is_waiting;
        let (found, waits, old) = place.with(|state| match find(state) {
            // SAFETY: the waiter is part of this future, which is pinned, and leaves the list when that is dropped.
            // Test: `tests/threads.rs`.
            found @ Some(_) if is_waiting => (found, false, unsafe { P::rounds(state).leave(waiter) }),
            found @ Some(_) => (found, false, None),
            // SAFETY: as above.
            None => (None, is_waiting && unsafe { P::rounds(state).waits(waiter, cx.waker()) }, None),
        });
        drop(old);
        if let Some(found) = found {
            *this.is_waiting = false;
            return Poll::Ready(found);
        }
        if !waits {
            let waker = cx.waker().clone();
            *this.is_waiting = true;
            let (found, old) = place.with(|state| match find(state) {
                // SAFETY: as above.
                Some(found) => (Some(found), [Some(waker), unsafe { P::rounds(state).leave(waiter) }]),
                // SAFETY: as above.
                None => (None, [unsafe { P::rounds(state).join(waiter, waker) }, None]),
            });
            drop(old);
            if let Some(found) = found {
                *this.is_waiting = false;
                return Poll::Ready(found);
            }
        }
        mini_context::leave_note(Note { reason: Reason::Sync(P::KIND, 0), location: this.location });
        Poll::Pending
    }

    /// It is dropped while it waits.
    #[cold]
    fn leave(self: Pin<&mut Self>) {
        let this = self.project();
        let waiter = this.waiter.into_ref();
        // SAFETY: as in `poll_until`. Test: `tests/threads.rs`.
        let waker = this.place.with(|state| unsafe { P::rounds(state).leave(waiter) });
        drop(waker);
        let location = *this.location;
        mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
    }
}
