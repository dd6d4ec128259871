//! A ring of 16-byte events: one thread writes, any thread copies what is there.
//!
//! Written by the owner of a core, or by other threads under a lock; read by [`Handle::trace`](crate::runtime::Handle).
//! The hard part is a reader that copies while the writer goes round. Nobody waits for anybody: the reader copies all
//! slots and then throws away those that the writer may have begun to overwrite.
//!
//! ```text
//!   the writer of event n               the reader
//!   1 head is n                         4 last = head (Acquire)
//!     fence (Release)                     copies events last - capacity .. last
//!   2 stores the words in slot n          fence (Acquire)
//!   3 head = n + 1 (Release)            5 now = head; drops what is older than now - capacity + 1
//! ```
//!
//! An event below `last` is read whole, or its slot has words of an event n = old + capacity or a later one. If the
//! reader has seen such words, the two fences order step 1 of event n before step 5, so `now` is at least n, and the
//! old event is dropped. The event that is being written at step 5 is `now`, hence the 1.
//!
//! Rejected: an even and odd number in each slot (three words for two, and two more stores). Words of an event stored
//! with Release (on ARM two ordered stores instead of one fence).

use mini_kernel::primitives::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};

/// No model's: handed on with the right to write.
type Own = std::sync::atomic::AtomicU64;

/// The two words of an event.
pub(super) type Words = [u64; 2];

pub(super) struct Ring {
    slots: Box<[[AtomicU64; 2]]>,
    /// How many events have ever been written.
    head: AtomicU64,
    /// The same, for the writer alone. In a model, a writer that reads the head before it stores there hides from loom
    /// that its stores race with the loads of a reader.
    own: Own,
}

impl Ring {
    /// A ring for so many events, a power of two.
    pub(super) fn new(events: usize) -> Self {
        assert!(events.is_power_of_two(), "slots are found by a mask");
        let slots = (0..events).map(|_| [0; 2].map(AtomicU64::new)).collect();
        Self { slots, head: AtomicU64::new(0), own: Own::new(0) }
    }

    /// Writes an event over the oldest one. For one thread at a time.
    #[inline]
    pub(super) fn push(&self, words: Words) {
        let head = self.own.load(Relaxed);
        fence(Release); // pairs with the fence in `copy`
        let slot = &self.slots[head as usize & (self.slots.len() - 1)];
        slot[0].store(words[0], Relaxed);
        slot[1].store(words[1], Relaxed);
        self.own.store(head + 1, Relaxed);
        self.head.store(head + 1, Release); // pairs with the first load in `copy`
    }

    /// The events that are there, the oldest first, from any thread.
    pub(super) fn copy(&self) -> Vec<Words> {
        let capacity = self.slots.len() as u64;
        let mut copied = Vec::with_capacity(self.slots.len());
        let last = self.head.load(Acquire);
        let first = last.saturating_sub(capacity);
        for number in first..last {
            let slot = &self.slots[number as usize & (self.slots.len() - 1)];
            copied.push([slot[0].load(Relaxed), slot[1].load(Relaxed)]);
        }
        fence(Acquire); // pairs with the fence in `push`
        let now = self.head.load(Relaxed);
        let whole = (now + 1).saturating_sub(capacity); // the oldest event that no write has touched
        copied.drain(..whole.saturating_sub(first).min(last - first) as usize);
        copied
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn numbers(ring: &Ring) -> Vec<u64> {
        ring.copy().iter().map(|words| words[0]).collect()
    }

    #[test]
    fn it_keeps_the_last_events_in_order() {
        let ring = Ring::new(4);
        assert_eq!(numbers(&ring), [0; 0]);
        for number in 1..=3 {
            ring.push([number, 0]);
        }
        assert_eq!(numbers(&ring), [1, 2, 3]);
        for number in 4..=9 {
            ring.push([number, 0]);
        }
        assert_eq!(numbers(&ring), [7, 8, 9], "one fewer than there is room for: that one may be being written");
    }

    #[test]
    fn no_event_is_torn_while_the_writer_goes_round() {
        let ring = Ring::new(8);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..200_000).for_each(|number| ring.push([number, !number])));
            while !writer.is_finished() {
                let copied = ring.copy();
                assert!(copied.iter().all(|[one, other]| *one == !other), "{copied:?}");
                assert!(copied.is_sorted(), "{copied:?}");
            }
        });
        assert_eq!(numbers(&ring), (199_993..200_000).collect::<Vec<_>>());
    }
}

#[cfg(all(test, loom))]
mod models;
