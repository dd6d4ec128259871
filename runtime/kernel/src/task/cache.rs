//! Memory of ended tasks, kept by the core for the next ones.
//!
//! Filled and emptied by `allocator.rs`. A core keeps at most 256 KiB, and gives all of it back when its runtime goes.
//!
//! If a task ends on another core than it began on, its block is sent home, if a worker works there: to a stack that
//! other threads push to and the owner takes as a whole (so no two threads look at one entry, and none can come back
//! while a thread looks at it). Otherwise one thread would free what another allocates at the same time, which malloc
//! answers with a lock that sleeps in the kernel.
//!
//! Blocks are sorted by size, in the steps of 16 bytes that malloc has (whose chunks are multiples of 16 with 8 bytes
//! of its own), so keeping them wastes nothing.
//!
//! Rejected: leaving it to malloc, whose cache per thread holds seven blocks of a size: a burst of 1,000 tasks spent a
//! third of its instructions there. A slab of pages (a page stays as long as one task in it lives).

#![allow(unsafe_code)]

use std::alloc::{Layout, dealloc};
use std::iter;
use std::ptr::{self, NonNull};

use crate::primitives::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The smallest block.
const SMALLEST: usize = 24;

/// Blocks differ in size by this, and are aligned to it.
const STEP: usize = 16;

/// How many sizes are kept, up to 520 bytes.
const CLASSES: usize = 32;

/// Bytes that one core keeps at most.
const KEPT: usize = 256 * 1024;

/// A block nobody uses; the rest of it is not initialised.
struct Free {
    next: Option<NonNull<Free>>,
    class: usize,
}

/// The blocks a core keeps.
#[derive(Debug)]
pub(crate) struct TaskCache {
    lists: [Option<NonNull<Free>>; CLASSES],
    room: usize,
}

impl TaskCache {
    pub(crate) const fn new() -> Self {
        Self { lists: [None; CLASSES], room: KEPT }
    }

    pub(super) fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let first = self.lists[class]?;
        // SAFETY: what is listed was written by `put`, and belongs to nobody else.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        self.lists[class] = unsafe { first.as_ref() }.next;
        self.room += size_of_class(class);
        Some(first.cast())
    }

    /// Keeps a block, if there is room.
    ///
    /// # Safety
    ///
    /// The block is of that class, and the caller's to give away.
    unsafe fn put(&mut self, block: NonNull<u8>, class: usize) -> bool {
        let Some(room) = self.room.checked_sub(size_of_class(class)) else { return false };
        self.room = room;
        let free: NonNull<Free> = block.cast();
        // SAFETY: the caller's promise; a block has 24 bytes at least, and their alignment.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { free.write(Free { next: self.lists[class], class }) };
        self.lists[class] = Some(free);
        true
    }

    /// As [`put`](Self::put), but frees what there is no room for.
    ///
    /// # Safety
    ///
    /// As there.
    pub(super) unsafe fn put_or_free(&mut self, block: NonNull<u8>, class: usize) {
        // SAFETY: the caller's promise.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        if !unsafe { self.put(block, class) } {
            // SAFETY: the caller's promise; every block of a class was allocated with its layout (`allocate`).
            // Test: as above.
            unsafe { dealloc(block.as_ptr(), layout_of_class(class)) };
        }
    }
}

/// The blocks that other threads have sent home.
#[derive(Debug, Default)]
pub(crate) struct RemoteFrees {
    first: AtomicPtr<Free>,
    /// How many bytes there are, or are about to be.
    bytes: AtomicUsize,
}

impl RemoteFrees {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.load(Relaxed).is_null()
    }

    /// Keeps a block for the owner, or frees it if many wait already: the owner may be in a long poll. Any thread.
    ///
    /// # Safety
    ///
    /// The block is of that class, and the caller's to give away.
    pub(super) unsafe fn push(&self, block: NonNull<u8>, class: usize) {
        let size = size_of_class(class);
        if self.bytes.fetch_add(size, Relaxed) > KEPT {
            self.bytes.fetch_sub(size, Relaxed);
            // SAFETY: the caller's promise; every block of a class was allocated with its layout (`allocate`).
            // Test: below, `what_waits_for_the_owner_is_bounded`.
            return unsafe { dealloc(block.as_ptr(), layout_of_class(class)) };
        }
        let free: NonNull<Free> = block.cast();
        let mut first = self.first.load(Relaxed);
        loop {
            // SAFETY: the caller's promise; nobody else sees the block before the exchange.
            // Test: model `a_block_is_taken_once`.
            unsafe { free.write(Free { next: NonNull::new(first), class }) };
            // Release: pairs with the Acquire in `take`.
            match self.first.compare_exchange_weak(first, free.as_ptr(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all blocks.
    fn take(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let mut next = NonNull::new(self.first.swap(ptr::null_mut(), Acquire));
        iter::from_fn(move || {
            let block = next?;
            // SAFETY: pushed blocks are initialised, and since the swap they are ours alone.
            // Test: model `a_block_is_taken_once`.
            let Free { next: after, class } = unsafe { block.read() };
            next = after;
            Some((block.cast(), class))
        })
    }

    /// Sorts what has come home into `blocks`. Owner only.
    pub(crate) fn sort_into(&self, blocks: &mut TaskCache) {
        for (block, class) in self.take() {
            self.bytes.fetch_sub(size_of_class(class), Relaxed);
            // SAFETY: `push` was promised a block of that class.
            // Test: model `a_block_is_taken_once`.
            unsafe { blocks.put_or_free(block, class) };
        }
    }
}

impl Drop for RemoteFrees {
    fn drop(&mut self) {
        self.sort_into(&mut TaskCache::new());
    }
}

impl Drop for TaskCache {
    fn drop(&mut self) {
        for class in 0..self.lists.len() {
            while let Some(block) = self.take(class) {
                // SAFETY: every block of a class was allocated with its layout (`allocate`).
                // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
                unsafe { dealloc(block.as_ptr(), layout_of_class(class)) };
            }
        }
    }
}

/// The list for a type, if it is kept.
pub(super) const fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().saturating_sub(SMALLEST).div_ceil(STEP);
    if layout.align() <= STEP && class < CLASSES { Some(class) } else { None }
}

const fn size_of_class(class: usize) -> usize {
    SMALLEST + class * STEP
}

pub(super) const fn layout_of_class(class: usize) -> Layout {
    match Layout::from_size_align(size_of_class(class), STEP) {
        Ok(layout) => layout,
        Err(_) => panic!("a class has a layout"),
    }
}

/// What is allocated for a type.
pub(super) const fn layout_for(layout: Layout) -> Layout {
    match class_of(layout) {
        Some(class) => layout_of_class(class),
        None => layout,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::alloc::alloc;

    use super::*;

    fn block(class: usize) -> NonNull<u8> {
        // SAFETY: a class has a size; the list it goes to frees it.
        NonNull::new(unsafe { alloc(layout_of_class(class)) }).expect("there is memory")
    }

    #[test]
    fn a_block_comes_back_for_its_own_size_only() {
        let mut blocks = TaskCache::new();
        let one = block(3);
        // SAFETY: just allocated.
        assert!(unsafe { blocks.put(one, 3) });
        assert_eq!(blocks.take(2), None);
        assert_eq!(blocks.take(3), Some(one));
        assert_eq!(blocks.take(3), None);
        assert_eq!(blocks.room, KEPT);
        // SAFETY: just taken out.
        assert!(unsafe { blocks.put(one, 3) }, "freed with the list");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room() {
        let mut blocks = TaskCache::new();
        let class = CLASSES - 1;
        for _ in 0..KEPT / size_of_class(class) {
            // SAFETY: just allocated.
            assert!(unsafe { blocks.put(block(class), class) });
        }
        let more = block(class);
        // SAFETY: just allocated.
        assert!(!unsafe { blocks.put(more, class) });
        // SAFETY: allocated above, and not kept.
        unsafe { dealloc(more.as_ptr(), layout_of_class(class)) };
    }

    #[test]
    fn what_waits_for_the_owner_is_bounded() {
        let returned = RemoteFrees::default();
        for _ in 0..2 * KEPT / size_of_class(0) {
            // SAFETY: just allocated.
            unsafe { returned.push(block(0), 0) };
        }
        assert!(returned.bytes.load(Relaxed) <= KEPT + size_of_class(0));
        let mut blocks = TaskCache::new();
        returned.sort_into(&mut blocks);
        assert!(returned.is_empty());
        assert_eq!(returned.bytes.load(Relaxed), 0);
        assert!(blocks.take(0).is_some_and(|block| {
            // SAFETY: taken out just now.
            unsafe { blocks.put(block, 0) }
        }));
    }

    #[test]
    fn types_find_their_class() {
        assert_eq!(class_of(Layout::new::<[u64; 1]>()), Some(0));
        assert_eq!(class_of(Layout::new::<[u64; 3]>()), Some(0));
        assert_eq!(class_of(Layout::new::<[u64; 4]>()), Some(1));
        assert_eq!(class_of(Layout::new::<[u64; 5]>()), Some(1));
        assert_eq!(class_of(Layout::new::<[u8; 520]>()), Some(CLASSES - 1));
        assert_eq!(class_of(Layout::new::<[u8; 521]>()), None);
        #[repr(align(64))]
        struct Aligned([u8; 64]);
        assert_eq!(class_of(Layout::new::<Aligned>()), None);
        assert_eq!(layout_for(Layout::new::<Aligned>()), Layout::new::<Aligned>());
        assert_eq!(layout_for(Layout::new::<[u64; 4]>()).size(), 40);
        assert_eq!(size_of_val(&Aligned([0; 64]).0), 64);
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::alloc::alloc;

    use super::*;
    use loom::{sync::Arc, thread};

    struct Shared(RemoteFrees);
    // SAFETY: blocks belong to nobody in particular, and a `RemoteFrees` hands each to one thread.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    fn block() -> NonNull<u8> {
        // SAFETY: a class has a size.
        NonNull::new(unsafe { alloc(layout_of_class(0)) }).expect("there is memory")
    }

    /// Two threads send blocks home while the owner takes twice: each comes out once, with what was written in it.
    ///
    /// Fails when `push` is a load and a store, or `take` looks and then stores.
    #[test]
    fn a_block_is_taken_once() {
        loom::model(|| {
            let shared = Arc::new(Shared(RemoteFrees::default()));
            let pushers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        let block = block();
                        // SAFETY: just allocated.
                        unsafe { shared.0.push(block, 0) };
                        block.as_ptr().addr()
                    })
                })
                .collect();
            let mut taken: Vec<_> = shared.0.take().collect();
            let mut pushed: Vec<_> = pushers.into_iter().map(|pusher| pusher.join().unwrap()).collect();
            taken.extend(shared.0.take());
            let mut found: Vec<_> = taken.iter().map(|(block, _)| block.as_ptr().addr()).collect();
            found.sort_unstable();
            pushed.sort_unstable();
            assert_eq!(found, pushed);
            for (block, class) in taken {
                // SAFETY: allocated above, and taken once.
                unsafe { dealloc(block.as_ptr(), layout_of_class(class)) };
            }
        });
    }
}
