//! `SlotCell`: the memory of a slot, and which of its successive tenants has it.
//!
//! Places come in chunks, which are counted: a `table` holds the chunks that it gives out, and every `registration` the
//! chunk of its place. So a socket reaches its slot without the table's lock.
//!
//! With a lock of 8 bytes a place is an aligned cache line: threads that work with two sockets do not take it from each
//! other. If a lock is twice as large (std uses a pthread mutex on Apple's systems and NetBSD), a place is 72 bytes.
//!
//! Rejected: an allocation per slot (32 bytes more for each socket with its header, malloc's, and the table's pointer;
//! three locked instructions and malloc's work per registration). Slots without a chunk's count, which are never freed
//! and need `unsafe` or a leak. Generations apart from the slots, without padding: 60 bytes for each, and lines that
//! threads share.

use std::array;
use std::fmt;
use std::sync::Arc;

use crate::primitives::atomic::{AtomicU32, Ordering::Relaxed};
use crate::ready::Ready;
use crate::slot::Slot;

/// Places per chunk. A model has few, as it pays for each atomic.
const LEN: u32 = if cfg!(loom) { 2 } else { 64 };

#[cfg_attr(not(any(target_vendor = "apple", target_os = "netbsd")), repr(align(64)))]
struct SlotCell {
    slot: Slot,
    /// Increases with each arrival and each end: odd while there is a tenant. Read under the table's lock, changed by
    /// the thread that holds it exclusively.
    generation: AtomicU32,
}

/// Places that are allocated and freed together.
pub(super) struct Chunk([SlotCell; LEN as usize]);

/// Keeps the memory of a place, though not the place in the table.
#[derive(Debug)]
pub(super) struct SlotLease {
    pub(super) chunk: Arc<Chunk>,
    pub(super) at: u32,
}

impl Chunk {
    pub(super) const LEN: u32 = LEN;

    /// Vacant places, whose former generations, if they had any, ended before `generation`.
    pub(super) fn new(generation: u32) -> Arc<Chunk> {
        let vacant = |_| SlotCell { slot: Slot::new(Ready::EMPTY), generation: AtomicU32::new(generation) };
        Arc::new(Chunk(array::from_fn(vacant)))
    }

    fn place(&self, at: u32) -> &SlotCell {
        &self.0[(at % LEN) as usize]
    }

    pub(super) fn slot(&self, at: u32) -> &Slot {
        &self.place(at).slot
    }

    /// Gives a vacant place to a tenant; returns the generation by which its events are known.
    pub(super) fn take(&self, at: u32, ready: Ready) -> u32 {
        let SlotCell { slot, generation } = self.place(at);
        slot.reset(ready);
        Self::turn_over(generation)
    }

    /// Ends the generation of a tenant that leaves.
    pub(super) fn end(&self, at: u32) {
        Self::turn_over(&self.place(at).generation);
    }

    /// Returns `true` if there is a tenant of this generation.
    pub(super) fn has(&self, at: u32, generation: u32) -> bool {
        self.place(at).generation.load(Relaxed) == generation && generation % 2 == 1
    }

    /// The slots of all tenants.
    pub(super) fn tenants(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter().filter(|place| place.generation.load(Relaxed) % 2 == 1).map(|place| &place.slot)
    }

    /// The latest generation of all places. If no tenant is left, every generation up to it is over.
    pub(super) fn last_generation(&self) -> u32 {
        self.0.iter().map(|place| place.generation.load(Relaxed)).max().unwrap_or_default()
    }

    /// Relaxed, and no locked instruction: the caller alone has the table's lock.
    fn turn_over(generation: &AtomicU32) -> u32 {
        let next = generation.load(Relaxed).wrapping_add(1);
        generation.store(next, Relaxed);
        next
    }
}

impl SlotLease {
    pub(super) fn slot(&self) -> &Slot {
        self.chunk.slot(self.at)
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tenants()).finish()
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_cache_line() {
        assert_eq!((size_of::<SlotCell>(), align_of::<SlotCell>()), (64, 64));
    }
}
