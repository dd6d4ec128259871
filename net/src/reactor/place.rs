//! `Place`: the memory of a slot, and who of its successive tenants has it.
//!
//! Places come in chunks, which are counted: a `table` has those that it gave out, and every `registration` the one that its
//! place is in. So a slot stays where it is when its socket moves to another reactor, and outlives the first one. No place
//! goes back to the system before all of its chunk do; a reactor keeps what it needed when it had most sockets.
//!
//! A place is a cache line: threads that work with two sockets do not take it from each other.
//!
//! Rejected: an allocation per slot (32 bytes more for each socket with its header, malloc's, and the table's pointer; three
//! locked instructions and malloc's work per registration). Slots without a chunk's count, which are never freed and need
//! `unsafe` or a leak. Places of 56 bytes, without the alignment.

use std::array;
use std::fmt;
use std::sync::Arc;

use crate::ready::Ready;
use crate::slot::Slot;
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Places per chunk. A model has few, as it pays for each atomic.
const LEN: u32 = if cfg!(loom) { 2 } else { 64 };

#[repr(align(64))]
struct Place {
    slot: Slot,
    /// Goes on with each arrival and each end: odd while there is a tenant. Only used under the table's lock.
    generation: AtomicU32,
}

// Where a lock is a pointer it takes two.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(loom, shuttle))))]
const _: () = assert!(size_of::<Place>() == 64, "a place is a cache line");

/// Places that come and go together.
pub(super) struct Chunk([Place; LEN as usize]);

/// Keeps the memory of a place, though not the place in the table.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) chunk: Arc<Chunk>,
    pub(super) at: u32,
}

impl Chunk {
    pub(super) const LEN: u32 = LEN;

    pub(super) fn new() -> Arc<Chunk> {
        let vacant = |_| Place { slot: Slot::new(Ready::EMPTY), generation: AtomicU32::new(0) };
        Arc::new(Chunk(array::from_fn(vacant)))
    }

    fn place(&self, at: u32) -> &Place {
        &self.0[(at % LEN) as usize]
    }

    pub(super) fn slot(&self, at: u32) -> &Slot {
        &self.place(at).slot
    }

    /// A tenant comes into a vacant place; returns the generation by which its events are known.
    pub(super) fn take(&self, at: u32, ready: Ready) -> u32 {
        let Place { slot, generation } = self.place(at);
        slot.reset(ready);
        self.turn_over(generation)
    }

    /// The tenant goes: its generation is over.
    pub(super) fn end(&self, at: u32) {
        self.turn_over(&self.place(at).generation);
    }

    /// Whether there is a tenant of this generation.
    pub(super) fn has(&self, at: u32, generation: u32) -> bool {
        self.place(at).generation.load(Relaxed) == generation && generation % 2 == 1
    }

    /// The slots of all tenants.
    pub(super) fn tenants(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter().filter(|place| place.generation.load(Relaxed) % 2 == 1).map(|place| &place.slot)
    }

    /// Relaxed, and no locked instruction: the caller has the table's lock.
    fn turn_over(&self, generation: &AtomicU32) -> u32 {
        let next = generation.load(Relaxed).wrapping_add(1);
        generation.store(next, Relaxed);
        next
    }
}

impl Lease {
    pub(super) fn slot(&self) -> &Slot {
        self.chunk.slot(self.at)
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tenants()).finish()
    }
}
