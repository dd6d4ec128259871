//! Threads that use the timers of one driver, in real time: none is lost, and each ends once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use super::super::{Park, Timers};
use super::add;
use crate::probe::Probe;
use crate::{Clock, Instant, enter, sleep, sleep_until};

/// Wakes a thread.
struct Unpark(thread::Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// A driver that does nothing but serve its timers, until `is_over`.
fn drive(timers: &Timers, is_over: &AtomicBool) -> usize {
    let mut fired = 0;
    while !is_over.load(Ordering::SeqCst) {
        fired += timers.turn();
        match timers.prepare_park() {
            Park::Ready => {}
            Park::Until(wait) => thread::park_timeout(wait),
            Park::Forever => thread::park(),
        }
        timers.finish_park();
    }
    fired + timers.turn()
}

/// Sleeps some, dropping every third, and returns how many it waited for.
fn use_timers(timers: &Timers, seed: u64, rounds: u64) -> usize {
    let _entered = enter(timers);
    let this = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&this));
    let mut cx = std::task::Context::from_waker(&waker);
    let mut waited = 0;
    for round in 0..rounds {
        let wait = Duration::from_micros((seed * 31 + round * 17) % 150);
        let deadline = Instant::now() + wait;
        let mut waiting = sleep_until(deadline);
        let mut dropped = sleep(wait / 2);
        let _ = std::pin::Pin::new(&mut dropped).poll(&mut cx);
        if round % 3 == 0 {
            drop(dropped);
        }
        // No lost wake: a thread that is not woken parks for ever.
        while std::pin::Pin::new(&mut waiting).poll(&mut cx) == Poll::Pending {
            thread::park();
        }
        assert!(Instant::now() >= deadline, "early");
        waited += 1;
    }
    waited
}

#[test]
fn threads_share_timers_and_none_is_lost() {
    let (threads, rounds) = if cfg!(miri) { (2, 5) } else { (4, 400) };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let driver = scope.spawn({
            let is_over = &is_over;
            move || {
                let notifier = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
                let timers = Timers::new(Clock::real(), notifier.into());
                send.send(timers.clone()).unwrap();
                drive(&timers, is_over)
            }
        });
        let timers = receive.recv().unwrap();
        let users: Vec<_> = (0..threads)
            .map(|seed| {
                let timers = timers.clone();
                scope.spawn(move || use_timers(&timers, seed, rounds))
            })
            .collect();
        let waited: usize = users.into_iter().map(|user| user.join().unwrap()).sum();
        assert_eq!(waited as u64, threads * rounds);
        assert!(timers.is_empty(), "each has fired or was cancelled");
        is_over.store(true, Ordering::SeqCst);
        driver.thread().unpark();
        driver.join().unwrap();
    });
}

#[test]
fn every_timer_is_fired_or_removed_and_never_both() {
    let (threads, count) = if cfg!(miri) { (2, 20) } else { (4, 5000) };
    let timers = Timers::new(Clock::real(), Waker::noop().clone());
    let (fired, removed, turned) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (timers, fired, removed, turned) = (&timers, &fired, &removed, &turned);
            scope.spawn(move || {
                for nth in 0..count {
                    let probe = Probe::default();
                    let after = Duration::from_micros((thread * 7 + nth * 13) % 40);
                    let key = add(timers, after, probe.waker());
                    turned.fetch_add(timers.turn(), Ordering::SeqCst);
                    timers.0.lease.remove(key);
                    // Removed before it fired: no waker is left. Fired: another thread may be about to wake it.
                    while probe.wakers() > 0 {
                        thread::yield_now();
                    }
                    match probe.wakes() {
                        0 => removed.fetch_add(1, Ordering::SeqCst),
                        1 => fired.fetch_add(1, Ordering::SeqCst),
                        more => panic!("fired {more} times"),
                    };
                }
            });
        }
    });
    let (fired, removed) = (fired.into_inner(), removed.into_inner());
    assert_eq!((fired + removed) as u64, threads * count);
    assert_eq!(turned.into_inner(), fired);
    assert!(timers.is_empty());
}
