//! A lock that costs one locked instruction to take and a store to give back.
//!
//! The store of a wheel uses it, and the channels and locks for tasks. A few dozen instructions run under it, and no
//! user code, so a thread that finds it taken spins. If that takes long, the holder was preempted or moves very many
//! timers, and the waiting thread gives up its own CPU for a while. The lock is not fair: tasks that wait for a lock or
//! a channel of `mini-sync` wait in a list that it guards. But a thread that takes it again and again, as one that
//! moves a timeout at each message, must not keep a driver from its timers. So a thread that has spun without success
//! sets a flag. The next thread that takes the lock then gives it back once and yields first. It reads the flag after
//! the swap, when the cache line is its own.
//!
//! Rejected:
//! - The standard library's mutex: a second locked instruction to unlock, as a waiter may sleep in the kernel. 10.8 ns
//!   for lock and unlock where this takes 5.4, and each timer needs two of them.
//! - A lock biased to the driver's thread (no locked instruction there, `membarrier` everywhere else): a timer of a
//!   task that has moved to another worker would cost a system call that interrupts all processors.
//!
//! Models of what is built on it use loom's mutex instead, since a model knows no fairness.

#![allow(unsafe_code)]
#![cfg_attr(loom, allow(dead_code))]

use std::cell::UnsafeCell;
use std::fmt;
use std::iter;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The number of checks of a taken lock before the waiting thread yields, and before it sleeps.
const SPINS: u32 = 64;
const YIELDS: u32 = 128;

/// `true` if the lock is taken.
struct Taken {
    is_taken: AtomicBool,
    /// A thread has spun for it without success.
    is_wanted: AtomicBool,
}

/// A value for one thread at a time.
///
/// # Examples
///
/// ```
/// let lock = mini_context::Lock::new(1);
/// *lock.lock() += 1;
/// assert_eq!(*lock.lock(), 2);
/// ```
pub struct Lock<T> {
    taken: Taken,
    value: UnsafeCell<T>,
}

// SAFETY: a reference to the value exists only in a `Guard`, and `Taken` lets there be one at a time and orders one
// after the other, so the value is in effect sent from thread to thread.
// Test: model `one_at_a_time_and_each_sees_what_the_one_before_wrote`.
unsafe impl<T: Send> Sync for Lock<T> {}

/// As with the standard library's mutex. No user code runs under the lock, so a panic leaves nothing half done that
/// another thread could see.
impl<T> RefUnwindSafe for Lock<T> {}
impl<T> UnwindSafe for Lock<T> {}

/// The right to use the value of a [`Lock`], until it is dropped.
pub struct Guard<'a, T>(&'a Lock<T>, PhantomData<&'a mut T>);

impl Taken {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self { is_taken: AtomicBool::new(false), is_wanted: AtomicBool::new(false) }
    }

    #[inline]
    fn take(&self) {
        if !self.try_take() {
            self.wait();
        } else if self.is_wanted.load(Relaxed) {
            self.give_way();
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`.
        !self.is_taken.swap(true, Acquire)
    }

    #[inline]
    fn give_back(&self) {
        // Release: pairs with the Acquire in `try_take`.
        self.is_taken.store(false, Release);
    }

    /// Takes the lock after a thread that has waited for long, if there is one.
    #[cold]
    fn give_way(&self) {
        self.give_back();
        std::thread::yield_now();
        self.wait();
    }

    #[cold]
    fn wait(&self) {
        for looks in (0..YIELDS).chain(iter::repeat(YIELDS)) {
            // The look comes first, as the swap takes the cache line away from the holder.
            if !self.is_taken.load(Relaxed) && self.try_take() {
                if looks > SPINS {
                    self.is_wanted.store(false, Relaxed); // others that want it say so again
                }
                return;
            }
            if looks >= SPINS {
                self.is_wanted.store(true, Relaxed);
            }
            pause(looks);
        }
    }
}

fn pause(looks: u32) {
    match looks {
        0..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => std::thread::yield_now(),
        // Real time: sleeping lets a holder of lower priority run, whatever the scheduler's policy. A shorter sleep
        // would take as long: the system's timers have a slack of 50 µs (prctl(2)).
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}

impl<T> Lock<T> {
    /// Creates an unlocked lock.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Lock<T> {
        Lock { taken: Taken::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock, and waits for it if necessary.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.taken.take();
        Guard(self, PhantomData)
    }

    /// Returns a mutable reference to the value. No lock is needed, as no other thread can have one.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `lock` took the lock for this guard, which gives it back when it is dropped; until then no other
        // guard exists, and the borrow of this one keeps `deref_mut` away.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; this guard is borrowed for writing.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.give_back();
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::thread;

    use super::*;

    #[test]
    fn threads_that_count_lose_nothing() {
        let (threads, rounds) = if cfg!(miri) { (3, 50) } else { (4, 20_000) };
        let lock = Lock::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..rounds).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), threads * rounds);
    }

    #[test]
    fn a_panic_gives_it_back() {
        let lock = Lock::new(7);
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut guard = lock.lock();
            *guard = 8;
            panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 8);
    }

    #[test]
    fn one_who_waits_long_gets_it_in_the_end() {
        let lock = Lock::new(Vec::new());
        let guard = lock.lock();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| lock.lock().push(2));
            let mut guard = guard;
            guard.push(1);
            // Long enough for the thread to run out of spins and yields, if it has come to the lock.
            for looks in 0..4 * YIELDS {
                pause(looks % YIELDS);
            }
            drop(guard);
            waiting.join().unwrap();
        });
        assert_eq!(*lock.lock(), [1, 2]);
    }

    /// In the median round: another process may keep the waiting thread from its CPU in some.
    #[test]
    #[cfg_attr(miri, ignore = "a thread there goes on for long before another one does")]
    fn who_takes_it_again_and_again_gives_way() {
        let mut takes: Vec<u32> = (0..51)
            .map(|_| {
                let (lock, is_asked) = (Lock::new(false), AtomicBool::new(false));
                thread::scope(|scope| {
                    let mut guard = lock.lock();
                    scope.spawn(|| {
                        is_asked.store(true, Release);
                        *lock.lock() = true;
                    });
                    while !is_asked.load(Acquire) {
                        thread::yield_now();
                    }
                    for looks in 0..4 * SPINS {
                        pause(looks % SPINS);
                    }
                    let mut takes = 0;
                    while !*guard {
                        drop(guard);
                        guard = lock.lock();
                        for _ in 0..20 {
                            std::hint::spin_loop(); // it is taken for most of the time
                        }
                        takes += 1;
                    }
                    takes
                })
            })
            .collect();
        takes.sort_unstable();
        assert!(takes[25] < 100, "{takes:?}");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    /// Fails when the swap in `try_take` or the store in `give_back` is made Relaxed.
    #[test]
    fn one_at_a_time_and_each_sees_what_the_one_before_wrote() {
        loom::model(|| {
            let taken = Taken { is_taken: AtomicBool::new(false), is_wanted: AtomicBool::new(false) };
            let shared = Arc::new((taken, UnsafeCell::new(0)));
            let add = |shared: &(Taken, UnsafeCell<u32>)| {
                let is_mine = shared.0.try_take();
                if is_mine {
                    // SAFETY: the lock is taken; loom fails the model if another thread may be here.
                    shared.1.with_mut(|value| unsafe { *value += 1 });
                    shared.0.give_back();
                }
                u32::from(is_mine)
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || add(&shared))
                })
                .collect();
            let mine = add(&shared);
            let added = others.into_iter().fold(mine, |sum, other| sum + other.join().unwrap());
            // SAFETY: the other threads have ended.
            assert_eq!(shared.1.with(|value| unsafe { *value }), added);
        });
    }
}
