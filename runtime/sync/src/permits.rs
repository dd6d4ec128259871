//! Permits that are handed out first come, first served: the one mechanism under semaphore, mutex, read-write lock and
//! bounded channel.
//!
//! [`Permits`] is plain state under a lock. While a waiter is queued, every returned permit belongs to the first
//! waiter, which keeps the permits that it already has. So a wait for many permits is not overtaken by waits for few. A
//! permit is handed over before its new owner runs, so no other task can take it in between.
//!
//! The last claim is kept: the task and the line that took or were granted permits last.
//!
//! [`Acquire`] is the future of all of them. It tries under the lock; if it must wait it clones the waker without the
//! lock, and tries again before it joins the list.
//!
//! Rejected: permits in an atomic word beside the list (a semaphore without waiters would cost one locked instruction
//! to take and one to release, as the lock does; and each change would have to agree with the list). Barging, where a
//! running task takes what was released for a waiter (more throughput where critical sections are short and workers
//! many; no bound for the wait).

#![allow(unsafe_code)]

#[deny(unsafe_code)]
mod source;

use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Holder, Note, Reason, SyncKind};
use pin_project_lite::pin_project;

use self::source::NOT_THROUGH;
pub(crate) use self::source::Source;
use crate::panics::Steps;
use crate::waiters::{WaitList, Waiter};

/// The task and the line that have taken permits, or ask for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The id of its task; 0 outside of tasks.
    pub(crate) task: u64,
    pub(crate) location: &'static Location<'static>,
    /// `true` if the owner knows: it has been polled since the grant.
    pub(crate) is_seen: bool,
    /// See [`Source::IS_EXCLUSIVE`].
    is_exclusive: bool,
}

impl Claim {
    #[inline]
    pub(crate) fn new(location: &'static Location<'static>) -> Self {
        Self { task: mini_context::task(), location, is_seen: true, is_exclusive: false }
    }

    /// Returns `true` if it is the same claim again. Asking is cheaper than a needless store.
    #[inline]
    fn is_as(&self, other: &Claim) -> bool {
        let are_alike = self.is_seen == other.is_seen && self.is_exclusive == other.is_exclusive;
        are_alike && self.task == other.task && ptr::eq(self.location, other.location)
    }

    /// The holder that is reported to waiting tasks.
    fn holder(&self) -> u64 {
        if self.is_exclusive { self.task } else { mini_context::taken(self.task) }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            0 => write!(f, "at {}", self.location)?,
            main if mini_context::is_main(main) => write!(f, "by the main task at {}", self.location)?,
            task => write!(f, "by task {task} at {}", self.location)?,
        }
        if self.is_seen { Ok(()) } else { f.write_str(", which has not been polled since") }
    }
}

/// A waiter's request. It includes the claim, so that the task that grants it can note the claim.
#[derive(Debug)]
pub(crate) struct Need {
    count: usize,
    /// The number of permits still missing; 0 is a grant.
    missing: usize,
    claim: Claim,
}

#[derive(Debug)]
pub(crate) struct Permits {
    free: usize,
    is_closed: bool,
    waiters: WaitList<Need>,
    last: Option<Claim>,
}

/// The reason why there was no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    /// Too few are free, or other tasks wait.
    Busy,
}

impl Permits {
    pub(crate) const fn new(free: usize) -> Self {
        Self { free, is_closed: false, waiters: WaitList::new(), last: None }
    }

    /// None, and there will be none.
    pub(crate) const fn new_closed() -> Self {
        Self { free: 0, is_closed: true, waiters: WaitList::new(), last: None }
    }

    /// The permits that are free. In the middle of a release what others wait for may be, which is theirs.
    pub(crate) fn free(&self) -> usize {
        if self.waiters.is_empty() || self.is_closed { self.free } else { 0 }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The last claim. Whether it still holds what it took is not known here.
    pub(crate) fn last(&self) -> Option<Claim> {
        self.last
    }

    /// Takes `count` permits if they are free and no waiter is queued. A caller that asks for none never waits.
    #[inline]
    pub(crate) fn try_take(&mut self, count: usize, claim: Claim) -> Result<(), Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        if count > 0 && (self.free < count || !self.waiters.is_empty()) {
            return Err(Refusal::Busy);
        }
        self.free -= count;
        if !self.last.is_some_and(|last| last.is_as(&claim)) {
            self.last = Some(claim);
        }
        Ok(())
    }

    /// Takes permits like [`try_take`](Self::try_take), but the last claim stays as it is.
    pub(crate) fn try_take_unseen(&mut self, count: usize) -> Result<(), Refusal> {
        let last = self.last;
        let taken = self.try_take(count, Claim::new(Location::caller()));
        self.last = last;
        taken
    }

    /// Checks like [`try_take`](Self::try_take), for a caller that needs no permit after all.
    #[inline]
    pub(crate) fn could_take(&mut self, count: usize, claim: Claim) -> Result<(), Refusal> {
        self.try_take(count, claim)?;
        self.free += count;
        Ok(())
    }

    /// Removes up to `count` free permits permanently, and returns their number.
    pub(crate) fn forget(&mut self, count: usize) -> usize {
        let gone = count.min(self.free());
        self.free -= gone;
        gone
    }

    /// Gives permits back. If that completes what the first waiter asks for, it is granted, and its waker is to be
    /// called without the lock; then there may be another one to grant, see [`release`].
    #[inline]
    pub(crate) fn give(&mut self, count: usize) -> Option<Waker> {
        self.free = self.free.saturating_add(count); // no panic under the lock
        if self.waiters.is_empty() { None } else { self.grant() }
    }

    fn grant(&mut self) -> Option<Waker> {
        if self.is_closed {
            return None;
        }
        let need = self.waiters.front()?;
        let given = need.missing.min(self.free);
        self.free -= given;
        need.missing -= given;
        if need.missing > 0 {
            return None;
        }
        self.last = Some(Claim { is_seen: false, ..need.claim });
        let waker = self.waiters.pop_front(|_| ());
        if !self.waiters.is_empty() {
            self.tell_holder();
        }
        waker
    }

    /// From now on nothing is granted. Each call returns one waiter to be woken, which finds it closed. Permits kept
    /// for that waiter are free again.
    pub(crate) fn close(&mut self) -> Option<Waker> {
        self.is_closed = true;
        let mut kept = 0;
        let waker = self.waiters.pop_front(|need| {
            kept = need.count - need.missing;
            need.missing = need.count;
        });
        self.free += kept;
        waker
    }

    /// The owner of a grant has been polled, maybe as a part of another task than when it joined: `task`.
    fn see(&mut self, granted: &Claim, task: u64) {
        let is_of = |last: &Claim| last.task == granted.task && std::ptr::eq(last.location, granted.location);
        if let Some(last) = self.last.as_mut().filter(|last| is_of(last)) {
            last.is_seen = true;
            if last.task != task {
                last.task = task;
                self.tell_other_holder();
            } else if !self.waiters.is_empty() {
                mini_context::set_number(self.key(), 0); // it knows
            }
        }
    }

    /// The key that the notes of waiting tasks name.
    fn key(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }

    /// Notes the holder like [`tell_holder`](Self::tell_holder), for everything but a grant: a call, which keeps its
    /// callers small.
    #[inline(never)]
    fn tell_other_holder(&self) {
        self.tell_holder();
    }

    /// Notes the holder for which tasks wait, for dumps.
    #[inline]
    fn tell_holder(&self) {
        let (task, is_seen) = self.last.map_or((0, true), |last| (last.holder(), last.is_seen));
        let (location, number) = (self.last.map(|last| last.location), u64::from(!is_seen));
        mini_context::set_holder(self.key(), Holder { task, location, number });
    }
}

/// Gives `count` permits back, and wakes all waiters that this completes.
#[inline]
pub(crate) fn release(source: &(impl Source + ?Sized), count: usize) {
    let (waker, has_more) = source.with(|permits| (permits.give(count), permits.free > 0));
    match waker {
        // Each permit went to that waiter: there is none for the next one. Who gives another one grants it.
        Some(waker) if !has_more => waker.wake(),
        Some(waker) => wake_each(waker, || source.with(|permits| permits.give(0))),
        None => {}
    }
}

/// Adds `count` permits, unless more than `most` would then be free. Returns `true` if they were added.
pub(crate) fn add(source: &(impl Source + ?Sized), count: usize, most: usize) -> bool {
    let added = source.with(|permits| {
        let has_room = permits.free.checked_add(count).is_some_and(|free| free <= most);
        has_room.then(|| permits.give(count))
    });
    let is_added = added.is_some();
    if let Some(waker) = added.flatten() {
        wake_each(waker, || source.with(|permits| permits.give(0)));
    }
    is_added
}

/// Closes the permits, and wakes all waiters.
pub(crate) fn close(source: &(impl Source + ?Sized)) {
    if let Some(waker) = source.with(Permits::close) {
        wake_each(waker, || source.with(Permits::close));
    }
}

/// Permits that a caller holds, given back when this is dropped.
pub(crate) struct Held<P: Deref<Target: Source>> {
    pub(crate) source: P,
    pub(crate) count: usize,
}

impl<P: Deref<Target: Source>> Drop for Held<P> {
    #[inline]
    fn drop(&mut self) {
        release(&*self.source, self.count);
    }
}

/// Calls `waker`, and those that `next` returns, even after a waker has panicked.
fn wake_each(waker: Waker, next: impl Fn() -> Option<Waker>) {
    let Some(second) = next() else { return waker.wake() };
    let mut steps = Steps::default();
    steps.run(|| waker.wake());
    steps.run(|| second.wake());
    while let Some(waker) = next() {
        steps.run(|| waker.wake());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not polled yet.
    New,
    /// In the list, or granted, or notified of the close.
    Waiting,
    /// The permits are with the caller, or there are none to come.
    Through,
}

pin_project! {
    /// Takes permits, and waits for them.
    #[derive(Debug)]
    pub(crate) struct Acquire<S: Source> {
        source: S,
        count: usize,
        phase: Phase,
        location: &'static Location<'static>,
        kind: SyncKind,
        // Made when it must wait.
        #[pin]
        waiter: Option<Waiter<Need>>,
    }

    impl<S: Source> PinnedDrop for Acquire<S> {
        fn drop(this: Pin<&mut Self>) {
            if this.phase == Phase::Waiting {
                this.leave();
            }
        }
    }
}

impl<S: Source + ?Sized> Acquire<Option<Arc<S>>> {
    /// The source, when the permits are through: the future keeps nothing alive.
    #[inline]
    pub(crate) fn take_source(self: Pin<&mut Self>) -> Arc<S> {
        self.project().source.take().expect(NOT_THROUGH)
    }
}

impl<S: Source> Acquire<S> {
    #[track_caller]
    #[inline]
    pub(crate) fn new(source: S, count: usize) -> Self {
        Self::at(source, count, Location::caller())
    }

    /// Creates the future like [`new`](Self::new), for a call at another place.
    #[inline]
    pub(crate) fn at(source: S, count: usize, location: &'static Location<'static>) -> Self {
        Self { source, count, phase: Phase::New, location, kind: S::KIND, waiter: None }
    }

    /// Creates the future like [`new`](Self::new), if waiting has another name than the source's.
    #[track_caller]
    #[inline]
    pub(crate) fn of_kind(source: S, count: usize, kind: SyncKind) -> Self {
        let mut acquire = Self::new(source, count);
        acquire.kind = kind;
        acquire
    }

    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// The number of permits it takes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        ready!(mini_context::check_budget(cx, &*self));
        if self.phase == Phase::New {
            let claim = self.claim();
            let taken = self.source.with(|permits| permits.try_take(self.count, claim));
            if taken != Err(Refusal::Busy) {
                *self.project().phase = Phase::Through;
                mini_context::spend(1);
                return Poll::Ready(taken);
            }
        }
        mini_context::spend_if_ready(self.wait(cx))
    }

    /// Polls like [`poll`](Self::poll), for permits that are never closed.
    #[inline]
    pub(crate) fn poll_open(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx).map(|taken| debug_assert!(taken.is_ok(), "a lock is not closed"))
    }

    fn wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        assert_ne!(self.phase, Phase::Through, "polled after it was ready");
        let claim = self.claim();
        let mut this = self.project();
        let source = &*this.source;
        if *this.phase == Phase::New {
            this.waiter.set(Some(Waiter::new(Need { count: *this.count, missing: *this.count, claim })));
        }
        let waiter = this.waiter.as_ref().as_pin_ref().expect("made above, and kept");
        let ((done, old), key) = match *this.phase {
            Phase::New => {
                let waker = cx.waker().clone();
                *this.phase = Phase::Waiting;
                // SAFETY: the waiter is part of this future, which is pinned, and leaves the list when that is dropped.
                // Test: `tests/threads.rs`.
                source.with_key(|permits| unsafe { permits.join(waiter, claim, waker) })
            }
            Phase::Waiting => {
                let ((state, has_moved), key) = source.with_key(|permits| {
                    // SAFETY: as above.
                    let state = unsafe { permits.ask(waiter, claim.task) };
                    // SAFETY: as above.
                    (state, unsafe { permits.waiters.has_moved(waiter, cx.waker()) })
                });
                if has_moved {
                    let waker = cx.waker().clone();
                    source.with_key(|permits| {
                        // SAFETY: as above.
                        let old = unsafe { permits.waiters.exchange(waiter, waker) };
                        // SAFETY: as above.
                        (unsafe { permits.ask(waiter, claim.task) }, old)
                    })
                } else {
                    ((state, None), key)
                }
            }
            Phase::Through => unreachable!("asked above"),
        };
        drop(old);
        if done == Poll::Ready(Err(Refusal::Closed)) {
            // SAFETY: as above.
            give_back(source, |permits| unsafe { permits.leave(waiter) });
        }
        if done.is_ready() {
            *this.phase = Phase::Through;
        } else {
            let reason = match *this.kind {
                kind @ SyncKind::Closed => Reason::Sync(kind, 0),
                kind => Reason::SyncAt(kind, key),
            };
            mini_context::leave_note(Note { reason, location: this.location });
            mini_context::note_waker(cx.waker());
        }
        done
    }

    fn claim(&self) -> Claim {
        Claim { is_exclusive: S::IS_EXCLUSIVE, ..Claim::new(self.location) }
    }

    /// It is dropped while it waits: gives back what it was given.
    #[cold]
    fn leave(self: Pin<&mut Self>) {
        let this = self.project();
        let Some(waiter) = this.waiter.as_ref().as_pin_ref() else { return };
        // SAFETY: as in `wait`. Test: `tests/threads.rs`.
        give_back(&*this.source, |permits| unsafe { permits.leave(waiter) });
        let location = *this.location;
        mini_context::forget_wait(|wait| std::ptr::eq(wait.location(), location));
    }
}

/// Returns the permits of a waiter that leaves.
#[cold]
fn give_back(source: &impl Source, leave: impl FnOnce(&mut Permits) -> (Option<Waker>, usize)) {
    let (waker, given) = source.with(leave);
    if given > 0 {
        source.take_back(given);
    }
    drop(waker);
}

/// The result for a waiter, and a waker to be dropped without the lock.
type Found = (Poll<Result<(), Refusal>>, Option<Waker>);

/// For a waiter: pinned, and in no other list.
impl Permits {
    /// The waiter is as it was made, with that claim.
    unsafe fn join(&mut self, waiter: Pin<&Waiter<Need>>, claim: Claim, waker: Waker) -> Found {
        // SAFETY: the caller's promise.
        let count = unsafe { self.waiters.look(waiter) }.0.count;
        let (taken, is_first) = (self.try_take(count, claim), self.waiters.is_empty());
        // What is free belongs to the first in line. Between two grants of a release it is not this waiter.
        let given = match taken {
            Ok(()) => count,
            Err(Refusal::Busy) if is_first => std::mem::take(&mut self.free),
            Err(_) => 0,
        };
        // SAFETY: the caller's promise.
        unsafe { self.waiters.look(waiter) }.0.missing = count - given;
        if taken != Err(Refusal::Busy) {
            return (Poll::Ready(taken), Some(waker));
        }
        // SAFETY: the caller's promise.
        unsafe { self.waiters.push_back(waiter, waker) };
        if is_first {
            self.tell_other_holder(); // later ones find it told, by this or by a grant
        }
        (Poll::Pending, None)
    }

    /// The state of the waiter, which is a part of `task` now.
    unsafe fn ask(&mut self, waiter: Pin<&Waiter<Need>>, task: u64) -> Poll<Result<(), Refusal>> {
        // SAFETY: the caller's promise.
        match unsafe { self.waiters.look(waiter) } {
            (need, true) => {
                need.claim.task = task;
                Poll::Pending
            }
            (&mut Need { missing: 0, claim: granted, .. }, false) if !self.is_closed => {
                self.see(&granted, task);
                Poll::Ready(Ok(()))
            }
            // Maybe after it was granted, which it then gives back.
            (_, false) => Poll::Ready(Err(Refusal::Closed)),
        }
    }

    /// Removes the waiter, and returns the permits that it has been given so far.
    unsafe fn leave(&mut self, waiter: Pin<&Waiter<Need>>) -> (Option<Waker>, usize) {
        // SAFETY: the caller's promise.
        let waker = unsafe { self.waiters.remove(waiter) };
        // SAFETY: the caller's promise.
        let (need, _) = unsafe { self.waiters.look(waiter) };
        let given = need.count - need.missing;
        need.missing = need.count;
        (waker, given)
    }
}
