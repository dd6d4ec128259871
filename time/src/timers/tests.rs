//! The contract with the driver: which tasks are woken, when the driver is notified, and that no lock is held then.

use std::panic;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use mini_context::rules::{TIMER_BATCH, TIMER_TIME};

use super::{Park, Refusal, State, Timers};
use crate::Clock;
use crate::probe::{Probe, pass, paused_timers};

mod threads;

const MS: Duration = Duration::from_millis(1);

/// Adds a timer `after` from now.
fn add(timers: &Timers, after: Duration, waker: Waker) -> crate::wheel::Key {
    let now = timers.clock().now();
    timers.0.lease.add(now + after, waker).unwrap().0
}

#[test]
fn turn_wakes_what_is_due_and_counts_it() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    for ms in 1..=3 {
        add(&timers, ms * MS, probe.waker());
    }
    assert_eq!(timers.turn(), 0);
    assert_eq!(pass(&timers, 2 * MS), 2);
    assert_eq!((probe.wakes(), timers.len()), (2, 1));
    assert_eq!(pass(&timers, MS), 1);
    assert!(timers.is_empty());
}

#[test]
fn a_wait_in_the_place_of_the_driver_serves_a_crowd_as_a_whole() {
    const GAP: Duration = Duration::from_micros(5);
    // Just after a tick begins: a first deadline at the end of its tick is waited for alone.
    const FIRST: Duration = Duration::from_nanos(760 * 65_536 + 9);
    let (timers, _) = paused_timers();
    let start = timers.clock().now();
    assert_eq!(timers.wait_limit(), None);
    for nth in 0..2_000 {
        add(&timers, FIRST + nth * GAP, Waker::noop().clone());
    }
    assert_eq!(timers.wait_limit(), Some(FIRST));
    timers.clock().resume().unwrap();
    let limit = timers.wait_limit().unwrap();
    let until = timers.clock().now() + limit;
    // Zero on a machine that takes 50 ms from one line to the other.
    assert!(limit.is_zero() || until > start + FIRST + 50 * GAP, "one wait for each");
    timers.clock().pause().unwrap();
    timers.clock().advance(60 * MS).unwrap();
    assert_eq!(timers.wait_limit(), Some(Duration::ZERO));
}

#[test]
fn turn_wakes_more_than_a_batch_in_the_order_of_deadlines() {
    struct Nth(usize, Arc<Mutex<Vec<usize>>>);
    impl Wake for Nth {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let (timers, _) = paused_timers();
    let log = Arc::new(Mutex::new(Vec::new()));
    let count = 3 * TIMER_BATCH + 1;
    for nth in (0..count).rev() {
        add(&timers, Duration::from_micros(nth as u64), Arc::new(Nth(nth, Arc::clone(&log))).into());
    }
    assert_eq!(pass(&timers, 100 * MS), count);
    assert_eq!(*log.lock().unwrap(), (0..count).collect::<Vec<_>>());
}

#[test]
#[cfg_attr(miri, ignore = "each of its steps takes longer than a turn may")]
fn a_turn_that_takes_long_leaves_the_rest_to_the_next() {
    /// Takes as long as a turn may.
    struct Slow(Clock);
    impl Wake for Slow {
        fn wake(self: Arc<Self>) {
            let begin = self.0.now();
            while self.0.now() - begin < Duration::from_nanos(TIMER_TIME) {}
        }
    }
    let timers = Timers::new(Clock::real(), Waker::noop().clone());
    let slow = Arc::new(Slow(timers.clock().clone()));
    for _ in 0..3 * TIMER_BATCH {
        add(&timers, Duration::ZERO, slow.clone().into());
    }
    // The time is looked at before each batch.
    assert_eq!(timers.turn(), 2 * TIMER_BATCH);
    assert_eq!(timers.prepare_park(), Park::Ready);
    assert_eq!(timers.turn(), TIMER_BATCH);
    assert_eq!((timers.turn(), timers.len()), (0, 0));
}

#[test]
fn wakers_are_woken_cloned_and_dropped_with_the_lock_free() {
    /// Uses the timers whenever it can.
    struct Nosy(Timers);
    impl Wake for Nosy {
        fn wake(self: Arc<Self>) {
            assert!(self.0.len() < 2);
        }
    }
    impl Drop for Nosy {
        fn drop(&mut self) {
            assert!(self.0.len() < 2);
        }
    }
    let (timers, _) = paused_timers();
    let nosy = || Waker::from(Arc::new(Nosy(timers.clone())));
    let removed = add(&timers, MS, nosy());
    timers.0.lease.remove(removed);
    let watched = add(&timers, MS, nosy());
    assert_eq!(timers.0.lease.watch(watched, &nosy()), State::Pending(1_000_000));
    assert_eq!(pass(&timers, MS), 1);
    add(&timers, MS, nosy());
    timers.shutdown();
    let now = timers.clock().now();
    assert_eq!(timers.0.lease.add(now + MS, nosy()), Err(Refusal::Dead));
}

#[test]
fn a_waker_that_panics_costs_the_others_nothing() {
    struct Bomb(Arc<()>);
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic::resume_unwind(Box::new(self.0.clone()));
        }
    }
    let (timers, _) = paused_timers();
    let (probe, payload) = (Probe::default(), Arc::new(()));
    add(&timers, MS, probe.waker());
    add(&timers, 2 * MS, Arc::new(Bomb(payload.clone())).into());
    add(&timers, 3 * MS, probe.waker());
    assert_eq!(pass(&timers, 3 * MS), 3);
    assert_eq!((probe.wakes(), timers.len()), (2, 0));
    assert_eq!(Arc::strong_count(&payload), 1, "what it panicked with is dropped");
    add(&timers, MS, probe.waker());
    assert_eq!(pass(&timers, MS), 1);
}

#[test]
fn park_says_how_long() {
    let timers = Timers::new(Clock::pausable(false), Waker::noop().clone());
    assert_eq!(timers.prepare_park(), Park::Forever);
    let hour = add(&timers, 3600 * 1000 * MS, Waker::noop().clone());
    assert!(matches!(timers.prepare_park(), Park::Until(wait) if wait <= 3600 * 1000 * MS));
    add(&timers, Duration::ZERO, Waker::noop().clone());
    assert_eq!(timers.prepare_park(), Park::Ready);
    assert_eq!(timers.turn(), 1);
    timers.clock().pause().unwrap();
    assert_eq!(timers.prepare_park(), Park::Forever);
    timers.0.lease.remove(hour);
    add(&timers, Duration::from_nanos(1), Waker::noop().clone());
    assert_eq!(timers.prepare_park(), Park::Forever);
    timers.clock().advance(Duration::from_nanos(1)).unwrap();
    assert_eq!(timers.prepare_park(), Park::Ready);
}

#[test]
fn the_driver_is_notified_once_a_park_and_only_for_an_earlier_deadline() {
    let (timers, notifier) = paused_timers();
    let waker = || Waker::noop().clone();
    add(&timers, 10 * MS, waker());
    assert_eq!(notifier.wakes(), 0, "nobody sleeps");
    let _ = timers.prepare_park();
    add(&timers, 10 * MS, waker());
    add(&timers, 11 * MS, waker());
    assert_eq!(notifier.wakes(), 0, "not earlier");
    add(&timers, 9 * MS, waker());
    assert_eq!(notifier.wakes(), 1);
    add(&timers, 8 * MS, waker());
    assert_eq!(notifier.wakes(), 1, "it was notified before");
    let _ = timers.prepare_park();
    let moved = add(&timers, 20 * MS, waker());
    assert_eq!(timers.0.lease.reset(moved, timers.clock().now() + 30 * MS), Ok(true));
    assert_eq!(notifier.wakes(), 1);
    assert_eq!(timers.0.lease.reset(moved, timers.clock().now() + MS), Ok(true));
    assert_eq!(notifier.wakes(), 2, "moved before the announced time");
}

#[test]
fn the_driver_is_not_notified_after_the_park() {
    let (timers, notifier) = paused_timers();
    for finish in [Timers::finish_park, |timers: &Timers| assert_eq!(timers.turn(), 0)] {
        for _ in 0..2 {
            let _ = timers.prepare_park();
            finish(&timers);
            add(&timers, MS, Waker::noop().clone());
        }
        assert_eq!(pass(&timers, MS), 2);
    }
    assert_eq!(notifier.wakes(), 0);
}

#[test]
fn a_turn_of_another_thread_leaves_the_announcement() {
    let (timers, notifier) = paused_timers();
    assert_eq!(timers.prepare_park(), Park::Forever);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(timers.turn(), 0);
            timers.finish_park();
            add(&timers, MS, Waker::noop().clone());
        });
    });
    assert_eq!(notifier.wakes(), 1);
}

#[test]
fn notify_wakes_a_driver_that_sleeps_and_no_other() {
    let (timers, notifier) = paused_timers();
    timers.notify();
    assert_eq!(notifier.wakes(), 0);
    let _ = timers.prepare_park();
    timers.notify();
    timers.notify();
    assert_eq!(notifier.wakes(), 1);
}

#[test]
fn auto_advance_goes_exactly_to_the_first_deadline() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    let start = timers.clock().now();
    // The first two leave bounds in two upper rings that are too early.
    let removed = add(&timers, 150 * MS, probe.waker());
    let moved = add(&timers, 150_000 * MS, probe.waker());
    add(&timers, 300_000 * MS, probe.waker());
    timers.0.lease.remove(removed);
    assert_eq!(timers.0.lease.reset(moved, start + 200_000 * MS), Ok(true));
    for second in [200, 300] {
        assert!(timers.auto_advance());
        assert_eq!(timers.clock().now() - start, second * 1000 * MS);
        assert!(timers.auto_advance(), "it stays until the turn");
        assert_eq!(timers.clock().now() - start, second * 1000 * MS);
        assert_eq!(timers.turn(), 1);
    }
    assert!(!timers.auto_advance());
}

#[test]
fn auto_advance_leaves_a_running_clock_and_a_timer_for_never_alone() {
    let running = Timers::new(Clock::pausable(false), Waker::noop().clone());
    add(&running, 3600 * 1000 * MS, Waker::noop().clone());
    assert!(!running.auto_advance());
    let (timers, _) = paused_timers();
    let now = timers.clock().now();
    let never = now.saturating_add(Duration::MAX);
    timers.0.lease.add(never, Waker::noop().clone()).unwrap();
    assert!(!timers.auto_advance());
    assert_eq!((timers.clock().now(), timers.next_deadline()), (now, None));
    // A timer that was moved to `never` leaves a bound where it was: in the first upper ring, and in the second.
    for first in [150 * MS, 150_000 * MS] {
        let moved = add(&timers, first, Waker::noop().clone());
        assert_eq!(timers.0.lease.reset(moved, never), Ok(true));
        assert!(!timers.auto_advance());
        assert_eq!(timers.clock().now(), now);
    }
}

#[test]
fn next_deadline_is_an_instant() {
    let (timers, _) = paused_timers();
    add(&timers, 20 * MS, Waker::noop().clone());
    assert_eq!(timers.next_deadline(), Some(timers.clock().now() + 20 * MS));
}

#[test]
fn shutdown_wakes_all_and_refuses_the_rest() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    let key = add(&timers, MS, probe.waker());
    add(&timers, 1_000_000 * MS, probe.waker());
    timers.shutdown();
    timers.shutdown();
    assert_eq!((probe.wakes(), probe.wakers(), timers.len()), (2, 0, 0));
    let now = timers.clock().now();
    assert_eq!(timers.0.lease.add(now + MS, probe.waker()), Err(Refusal::Dead));
    assert_eq!(timers.0.lease.watch(key, &probe.waker()), State::Dead);
    assert_eq!(timers.0.lease.reset(key, now), Err(Refusal::Dead));
    assert_eq!((pass(&timers, MS), timers.prepare_park()), (0, Park::Forever));
}

#[test]
fn watch_replaces_the_waker_and_says_when_it_is_too_late() {
    let (timers, _) = paused_timers();
    let (first, second) = (Probe::default(), Probe::default());
    let key = add(&timers, MS, first.waker());
    let waker = second.waker();
    assert_eq!(timers.0.lease.watch(key, &waker), State::Pending(1_000_000));
    assert_eq!(first.wakers(), 0);
    assert_eq!(timers.0.lease.watch(key, &waker), State::Pending(1_000_000));
    assert_eq!(second.wakers(), 2, "the same waker is not cloned again");
    assert_eq!(pass(&timers, MS), 1);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(timers.0.lease.watch(key, &waker), State::Fired);
}

#[test]
fn a_park_that_goes_on_from_the_one_before_hears_of_timers_from_elsewhere() {
    let (timers, notifier) = paused_timers();
    for wakes in 1..=3 {
        for _ in 0..2 {
            assert_eq!(timers.prepare_park(), Park::Forever);
            timers.finish_park();
        }
        assert_eq!(timers.prepare_park(), Park::Forever);
        let key = thread::scope(|scope| scope.spawn(|| add(&timers, MS, Waker::noop().clone())).join().unwrap());
        assert_eq!(notifier.wakes(), wakes);
        timers.finish_park();
        timers.0.lease.remove(key);
    }
}

#[test]
fn a_park_after_a_timer_of_its_own_thread_knows_of_it() {
    let timers = Timers::new(Clock::real(), Waker::noop().clone());
    assert_eq!(timers.prepare_park(), Park::Forever);
    timers.finish_park();
    add(&timers, 3600 * 1000 * MS, Waker::noop().clone());
    assert!(matches!(timers.prepare_park(), Park::Until(_)));
}
