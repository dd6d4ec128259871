//! `Blocks`: which of a table's places are taken, and the chunks of memory they are in.
//!
//! Called by `table`. A chunk is filled before the next one is begun. When the last socket leaves a chunk, its memory
//! goes back to the system, except for one chunk, which is kept for the next socket. So after a burst of connections
//! only the chunks of the longest ones stay.
//!
//! Rejected: a list of free places (to give a chunk back, its places would have to be found in the list). Filling the
//! first chunk that has room, so that the last ones become vacant sooner (a search past all full chunks, under the
//! table's lock).

use std::sync::Arc;

use super::cell::{Chunk, SlotLease};
use crate::ready::Ready;
use crate::slot::Slot;
use crate::sys::Token;

/// All places of a block taken.
const FULL: u64 = u64::MAX >> (u64::BITS - Chunk::LEN);

#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// Blocks with room; the last is filled first. Some may have become full or lost their memory: these are removed
    /// when they come to the end.
    open: Vec<u32>,
    /// Blocks without memory that `open` does not name.
    gone: Vec<u32>,
    /// One chunk is empty. A second empty one is not kept.
    has_spare: bool,
}

/// A range of places, with or without memory.
#[derive(Debug, Default)]
struct Block {
    chunk: Option<Arc<Chunk>>,
    /// A bit for each place.
    taken: u64,
    /// The last generation before the memory was given back.
    generation: u32,
    is_open: bool,
}

impl Blocks {
    /// Takes a place for a slot that starts out as `ready`.
    pub(super) fn take(&mut self, ready: Ready) -> (Token, SlotLease) {
        let (number, chunk) = self.with_room();
        let block = &mut self.blocks[number as usize];
        self.has_spare &= block.taken > 0;
        let at = block.taken.trailing_ones();
        block.taken |= 1 << at;
        let token = Token { index: number * Chunk::LEN + at, generation: chunk.take(at, ready) };
        (token, SlotLease { chunk, at })
    }

    pub(super) fn slot(&self, token: Token) -> Option<&Slot> {
        let (number, at) = place(token);
        let chunk = self.blocks.get(number)?.chunk.as_ref()?;
        chunk.has(at, token.generation).then(|| chunk.slot(at))
    }

    /// Frees the place of a slot; no event reaches the slot any more.
    pub(super) fn give_back(&mut self, token: Token) {
        let (number, at) = place(token);
        let block = &mut self.blocks[number];
        if let Some(chunk) = &block.chunk {
            chunk.end(at);
        }
        block.taken &= !(1 << at);
        if !block.is_open {
            block.is_open = true;
            self.open.push(number as u32);
        }
        if block.taken > 0 {
            return;
        }
        if self.has_spare {
            block.generation = block.chunk.take().map_or(0, |chunk| chunk.last_generation());
        }
        self.has_spare = true;
    }

    pub(super) fn tenants(&self) -> impl Iterator<Item = &Slot> {
        self.blocks.iter().filter_map(|block| block.chunk.as_deref()).flat_map(Chunk::tenants)
    }

    /// A block with memory and room.
    fn with_room(&mut self) -> (u32, Arc<Chunk>) {
        while let Some(&number) = self.open.last() {
            let block = &mut self.blocks[number as usize];
            match &block.chunk {
                Some(chunk) if block.taken != FULL => return (number, Arc::clone(chunk)),
                Some(_) => {}
                None => self.gone.push(number),
            }
            block.is_open = false;
            self.open.pop();
        }
        self.grow()
    }

    #[cold]
    fn grow(&mut self) -> (u32, Arc<Chunk>) {
        let number = self.gone.pop().unwrap_or_else(|| {
            self.blocks.push(Block::default());
            let number = u32::try_from(self.blocks.len() - 1).ok();
            // The last indices are those of the notifier and the alarm.
            number.filter(|number| *number < u32::MAX / Chunk::LEN).expect("there are fewer fds than 2^32")
        });
        let block = &mut self.blocks[number as usize];
        let chunk = Chunk::new(block.generation);
        (block.chunk, block.is_open) = (Some(Arc::clone(&chunk)), true);
        self.open.push(number);
        (number, chunk)
    }
}

/// The number of the block, and the place in it.
fn place(token: Token) -> (usize, u32) {
    ((token.index / Chunk::LEN) as usize, token.index % Chunk::LEN)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Weak;

    use super::*;

    const LEN: usize = Chunk::LEN as usize;

    fn take(blocks: &mut Blocks, count: usize) -> Vec<(Token, Weak<Chunk>)> {
        (0..count)
            .map(|_| blocks.take(Ready::EMPTY))
            .map(|(token, lease)| (token, Arc::downgrade(&lease.chunk)))
            .collect()
    }

    fn chunks(blocks: &Blocks) -> usize {
        blocks.blocks.iter().filter(|block| block.chunk.is_some()).count()
    }

    #[test]
    fn memory_goes_back_with_the_last_of_a_chunk() {
        let mut blocks = Blocks::default();
        let all = take(&mut blocks, 10 * LEN);
        assert_eq!(chunks(&blocks), 10);
        let (stays, goes): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(nth, _)| *nth == 5 * LEN + 7);
        for (_, (token, _)) in &goes {
            blocks.give_back(*token);
        }
        assert_eq!(chunks(&blocks), 2, "that of the socket that stays, and one for the next socket");
        assert_eq!(goes.iter().filter(|(_, (_, chunk))| chunk.strong_count() == 0).count(), 8 * LEN);
        let stays = stays[0].1.0;
        assert!(blocks.slot(stays).is_some());

        // All numbers are used again, and none of the old tokens leads anywhere.
        let again = take(&mut blocks, 10 * LEN - 1);
        assert_eq!((chunks(&blocks), blocks.blocks.len()), (10, 10));
        assert!(goes.iter().all(|(_, (token, _))| blocks.slot(*token).is_none()));
        assert!(again.iter().all(|(token, _)| blocks.slot(*token).is_some()));
    }

    #[test]
    fn who_comes_and_goes_alone_needs_no_new_memory() {
        let mut blocks = Blocks::default();
        // Two chunks, of which the later one is left last, or first.
        for first in [0, LEN] {
            let all = take(&mut blocks, 2 * LEN);
            let (one, other) = (&all[first..first + LEN], &all[LEN - first..2 * LEN - first]);
            for (token, _) in one.iter().chain(other) {
                blocks.give_back(*token);
            }
            assert_eq!((chunks(&blocks), blocks.has_spare), (1, true));
            let kept = blocks.blocks.iter().find_map(|block| block.chunk.clone()).unwrap();
            for _ in 0..10 {
                let (token, lease) = blocks.take(Ready::EMPTY);
                assert!(Arc::ptr_eq(&lease.chunk, &kept));
                blocks.give_back(token);
            }
        }
    }
}
