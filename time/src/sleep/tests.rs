//! Tests of a sleep in each of its states, polled by hand.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, Location};
use std::pin::Pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use mini_context::{Reason, take_notes};

use super::Sleep;
use crate::probe::{Probe, pass, paused_timers};
use crate::{Clock, Instant, Timers, enter, interval, interval_at, retry_after, sleep, sleep_until};

const MS: Duration = Duration::from_millis(1);

fn reset(sleep: &mut Sleep, deadline: Instant) {
    Pin::new(sleep).reset(deadline);
}

/// The message of the panic that polling `sleep` ends in.
fn panic_of(sleep: &mut Sleep) -> String {
    let poll = panic::catch_unwind(AssertUnwindSafe(|| Probe::default().poll(sleep)));
    *poll.expect_err("it panics").downcast::<String>().unwrap()
}

#[test]
fn a_deadline_that_has_come_needs_no_runtime_and_no_timer() {
    let probe = Probe::default();
    assert_eq!(probe.poll(&mut sleep(Duration::ZERO)), Poll::Ready(()));
    assert_eq!(probe.poll(&mut sleep_until(Instant::now() - MS)), Poll::Ready(()));
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    assert_eq!(probe.poll(&mut sleep(Duration::ZERO)), Poll::Ready(()));
    assert_eq!((timers.len(), probe.wakes()), (0, 0));
}

#[test]
fn making_one_adds_no_timer_and_the_first_poll_adds_one() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let mut sleep = sleep(MS);
    assert_eq!(timers.len(), 0);
    for _ in 0..3 {
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
        assert_eq!(timers.len(), 1);
    }
    assert_eq!(probe.wakes(), 0);
}

#[test]
fn it_wakes_at_its_nanosecond_and_is_ready_then() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let mut sleep = sleep(1300 * Duration::from_micros(1));
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    assert_eq!(pass(&timers, Duration::from_nanos(1_299_999)), 0);
    assert_eq!((probe.poll(&mut sleep), sleep.is_elapsed()), (Poll::Pending, false));
    assert_eq!(pass(&timers, Duration::from_nanos(1)), 1);
    assert_eq!((probe.wakes(), sleep.is_elapsed()), (1, true));
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
}

#[test]
fn once_done_it_is_ready_without_its_runtime() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    let mut sleep = {
        let _entered = enter(&timers);
        let mut sleep = sleep(3600 * 1000 * MS);
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
        pass(&timers, 3600 * 1000 * MS);
        assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
        sleep
    };
    timers.shutdown();
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
    assert!(sleep.is_elapsed());
}

#[test]
fn a_poll_that_finds_it_due_before_the_driver_does_removes_the_timer() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let mut sleep = sleep(MS);
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    timers.clock().advance(MS).unwrap();
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
    assert_eq!((timers.len(), timers.turn(), probe.wakes(), probe.wakers()), (0, 0, 0, 0));
}

#[test]
fn the_last_waker_is_woken() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let (first, second) = (Probe::default(), Probe::default());
    let mut sleep = sleep(MS);
    assert_eq!(first.poll(&mut sleep), Poll::Pending);
    assert_eq!(second.poll(&mut sleep), Poll::Pending);
    assert_eq!((pass(&timers, MS), first.wakes(), second.wakes()), (1, 0, 1));
    assert_eq!((first.wakers(), second.wakers()), (0, 0));
}

#[test]
fn dropping_it_removes_the_timer_and_its_waker() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    for wait in [MS, 1000 * MS, 1_000_000 * MS, Duration::MAX] {
        let mut sleep = sleep(wait);
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
        assert_eq!((timers.len(), probe.wakers()), (1, 1));
        drop(sleep);
        assert_eq!((timers.len(), probe.wakers()), (0, 0));
    }
}

#[test]
fn it_is_polled_and_dropped_on_any_thread() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    let mut kept = sleep_until(timers.clock().now() + MS);
    let mut dropped = sleep_until(timers.clock().now() + MS);
    {
        let _entered = enter(&timers);
        assert_eq!((probe.poll(&mut kept), probe.poll(&mut dropped)), (Poll::Pending, Poll::Pending));
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            // This thread is in no context: an armed sleep belongs to its timers.
            assert_eq!(probe.poll(&mut kept), Poll::Pending);
            drop(dropped);
        });
    });
    assert_eq!((timers.len(), pass(&timers, MS)), (1, 1));
    assert_eq!(probe.poll(&mut kept), Poll::Ready(()));
}

#[test]
fn reset_moves_the_deadline_in_every_state() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let start = Instant::now();
    let mut sleep = sleep(5 * MS);
    reset(&mut sleep, start + 6 * MS);
    assert_eq!((sleep.deadline(), timers.len()), (start + 6 * MS, 0), "not armed");
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    reset(&mut sleep, start + 8 * MS);
    assert_eq!((timers.len(), pass(&timers, 7 * MS)), (1, 0), "later");
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    reset(&mut sleep, start + 7 * MS);
    assert_eq!((timers.turn(), probe.wakes()), (1, 1), "earlier: the waker goes along");
    reset(&mut sleep, start + 9 * MS);
    assert_eq!(timers.len(), 0, "fired");
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    assert_eq!(pass(&timers, 2 * MS), 1);
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
    reset(&mut sleep, start + 10 * MS);
    assert!(!sleep.is_elapsed(), "done");
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    assert_eq!(pass(&timers, MS), 1);
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
}

#[test]
fn durations_too_long_to_be_represented_never_end() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let (mut never, mut long) = (sleep(Duration::MAX), sleep(3 * century));
    assert_eq!((probe.poll(&mut never), probe.poll(&mut long)), (Poll::Pending, Poll::Pending));
    assert_eq!(pass(&timers, 2 * century), 0);
    assert!(timers.auto_advance());
    assert_eq!(timers.turn(), 1);
    assert_eq!((probe.poll(&mut never), probe.poll(&mut long)), (Poll::Pending, Poll::Ready(())));
    assert!(!timers.auto_advance());
}

#[test]
fn where_the_clock_was_moved_too_far_short_ones_say_so_and_long_ones_never_end() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    let (mut kept, mut never) = (sleep(5 * century), sleep(Duration::MAX));
    assert_eq!((probe.poll(&mut kept), probe.poll(&mut never)), (Poll::Pending, Poll::Pending));
    timers.clock().advance(Duration::from_nanos(u64::MAX - 1) - 2 * MS).unwrap();
    let line = line!() + 1;
    for mut short in [sleep(3 * MS), sleep_until(Instant::now() + 3 * MS), sleep(century - MS)] {
        let message = panic_of(&mut short);
        assert!(message.contains("584 years") && message.contains(&format!("{}:{line}:", file!())), "{message}");
    }
    for mut long in [sleep(century), sleep(Duration::MAX)] {
        assert_eq!(probe.poll(&mut long), Poll::Pending);
        reset(&mut long, Instant::now() + MS);
        assert_eq!(probe.poll(&mut long), Poll::Pending);
    }
    let ahead = Instant::now() + 3 * MS;
    let message = panic::catch_unwind(AssertUnwindSafe(|| reset(&mut never, ahead))).unwrap_err();
    assert!(message.downcast::<String>().unwrap().contains("584 years"));
    assert!(never.deadline() > ahead, "it stays as it was");
    assert_eq!((timers.turn(), probe.poll(&mut kept)), (1, Poll::Ready(())));
    let mut last = sleep(2 * MS);
    assert_eq!((probe.poll(&mut last), timers.auto_advance(), timers.turn()), (Poll::Pending, true, 1));
    assert_eq!((probe.poll(&mut last), probe.poll(&mut never)), (Poll::Ready(()), Poll::Pending));
}

#[test]
fn without_a_runtime_the_panic_names_the_call_and_the_way_out() {
    let mut lonely = sleep(1000 * MS);
    let line = line!() - 1;
    let message = panic_of(&mut lonely);
    let place = format!("`mini::time::sleep`, called at {}:{line}:", file!());
    for part in [&place, "#[mini::main]", "mini::block_on", "Runtime::enter"] {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
    let mut lonely = sleep_until(Instant::now() + 1000 * MS);
    assert!(panic_of(&mut lonely).contains("`mini::time::sleep_until`"));
}

#[test]
fn after_shutdown_it_panics_unless_it_is_due() {
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    let now = timers.clock().now();
    let (mut armed, mut due) = (sleep_until(now + 1_000_000 * MS), sleep_until(now + MS));
    {
        let _entered = enter(&timers);
        assert_eq!((probe.poll(&mut armed), probe.poll(&mut due)), (Poll::Pending, Poll::Pending));
    }
    timers.clock().advance(MS).unwrap();
    timers.shutdown();
    assert_eq!(probe.wakes(), 2);
    assert_eq!(probe.poll(&mut due), Poll::Ready(()));
    assert!(panic_of(&mut armed).contains("was shut down"));
    let _entered = enter(&timers);
    assert!(panic_of(&mut armed).contains("was shut down"));
    assert!(panic_of(&mut sleep(MS)).contains("was shut down"));
}

#[test]
fn a_retry_is_ready_early_where_a_sleep_panics_and_leaves_no_note() {
    let (timers, _) = paused_timers();
    let (probe, here) = (Probe::default(), Location::caller());
    assert_eq!(probe.poll(&mut retry_after(here, MS)), Poll::Ready(()));
    let mut armed = retry_after(here, MS);
    {
        let _entered = enter(&timers);
        assert_eq!(probe.poll(&mut armed), Poll::Pending);
        assert!(take_notes().is_empty());
    }
    timers.shutdown();
    assert_eq!((probe.wakes(), probe.poll(&mut armed)), (1, Poll::Ready(())));
    let _entered = enter(&timers);
    assert_eq!(probe.poll(&mut retry_after(here, MS)), Poll::Ready(()));
}

#[test]
fn after_shutdown_it_goes_over_to_the_runtime_that_polls_it() {
    let (old, _) = paused_timers();
    let probe = Probe::default();
    let mut sleep = {
        let _entered = enter(&old);
        let mut sleep = sleep(2 * 3600 * 1000 * MS);
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
        sleep
    };
    // The clock of the old runtime is far ahead, but behind the deadline.
    old.clock().advance(3600 * 1000 * MS).unwrap();
    old.shutdown();
    let new = Timers::new(Clock::pausable(true), Probe::default().waker());
    let _entered = enter(&new);
    assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    assert_eq!((old.len(), new.len()), (0, 1));
    assert_eq!(new.next_deadline(), Some(sleep.deadline()));
    // The clock of the new runtime does not continue the old one's time.
    let mut short = crate::sleep(MS);
    assert_eq!(probe.poll(&mut short), Poll::Pending);
    assert_eq!(pass(&new, MS), 1);
    assert_eq!(pass(&new, 3600 * 1000 * MS), 0);
    assert!(new.auto_advance());
    assert_eq!(new.turn(), 1);
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
}

#[test]
fn after_shutdown_it_is_ready_if_the_clock_of_the_next_runtime_says_so() {
    let (old, _) = paused_timers();
    let (new, _) = paused_timers();
    let probe = Probe::default();
    let mut sleep = sleep_until(old.clock().now() + 1000 * MS);
    {
        let _entered = enter(&old);
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
    }
    old.shutdown();
    new.clock().advance(2000 * MS).unwrap();
    let _entered = enter(&new);
    assert_eq!((probe.poll(&mut sleep), new.len()), (Poll::Ready(()), 0));
}

#[test]
fn each_pending_poll_leaves_a_note_and_a_ready_one_does_not() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let mut sleep = sleep(7 * MS);
    let line = line!() - 1;
    for _ in 0..2 {
        assert_eq!(probe.poll(&mut sleep), Poll::Pending);
        let note = take_notes().timer.unwrap();
        assert_eq!((note.reason(), note.location().line()), (Reason::Timer(7_000_000), line));
        assert!(take_notes().is_empty());
    }
    pass(&timers, 7 * MS);
    assert_eq!(probe.poll(&mut sleep), Poll::Ready(()));
    assert!(take_notes().is_empty());
}

#[test]
fn the_budget_makes_a_task_yield_after_128_sleeps() {
    for polls in 1..=4 {
        let probe = Probe::default();
        mini_context::begin_poll(polls);
        let sleeps = (0..).take_while(|_| probe.poll(&mut sleep(Duration::ZERO)).is_ready()).count();
        mini_context::end_poll();
        assert!((128..=129).contains(&sleeps), "{sleeps}"); // a coin decides about the last one
        assert_eq!(probe.wakes(), 1);
    }
}

#[test]
fn it_is_ready_at_the_first_poll_once_its_time_has_come() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let mut late = [sleep(MS), sleep_until(Instant::now() + MS), sleep(MS)];
    reset(&mut late[2], Instant::now() + MS);
    let mut beats = [interval(MS), interval_at(Instant::now() + MS, MS)];
    timers.clock().advance(MS).unwrap();
    for sleep in &mut late {
        assert!(sleep.is_elapsed());
        assert_eq!((probe.poll(sleep), timers.len()), (Poll::Ready(()), 0));
    }
    for beat in &mut beats {
        assert!(probe.poll(&mut beat.tick()).is_ready());
    }
}

#[test]
fn without_a_runtime_it_is_ready_once_its_duration_is_over() {
    let mut short = sleep(Duration::from_nanos(1));
    while !short.is_elapsed() {}
    assert_eq!(Probe::default().poll(&mut short), Poll::Ready(()));
}

#[test]
fn timers_that_are_dropped_wake_who_waits_and_know_him_no_more() {
    let probe = Probe::default();
    let (mut polled, dropped, mut moved) = {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let armed = || {
            let mut armed = sleep(3600 * 1000 * MS);
            assert_eq!(probe.poll(&mut armed), Poll::Pending);
            armed
        };
        (armed(), armed(), armed())
    };
    assert_eq!((probe.wakes(), probe.wakers()), (3, 0));
    // The next timers that are made get the same memory: nothing here may touch their timers.
    let next: Vec<_> = (0..64).map(|_| paused_timers().0).collect();
    let other = Probe::default();
    let mut sleeps = Vec::new();
    for timers in &next {
        let _entered = enter(timers);
        sleeps.extend([(); 3].map(|()| sleep(MS)));
        assert!(sleeps.iter_mut().rev().take(3).all(|sleep| other.poll(sleep).is_pending()));
    }
    assert!(panic_of(&mut polled).contains("was shut down"));
    drop(dropped);
    reset(&mut moved, Instant::now() + 3600 * 1000 * MS);
    for timers in &next {
        assert_eq!((timers.len(), pass(timers, MS)), (3, 3));
    }
    assert_eq!((other.wakes(), probe.wakes()), (3 * 64, 3));
    let _entered = enter(&next[0]);
    assert_eq!((probe.poll(&mut moved), next[0].len()), (Poll::Pending, 1));
}

#[test]
fn it_is_dropped_on_a_thread_that_is_ending() {
    thread_local!(static LATE: RefCell<Option<Sleep>> = const { RefCell::new(None) });
    let (timers, _) = paused_timers();
    let probe = Probe::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Registered before the context, so dropped after it.
            LATE.with(|late| {
                let _entered = enter(&timers);
                let mut sleep = sleep(MS);
                assert_eq!(probe.poll(&mut sleep), Poll::Pending);
                *late.borrow_mut() = Some(sleep);
            });
        });
    });
    while probe.wakers() > 0 {
        thread::yield_now(); // a scope ends before the thread's locals are dropped
    }
    assert!(timers.is_empty());
}
