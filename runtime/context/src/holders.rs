//! Who has what tasks wait for: of each lock that somebody waits for, the task that has it now.
//!
//! A task that waits is not polled when the lock goes from one task to another, so its [note](crate::Note) names the
//! lock, and the one who prints the note looks here who has it. Written by the lock, in its own critical section, when
//! somebody begins to wait and when it changes hands while somebody does.
//!
//! The table has a fixed number of places, and two locks may have the same one: then the later one pushes the other out,
//! whose holder is not known until it changes hands again. Nobody decides anything by it.
//!
//! Rejected: the holder's id in the note (it is that of the moment when the task was polled last: of 100 tasks that wait
//! for one lock each named another one). A pointer to the lock (it may be gone when it is looked at).

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What has the address `key` is held by the task `holder`; by [`taken`] if its guard may have gone to another task.
struct Place {
    key: AtomicU64,
    holder: AtomicU64,
}

/// More locks at once with somebody waiting are rare; 8 KiB.
const PLACES: usize = 512;

static TABLE: [Place; PLACES] = [const { Place { key: AtomicU64::new(0), holder: AtomicU64::new(0) } }; PLACES];

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

/// Notes who has what is at the address `key`, for which somebody waits.
///
/// # Examples
///
/// ```
/// let lock = 7;
/// let key = std::ptr::from_ref(&lock).addr() as u64;
/// mini_context::set_holder(key, 5);
/// assert_eq!(mini_context::holder(key), Some(5));
/// ```
#[inline]
pub fn set_holder(key: u64, holder: u64) {
    let place = place(key);
    if place.key.load(Relaxed) != key {
        place.key.store(0, Release);
        place.holder.store(holder, Release);
        place.key.store(key, Release);
        return;
    }
    place.holder.store(holder, Release);
}

/// Who has what is at the address `key`, if that is known.
///
/// # Examples
///
/// See [`set_holder`].
#[must_use]
pub fn holder(key: u64) -> Option<u64> {
    let place = place(key);
    let is_its = || place.key.load(Acquire) == key;
    let holder = is_its().then(|| place.holder.load(Acquire))?;
    is_its().then_some(holder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_pushes_another_one_out_and_never_lends_its_holder() {
        let first = 1 << 40;
        let other = (first + 1..).find(|&key| std::ptr::eq(place(key), place(first))).unwrap();
        set_holder(first, 3);
        assert_eq!((holder(first), holder(other)), (Some(3), None));
        set_holder(other, 4);
        assert_eq!((holder(first), holder(other)), (None, Some(4)));
        set_holder(other, taken(5));
        assert_eq!(holder(other).map(untaken), Some((5, false)));
    }
}
