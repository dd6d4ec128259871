//! Who waits for a lull: a moment in which a core's worker has nothing else to do.
//!
//! Filled by [`Idle`](crate::task::Idle), when the worker polls it; emptied by the worker, one at a time, when it has found
//! no task and a poll of its driver has brought none. A worker does not park before that: since only the holder of a
//! core lets somebody wait there, it always knows, and nobody has to ring for this.
//!
//! A place is a number that is never used twice, and is taken once: by the worker, which wakes who waits there, or by the
//! future, which leaves when it is dropped or polled by another worker. Any thread may do the latter.
//!
//! Rejected: all at once (the second one would run while what the first one has spawned is ready). A wake by the driver's
//! timers (costs a turn of the clock, and a deadline says nothing about other tasks).

use std::collections::VecDeque;
use std::task::Waker;

use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, lock};
use crate::unwind::contain;

/// The futures that wait for a lull of one core.
#[derive(Debug, Default)]
pub(crate) struct Lull {
    places: Mutex<Places>,
    /// How many there are, for the worker.
    waiting: AtomicUsize,
}

/// In the order of their numbers, which follow one another: who has left is a gap.
#[derive(Debug, Default)]
struct Places {
    wakers: VecDeque<Option<Waker>>,
    /// The number of the first one.
    first: u64,
    /// Those that are no gaps.
    taken: usize,
}

impl Places {
    fn get(&mut self, place: u64) -> Option<&mut Option<Waker>> {
        let at = usize::try_from(place.checked_sub(self.first)?).ok()?;
        self.wakers.get_mut(at)
    }

    fn take(&mut self, place: u64) -> Option<Waker> {
        let taken = self.get(place)?.take()?;
        self.taken -= 1;
        while let Some(None) = self.wakers.front() {
            self.wakers.pop_front();
            self.first += 1;
        }
        Some(taken)
    }
}

impl Lull {
    /// Whether nobody waits. Exact for the holder of the core as to those who have come, since they come on its thread.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    /// Waits at the end of the line. The holder of the core only.
    pub(crate) fn enter(&self, waker: Waker) -> u64 {
        let mut places = lock(&self.places);
        let place = places.first + places.wakers.len() as u64;
        places.wakers.push_back(Some(waker));
        places.taken += 1;
        self.note(&places);
        place
    }

    /// Goes on waiting, with another waker; gives it back if the worker has taken the place.
    pub(crate) fn stay(&self, place: u64, waker: Waker) -> Result<(), Waker> {
        let mut places = lock(&self.places);
        let Some(Some(kept)) = places.get(place) else { return Err(waker) };
        let displaced = std::mem::replace(kept, waker);
        drop(places);
        drop(displaced);
        Ok(())
    }

    /// Waits no more; says whether it did.
    pub(crate) fn leave(&self, place: u64) -> bool {
        self.take(|_| place).is_some()
    }

    /// The owner is about to block. Who can run elsewhere is woken to take a place there; the others keep theirs.
    pub(crate) fn disperse(&self) {
        if self.is_empty() {
            return;
        }
        let mut places = lock(&self.places);
        let taken = places.wakers.iter_mut().flatten();
        let wakers: Vec<Waker> = taken.map(|waker| std::mem::replace(waker, Waker::noop().clone())).collect();
        drop(places);
        for waker in wakers {
            contain(|| waker.wake());
        }
    }

    /// Wakes who has waited longest.
    pub(crate) fn release(&self) {
        if let Some(first) = self.take(|places| places.first) {
            contain(|| first.wake());
        }
    }

    /// Takes a place, and the waker there, if somebody waits there.
    fn take(&self, place: impl FnOnce(&Places) -> u64) -> Option<Waker> {
        let mut places = lock(&self.places);
        let place = place(&places);
        let taken = places.take(place);
        self.note(&places);
        taken
    }

    fn note(&self, places: &Places) {
        self.waiting.store(places.taken, Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn they_are_released_in_order_and_once() {
        let lull = Lull::default();
        let wakers: [Arc<Count>; 3] = Default::default();
        let places = wakers.clone().map(|waker| lull.enter(waker.into()));
        assert!(lull.leave(places[1]));
        assert!(!lull.leave(places[1]));
        lull.release();
        assert_eq!(wakers.each_ref().map(|count| count.0.load(Relaxed)), [1, 0, 0]);
        assert!(lull.stay(places[0], Waker::noop().clone()).is_err(), "released");
        assert!(lull.stay(places[2], wakers[1].clone().into()).is_ok());
        lull.release();
        assert_eq!(wakers.each_ref().map(|count| count.0.load(Relaxed)), [1, 1, 0]);
        assert!(lull.is_empty());
        lull.release();
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
