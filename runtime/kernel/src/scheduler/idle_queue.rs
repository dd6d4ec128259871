//! The futures that wait for a moment in which a core's worker has nothing else to do.
//!
//! Filled by `Idle`, when the worker polls it; emptied by the worker, one future at a time, when the worker has found
//! no task and a poll of its driver has brought none. A worker does not park before that. Futures come only on the
//! thread that holds the core, so the worker always knows of them, and nothing has to unpark it.
//!
//! A place is a number that is never used twice, and is taken once: by the worker, which wakes the future that waits
//! there, or by the future, which leaves when it is dropped or polled by another worker. A future may leave on any
//! thread.
//!
//! Rejected: waking all at once (the second future would run while tasks that the first has spawned are ready). A wake
//! by the driver's timers (costs a turn of the clock, and a deadline says nothing about other tasks). A tree by number
//! (7 kB more in every program). A linked list of slots (its memory stays that of the largest crowd as long as one
//! future waits). Gaps in place of those that have left (twenty lines; to leave from the middle moves half of the line
//! now, 24 bytes for each future).

use std::collections::VecDeque;
use std::task::Waker;

use mini_context::contain;

use crate::primitives::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::primitives::{Mutex, lock};

/// The futures of `task::idle` that wait on one core.
#[derive(Debug, Default)]
pub struct IdleQueue {
    places: Mutex<Places>,
    /// How many futures wait, for the worker.
    waiting: AtomicUsize,
}

/// So much room for places is kept, however few futures wait.
const KEPT: usize = 64;

/// The places in the order of their numbers.
#[derive(Debug, Default)]
struct Places {
    line: VecDeque<(u64, Waker)>,
    /// The number of the next place.
    next: u64,
}

impl Places {
    fn add(&mut self, waker: Waker) -> u64 {
        let place = self.next;
        self.line.push_back((place, waker));
        self.next += 1;
        place
    }

    /// The first place.
    fn first(&self) -> Option<u64> {
        self.line.front().map(|(place, _)| *place)
    }

    fn find(&self, place: u64) -> Option<usize> {
        self.line.binary_search_by_key(&place, |(place, _)| *place).ok()
    }

    fn take(&mut self, place: u64) -> Option<Waker> {
        let (_, taken) = self.line.remove(self.find(place)?)?;
        if self.line.capacity() > 4 * self.line.len() + KEPT {
            self.line.shrink_to(2 * self.line.len());
        }
        Some(taken)
    }
}

impl IdleQueue {
    /// Returns `true` if no future waits. The holder of the core knows of all futures, since they are added on its
    /// thread.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    /// Takes a place at the end of the line. Only for the holder of the core.
    pub fn enter(&self, waker: Waker) -> u64 {
        let mut places = lock(&self.places);
        let place = places.add(waker);
        self.note(&places);
        place
    }

    /// Keeps the place, with another waker; gives the waker back if the worker has taken the place.
    pub fn stay(&self, place: u64, waker: Waker) -> Result<(), Waker> {
        let mut places = lock(&self.places);
        let Some(at) = places.find(place) else { return Err(waker) };
        let displaced = std::mem::replace(&mut places.line[at].1, waker);
        drop(places);
        drop(displaced);
        Ok(())
    }

    /// Gives the place up; says whether the future still waited there.
    pub fn leave(&self, place: u64) -> bool {
        self.take(|_| Some(place)).is_some()
    }

    /// The owner is about to block. A future that can run elsewhere is woken and takes a place there; the others keep
    /// theirs.
    pub(crate) fn disperse(&self) {
        if self.is_empty() {
            return;
        }
        let mut places = lock(&self.places);
        let kept = places.line.iter_mut().map(|(_, waker)| waker);
        let wakers: Vec<Waker> = kept.map(|waker| std::mem::replace(waker, Waker::noop().clone())).collect();
        drop(places);
        for waker in wakers {
            contain(|| waker.wake());
        }
    }

    /// Wakes the future that has waited longest; says whether there was one.
    pub(crate) fn release(&self) -> bool {
        let first = self.take(Places::first);
        let is_one = first.is_some();
        if let Some(first) = first {
            contain(|| first.wake());
        }
        is_one
    }

    /// Takes a place out, and returns its waker, if a future waits there.
    fn take(&self, place: impl FnOnce(&Places) -> Option<u64>) -> Option<Waker> {
        let mut places = lock(&self.places);
        let place = place(&places)?;
        let taken = places.take(place);
        self.note(&places);
        taken
    }

    fn note(&self, places: &Places) {
        self.waiting.store(places.line.len(), Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn they_are_released_in_order_and_once() {
        let idle_queue = IdleQueue::default();
        let wakers: [Arc<Count>; 3] = Default::default();
        let places = wakers.clone().map(|waker| idle_queue.enter(waker.into()));
        assert!(idle_queue.leave(places[1]));
        assert!(!idle_queue.leave(places[1]));
        idle_queue.release();
        assert_eq!(wakers.each_ref().map(|count| count.0.load(Relaxed)), [1, 0, 0]);
        assert!(idle_queue.stay(places[0], Waker::noop().clone()).is_err(), "released");
        assert!(idle_queue.stay(places[2], wakers[1].clone().into()).is_ok());
        idle_queue.release();
        assert_eq!(wakers.each_ref().map(|count| count.0.load(Relaxed)), [1, 1, 0]);
        assert!(idle_queue.is_empty());
        idle_queue.release();
    }

    #[test]
    fn those_who_leave_take_their_memory_along() {
        let idle_queue = IdleQueue::default();
        let front = idle_queue.enter(Waker::noop().clone());
        // One at a time, and a crowd, whose last one leaves last or first.
        for _ in 0..1000 {
            let place = idle_queue.enter(Waker::noop().clone());
            assert!(idle_queue.leave(place));
            assert!(room(&idle_queue) <= 2 * KEPT);
        }
        for is_last_first in [false, true] {
            let mut crowd: Vec<u64> = (0..1000).map(|_| idle_queue.enter(Waker::noop().clone())).collect();
            if is_last_first {
                crowd.reverse();
            }
            let last = crowd.pop().unwrap();
            assert!(crowd.into_iter().all(|place| idle_queue.leave(place)));
            assert!(room(&idle_queue) <= 2 * KEPT);
            assert!(idle_queue.stay(last, Waker::noop().clone()).is_ok());
            assert!(idle_queue.leave(last));
        }
        assert!(idle_queue.stay(front, Waker::noop().clone()).is_ok(), "the others keep their places");
        assert!(idle_queue.leave(front));
        assert!(idle_queue.is_empty());
    }

    fn room(idle_queue: &IdleQueue) -> usize {
        lock(&idle_queue.places).line.capacity()
    }

    #[test]
    fn those_who_stay_keep_their_order() {
        let idle_queue = IdleQueue::default();
        let wakers: Vec<Arc<Count>> = (0..300).map(|_| Arc::default()).collect();
        let places: Vec<u64> = wakers.iter().map(|waker| idle_queue.enter(waker.clone().into())).collect();
        for (at, place) in places.iter().enumerate() {
            assert!(at % 7 == 0 || idle_queue.leave(*place));
        }
        for at in (0..300).step_by(7) {
            idle_queue.release();
            let wakes = wakers.iter().map(|count| count.0.load(Relaxed));
            assert_eq!((wakes.sum::<usize>(), wakers[at].0.load(Relaxed)), (at / 7 + 1, 1));
        }
        assert!(idle_queue.is_empty());
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
