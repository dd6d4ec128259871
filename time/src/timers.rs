//! The timers of one driver: a wheel behind a lock, with a bell for the driver that sleeps.
//!
//! The driver calls, in its loop: `turn`, run what is ready, `prepare_park`, wait as long as that says, `finish_park`.
//! The futures of this crate register here.
//!
//! How a deadline from another thread reaches a driver that sleeps: `prepare_park` reads the first deadline and
//! announces how long the driver will sleep, under one lock. Who registers an earlier deadline takes the same lock, so
//! either the driver has seen that deadline, or the announcement is seen, taken away (so that the bell rings once a
//! park) and the bell rung. The bell must be one that a wait which begins after the ring still hears.
//!
//! Wakers are woken and dropped with no lock held.
//!
//! Rejected:
//! - Telling the driver of each registration: with one thread the driver is the one awake, and every sleep would cost
//!   a write to the bell.
//! - A queue of registrations and cancellations that the owner drains: most timers are cancelled before they fire, and
//!   each would be queued twice; an uncontended lock costs less.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::clock::Clock;
use crate::context;
use crate::instant::Instant;
use crate::wheel::{Key, NEVER, Wheel};

#[cfg(test)]
mod tests;
mod wakes;

use wakes::Wakes;

/// Timers fired under one lock.
const BATCH: usize = 64;

/// The timers of one driver; clones are the same.
///
/// # Examples
///
/// ```
/// use mini_time::{Clock, Park, Timers, enter, sleep};
/// use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
///
/// let timers = Timers::new(Clock::pausable(true), Waker::noop().clone());
/// let _entered = enter(&timers);
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut sleep = pin!(sleep(Duration::from_secs(60)));
/// assert!(sleep.as_mut().poll(&mut cx).is_pending());
///
/// assert_eq!(timers.turn(), 0);
/// assert!(timers.auto_advance());
/// assert_eq!(timers.turn(), 1);
/// assert!(sleep.as_mut().poll(&mut cx).is_ready());
/// assert_eq!(timers.prepare_park(), Park::Forever);
/// ```
#[derive(Clone)]
pub struct Timers(Arc<Shared>);

/// How long a driver may sleep, see [`Timers::prepare_park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says how long the driver may sleep"]
pub enum Park {
    /// Not at all: something is due.
    Ready,
    /// At most this long.
    Until(Duration),
    /// As long as the bell does not ring.
    Forever,
}

/// The timers were shut down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dead;

/// What has become of a timer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a timer that is not pending wakes nobody"]
pub(crate) enum State {
    Pending,
    Fired,
    Dead,
}

struct Shared {
    clock: Clock,
    bell: Waker,
    /// No timer is pending and no announcement stands, as of the last change. Written under the lock; `turn` reads it
    /// without. Who reads it too early misses a timer that another thread is just registering, and finds it at the
    /// next turn or in `prepare_park`, which takes the lock.
    is_idle: AtomicBool,
    inner: Mutex<Inner>,
}

struct Inner {
    wheel: Wheel,
    parked: Option<Parked>,
    is_dead: bool,
    /// Lent to `turn`, to keep what is allocated. Empty.
    batch: Vec<Waker>,
}

/// The announcement of a driver that sleeps.
struct Parked {
    /// The bell is not needed for deadlines at or after this.
    until: u64,
    /// The thread that sleeps.
    by: u64,
}

impl Timers {
    /// Makes the timers of a driver; `bell` wakes that driver from the wait it begins after
    /// [`prepare_park`](Timers::prepare_park), also if it has not begun it yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_time::{Clock, Timers};
    ///
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert!(timers.is_empty());
    /// ```
    pub fn new(clock: Clock, bell: Waker) -> Timers {
        let inner = Inner { wheel: Wheel::new(), parked: None, is_dead: false, batch: Vec::new() };
        Timers(Arc::new(Shared { clock, bell, is_idle: AtomicBool::new(true), inner: Mutex::new(inner) }))
    }

    /// The clock these timers go by.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::pausable(true), std::task::Waker::noop().clone());
    /// assert!(timers.clock().is_paused());
    /// ```
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Wakes the tasks whose timers are due, in the order of their deadlines, and returns their number.
    ///
    /// Any thread may call it, also while others do. It takes back an announcement of the calling thread, as
    /// [`finish_park`](Timers::finish_park) does. With no timer pending it reads no clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.turn(), 0);
    /// ```
    pub fn turn(&self) -> usize {
        if self.0.is_idle.load(Ordering::Relaxed) {
            return 0;
        }
        let mut woken = 0;
        let mut wakes = Wakes::default();
        loop {
            let mut inner = self.lock();
            inner.lend_batch(&mut wakes);
            inner.finish_park();
            // The clock is read under the lock, so that the wheel never sees it go back.
            let more = !inner.wheel.is_empty() && {
                let now = self.0.clock.now_nanos();
                inner.wheel.expire(now, BATCH, &mut wakes.0)
            };
            self.note_idle(&inner);
            if wakes.0.is_empty() {
                inner.keep_batch(&mut wakes);
                return woken;
            }
            drop(inner);
            woken += wakes.wake_all();
            if !more {
                // One lock more, but no allocation at the next turn that fires.
                self.lock().keep_batch(&mut wakes);
                return woken;
            }
        }
    }

    /// Says how long the driver may sleep, and announces it: from here until [`finish_park`](Timers::finish_park) or
    /// [`turn`](Timers::turn) in this thread, a timer that another thread adds with an earlier deadline rings the
    /// bell, once.
    ///
    /// While the clock is paused no deadline comes by itself, and the answer is [`Park::Forever`] if nothing is due.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Park, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.prepare_park(), Park::Forever);
    /// timers.finish_park();
    /// ```
    pub fn prepare_park(&self) -> Park {
        let mut inner = self.lock();
        let next = inner.wheel.next_deadline();
        let park = match next {
            None => Park::Forever,
            Some(next) => match next.saturating_sub(self.0.clock.now_nanos()) {
                0 => Park::Ready,
                _ if self.0.clock.is_paused() => Park::Forever,
                wait => Park::Until(Duration::from_nanos(wait)),
            },
        };
        inner.parked = match park {
            Park::Ready => None,
            Park::Until(_) | Park::Forever => {
                Some(Parked { until: next.unwrap_or(NEVER), by: context::thread_number() })
            }
        };
        self.note_idle(&inner);
        park
    }

    /// Takes back the announcement of [`prepare_park`](Timers::prepare_park), if this thread made it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// let _ = timers.prepare_park();
    /// timers.finish_park();
    /// ```
    pub fn finish_park(&self) {
        let mut inner = self.lock();
        inner.finish_park();
        self.note_idle(&inner);
    }

    /// A time before which no timer fires, `None` if none is pending that ever will.
    ///
    /// It is the first deadline, or a time before it where timers that were more than 67 ms ahead have been removed or
    /// moved: a turn at that time fires nothing, and the next answer is later.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.next_deadline(), None);
    /// ```
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self.lock().wheel.next_deadline()?;
        Some(self.0.clock.instant(next))
    }

    /// The number of timers pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert_eq!(timers.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.lock().wheel.len()
    }

    /// Whether no timer is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// assert!(timers.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// If the clock is paused, moves it on to the first deadline, which [`turn`](Timers::turn) then finds due.
    ///
    /// Returns whether there is one: not if the clock runs or if no timer is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::pausable(true), std::task::Waker::noop().clone());
    /// assert!(!timers.auto_advance());
    /// ```
    pub fn auto_advance(&self) -> bool {
        if !self.0.clock.is_paused() {
            return false;
        }
        let mut inner = self.lock();
        // The wheel's answer may come too early, but then the next one is later: the clock is moved to where
        // something is due.
        while let Some(next) = inner.wheel.next_deadline() {
            let now = self.0.clock.advance_to(next);
            if inner.wheel.find_due(now) {
                return true;
            }
            if now < next {
                // Another thread has let the clock run.
                return false;
            }
        }
        false
    }

    /// Wakes all who wait and refuses those who come later; also if called twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mini_time::{Clock, Timers};
    /// let timers = Timers::new(Clock::real(), std::task::Waker::noop().clone());
    /// timers.shutdown();
    /// assert!(timers.is_empty());
    /// ```
    pub fn shutdown(&self) {
        let mut wakes = Wakes::default();
        let mut inner = self.lock();
        inner.is_dead = true;
        inner.wheel.drain(&mut wakes.0);
        self.note_idle(&inner);
        drop(inner);
        wakes.wake_all();
    }

    /// Adds a timer; `now` is a time the caller has just read.
    pub(crate) fn add(&self, deadline: Instant, now: Instant, waker: Waker) -> Result<Key, Dead> {
        let deadline = self.0.clock.nanos(deadline);
        let mut inner = self.lock();
        if inner.is_dead {
            return Err(Dead);
        }
        if inner.wheel.is_empty() {
            inner.wheel.catch_up(self.0.clock.nanos(now));
        }
        let key = inner.wheel.insert(deadline, waker);
        self.finish_change(inner, deadline);
        Ok(key)
    }

    /// Makes a pending timer wake `waker`.
    pub(crate) fn watch(&self, key: Key, waker: &Waker) -> State {
        match self.lock().waker_mut(key) {
            Ok(current) if current.will_wake(waker) => return State::Pending,
            Ok(_) => {}
            Err(state) => return state,
        }
        // User code runs with the lock free: the clone before, the drop of the displaced one after.
        let mut mine = waker.clone();
        match self.lock().waker_mut(key) {
            Ok(current) => mem::swap(current, &mut mine),
            Err(state) => return state,
        }
        State::Pending
    }

    /// Moves a pending timer; `false` if it is no longer pending.
    pub(crate) fn reset(&self, key: Key, deadline: Instant) -> bool {
        let deadline = self.0.clock.nanos(deadline);
        let mut inner = self.lock();
        let is_pending = inner.wheel.reset(key, deadline);
        if is_pending {
            self.finish_change(inner, deadline);
        }
        is_pending
    }

    /// Removes a timer, pending or not.
    pub(crate) fn remove(&self, key: Key) {
        let mut inner = self.lock();
        let waker = inner.wheel.remove(key);
        self.note_idle(&inner);
        drop(inner);
        drop(waker);
    }

    /// Rings the bell if the driver sleeps: the clock was paused, moved or let run, so what the driver was told when
    /// it went to sleep no longer holds.
    pub(crate) fn ring(&self) {
        let mut inner = self.lock();
        let is_parked = inner.parked.take().is_some();
        self.note_idle(&inner);
        drop(inner);
        if is_parked {
            self.0.bell.wake_by_ref();
        }
    }

    /// Ends a change that brought `deadline` in: rings the bell if the driver would sleep past it.
    fn finish_change(&self, mut inner: MutexGuard<'_, Inner>, deadline: u64) {
        let must_ring = inner.parked.take_if(|parked| deadline < parked.until).is_some();
        self.note_idle(&inner);
        drop(inner);
        if must_ring {
            self.0.bell.wake_by_ref();
        }
    }

    fn note_idle(&self, inner: &Inner) {
        let is_idle = inner.wheel.is_empty() && inner.parked.is_none();
        // Relaxed: see the field.
        self.0.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Poison is ignored: no user code runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The waker of a pending timer, or what has become of the timer.
    fn waker_mut(&mut self, key: Key) -> Result<&mut Waker, State> {
        if self.is_dead {
            return Err(State::Dead);
        }
        self.wheel.waker_mut(key).ok_or(State::Fired)
    }

    /// An announcement of another thread stays: that thread may still sleep, and needs the bell.
    fn finish_park(&mut self) {
        if self.parked.is_some() {
            let me = context::thread_number();
            self.parked.take_if(|parked| parked.by == me);
        }
    }

    fn lend_batch(&mut self, wakes: &mut Wakes) {
        if wakes.0.capacity() == 0 {
            mem::swap(&mut wakes.0, &mut self.batch);
        }
    }

    fn keep_batch(&mut self, wakes: &mut Wakes) {
        mem::swap(&mut wakes.0, &mut self.batch);
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").field("clock", &self.0.clock).field("len", &self.len()).finish_non_exhaustive()
    }
}
