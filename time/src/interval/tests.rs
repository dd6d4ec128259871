//! Plans of ticks, on time, late and moved.

use std::task::Poll;
use std::time::Duration;

use mini_context::{Reason, notes};

use super::MissedTickBehavior::{self, Burst, Delay, Skip};
use crate::probe::{Probe, pass, paused_timers};
use crate::{Instant, Timers, enter, interval, interval_at};

const MS: Duration = Duration::from_millis(1);

/// Takes ticks of 50 ms as soon as they come, but the second only after the clock was moved by `late` ms. Returns the
/// times, in milliseconds, at which the first six were taken.
fn taken(timers: &Timers, behavior: MissedTickBehavior, late: u32) -> Vec<u128> {
    let _entered = enter(timers);
    let start = Instant::now();
    let mut beat = interval(50 * MS);
    beat.set_missed_tick_behavior(behavior);
    let mut taken = Vec::new();
    while taken.len() < 6 {
        if taken.len() == 1 {
            timers.clock().advance(late * MS).unwrap();
        }
        while Probe::default().poll(&mut beat.tick()) == Poll::Pending {
            assert!(timers.auto_advance());
            timers.turn();
        }
        taken.push(start.elapsed().as_millis());
    }
    taken
}

#[test]
fn missed_ticks_are_made_up_put_off_or_left_out() {
    let (timers, _) = paused_timers();
    assert_eq!(taken(&timers, Burst, 170), [0, 170, 170, 170, 200, 250]);
    assert_eq!(taken(&timers, Delay, 170), [0, 170, 220, 270, 320, 370]);
    assert_eq!(taken(&timers, Skip, 170), [0, 170, 200, 250, 300, 350]);
}

#[test]
fn a_tick_that_is_a_whole_number_of_periods_late_keeps_the_next() {
    let (timers, _) = paused_timers();
    assert_eq!(taken(&timers, Skip, 150), [0, 150, 200, 250, 300, 350]);
    assert_eq!(taken(&timers, Burst, 150), [0, 150, 150, 150, 200, 250]);
}

#[test]
fn a_tick_that_is_hardly_late_changes_no_plan() {
    let (timers, _) = paused_timers();
    for behavior in [Burst, Delay, Skip] {
        assert_eq!(taken(&timers, behavior, 54), [0, 54, 100, 150, 200, 250], "{behavior:?}");
    }
    assert_eq!(taken(&timers, Delay, 55), [0, 55, 105, 155, 205, 255]);
}

#[test]
fn a_period_shorter_than_the_tolerance_can_be_missed_too() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let start = Instant::now();
    let mut beat = interval_at(start + MS, MS);
    beat.set_missed_tick_behavior(Delay);
    timers.clock().advance(4 * MS + MS / 2).unwrap();
    let probe = Probe::default();
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + MS));
    assert_eq!(beat.next.deadline(), start + 5 * MS + MS / 2);
    pass(&timers, 4 * MS);
    beat.set_missed_tick_behavior(Skip);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 5 * MS + MS / 2));
    assert_eq!(beat.next.deadline(), start + 9 * MS + MS / 2);
}

#[test]
fn a_tick_that_was_dropped_is_there_for_the_next_call() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let start = Instant::now();
    let mut beat = interval(10 * MS);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start));
    let mut tick = beat.tick();
    assert_eq!(probe.poll(&mut tick), Poll::Pending);
    pass(&timers, 10 * MS);
    drop(tick);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 10 * MS));
}

#[test]
fn resets_begin_a_new_plan_also_while_a_tick_is_awaited() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let probe = Probe::default();
    let start = Instant::now();
    let mut beat = interval_at(start + 100 * MS, 10 * MS);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Pending);
    beat.reset();
    assert_eq!(pass(&timers, 10 * MS), 1);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 10 * MS));
    beat.reset_after(25 * MS);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Pending);
    assert_eq!(pass(&timers, 25 * MS), 1);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 35 * MS));
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Pending);
    beat.reset_immediately();
    assert_eq!(timers.turn(), 1);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 35 * MS));
    beat.reset_at(start + 36 * MS);
    pass(&timers, MS);
    assert_eq!(probe.poll(&mut beat.tick()), Poll::Ready(start + 36 * MS));
    assert_eq!(beat.next.deadline(), start + 46 * MS);
}

#[test]
fn a_period_without_end_ticks_once() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    for behavior in [Burst, Delay, Skip] {
        let mut beat = interval(Duration::MAX);
        beat.set_missed_tick_behavior(behavior);
        timers.clock().advance(1000 * MS).unwrap();
        assert!(Probe::default().poll(&mut beat.tick()).is_ready());
        assert_eq!(Probe::default().poll(&mut beat.tick()), Poll::Pending);
        assert!(!timers.auto_advance());
    }
}

#[test]
fn the_note_names_the_call_of_tick() {
    let (timers, _) = paused_timers();
    let _entered = enter(&timers);
    let mut beat = interval_at(Instant::now() + MS, MS);
    let tick_line = line!() + 1;
    let mut tick = beat.tick();
    assert_eq!(Probe::default().poll(&mut tick), Poll::Pending);
    let note = notes().timer.unwrap();
    assert_eq!((note.reason(), note.location().line()), (Reason::Timer(1_000_000), tick_line));
    drop(tick);
    assert!(notes().is_empty());
}
