//! `BiasedLock`: a value that its owner changes all the time, and that another thread looks at now and then.
//!
//! The tasks of a core are in one: the owner adds and removes them, a dump lists them from wherever it is made, also
//! while the owner is stuck. The owner pays two stores and a load; a visitor pays a system call that interrupts the
//! processors of this process.
//!
//! ```text
//!   owner                              visitor, one at a time by the lock `visits`
//!   is_busy = true                     is_visited = true
//!   light fence                        heavy fence
//!   is_visited? ---- no: value         while is_busy: wait
//!         '--------- yes: is_busy = false, lock `visits`, value
//!   is_busy = false (Release)          value; is_visited = false (Release)
//! ```
//!
//! That is Dekker's algorithm: of two that come at once at least one sees the other. If it is the owner, it waits behind
//! `visits` until the visitor has gone; if it is the visitor alone, the owner is inside already and leaves soon. What
//! the owner has written is published by its `is_busy = false`, what a visitor has read is over before its
//! `is_visited = false`.
//!
//! Rejected: a lock (two locked instructions for each owned task, 10 ns of 60). Atomic pointers in the list: they say
//! where a task was, not that it is still there; and a task that is freed later, when nobody looks, would need somebody
//! to free it. To ask the owner for its list: the one that does not answer is the one that matters.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::primitives::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use crate::primitives::{Mutex, fences, lock, thread};

/// How long a visitor waits for an owner that is inside. It leaves within microseconds, unless it is not given a CPU.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) struct BiasedLock<T> {
    is_busy: AtomicBool,
    is_visited: AtomicBool,
    visits: Mutex<()>,
    value: std::cell::UnsafeCell<T>,
}

// SAFETY: the value is reached by its owner, one thread at a time, and by visitors; the algorithm above keeps them
// apart and orders one after the other. A visitor gets `&T` on its thread, hence `T: Sync`.
// Test: model `the_owner_and_a_visitor_are_never_inside_at_once`.
unsafe impl<T: Send + Sync> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            is_busy: AtomicBool::new(false),
            is_visited: AtomicBool::new(false),
            visits: Mutex::new(()),
            value: std::cell::UnsafeCell::new(value),
        }
    }

    /// Calls `f` with the value. It runs no user code and is short.
    ///
    /// # Safety
    ///
    /// One thread at a time is the owner and may call this, and `f` does not.
    #[inline]
    pub(crate) unsafe fn own<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.is_busy.store(true, Relaxed);
        fences::light();
        if self.is_visited.load(Acquire) {
            return self.own_after_visit(f);
        }
        // SAFETY: no visitor is inside, and one that comes now sees `is_busy`; the caller is the only owner.
        // Test: model `the_owner_and_a_visitor_are_never_inside_at_once`.
        let result = f(unsafe { &mut *self.value.get() });
        self.is_busy.store(false, Release);
        result
    }

    #[cold]
    #[inline(never)]
    fn own_after_visit<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.is_busy.store(false, Release); // or the visitor would wait for us
        let _alone = lock(&self.visits);
        // SAFETY: visitors are inside only under this lock, and the caller of `own` is the only owner.
        // Test: model `the_owner_and_a_visitor_are_never_inside_at_once`.
        f(unsafe { &mut *self.value.get() })
    }

    /// Calls `f` with the value, from any thread. It takes no lock that the owner could want, and is short, as the owner
    /// waits meanwhile. `None` if the system has no such fence, or the owner was kept from going on.
    pub(crate) fn visit<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let _alone = lock(&self.visits);
        self.is_visited.store(true, Relaxed);
        let is_mine = fences::heavy() && self.wait_for_owner();
        // SAFETY: an owner that came before the fence was waited for; one that comes after it sees `is_visited` and
        // waits for `visits`. Other visitors wait for that too.
        // Test: model `the_owner_and_a_visitor_are_never_inside_at_once`.
        let result = is_mine.then(|| f(unsafe { &*self.value.get() }));
        self.is_visited.store(false, Release);
        result
    }

    fn wait_for_owner(&self) -> bool {
        let start = Instant::now();
        while self.is_busy.load(Acquire) {
            if start.elapsed() > PATIENCE {
                return false;
            }
            thread::yield_now();
        }
        true
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// loom's cell, which tells when two are inside at once.
    struct Watched(UnsafeCell<u32>);

    // SAFETY: loom checks each access. Test: the model below.
    unsafe impl Sync for Watched {}

    impl Watched {
        fn get(&self) -> u32 {
            self.0.with(|value| {
                // SAFETY: as above. Test: the model below.
                unsafe { *value }
            })
        }

        fn add(&mut self) {
            self.0.with_mut(|value| {
                // SAFETY: as above. Test: the model below.
                unsafe { *value += 1 }
            });
        }
    }

    fn add(lock: &BiasedLock<Watched>) {
        // SAFETY: each model has one owner. Test: the models below.
        unsafe { lock.own(Watched::add) }
    }

    #[test]
    fn the_owner_and_a_visitor_are_never_inside_at_once() {
        loom::model(|| {
            let lock = Arc::new(BiasedLock::new(Watched(UnsafeCell::new(0))));
            let theirs = lock.clone();
            let visitor = thread::spawn(move || theirs.visit(Watched::get).expect("the owner goes on"));
            add(&lock);
            add(&lock);
            assert!(visitor.join().unwrap() <= 2);
            assert_eq!(lock.visit(Watched::get), Some(2));
        });
    }

    #[test]
    fn two_visitors_and_the_owner_take_turns() {
        loom::model(|| {
            let lock = Arc::new(BiasedLock::new(Watched(UnsafeCell::new(0))));
            let visitors = [lock.clone(), lock.clone()].map(|lock| thread::spawn(move || lock.visit(Watched::get)));
            add(&lock);
            for visitor in visitors {
                assert!(visitor.join().unwrap().is_some_and(|value| value <= 1));
            }
        });
    }
}
