//! The run queue of one worker: a bounded ring that its owner fills and other workers may take half of, and a slot in
//! front of it for a task that was woken while no other waited.
//!
//! The owner calls [`push`](LocalQueue::push) and [`pop`](LocalQueue::pop); thieves call
//! [`steal_into`](LocalQueue::steal_into). The caller sends what does not fit to the injector.
//!
//! `head` and `tail` only grow (modulo 2^32). Slots in `head..tail` are full. The owner alone writes slots and `tail`;
//! `head` moves by compare-exchange, and the thread that moves it from `h` to `h + n` owns the `n` entries read before.
//! If slots are reused while a thief reads them, its exchange fails, since `head` had to pass them; the thief would be
//! fooled only if exactly 2^32 entries passed in between.
//!
//! Source: the idea of stealing half from a bounded ring is that of the Go scheduler (`runtime/proc.go`, `runqgrab`).
//!
//! Rejected: Chase and Lev's deque (the owner takes the newest entry; a server wants the oldest). A second head that
//! marks a steal in progress (saves the thief's copying after a lost race, costs the owner a wider exchange per pop).

use std::ptr::{self, NonNull};

use mini_context::rules::LOCAL_QUEUE as CAPACITY;

use crate::primitives::atomic::{
    AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// An entry, as `Queued::into_raw` makes it.
type Raw = NonNull<()>;

/// A ring of entries; one owner, many thieves.
#[derive(Debug)]
pub(crate) struct LocalQueue {
    head: AtomicU32,
    tail: AtomicU32,
    slots: Box<[AtomicPtr<()>]>,
}

impl LocalQueue {
    pub(crate) fn new() -> Self {
        Self::with_slots(CAPACITY)
    }

    /// A queue with capacity 0, for a core whose tasks are all owned.
    pub(crate) fn without_room() -> Self {
        Self::with_slots(0)
    }

    fn with_slots(count: u32) -> Self {
        let slots = (0..count).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { head: AtomicU32::new(0), tail: AtomicU32::new(0), slots }
    }

    /// [`CAPACITY`] or 0.
    fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    fn slot(&self, at: u32) -> &AtomicPtr<()> {
        &self.slots[(at % CAPACITY) as usize]
    }

    /// Entries in the ring, as of some moment during the call.
    pub(crate) fn len(&self) -> u32 {
        let head = self.head.load(Acquire);
        // The owner may have pushed, or a thief taken, between the two loads.
        self.tail.load(Acquire).wrapping_sub(head).min(CAPACITY)
    }

    /// Adds an entry at the back. Owner only.
    ///
    /// # Errors
    ///
    /// Gives the entry back if the ring is full.
    pub(crate) fn push(&self, entry: Raw) -> Result<(), Raw> {
        let tail = self.tail.load(Relaxed);
        // Acquire: pairs with the AcqRel of the thief that emptied the slot.
        if tail.wrapping_sub(self.head.load(Acquire)) >= self.capacity() {
            return Err(entry);
        }
        self.slot(tail).store(entry.as_ptr(), Relaxed);
        // Release: pairs with the Acquire in `steal_into`, which reads the slot.
        self.tail.store(tail.wrapping_add(1), Release);
        Ok(())
    }

    /// Takes the oldest entry. Owner only.
    pub(crate) fn pop(&self) -> Option<Raw> {
        let tail = self.tail.load(Relaxed);
        let mut head = self.head.load(Acquire);
        while head != tail {
            let entry = self.slot(head).load(Relaxed);
            match self.head.compare_exchange_weak(head, head.wrapping_add(1), AcqRel, Acquire) {
                Ok(_) => return NonNull::new(entry),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Moves the older half of this ring's entries to the back of `thief`, which the caller owns; returns how many.
    ///
    /// Takes a single entry too, and at most `most` entries. Gives up if another thief, or the owner, is faster.
    pub(crate) fn steal_into(&self, thief: &LocalQueue, most: u32) -> u32 {
        let head = self.head.load(Acquire);
        let available = self.tail.load(Acquire).wrapping_sub(head);
        let to = thief.tail.load(Relaxed);
        let room = thief.capacity() - to.wrapping_sub(thief.head.load(Acquire));
        // A head read long before the tail can make the difference absurd; the exchange would fail.
        let take = available.div_ceil(2).min(room).min(most);
        if available > CAPACITY || take == 0 {
            return 0;
        }
        for i in 0..take {
            let entry = self.slot(head.wrapping_add(i)).load(Relaxed);
            thief.slot(to.wrapping_add(i)).store(entry, Relaxed);
        }
        match self.head.compare_exchange(head, head.wrapping_add(take), AcqRel, Relaxed) {
            Ok(_) => {
                // Release: pairs with the Acquire of a worker that steals from `thief`.
                thief.tail.store(to.wrapping_add(take), Release);
                take
            }
            Err(_) => 0,
        }
    }
}

/// The slot for a task that was woken by another while nothing else waited: it is polled next, and costs less than a
/// place in the ring.
#[derive(Debug)]
pub(crate) struct Next(AtomicPtr<()>);

impl Next {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts an entry into the slot, which is empty. Only the owner fills the slot, so it stays empty until then.
    #[inline]
    pub(crate) fn put(&self, entry: Raw) {
        debug_assert!(self.is_empty(), "an entry would be lost");
        // Release: hands the entry to the thread that takes it.
        self.0.store(entry.as_ptr(), Release);
    }

    /// Takes the entry. Any thread.
    #[inline]
    pub(crate) fn take(&self) -> Option<Raw> {
        if self.is_empty() {
            return None;
        }
        NonNull::new(self.0.swap(ptr::null_mut(), AcqRel))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Relaxed).is_null()
    }
}

#[cfg(all(test, not(shuttle)))]
fn entry(number: usize) -> Raw {
    NonNull::new(ptr::without_provenance_mut(number)).expect("numbers from 1")
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use mini_context::rules::STEAL_BATCH;

    fn drain(ring: &LocalQueue) -> Vec<usize> {
        std::iter::from_fn(|| ring.pop()).map(|entry| entry.addr().get()).collect()
    }

    #[test]
    fn entries_come_out_in_order_and_a_full_ring_gives_back() {
        let ring = LocalQueue::new();
        for round in 0..5 {
            for i in 1..=CAPACITY as usize {
                ring.push(entry(i)).unwrap();
            }
            assert_eq!(ring.len(), CAPACITY);
            assert_eq!(ring.push(entry(999)), Err(entry(999)), "round {round}");
            assert_eq!(drain(&ring), (1..=CAPACITY as usize).collect::<Vec<_>>());
        }
        assert_eq!(ring.pop(), None);
    }

    #[test]
    fn a_thief_takes_the_older_half() {
        let (ring, thief) = (LocalQueue::new(), LocalQueue::new());
        for i in 1..=5 {
            ring.push(entry(i)).unwrap();
        }
        assert_eq!(ring.steal_into(&thief, STEAL_BATCH), 3);
        assert_eq!(drain(&thief), [1, 2, 3]);
        assert_eq!(drain(&ring), [4, 5]);
        assert_eq!(ring.steal_into(&thief, STEAL_BATCH), 0);
    }

    #[test]
    fn a_thief_takes_little_from_a_crowd() {
        let (ring, thief) = (LocalQueue::new(), LocalQueue::new());
        for i in 1..=CAPACITY as usize {
            ring.push(entry(i)).unwrap();
        }
        assert_eq!(ring.steal_into(&thief, STEAL_BATCH), STEAL_BATCH);
        assert_eq!(drain(&thief), (1..=STEAL_BATCH as usize).collect::<Vec<_>>());
        assert_eq!(ring.len(), CAPACITY - STEAL_BATCH);
    }

    #[test]
    fn a_thief_takes_no_more_than_it_has_room_for() {
        let (ring, thief) = (LocalQueue::new(), LocalQueue::new());
        for i in 1..=CAPACITY as usize {
            ring.push(entry(i)).unwrap();
        }
        for i in 0..CAPACITY as usize - 2 {
            thief.push(entry(1000 + i)).unwrap();
        }
        assert_eq!(ring.steal_into(&thief, STEAL_BATCH), 2);
        assert_eq!(ring.len(), CAPACITY - 2);
    }

    #[test]
    fn the_slot_gives_its_entry_once() {
        let slot = Next::new();
        for number in 1..=3 {
            assert_eq!(slot.take(), None);
            slot.put(entry(number));
            assert!(!slot.is_empty());
            assert_eq!(slot.take(), Some(entry(number)));
            assert!(slot.is_empty());
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{sync::Arc, thread};
    use mini_context::rules::STEAL_BATCH;

    /// Every entry comes out exactly once, at the owner or at one of two thieves.
    ///
    /// Fails when `pop` stores the head instead of exchanging it, or when `tail` is stored before the slot.
    #[test]
    fn no_entry_is_lost_or_doubled() {
        loom::model(|| {
            let ring = Arc::new(LocalQueue::new());
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    let ring = ring.clone();
                    thread::spawn(move || {
                        let own = LocalQueue::new();
                        ring.steal_into(&own, STEAL_BATCH);
                        drain(&own)
                    })
                })
                .collect();
            let mut seen = Vec::new();
            for i in 1..=3 {
                ring.push(entry(i)).unwrap();
                if i == 2 {
                    seen.extend(ring.pop());
                }
            }
            seen.extend(drain(&ring));
            for thief in thieves {
                seen.extend(thief.join().unwrap());
            }
            seen.sort();
            assert_eq!(seen, [entry(1), entry(2), entry(3)]);
        });
    }

    /// The ring is reused while a thief copies: it must notice.
    ///
    /// Planted: `steal_into` that stores the head instead of exchanging it.
    #[test]
    fn a_slow_thief_is_not_fooled_by_reused_slots() {
        loom::model(|| {
            let ring = Arc::new(LocalQueue::new());
            for i in 1..=4 {
                ring.push(entry(i)).unwrap();
            }
            let other = ring.clone();
            let thief = thread::spawn(move || {
                let own = LocalQueue::new();
                other.steal_into(&own, STEAL_BATCH);
                drain(&own)
            });
            let mut seen = Vec::new();
            for i in 5..=6 {
                seen.extend(ring.pop());
                ring.push(entry(i)).unwrap();
            }
            seen.extend(drain(&ring));
            seen.extend(thief.join().unwrap());
            seen.sort();
            assert_eq!(seen, (1..=6).map(entry).collect::<Vec<_>>());
        });
    }

    /// A woken task is taken from the slot by its owner or by the thief of a stalled worker.
    ///
    /// The owner does not fill the slot a second time, as loom then loses the second entry: it orders the thief's
    /// exchange of null for null after the plain store that has replaced that null, so the exchange removes an entry
    /// that it has not read.
    ///
    /// Planted: `take` that looks and then stores.
    #[test]
    fn the_slot_hands_its_entry_to_one_side() {
        loom::model(|| {
            let slot = Arc::new(Next::new());
            let other = slot.clone();
            let thief = thread::spawn(move || other.take());
            slot.put(entry(1));
            let own = slot.take();
            let stolen = thief.join().unwrap();
            assert_eq!(own.or(stolen), Some(entry(1)));
            assert!(own.is_none() || stolen.is_none());
        });
    }

    fn drain(ring: &LocalQueue) -> Vec<Raw> {
        std::iter::from_fn(|| ring.pop()).collect()
    }
}
