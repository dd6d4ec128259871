//! Since when tasks wait for their turn: a sample, as a task has no room for a time.
//!
//! Written by any thread that queues a task, taken by the worker that polls it. A task has one of 4,096 slots, by its
//! id. While the slot belongs to another task, the wake is not in the sample; so long waits are as likely in it as
//! short ones. A time that is still there after some seconds belongs to a task that never ran, and is replaced.
//!
//! Stores race: if two tasks use a slot at the same moment, one of them is not in the sample.
//!
//! Rejected: a time in each task (eight bytes of 88). The last wake takes the slot (long waits are then missed more
//! often than short ones, and long waits are the interesting ones).

use mini_kernel::primitives::atomic::{AtomicU64, Ordering::Relaxed};

use super::event::Number;

const SLOTS: u64 = 4096;

/// The bits of a time, of which one stands for eight ticks, and the lowest is always set. Above is a part of the id.
const TIME: u32 = 40;
const UNIT: u32 = 3;

/// The highest bit, which is another one if the number is that of a future of `block_on`.
const MAIN: u64 = 1 << 63;

/// After so many units a time gives way: 6 s of a counter at 3 GHz.
const STALE: u64 = 1 << 31;

pub(super) struct Waiting(Box<[AtomicU64]>);

impl Waiting {
    pub(super) fn new() -> Self {
        Self((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    /// A task waits for its turn from now on.
    #[inline]
    pub(super) fn note(&self, task: Number, at: u64) {
        let (slot, mark) = self.slot(task);
        let there = slot.load(Relaxed);
        let time = time(at);
        if there == 0 || there & !TIMES == mark || time.wrapping_sub(there) & TIMES > STALE {
            slot.store(mark | time | 1, Relaxed);
        }
    }

    /// The task has its turn: for how many ticks it has waited, if it is in the sample.
    #[inline]
    pub(super) fn take(&self, task: Number, at: u64) -> Option<u64> {
        let (slot, mark) = self.slot(task);
        let there = slot.load(Relaxed);
        if there == 0 || there & !TIMES != mark {
            return None;
        }
        slot.store(0, Relaxed);
        let waited = (time(at) | 1).wrapping_sub(there) & TIMES;
        // A wake on another processor may seem to come a few ticks after the poll.
        Some(if waited > TIMES / 2 { 0 } else { waited << UNIT })
    }

    #[inline]
    fn slot(&self, task: Number) -> (&AtomicU64, u64) {
        // There is no room for the highest bits of a number, of which one says that it is no task's.
        let main = if task.is_main() { MAIN } else { 0 };
        (&self.0[(task.bits() % SLOTS) as usize], (task.bits() / SLOTS) << TIME ^ main)
    }
}

const TIMES: u64 = (1 << TIME) - 1;

#[inline]
fn time(at: u64) -> u64 {
    at >> UNIT & TIMES
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_waits_keeps_its_place_in_the_sample() {
        let waiting = Waiting::new();
        let [one, other] = [7, 7 + SLOTS].map(Number::of);
        waiting.note(one, 1_000);
        waiting.note(other, 1_500);
        assert_eq!(waiting.take(other, 2_000), None);
        assert_eq!(waiting.take(one, 3_000), Some(2_000));
        assert_eq!(waiting.take(one, 3_000), None);
        waiting.note(other, 4_000);
        assert_eq!(waiting.take(other, 3_900), Some(0), "the clocks of two processors");
    }

    #[test]
    fn a_task_and_a_future_of_block_on_with_the_same_number_are_two() {
        let waiting = Waiting::new();
        let [task, main] = [7, mini_context::MAIN | 7].map(Number::of);
        waiting.note(main, 1_000);
        assert_eq!(waiting.take(task, 2_000), None);
        assert_eq!(waiting.take(main, 3_000), Some(2_000));
    }

    #[test]
    fn a_task_that_never_ran_gives_way() {
        let waiting = Waiting::new();
        let [one, other] = [7, 7 + SLOTS].map(Number::of);
        waiting.note(one, 1_000);
        waiting.note(other, 1_000 + (STALE << UNIT) + 16);
        assert_eq!(waiting.take(one, u64::MAX), None);
        assert!(waiting.take(other, 1_000 + (STALE << UNIT) + 1_016).is_some_and(|ticks| ticks.abs_diff(1_000) <= 16));
    }
}
