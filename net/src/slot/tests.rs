use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Wake;

use super::crowd::steps;
use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A task with a waker and the number of its wakes.
struct Task {
    count: Arc<Count>,
    waker: Waker,
}

impl Task {
    fn new() -> Task {
        let count = Arc::<Count>::default();
        Task { waker: Arc::clone(&count).into(), count }
    }

    fn wakes(&self) -> usize {
        self.count.0.load(SeqCst)
    }

    fn poll(&self, slot: &Slot, interest: Interest, key: Option<&mut Key>) -> Poll<Seen> {
        slot.poll_ready(&mut Context::from_waker(&self.waker), interest, key)
    }
}

fn set(slot: &Slot, ready: Ready) {
    let mut woken = Vec::new();
    slot.set(ready, &mut woken);
    woken.into_iter().for_each(Waker::wake);
}

/// Every order of `a` steps of one side and `b` of another; true is a step of the first.
fn orders(a: usize, b: usize) -> Vec<Vec<bool>> {
    (0..1u32 << (a + b))
        .filter(|bits| bits.count_ones() as usize == a)
        .map(|bits| (0..a + b).map(|i| bits >> i & 1 == 1).collect())
        .collect()
}

#[test]
fn a_wait_beside_an_event_ends_or_is_woken_in_every_order() {
    for order in orders(2, 3) {
        let (slot, task, mut key) = (Slot::new(Ready::EMPTY), Task::new(), Key::default());
        let (mut driver, mut waiter) = (0, 0);
        let (mut woken, mut ended) = (Vec::new(), false);
        for &is_driver in &order {
            if is_driver {
                match driver {
                    0 => slot.word.set(Ready::READABLE),
                    _ => slot.lock().take(Word::new(Ready::READABLE).seen(), &mut woken),
                }
                driver += 1;
            } else if !ended {
                match waiter {
                    1 => slot.leave_waker(&task.waker, Interest::READABLE, Some(&mut key)),
                    _ => ended = slot.seen().ends(Interest::READABLE),
                }
                waiter += 1;
            }
        }
        woken.into_iter().for_each(Waker::wake);
        assert!(ended || task.wakes() == 1, "lost in {order:?}");
    }
}

#[test]
fn an_event_between_the_look_and_the_waker_is_seen_by_the_second_look() {
    let (slot, task) = (Slot::new(Ready::EMPTY), Task::new());
    std::thread::scope(|threads| {
        let mut waiters = slot.lock();
        let waiter = threads.spawn(|| task.poll(&slot, Interest::READABLE, Some(&mut Key::default())));
        // Once the waker has been cloned the first look is over, and the waiter wants the lock.
        while Arc::strong_count(&task.count) < 3 {
            std::thread::yield_now();
        }
        let mut woken = Vec::new();
        slot.word.set(Ready::READABLE);
        waiters.take(Word::new(Ready::READABLE).seen(), &mut woken);
        drop(waiters);
        assert!(waiter.join().unwrap().is_ready() && woken.is_empty());
        assert_eq!(slot.waiting(), 0, "the waker is not left behind");
    });
}

#[test]
fn data_beside_an_op_is_found_or_reported_in_every_order() {
    // The slot says readable, wrongly, when the op begins; data arrives at any moment.
    for order in orders(2, 3) {
        let slot = Slot::new(Ready::READABLE);
        let (mut data, mut found) = (false, false);
        let (mut kernel, mut task) = (0, 0);
        let mut seen = slot.seen();
        for &is_kernel in &order {
            if is_kernel {
                match kernel {
                    0 => data = true,
                    _ => set(&slot, Ready::READABLE),
                }
                kernel += 1;
            } else {
                match task {
                    0 => seen = slot.seen(),
                    1 => found = data,
                    _ if !found => slot.clear(seen, Ready::READABLE),
                    _ => {}
                }
                task += 1;
            }
        }
        assert!(found || slot.seen().ends(Interest::READABLE), "lost in {order:?}");
    }
}

#[test]
fn an_event_wakes_all_waiters_of_its_direction_once() {
    let slot = Slot::new(Ready::EMPTY);
    let tasks = [Task::new(), Task::new(), Task::new()];
    let interests = [Interest::READABLE, Interest::READABLE, Interest::WRITABLE];
    let mut keys = [Key::default(), Key::default(), Key::default()];
    for ((task, interest), key) in tasks.iter().zip(interests).zip(&mut keys) {
        assert!(task.poll(&slot, interest, Some(key)).is_pending());
    }
    set(&slot, Ready::READABLE);
    set(&slot, Ready::READABLE);
    assert_eq!(tasks.each_ref().map(Task::wakes), [1, 1, 0]);
    assert_eq!(slot.waiting(), 1);
}

#[test]
fn no_waiter_is_left_behind_by_a_wait_that_is_over_in_every_order() {
    // Waits in a row beside two events; the driver sets the word and takes the wakers, with anything in between.
    for order in orders(4, 4) {
        let (slot, task, mut key) = (Slot::new(Ready::EMPTY), Task::new(), Key::default());
        let (mut driver, mut woken, mut ended) = (0, Vec::new(), 0);
        for &is_driver in &order {
            if is_driver {
                match driver % 2 {
                    0 => slot.word.set(Ready::READABLE),
                    _ => slot.lock().take(Word::new(Ready::READABLE).seen(), &mut woken),
                }
                driver += 1;
            } else if let Poll::Ready(seen) = task.poll(&slot, Interest::READABLE, Some(&mut key)) {
                ended += 1;
                if ended % 2 == 1 {
                    slot.clear(seen, Ready::READABLE);
                }
            }
        }
        slot.forget(&mut key);
        assert_eq!(slot.waiting(), 0, "left behind in {order:?}");
    }
}

#[test]
fn a_forgotten_waiter_is_gone_and_the_others_stay() {
    let slot = Slot::new(Ready::EMPTY);
    let (gone, stays) = (Task::new(), Task::new());
    let (mut gone_key, mut stays_key) = (Key::default(), Key::default());
    assert!(gone.poll(&slot, Interest::READABLE, Some(&mut gone_key)).is_pending());
    assert!(stays.poll(&slot, Interest::READABLE, Some(&mut stays_key)).is_pending());
    slot.forget(&mut gone_key);
    slot.forget(&mut gone_key);
    assert_eq!(slot.waiting(), 1);
    set(&slot, Ready::READABLE);
    assert_eq!((gone.wakes(), stays.wakes()), (0, 1));
    assert_eq!(Arc::strong_count(&gone.count), 2, "its waker has been dropped");
}

#[test]
fn a_waiter_that_is_polled_again_keeps_its_place() {
    let slot = Slot::new(Ready::EMPTY);
    let (first, second, mut key) = (Task::new(), Task::new(), Key::default());
    for _ in 0..3 {
        assert!(first.poll(&slot, Interest::READABLE, Some(&mut key)).is_pending());
    }
    assert_eq!(slot.waiting(), 1);
    assert_eq!(Arc::strong_count(&first.count), 3, "one waker of the task, one of the slot");
    // The future has moved to another task.
    assert!(second.poll(&slot, Interest::READABLE, Some(&mut key)).is_pending());
    assert_eq!(Arc::strong_count(&first.count), 2);
    set(&slot, Ready::READABLE);
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn waiters_are_woken_in_the_order_of_arrival() {
    let slot = Slot::new(Ready::EMPTY);
    let tasks = [(); 4].map(|()| Task::new());
    let mut keys = [(); 4].map(|()| Key::default());
    for at in [0, 1, 2] {
        assert!(tasks[at].poll(&slot, Interest::READABLE, Some(&mut keys[at])).is_pending());
    }
    // The place of the first waiter is free, but the next waiter comes after those that are still here.
    slot.forget(&mut keys[0]);
    for at in [3, 0] {
        assert!(tasks[at].poll(&slot, Interest::READABLE, Some(&mut keys[at])).is_pending());
    }
    slot.forget(&mut keys[2]);
    let mut woken = Vec::new();
    slot.set(Ready::READABLE, &mut woken);
    let order = woken.iter().map(|waker| tasks.iter().position(|task| task.waker.will_wake(waker)));
    assert_eq!(order.collect::<Vec<_>>(), [1, 3, 0].map(Some));
    assert_eq!(slot.waiting(), 0);
}

#[test]
fn of_those_who_poll_the_last_one_is_woken() {
    let slot = Slot::new(Ready::EMPTY);
    let (reader, writer, future) = (Task::new(), Task::new(), Task::new());
    let mut key = Key::default();
    // The first waiter and those of the crowd change places in between.
    for _ in 0..2 {
        let others = [(); 20].map(|()| Task::new());
        for task in others.iter().chain([&reader]) {
            assert!(task.poll(&slot, Interest::READABLE, None).is_pending());
            assert!(task.poll(&slot, Interest::READABLE, None).is_pending());
            assert!(writer.poll(&slot, Interest::WRITABLE, None).is_pending());
            assert!(future.poll(&slot, Interest::READABLE, Some(&mut key)).is_pending());
        }
        assert_eq!(slot.waiting(), 3, "one for each direction, and the future");
        assert!(others.iter().all(|task| Arc::strong_count(&task.count) == 2), "their wakers have been dropped");
        let before = [&reader, &writer, &future].map(Task::wakes);
        set(&slot, Ready::READABLE);
        assert_eq!([&reader, &writer, &future].map(Task::wakes), [before[0] + 1, before[1], before[2] + 1]);
        assert!(others.iter().all(|task| task.wakes() == 0));
        slot.clear(slot.seen(), Ready::READABLE);
    }
    set(&slot, Ready::WRITABLE);
    assert_eq!((writer.wakes(), slot.waiting()), (1, 0));
}

#[test]
fn a_key_whose_waiter_was_taken_out_leads_to_nobody_else() {
    let slot = Slot::new(Ready::EMPTY);
    let (stale, other) = (Task::new(), Task::new());
    let mut keys = [(); 3].map(|()| Key::default());
    for key in &mut keys {
        assert!(stale.poll(&slot, Interest::READABLE, Some(key)).is_pending());
    }
    set(&slot, Ready::READABLE);
    slot.clear(slot.seen(), Ready::READABLE);
    let mut others = [(); 3].map(|()| Key::default());
    for key in &mut others {
        assert!(other.poll(&slot, Interest::WRITABLE, Some(key)).is_pending());
    }
    // One waiter goes, and the others wait again: in places of their own.
    slot.forget(&mut keys[1]);
    for at in [0, 2] {
        assert!(stale.poll(&slot, Interest::READABLE, Some(&mut keys[at])).is_pending());
    }
    assert_eq!(slot.waiting(), 5);
    set(&slot, Ready::WRITABLE);
    assert_eq!((stale.wakes(), other.wakes()), (3, 3));
    set(&slot, Ready::READABLE);
    assert_eq!((stale.wakes(), other.wakes(), slot.waiting()), (5, 3, 0));
}

/// How many waiters are looked at while `count` of them come, get other wakers, are woken, come again, and go, one by
/// one.
fn steps_of_a_crowd(count: usize) -> usize {
    let slot = Slot::new(Ready::EMPTY);
    let tasks = [Task::new(), Task::new()];
    let mut keys: Vec<Key> = (0..count).map(|_| Key::default()).collect();
    steps::of(|| {
        for task in &tasks {
            for key in &mut keys {
                assert!(task.poll(&slot, Interest::READABLE, Some(key)).is_pending());
            }
            set(&slot, Ready::READABLE);
            slot.clear(slot.seen(), Ready::READABLE);
            for task in &tasks {
                for key in &mut keys {
                    assert!(task.poll(&slot, Interest::READABLE, Some(key)).is_pending());
                }
            }
            // Waiters go from the middle, and from the ends.
            let (left, right) = keys.split_at_mut(count / 2);
            for (one, other) in left.iter_mut().zip(right) {
                slot.forget(other);
                slot.forget(one);
            }
            assert_eq!(slot.waiting(), 0);
        }
        assert_eq!(tasks.each_ref().map(Task::wakes), [count; 2]);
    })
}

#[test]
fn a_waiter_costs_no_more_in_a_larger_crowd() {
    let [few, many] = [500, 2_000].map(steps_of_a_crowd);
    assert!(few >= 500 && many <= 5 * few, "{few} steps of 500 waiters, {many} of four times as many");
}

#[test]
fn a_poll_costs_no_more_after_more_polls() {
    let [few, many] = [500, 2_000].map(|count| {
        let (slot, mut key) = (Slot::new(Ready::EMPTY), Key::default());
        // So that the polled waiters are in the crowd.
        assert!(Task::new().poll(&slot, Interest::WRITABLE, Some(&mut key)).is_pending());
        steps::of(|| {
            for _ in 0..count {
                assert!(Task::new().poll(&slot, Interest::READABLE, None).is_pending());
            }
        })
    });
    assert!(few >= 500 && many <= 5 * few, "{few} steps of 500 polls, {many} of four times as many");
}

#[test]
fn an_event_costs_nothing_for_those_it_does_not_wake() {
    let slot = Slot::new(Ready::EMPTY);
    let (readers, writer) = (Task::new(), Task::new());
    let mut keys = [(); 500].map(|()| Key::default());
    for key in &mut keys {
        assert!(readers.poll(&slot, Interest::READABLE, Some(key)).is_pending());
    }
    assert!(writer.poll(&slot, Interest::WRITABLE, Some(&mut Key::default())).is_pending());
    let steps = steps::of(|| set(&slot, Ready::WRITABLE));
    assert!(steps < 10, "{steps} steps");
    assert_eq!((readers.wakes(), writer.wakes()), (0, 1));
}

#[test]
fn readiness_outlives_a_woken_waiter_that_is_dropped() {
    let slot = Slot::new(Ready::EMPTY);
    let (dropped, late, mut key) = (Task::new(), Task::new(), Key::default());
    assert!(dropped.poll(&slot, Interest::READABLE, Some(&mut key)).is_pending());
    set(&slot, Ready::READABLE);
    slot.forget(&mut key);
    assert!(late.poll(&slot, Interest::READABLE, Some(&mut Key::default())).is_ready());
}
