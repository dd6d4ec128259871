//! The entries of a wheel: one array, linked into lists by index, each named by a [`Key`] that goes stale.
//!
//! The wheel alone calls it. A list is the index of its first entry ([`NIL`] when empty), and is circular: the entry
//! before the first is the last, so that appending needs no second word per slot. The memory of freed entries is kept,
//! and given back when a worker parks while none is in use.
//!
//! Rejected:
//! - A box per entry with pointers: an allocation per timer, and `unsafe` to unlink.
//! - A `Vec` per slot: removal has to search or to leave holes, and thousands of buffers never shrink.

use std::iter;
use std::mem;
use std::task::Waker;

/// No entry.
pub(crate) const NIL: u32 = u32::MAX;

/// Names one entry of one wheel.
///
/// It goes stale when the entry fires or is removed; a stale key is refused, never taken for the next entry in the
/// same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Names no entry.
    pub(crate) const NONE: Key = Key { index: NIL, generation: 0 };
}

/// The list that holds an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListId {
    /// A slot of the near ring.
    Near(u16),
    /// A slot of the upper ring of this level, from 1.
    Upper(u8, u16),
    /// Found due, waiting to be handed out.
    Due,
    /// On the free list.
    Free,
}

/// The end of a list on which an entry is put.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Front,
    Back,
}

/// So many entries are kept when none is in use: 160 KiB.
const KEPT: usize = 4096;

/// 40 bytes on a 64-bit machine, checked below.
struct Entry {
    deadline: u64,
    waker: Option<Waker>,
    next: u32,
    previous: u32,
    generation: u32,
    place: ListId,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Entry>() == 40);

/// All entries, used and free.
pub(crate) struct Slab {
    entries: Vec<Entry>,
    /// The first free entry; free entries are linked by `next` alone.
    free: u32,
    used: u32,
    /// The generation of new entries: later than that of any key of entries that are gone.
    generation: u32,
}

impl Slab {
    pub(crate) const fn new() -> Slab {
        Slab { entries: Vec::new(), free: NIL, used: 0, generation: 0 }
    }

    /// The number of entries in use.
    pub(crate) fn len(&self) -> usize {
        self.used as usize
    }

    /// Takes a free entry, on no list yet.
    ///
    /// # Panics
    ///
    /// Panics if 2^32 - 1 entries are in use.
    #[inline]
    pub(crate) fn add(&mut self, deadline: u64, waker: Waker) -> u32 {
        let index = match self.free {
            NIL => self.grow(),
            index => index,
        };
        let entry = &mut self.entries[index as usize];
        self.free = entry.next;
        self.used += 1;
        entry.deadline = deadline;
        entry.waker = Some(waker);
        index
    }

    /// Frees an entry that is on no list; its key is stale from here on.
    #[inline]
    pub(crate) fn free(&mut self, index: u32) -> Option<Waker> {
        let free = mem::replace(&mut self.free, index);
        self.used -= 1;
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.place = ListId::Free;
        entry.next = free;
        entry.waker.take()
    }

    /// Gives the memory of a crowd back, if no entry is in use. Keys stay stale.
    pub(crate) fn give_back(&mut self) {
        if self.used == 0 && self.entries.len() > KEPT {
            // They wrap around: the latest one is the farthest from where all began.
            let distances = self.entries.iter().map(|entry| entry.generation.wrapping_sub(self.generation));
            let generation = self.generation.wrapping_add(distances.max().unwrap_or_default());
            *self = Slab { generation, ..Slab::new() };
        }
    }

    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.entries.capacity()
    }

    /// Frees all entries whatever list they are on; the lists are the caller's to empty.
    pub(crate) fn drain(&mut self, out: &mut Vec<Waker>) {
        for index in 0..self.entries.len() {
            if self.entries[index].place != ListId::Free {
                out.extend(self.free(index as u32));
            }
        }
    }

    #[inline]
    pub(crate) fn key(&self, index: u32) -> Key {
        Key { index, generation: self.entries[index as usize].generation }
    }

    /// The entry a key names, or `None` if the key is stale.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let entry = self.entries.get(key.index as usize)?;
        let is_live = entry.generation == key.generation && entry.place != ListId::Free;
        is_live.then_some(key.index)
    }

    pub(crate) fn deadline(&self, index: u32) -> u64 {
        self.entries[index as usize].deadline
    }

    pub(crate) fn set_deadline(&mut self, index: u32, deadline: u64) {
        self.entries[index as usize].deadline = deadline;
    }

    pub(crate) fn place(&self, index: u32) -> ListId {
        self.entries[index as usize].place
    }

    pub(crate) fn waker_mut(&mut self, index: u32) -> Option<&mut Waker> {
        self.entries[index as usize].waker.as_mut()
    }

    pub(crate) fn next(&self, index: u32) -> u32 {
        self.entries[index as usize].next
    }

    pub(crate) fn previous(&self, index: u32) -> u32 {
        self.entries[index as usize].previous
    }

    /// The entries of `list`, in order.
    pub(crate) fn iter(&self, list: u32) -> impl Iterator<Item = u32> {
        let first = (list != NIL).then_some(list);
        iter::successors(first, move |&index| Some(self.next(index)).filter(|&next| next != list))
    }

    /// Puts an entry that is on no list on `list`, which is `place`.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut u32, index: u32, place: ListId, end: End) {
        let (first, last) = match *list {
            NIL => (index, index),
            first => (first, self.previous(first)),
        };
        let entry = &mut self.entries[index as usize];
        entry.place = place;
        entry.next = first;
        entry.previous = last;
        self.entries[last as usize].next = index;
        self.entries[first as usize].previous = index;
        // On a ring of entries the front is the back with another start.
        if first == index || matches!(end, End::Front) {
            *list = index;
        }
    }

    /// Makes a list of its entries from `first` to `last`; those after that have left it.
    pub(crate) fn close(&mut self, first: u32, last: u32) {
        self.entries[first as usize].previous = last;
        self.entries[last as usize].next = first;
    }

    /// Takes an entry off `list`, which must be the one it is on; returns whether that leaves it empty.
    #[inline]
    pub(crate) fn unlink(&mut self, list: &mut u32, index: u32) -> bool {
        let entry = &self.entries[index as usize];
        let (next, previous) = (entry.next, entry.previous);
        if next == index {
            *list = NIL;
            return true;
        }
        self.entries[previous as usize].next = next;
        self.entries[next as usize].previous = previous;
        if *list == index {
            *list = next;
        }
        false
    }

    /// Adds one entry to the array, free and linked in front of an empty free list.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.entries.len()).ok().filter(|&index| index != NIL);
        let index = index.expect("a wheel holds fewer than 2^32 - 1 timers");
        self.entries.push(Entry {
            deadline: 0,
            waker: None,
            next: NIL,
            previous: NIL,
            generation: self.generation,
            place: ListId::Free,
        });
        index
    }
}
