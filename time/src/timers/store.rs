//! The place of a wheel: memory that is never freed, lent to one `Timers` after the other.
//!
//! So a sleep refers to its wheel without counting, from any thread and at any time. A [`WheelLease`] names the store
//! and the number of the loan. Once the `Timers` are gone the number is stale, and every call reports it
//! ([`Refusal::Dead`]). Stores that were given back are lent again, so there are never more than there were `Timers`
//! alive at one time. An empty store takes less than a kilobyte.
//!
//! Rejected:
//! - An `Arc` in each sleep: two locked instructions, 10 ns of a timer that is armed and cancelled.
//! - Finding the wheel by the thread's context, and by a table of all wheels elsewhere: a lookup under one lock for all
//!   runtimes whenever a task has moved to another worker.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::{mem, ptr};

use super::park::Announcement;
use crate::clock::Clock;
use crate::current;
use crate::instant::Instant;
use crate::primitives::atomic::{AtomicU64, Ordering::Relaxed};
use crate::primitives::{Guard, IS_MODEL, Lock};
use crate::simulated::{meant, shown};
use crate::wheel::{Key, NEVER, Wheel};

/// The reason why a timer cannot be set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The timers are gone or were shut down.
    Dead,
    /// The deadline is near, but the clock was moved so far that timers do not count up to it.
    OutOfReach,
}

/// The state of a timer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a timer that is not pending wakes nobody"]
pub(crate) enum State {
    /// It fires at this time of the clock.
    Pending(u64),
    Fired,
    Dead,
}

/// A place for a wheel.
pub(crate) struct Store {
    /// No timer is due before this time. Written under the lock; a read without it may miss a timer that another thread
    /// is just adding.
    pub(super) bound: AtomicU64,
    /// A time the clock has shown: a lower bound, and a hint. It may go back when threads race.
    pub(super) seen: AtomicU64,
    pub(super) announcement: Announcement,
    inner: Lock<Inner>,
}

const _: () = assert!(size_of::<Store>() < 1024);

struct Inner {
    /// The number of the current loan, or of the next.
    number: u32,
    loan: Option<Loan>,
}

/// What a [`Timers`](super::Timers) keeps in its store.
pub(super) struct Loan {
    pub(super) wheel: Wheel,
    pub(super) is_dead: bool,
    /// Lent to `turn`, to keep what is allocated. Empty.
    pub(super) batch: Vec<Waker>,
    clock: Clock,
    notifier: Arc<Waker>,
}

/// Refers to one loan of a store, without keeping it alive.
#[derive(Clone, Copy)]
pub(crate) struct WheelLease {
    pub(crate) store: &'static Store,
    pub(crate) number: u32,
}

/// The stores that are not lent.
static FREE: Mutex<Vec<&'static Store>> = Mutex::new(Vec::new());

/// Lends a store to new timers, until [`give_back`].
pub(super) fn lend(clock: Clock, notifier: Waker) -> WheelLease {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let store = free.unwrap_or_else(|| Box::leak(Box::new(Store::new())));
    let mut inner = store.inner.lock();
    let notifier = Arc::new(notifier);
    inner.loan = Some(Loan { wheel: Wheel::new(), is_dead: false, batch: Vec::new(), clock, notifier });
    WheelLease { store, number: inner.number }
}

/// Takes a store back; what was in it is the caller's to drop.
pub(super) fn give_back(lease: WheelLease) -> Option<Loan> {
    let mut inner = lease.store.inner.lock();
    let loan = inner.loan.take();
    inner.number = inner.number.wrapping_add(1);
    lease.store.reset();
    drop(inner);
    if !IS_MODEL {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(lease.store);
    }
    loan
}

impl Store {
    fn new() -> Store {
        Store {
            bound: AtomicU64::new(NEVER),
            seen: AtomicU64::new(0),
            announcement: Announcement::new(),
            inner: Lock::new(Inner { number: 0, loan: None }),
        }
    }

    fn reset(&self) {
        self.bound.store(NEVER, Relaxed);
        self.seen.store(0, Relaxed);
        self.announcement.withdraw();
    }

    /// A timer with this deadline was added or moved. Under the lock.
    #[inline]
    fn note(&self, deadline: u64) {
        if deadline < self.bound.load(Relaxed) {
            self.bound.store(deadline, Relaxed);
        }
    }
}

impl WheelLease {
    /// Locks the store for as long as the guard lives; [`Held::loan`] checks whether the lease is still valid.
    #[inline]
    pub(super) fn lock(self) -> Held {
        Held { guard: self.store.inner.lock(), number: self.number }
    }

    pub(crate) fn is(self, other: WheelLease) -> bool {
        ptr::eq(self.store, other.store) && self.number == other.number
    }

    /// Adds a timer. Returns its key, and the deadline as the clock counts.
    #[inline]
    pub(crate) fn add(self, deadline: Instant, waker: Waker) -> Result<(Key, u64), Refusal> {
        let mut held = self.lock();
        let (loan, deadline) = match held.reach(deadline) {
            Ok(reached) => reached,
            Err(refusal) => {
                drop(held);
                drop(waker); // user code: after the lock
                return Err(refusal);
            }
        };
        if loan.wheel.is_empty() {
            loan.wheel.catch_up(self.store.seen.load(Relaxed));
        }
        let key = loan.wheel.insert(deadline, waker);
        self.finish_change(held, deadline);
        Ok((key, deadline))
    }

    /// Makes a pending timer wake `waker`.
    pub(crate) fn watch(self, key: Key, waker: &Waker) -> State {
        match self.lock().pending(key) {
            Ok((current, deadline)) if current.will_wake(waker) => return State::Pending(deadline),
            Ok(_) => {}
            Err(state) => return state,
        }
        // User code runs with the lock free: the clone before, the drop of the displaced one after.
        let mut mine = waker.clone();
        let mut held = self.lock();
        let state = match held.pending(key) {
            Ok((current, deadline)) => {
                mem::swap(current, &mut mine);
                State::Pending(deadline)
            }
            Err(state) => state,
        };
        drop(held);
        state
    }

    /// Moves a pending timer; returns whether it is still pending.
    pub(crate) fn reset(self, key: Key, deadline: Instant) -> Result<bool, Refusal> {
        let mut held = self.lock();
        let (loan, deadline) = held.reach(deadline)?;
        let is_pending = loan.wheel.reset(key, deadline);
        if is_pending {
            self.finish_change(held, deadline);
        }
        Ok(is_pending)
    }

    /// Removes a timer, pending or not.
    #[inline]
    pub(crate) fn remove(self, key: Key) {
        let mut held = self.lock();
        let Some(loan) = held.loan() else { return };
        let waker = loan.wheel.remove(key);
        if loan.wheel.is_empty() {
            self.store.bound.store(NEVER, Relaxed);
        }
        drop(held);
        drop(waker);
    }

    /// The time of these timers' clock, `None` if the timers are gone.
    pub(crate) fn now(self) -> Option<Instant> {
        if let Some(now) = current::now_of(self) {
            return Some(now);
        }
        let clock = self.lock().loan()?.clock.clone();
        Some(shown(clock.now()))
    }

    /// Notifies the driver if it would sleep past `deadline`.
    pub(super) fn notify_for(self, deadline: u64) {
        self.finish(self.lock(), deadline);
    }

    /// Ends a change that has added `deadline`.
    #[inline]
    fn finish_change(self, held: Held, deadline: u64) {
        self.store.note(deadline);
        self.finish(held, deadline);
    }

    #[inline]
    fn finish(self, mut held: Held, deadline: u64) {
        if self.store.announcement.take(deadline, current::thread_number) {
            let notifier = held.loan().map(|loan| Arc::clone(&loan.notifier));
            drop(held);
            if let Some(notifier) = notifier {
                notifier.wake_by_ref();
            }
        }
    }
}

/// A locked store, and the lease it was locked with.
pub(super) struct Held {
    guard: Guard<'static, Inner>,
    number: u32,
}

impl Held {
    /// The content of the store, if the lease is not stale.
    #[inline]
    pub(super) fn loan(&mut self) -> Option<&mut Loan> {
        if self.guard.number == self.number { self.guard.loan.as_mut() } else { None }
    }

    /// Returns the same as `loan`, but `None` after the shutdown too.
    #[inline]
    fn alive(&mut self) -> Option<&mut Loan> {
        self.loan().filter(|loan| !loan.is_dead)
    }

    /// As `alive`, with `deadline` as the clock counts.
    #[inline]
    fn reach(&mut self, deadline: Instant) -> Result<(&mut Loan, u64), Refusal> {
        let loan = self.alive().ok_or(Refusal::Dead)?;
        let deadline = meant(deadline, || loan.clock.now());
        let nanos = loan.clock.nanos(deadline);
        if nanos == NEVER && loan.clock.is_out_of_reach(deadline) {
            return Err(Refusal::OutOfReach);
        }
        Ok((loan, nanos))
    }

    /// The waker and the deadline of a pending timer, or what has become of the timer.
    fn pending(&mut self, key: Key) -> Result<(&mut Waker, u64), State> {
        self.alive().ok_or(State::Dead)?.wheel.pending_mut(key).ok_or(State::Fired)
    }
}
