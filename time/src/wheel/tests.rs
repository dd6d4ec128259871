//! The wheel, by hand at its borders and at random against a sorted map.

mod oracle;

use std::task::Waker;

use mini_context::rules::{CHECK_TIME, FEW_TIMERS, LEAST_CROWD, WAKE_COST};

use super::{ListId, NEVER, Wheel};
use crate::probe::Probe;

const TICK: u64 = 1 << 16;
/// A slot of the first upper ring, and of the second; the ring below reaches twice as far.
const NEAR: u64 = TICK << 10;
const FAR: u64 = NEAR << 10;

fn waker() -> Waker {
    Waker::noop().clone()
}

/// The number of timers that fire at `now`.
fn fire(wheel: &mut Wheel, now: u64) -> usize {
    let mut out = Vec::new();
    assert!(!wheel.expire(now, usize::MAX, &mut out));
    out.len()
}

#[test]
fn fires_at_the_nanosecond_and_not_before() {
    let borders = [TICK, 2 * NEAR, 2 * FAR, FAR << 11, FAR << 21].map(|border| [border - 1, border, border + 12345]);
    for deadline in [1].into_iter().chain(borders.into_iter().flatten()) {
        let mut wheel = Wheel::new();
        wheel.insert(deadline, waker());
        assert_eq!(fire(&mut wheel, deadline - 1), 0, "{deadline}");
        assert_eq!(wheel.next_deadline(), Some(deadline));
        assert_eq!(fire(&mut wheel, deadline), 1, "{deadline}");
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn timers_of_one_tick_keep_their_own_deadlines() {
    let mut wheel = Wheel::new();
    for deadline in [9, 5, 7, 5] {
        wheel.insert(10 * TICK + deadline, waker());
    }
    assert_eq!(wheel.next_deadline(), Some(10 * TICK + 5));
    assert_eq!(fire(&mut wheel, 10 * TICK + 6), 2);
    assert_eq!(wheel.next_deadline(), Some(10 * TICK + 7));
    assert_eq!(fire(&mut wheel, 10 * TICK + 7), 1);
    assert_eq!(wheel.next_deadline(), Some(10 * TICK + 9));
    assert_eq!(fire(&mut wheel, 11 * TICK), 1);
}

#[test]
fn a_deadline_in_the_past_fires_at_the_next_expire() {
    let mut wheel = Wheel::new();
    wheel.insert(NEAR, waker());
    assert_eq!(fire(&mut wheel, NEAR - 1), 0);
    wheel.insert(0, waker());
    wheel.insert(7, waker());
    assert_eq!(wheel.next_deadline(), Some(0));
    assert_eq!(fire(&mut wheel, NEAR - 1), 2);
    assert_eq!(wheel.next_deadline(), Some(NEAR));
}

#[test]
fn removing_the_first_uncovers_the_second() {
    let mut wheel = Wheel::new();
    let first = wheel.insert(10 * TICK, waker());
    let twin = wheel.insert(10 * TICK, waker());
    wheel.insert(70 * TICK, waker());
    assert!(wheel.remove(first).is_some());
    assert_eq!(wheel.next_deadline(), Some(10 * TICK));
    assert!(wheel.remove(twin).is_some());
    assert_eq!(wheel.next_deadline(), Some(70 * TICK));
}

#[test]
fn a_stale_key_is_refused_even_if_its_entry_is_used_again() {
    let mut wheel = Wheel::new();
    let removed = wheel.insert(5, waker());
    assert!(wheel.remove(removed).is_some());
    let fired = wheel.insert(5, waker());
    assert_eq!(fire(&mut wheel, 5), 1);
    let live = wheel.insert(50, waker());
    for stale in [removed, fired] {
        assert!(wheel.remove(stale).is_none());
        assert!(!wheel.reset(stale, 1));
        assert!(wheel.pending_mut(stale).is_none());
    }
    assert_eq!(wheel.next_deadline(), Some(50));
    assert!(wheel.remove(live).is_some());
}

#[test]
fn the_memory_of_a_crowd_is_given_back_and_its_keys_stay_stale() {
    let mut wheel = Wheel::new();
    let crowd = |wheel: &mut Wheel| (0..10_000).map(|_| wheel.insert(5, waker())).collect::<Vec<_>>();
    let stale = crowd(&mut wheel);
    wheel.give_back();
    assert!(wheel.slab.room() >= 10_000, "they are in use");
    assert!(stale.iter().all(|&key| wheel.remove(key).is_some()));
    wheel.give_back();
    assert_eq!(wheel.slab.room(), 0);
    let live = crowd(&mut wheel);
    assert!(stale.iter().all(|&key| wheel.remove(key).is_none()));
    assert!(live.iter().all(|&key| wheel.remove(key).is_some()));
}

#[test]
fn a_wheel_of_never_has_no_next_deadline() {
    let mut wheel = Wheel::new();
    let key = wheel.insert(NEVER, waker());
    let moved = wheel.insert(5, waker());
    assert!(wheel.reset(moved, NEVER));
    assert_eq!(wheel.next_deadline(), None);
    assert_eq!(fire(&mut wheel, u64::MAX), 0);
    assert_eq!(wheel.next_deadline(), None);
    assert!(wheel.remove(key).is_some());
    assert!(wheel.reset(moved, 9));
    assert_eq!(fire(&mut wheel, u64::MAX), 1);
}

#[test]
fn moving_later_leaves_the_entry_in_its_slot() {
    for deadline in [3 * TICK, 3 * NEAR, 3 * FAR] {
        let mut wheel = Wheel::new();
        let key = wheel.insert(deadline, waker());
        let place = place_of(&wheel, key);
        assert!(wheel.reset(key, 5 * FAR + 1));
        assert_eq!(place_of(&wheel, key), place);
        assert_eq!(fire(&mut wheel, 5 * FAR), 0);
        assert_eq!(wheel.next_deadline(), Some(5 * FAR + 1));
        assert_eq!(fire(&mut wheel, 5 * FAR + 1), 1);
    }
}

#[test]
fn moving_earlier_is_seen_at_once() {
    for deadline in [3 * TICK, 3 * NEAR, 3 * FAR, NEVER] {
        let mut wheel = Wheel::new();
        let key = wheel.insert(deadline, waker());
        assert!(wheel.reset(key, 7));
        assert_eq!(wheel.next_deadline(), Some(7));
        assert_eq!(fire(&mut wheel, 7), 1);
    }
}

#[test]
fn the_limit_ends_an_expire_and_says_whether_there_is_more() {
    let mut wheel = Wheel::new();
    let keys: Vec<_> = (0..5).map(|i| wheel.insert(i * TICK, waker())).collect();
    let mut out = Vec::new();
    assert!(wheel.expire(NEAR, 2, &mut out));
    assert_eq!((out.len(), wheel.len()), (2, 3));
    // One that is found due and not handed out can still be removed or moved.
    assert!(wheel.remove(keys[2]).is_some());
    assert!(wheel.reset(keys[3], NEAR + 1));
    assert!(!wheel.expire(NEAR, 2, &mut out));
    assert_eq!((out.len(), wheel.len()), (3, 1));
    assert_eq!(wheel.next_deadline(), Some(NEAR + 1));
}

#[test]
fn the_due_list_takes_back_an_entry_that_is_moved() {
    let mut wheel = Wheel::new();
    let first = wheel.insert(1, waker());
    wheel.insert(2, waker());
    assert!(wheel.find_due(5, &mut 1));
    assert_eq!(place_of(&wheel, first), ListId::Due);
    assert!(wheel.reset(first, 9));
    assert_eq!(wheel.next_deadline(), Some(2));
    assert_eq!(fire(&mut wheel, 8), 1);
    assert_eq!(fire(&mut wheel, 9), 1);
}

/// The bound that one slot keeps of a deadline is not taken for that of an entry in another slot.
#[test]
fn the_first_deadline_is_that_of_an_entry() {
    const SECOND: u64 = 1_000_000_000;
    let mut wheel = Wheel::new();
    let early = wheel.insert(220 * SECOND, waker());
    assert_eq!(fire(&mut wheel, 100 * SECOND), 0);
    let late = wheel.insert(220 * SECOND, waker());
    for key in [early, late] {
        assert!(wheel.reset(key, 230 * SECOND));
    }
    assert_eq!(wheel.first_deadline(), Some(230 * SECOND));
}

#[test]
fn an_empty_wheel_catches_up_with_the_time() {
    let mut wheel = Wheel::new();
    wheel.catch_up(1000 * FAR);
    let key = wheel.insert(1000 * FAR + 5 * TICK, waker());
    assert!(matches!(place_of(&wheel, key), ListId::Near(_)));
    assert_eq!(wheel.next_deadline(), Some(1000 * FAR + 5 * TICK));
}

#[test]
fn a_wheel_that_waits_for_something_far_keeps_up_with_the_time() {
    let mut wheel = Wheel::new();
    wheel.insert(100 * FAR, waker());
    assert_eq!(fire(&mut wheel, 10 * FAR), 0);
    let key = wheel.insert(10 * FAR + 5 * TICK, waker());
    assert!(matches!(place_of(&wheel, key), ListId::Near(_)));
}

#[test]
fn drain_hands_out_every_waker_once_and_the_wheel_goes_on() {
    let probe = Probe::default();
    let mut wheel = Wheel::new();
    let keys: Vec<_> = [1, NEAR, 2 * NEAR, FAR, 2 * FAR, NEVER].map(|d| wheel.insert(d, probe.waker())).into();
    assert!(wheel.find_due(1, &mut 1));
    let mut out = Vec::new();
    wheel.drain(&mut out);
    assert_eq!((out.len(), wheel.len(), wheel.next_deadline()), (6, 0, None));
    assert!(keys.iter().all(|&key| wheel.remove(key).is_none()));
    wheel.insert(NEAR, waker());
    assert_eq!(fire(&mut wheel, 3 * FAR), 1);
    drop(out);
    assert_eq!(probe.wakers(), 0);
}

#[test]
fn slots_are_reused_for_ever() {
    let mut wheel = Wheel::new();
    for now in (0..).map(|i| i * 3 * NEAR / 7).take(20_000) {
        wheel.insert(now + NEAR / 2, waker());
        fire(&mut wheel, now);
        assert!(wheel.len() <= 3);
    }
}

fn place_of(wheel: &Wheel, key: super::Key) -> ListId {
    wheel.slab.place(wheel.slab.find(key).unwrap())
}

#[test]
fn a_timer_behind_the_cursor_is_due() {
    let mut wheel = Wheel::new();
    wheel.catch_up(10_000_000_000);
    wheel.insert(3_000_000_000, Waker::noop().clone());
    assert_eq!(wheel.next_deadline(), Some(3_000_000_000));
    let mut woken = Vec::new();
    assert!(!wheel.expire(2_999_999_999, 8, &mut woken));
    assert_eq!(woken.len(), 0);
    assert!(!wheel.expire(3_000_000_000, 8, &mut woken));
    assert_eq!((woken.len(), wheel.len()), (1, 0));
}

#[test]
fn a_few_timers_and_equal_ones_are_waited_for_exactly() {
    let mut wheel = Wheel::new();
    wheel.insert(NEVER, waker());
    for _ in 0..100 {
        wheel.insert(5 * TICK + 7, waker());
    }
    wheel.insert(5 * TICK + 8, waker());
    for tick in 6..30 {
        wheel.insert(tick * TICK, waker());
    }
    assert_eq!(wheel.next_deadline(), Some(5 * TICK + 7));
    assert_eq!(wheel.wait_until(5 * TICK + 7), 5 * TICK + 7);
}

/// Until when a wheel waits that has a first deadline and `count` more, each `gap` after the one before.
fn wait_for(count: u64, gap: u64) -> u64 {
    let mut wheel = Wheel::new();
    for nth in 0..=count {
        wheel.insert(FIRST + nth * gap, waker());
    }
    assert_eq!(wheel.next_deadline(), Some(FIRST));
    wheel.wait_until(FIRST)
}

const FIRST: u64 = 5 * TICK + 9;

#[test]
fn a_crowd_is_waited_for_as_a_whole_for_as_long_as_it_lasts() {
    assert_eq!(wait_for(1_000, 5_000), FIRST + CHECK_TIME);
    assert_eq!(wait_for(100, WAKE_COST), FIRST + CHECK_TIME);
    assert_eq!(wait_for(100, WAKE_COST + 1), FIRST);
    assert_eq!(wait_for(40, 5_000), FIRST + 200_000);
}

#[test]
fn a_few_deadlines_are_no_crowd_however_close() {
    let few = LEAST_CROWD as u64 - 1;
    assert_eq!(wait_for(few, 20_000), FIRST);
    assert_eq!(wait_for(few + 1, 20_000), FIRST + (few + 1) * 20_000);
}

#[test]
fn groups_of_nearly_equal_deadlines_are_no_crowd() {
    let ascending = |nth: u64| nth / 30 * 2 * WAKE_COST + nth % 30;
    let descending = |nth: u64| nth / 30 * 2 * WAKE_COST + 29 - nth % 30;
    let groups: [&dyn Fn(u64) -> u64; 2] = [&ascending, &descending];
    for deadline in groups {
        let mut wheel = Wheel::new();
        for nth in 0..300 {
            wheel.insert(FIRST + deadline(nth), waker());
        }
        assert_eq!(wheel.wait_until(FIRST), FIRST);
    }
}

#[test]
fn a_crowd_in_the_far_ring_does_not_delay_its_first() {
    let mut wheel = Wheel::new();
    for nth in 0..100 {
        wheel.insert(3 * NEAR + nth, waker());
    }
    assert_eq!(wheel.wait_until(3 * NEAR), 3 * NEAR);
}

/// The places of all entries.
fn places(wheel: &Wheel, count: usize) -> Vec<ListId> {
    (0..count as u32).map(|index| wheel.slab.place(index)).collect()
}

/// The first timer comes alone, so that a wheel which refiles what is due at the same place has something to fire.
#[test]
fn a_pass_touches_no_more_timers_than_its_limit() {
    const COUNT: usize = 3000;
    for deadline in [3 * NEAR, 3 * FAR, (3 * FAR) << 10, (3 * FAR) << 20] {
        let mut wheel = Wheel::new();
        for nth in 0..COUNT as u64 {
            wheel.insert(deadline + nth * TICK / 16, waker());
        }
        let mut out = Vec::new();
        for now in [deadline - 1, deadline + COUNT as u64 * TICK] {
            let mut has_more = true;
            while has_more {
                let (before, fired) = (places(&wheel, COUNT), out.len());
                has_more = wheel.expire(now, 64, &mut out);
                let after = places(&wheel, COUNT);
                // A search of a near slot, which comes before its timers fire, is not counted.
                let is_refiled =
                    |(before, after): &(&ListId, &ListId)| before != after && matches!(before, ListId::Upper(..));
                let refiled = before.iter().zip(&after).filter(is_refiled).count();
                assert!(refiled + out.len() - fired <= 64, "{refiled} refiled and {} fired", out.len() - fired);
            }
            assert_eq!(out.len(), if now < deadline { 0 } else { COUNT });
        }
    }
}

#[test]
fn many_timers_are_refiled_before_the_first_is_due_and_few_are_not() {
    for deadline in [3 * NEAR + 7, 3 * FAR + 7, (3 * FAR) << 10] {
        let mut wheel = Wheel::new();
        for _ in 0..FEW_TIMERS {
            wheel.insert(deadline, waker());
        }
        assert_eq!(wheel.next_deadline(), Some(deadline));
        let last = wheel.insert(deadline, waker());
        while let Some(now) = wheel.next_deadline().filter(|&now| now < deadline) {
            assert!(now <= deadline - NEAR, "an upper slot before it is due");
            assert_eq!(fire(&mut wheel, now), 0);
            assert!(wheel.next_deadline().is_some_and(|next| next > now), "no progress");
        }
        assert!(matches!(place_of(&wheel, last), ListId::Near(_)));
        assert_eq!(fire(&mut wheel, deadline), FEW_TIMERS + 1);
    }
}

#[test]
fn a_timer_that_is_due_does_not_wait_for_those_that_are_refiled_ahead_of_time() {
    let mut wheel = Wheel::new();
    for _ in 0..10 * FEW_TIMERS {
        wheel.insert(3 * FAR, waker());
    }
    let now = wheel.next_deadline().unwrap();
    wheel.insert(now, waker());
    let mut out = Vec::new();
    assert!(wheel.expire(now, 64, &mut out));
    assert_eq!(out.len(), 1);
    assert!(wheel.bound() <= now, "the rest is left to the next pass");
}
