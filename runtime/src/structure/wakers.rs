//! The wakers of the places of a scope: sixteen in one allocation, made without counting for each poll.
//!
//! A waker is a pointer and a table of functions. The pointer here is the address of a [`Chunk`]; the four bits that
//! its alignment leaves free hold the number of the place. So a waker that a child only borrows costs nothing, and a
//! waker that the child keeps counts as a reference to the chunk. A chunk holds nothing that children borrow, only the
//! queue of the scope, and numbers.
//!
//! Rejected: an `Arc` for each place (an allocation and four locked instructions for a child that waits once, which
//! then takes 1.6 times as long). A cache of them for each thread (its size is one more number).

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::ready::Ready;

/// Places in a chunk: as many as there are bytes in it to point to.
const PLACES: usize = align_of::<Chunk>();

/// Neighbouring places. It outlives their children: a late wake is one too many for the next child of a place.
#[repr(align(16))]
struct Chunk {
    ready: Arc<Ready>,
    /// The number of its first place.
    first: u32,
}

/// What `Waker::from` would ask of an `Arc<Chunk>`.
const _: () = {
    const fn may_go_anywhere<T: Send + Sync>() {}
    may_go_anywhere::<Chunk>();
};

/// All places of a scope.
pub(super) struct Wakers {
    first: Arc<Chunk>,
    more: Vec<Arc<Chunk>>,
}

impl Wakers {
    pub(super) fn new(ready: &Arc<Ready>) -> Self {
        Self { first: Arc::new(Chunk { ready: ready.clone(), first: 0 }), more: Vec::new() }
    }

    /// The waker of the place `number`.
    #[inline]
    pub(super) fn of(&mut self, number: u32) -> Borrowed<'_> {
        let (chunk, place) = (number as usize / PLACES, number as usize % PLACES);
        if chunk == 0 {
            return self.first.waker(place);
        }
        while chunk > self.more.len() {
            let first = (self.more.len() as u32 + 1) * PLACES as u32;
            self.more.push(Arc::new(Chunk { ready: self.first.ready.clone(), first }));
        }
        self.more[chunk - 1].waker(place)
    }
}

impl Chunk {
    /// The waker of its place `place`, counted as no reference.
    #[inline]
    fn waker(self: &Arc<Self>, place: usize) -> Borrowed<'_> {
        let data = Arc::as_ptr(self).wrapping_byte_add(place % PLACES).cast();
        // SAFETY: `data` is what the functions of the table expect: within a chunk that an `Arc` holds. It does as long
        // as `self` is borrowed, which `Borrowed` keeps up; who clones the waker counts. A chunk may be used from any
        // thread. Test: `many_wakers_of_a_chunk_wake_their_own_places`.
        let waker = unsafe { Waker::new(data, &VTABLE) };
        Borrowed(ManuallyDrop::new(waker), PhantomData)
    }
}

/// A waker for a poll.
pub(super) struct Borrowed<'a>(ManuallyDrop<Waker>, PhantomData<&'a Chunk>);

impl Deref for Borrowed<'_> {
    type Target = Waker;

    #[inline]
    fn deref(&self) -> &Waker {
        &self.0
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

/// The chunk that `data` points into.
fn chunk(data: *const ()) -> *const Chunk {
    data.map_addr(|addr| addr - addr % PLACES).cast()
}

/// Of the chunk's places the one that `data` means.
fn place(data: *const ()) -> u32 {
    (data.addr() % PLACES) as u32
}

/// # Safety
///
/// As for all functions of the table: `data` is that of a waker of [`Chunk::waker`], which is alive.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker is alive, so an `Arc` holds the chunk. Test: `many_wakers_of_a_chunk_wake_their_own_places`.
    unsafe { Arc::increment_strong_count(chunk(data)) };
    RawWaker::new(data, &VTABLE)
}

/// # Safety
///
/// As for [`clone`]; the waker is not used again, and was counted: a [`Borrowed`] one is never woken by value.
unsafe fn wake(data: *const ()) {
    // SAFETY: the reference that `clone` has counted is given back, once. Test: as above.
    let chunk = unsafe { Arc::from_raw(chunk(data)) };
    chunk.ready.wake(chunk.first + place(data));
}

/// # Safety
///
/// As for [`clone`].
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker is alive, so an `Arc` holds the chunk. Test: as above.
    let chunk = unsafe { &*chunk(data) };
    chunk.ready.wake(chunk.first + place(data));
}

/// # Safety
///
/// As for [`wake`].
unsafe fn release(data: *const ()) {
    // SAFETY: as in `wake`. Test: as above.
    drop(unsafe { Arc::from_raw(chunk(data)) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    /// AddressSanitizer would find a count too few, and the last assertion one too many.
    #[test]
    fn many_wakers_of_a_chunk_wake_their_own_places() {
        let ready = Ready::new();
        let mut wakers = Wakers::new(&ready);
        let mut kept: Vec<Waker> = (0..50).map(|number| wakers.of(number).clone()).collect();
        for (number, waker) in kept.iter().enumerate() {
            assert!(waker.will_wake(&wakers.of(number as u32)));
            assert!(!waker.will_wake(&wakers.of((number as u32 + 1) % 50)));
            wakers.of(number as u32).wake_by_ref();
        }
        let mut woken = Vec::new();
        ready.take(&mut woken);
        assert_eq!(woken, (0..50).collect::<Vec<_>>());
        drop(wakers);
        let late = kept.split_off(25);
        let waking = thread::spawn(move || late.into_iter().for_each(Waker::wake));
        kept.into_iter().rev().for_each(Waker::wake);
        waking.join().unwrap();
        woken.clear();
        ready.take(&mut woken);
        woken.sort_unstable();
        assert_eq!(woken, (0..50).collect::<Vec<_>>());
        assert_eq!(Arc::strong_count(&ready), 1);
    }
}
