//! The announcement of a driver that sleeps, or is about to.
//!
//! The driver [stands](Announcement::stand) an announcement up under the lock of its wheel. A thread that adds an
//! earlier deadline [takes](Announcement::take) the announcement under the same lock, and notifies the driver. So
//! either the driver saw that deadline when it read the first one under the lock, or the thread sees the announcement
//! and notifies, once a park.
//!
//! The announcement outlives the park. A driver that has no timers, and finds that the announcement of its last park
//! still stands, knows with a few loads that nothing was added since, and sleeps on without the lock
//! ([`Announcement::renew`]):
//!
//! ```text
//! driver                                 another thread
//! A1 report the wait to the notifier     B1 add the timer, take the announcement (under the lock)
//! A2 SeqCst fence (the notifier's)       B2 SeqCst fence (the notifier's)
//! A3 `renew`: does it still stand?       B3 notify, if a wait was reported
//! ```
//!
//! If A2 comes first, B3 notifies. If B2 comes first, A3 sees the announcement gone and takes the lock. A notifier that
//! acts on every call, and ends even a wait that begins later, needs neither A1 nor the fences.
//!
//! The price is one needless notification: if another thread adds a timer after the park, it finds the announcement
//! standing, once. The thread that made the announcement does not notify then ([`Announcement::end`]).
//!
//! Rejected:
//! - Standing the announcement up and taking it down under the lock at each park: two locks a park for a server that
//!   has no timers.

use crate::primitives::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::wheel::NEVER;

/// No announcement stands.
const NONE: u64 = 0;

/// All of it is written under the lock of the wheel, but for `is_over`, which only the thread `by` reads and writes.
/// All accesses are Relaxed: the lock orders them, or the fences above do.
pub(crate) struct Announcement {
    /// No notification is needed for deadlines at or after this.
    until: AtomicU64,
    /// The number of the thread that sleeps.
    by: AtomicU64,
    /// The thread is back from the wait.
    is_over: AtomicBool,
}

impl Announcement {
    pub(crate) fn new() -> Announcement {
        Announcement { until: AtomicU64::new(NONE), by: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    /// Thread `me` is going to sleep until the first deadline. Under the lock.
    pub(crate) fn stand(&self, until: u64, me: u64) {
        self.until.store(until, Relaxed);
        self.by.store(me, Relaxed);
        self.is_over.store(false, Relaxed);
    }

    /// Thread `me` does not sleep after all. Under the lock.
    pub(crate) fn withdraw(&self) {
        self.until.store(NONE, Relaxed);
    }

    /// Returns `true` if the announcement of thread `me` that there is no deadline still stands. Then no timer was
    /// added since, and the announcement holds for another park.
    pub(crate) fn renew(&self, me: u64) -> bool {
        let stands = self.until.load(Relaxed) == NEVER && self.by.load(Relaxed) == me;
        if stands {
            self.is_over.store(false, Relaxed);
        }
        stands
    }

    /// Thread `me` is back from the wait, if it was the one that slept.
    pub(crate) fn end(&self, me: u64) {
        if self.by.load(Relaxed) == me {
            self.is_over.store(true, Relaxed);
        }
    }

    /// Takes the announcement if it promises to sleep past `deadline`; returns whether the calling thread, `me`, must
    /// notify the driver. Under the lock.
    #[inline]
    #[must_use = "the driver may sleep past the deadline"]
    pub(crate) fn take(&self, deadline: u64, me: impl FnOnce() -> u64) -> bool {
        if deadline >= self.until.load(Relaxed) {
            return false;
        }
        self.until.store(NONE, Relaxed);
        self.by.load(Relaxed) != me() || !self.is_over.load(Relaxed)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::atomic::{Ordering::SeqCst, fence};
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };

    /// A wheel of one deadline, its announcement, and a notifier that does nothing while no thread waits.
    struct Driver {
        first: Mutex<u64>,
        announcement: Announcement,
        waits: AtomicBool,
        is_notified: AtomicBool,
    }

    impl Driver {
        /// The deadline the driver sleeps until.
        fn park(&self) -> u64 {
            self.waits.store(true, Relaxed);
            fence(SeqCst);
            if self.announcement.renew(1) {
                return NEVER;
            }
            let first = self.first.lock().unwrap();
            self.announcement.stand(*first, 1);
            *first
        }

        fn unpark(&self) {
            self.waits.store(false, Relaxed);
            self.announcement.end(1);
        }

        fn add(&self, deadline: u64) {
            let mut first = self.first.lock().unwrap();
            *first = deadline.min(*first);
            let must_notify = self.announcement.take(deadline, || 2);
            drop(first);
            fence(SeqCst);
            if must_notify && self.waits.load(Relaxed) {
                self.is_notified.store(true, Relaxed);
            }
        }
    }

    /// Two parks in a row while another thread adds a timer: in the second park the driver sees the timer, or is
    /// notified.
    ///
    /// Fails when either fence is left out, when `take` leaves the announcement standing, and when it does not ask for
    /// a notification because the park before is over.
    #[test]
    fn a_park_without_the_lock_misses_no_timer() {
        loom::model(|| {
            let driver = Arc::new(Driver {
                first: Mutex::new(NEVER),
                announcement: Announcement::new(),
                waits: AtomicBool::new(false),
                is_notified: AtomicBool::new(false),
            });
            assert_eq!(driver.park(), NEVER);
            driver.unpark();
            let other = driver.clone();
            let adder = thread::spawn(move || other.add(5));
            let until = driver.park();
            adder.join().unwrap();
            assert!(until == 5 || driver.is_notified.load(Relaxed), "sleeps until {until}, not notified");
        });
    }
}
