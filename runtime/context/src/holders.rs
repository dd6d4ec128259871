//! The holders of what tasks wait for: of each lock with a waiting task, the task that has it now.
//!
//! A task that waits is not polled when the lock goes from one task to another, so its [note](crate::Note) names the
//! lock, and the code that prints the note looks the holder up here. Written by the lock, in its own critical section,
//! when the first task begins to wait and when the lock changes hands while tasks wait.
//!
//! The table has a fixed number of places, and two locks may have the same one: then the later one pushes the other out,
//! whose holder is not known until it changes hands again. No decision depends on it.
//!
//! Rejected: the holder's id in the note (it is that of the moment when the task was polled last: of 100 tasks that wait
//! for one lock each named another one). A pointer to the lock (it may be gone when it is looked at).

#![allow(unsafe_code)]

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What has the address `key` is held by the task `holder` since `location`; by [`taken`] if its guard may have gone to
/// another task.
struct Place {
    key: AtomicU64,
    holder: AtomicU64,
    location: AtomicPtr<Location<'static>>,
}

impl Place {
    const fn new() -> Self {
        Self { key: AtomicU64::new(0), holder: AtomicU64::new(0), location: AtomicPtr::new(ptr::null_mut()) }
    }
}

/// More locks at once with somebody waiting are rare; 12 KiB.
const PLACES: usize = 512;

static TABLE: [Place; PLACES] = [const { Place::new() }; PLACES];

/// Set in the id of a holder whose guard may have been given to another task.
const TAKEN: u64 = 1 << 46;

/// The id of a holder whose guard may have been given to another task, or whose permit to more than one.
#[must_use]
#[inline]
pub fn taken(task: u64) -> u64 {
    if task == 0 { 0 } else { task | TAKEN }
}

/// The task of a holder, and whether it is known to be the one that still has the guard.
#[must_use]
pub fn untaken(holder: u64) -> (u64, bool) {
    (holder & !TAKEN, holder & TAKEN == 0)
}

fn place(key: u64) -> &'static Place {
    // The multiplier of Fibonacci hashing (Knuth, vol. 3): 2^64 by the golden ratio.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros());
    &TABLE[hash as usize]
}

/// Notes the task that has the lock at the address `key`, for which tasks wait, and the line that took it.
///
/// # Examples
///
/// ```
/// let lock = 7;
/// let key = std::ptr::from_ref(&lock).addr() as u64;
/// let here = std::panic::Location::caller();
/// mini_context::set_holder(key, 5, Some(here));
/// assert_eq!(mini_context::holder(key), Some((5, Some(here))));
/// ```
#[inline]
pub fn set_holder(key: u64, holder: u64, location: Option<&'static Location<'static>>) {
    let place = place(key);
    let location = location.map_or(ptr::null(), ptr::from_ref).cast_mut();
    if place.key.load(Relaxed) != key {
        place.key.store(0, Release);
        place.holder.store(holder, Release);
        place.location.store(location, Release);
        place.key.store(key, Release);
        return;
    }
    place.holder.store(holder, Release);
    place.location.store(location, Release);
}

/// The task that has the lock at the address `key`, and the line that took it, if that is known. While the lock changes
/// hands the line may be that of the holder before.
///
/// # Examples
///
/// See [`set_holder`].
#[must_use]
pub fn holder(key: u64) -> Option<(u64, Option<&'static Location<'static>>)> {
    let place = place(key);
    let is_its = || place.key.load(Acquire) == key;
    let (holder, location) = is_its().then(|| (place.holder.load(Acquire), place.location.load(Acquire)))?;
    // SAFETY: null, or from a `&'static Location` in `set_holder`.
    // Test: `a_lock_pushes_another_one_out_and_never_lends_its_holder`.
    is_its().then_some((holder, unsafe { location.as_ref() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_pushes_another_one_out_and_never_lends_its_holder() {
        let first = 1 << 40;
        let other = (first + 1..).find(|&key| std::ptr::eq(place(key), place(first))).unwrap();
        let (here, there) = (Location::caller(), line());
        set_holder(first, 3, Some(here));
        assert_eq!((holder(first), holder(other)), (Some((3, Some(here))), None));
        set_holder(other, 4, Some(there));
        assert_eq!((holder(first), holder(other)), (None, Some((4, Some(there)))));
        set_holder(other, taken(5), None);
        assert_eq!(holder(other).map(|(holder, at)| (untaken(holder), at)), Some(((5, false), None)));
    }

    #[track_caller]
    fn line() -> &'static Location<'static> {
        Location::caller()
    }
}
