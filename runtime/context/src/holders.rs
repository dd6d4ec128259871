//! The holders that tasks wait for: for each lock with a waiting task, the task that took it last; for a channel, the
//! known facts about its other end.
//!
//! The task that has the lock now is not known. A guard moves with the future that took it, and a program may poll a
//! future in one task and then spawn it as another. The guard itself is never polled.
//!
//! A task that waits is not polled when the lock goes from one task to another, so its [note](crate::Note) names the
//! lock, and the code that prints the note looks the holder up here. Written by the lock, in its own critical section,
//! when the first task begins to wait and when the lock changes hands while tasks wait. A channel does so when its
//! receiver waits at another line than before, when the number of senders changes, and when it is found full. Channels
//! have a table of their own: there are more of them.
//!
//! A table has a fixed number of places, four for addresses with the same hash. If there are more such locks, each new
//! one replaces the one that was noted first. The holder of that lock is unknown until it changes hands again. No
//! decision depends on it.
//!
//! Rejected: the holder's id in the note (it is that of the moment when the task was polled last: of 100 tasks that
//! wait for one lock each named another one). A pointer to the lock (it may be gone when it is looked at). A place for
//! each hash: two locks with the same one are rare, and then a dump does not see that they are a circle.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::location::AtomicLocation;

/// The known facts about the holder that tasks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The id of the task that took the lock, or that waited to receive from a channel, or that sent by its only
    /// sender. It is passed through [`taken`] for channels, and if a lock's guard may have been given away by itself. 0
    /// if the task is not known.
    pub task: u64,
    /// The line where it took the lock, or where it receives. For a task that waits to receive: the line where the last
    /// sender was made.
    pub location: Option<&'static Location<'static>>,
    /// For a lock: 1 if it was granted to a future that has not been polled since. For a task that waits to receive:
    /// the number of senders. For a task that waits to send: the most messages that the channel holds.
    pub number: u64,
}

/// The [`Holder`] of what has the address `key`.
pub(crate) struct HolderSlot {
    pub(crate) key: AtomicU64,
    task: AtomicU64,
    location: AtomicLocation,
    number: AtomicU64,
}

impl HolderSlot {
    pub(crate) const fn new() -> Self {
        Self {
            key: AtomicU64::new(0),
            task: AtomicU64::new(0),
            location: AtomicLocation::none(),
            number: AtomicU64::new(0),
        }
    }

    pub(crate) fn note(&self, key: u64, holder: Holder) {
        if self.key.load(Relaxed) == key {
            return self.fill(holder);
        }
        self.key.store(0, Release);
        self.fill(holder);
        self.key.store(key, Release);
    }

    /// Stores the task last: a reader that sees it does not mistake a lock that was just granted to the task for one
    /// that the task knows of.
    #[inline]
    fn fill(&self, holder: Holder) {
        self.location.set(holder.location);
        self.number.store(holder.number, Release);
        self.task.store(holder.task, Release);
    }

    /// Returns the note for the address `key`.
    pub(crate) fn get(&self, key: u64) -> Option<Holder> {
        let is_its = || self.key.load(Acquire) == key;
        if !is_its() {
            return None;
        }
        let (task, number) = (self.task.load(Acquire), self.number.load(Acquire));
        let location = self.location.get();
        is_its().then_some(Holder { task, location, number })
    }
}

/// Places for addresses that have the same hash.
struct Set {
    places: [HolderSlot; Set::PLACES],
    /// The place for the next new address: places are taken in turn.
    next: AtomicU64,
}

impl Set {
    const PLACES: usize = 4;

    const fn new() -> Self {
        Self { places: [const { HolderSlot::new() }; Self::PLACES], next: AtomicU64::new(0) }
    }

    #[inline]
    fn find(&self, key: u64) -> Option<&HolderSlot> {
        self.places.iter().find(|place| place.key.load(Relaxed) == key)
    }

    #[inline]
    fn note(&self, key: u64, holder: Holder) {
        match self.find(key) {
            Some(place) => place.fill(holder),
            None => self.take().note(key, holder),
        }
    }

    /// A place for a new address. Two threads may take the same place: then one of them replaces the other.
    #[cold]
    fn take(&self) -> &HolderSlot {
        let next = self.next.load(Relaxed);
        self.next.store(next.wrapping_add(1), Relaxed);
        &self.places[next as usize % Self::PLACES]
    }

    fn get(&self, key: u64) -> Option<Holder> {
        self.find(key)?.get(key)
    }
}

/// Sets for 512 locks: more with waiting tasks at once are rare; 17 KiB.
const LOCKS: usize = 128;

/// Sets for 2,048 channels; 68 KiB, of which the system gives what is written.
const CHANNELS: usize = 512;

static HOLDERS: [Set; LOCKS] = [const { Set::new() }; LOCKS];
static ENDS: [Set; CHANNELS] = [const { Set::new() }; CHANNELS];

/// Set in the id of a holder whose guard may have been given to another task by itself.
const TAKEN: u64 = 1 << 46;

/// Returns the id of a holder whose guard may have been given to another task by itself, or whose permits to several.
#[must_use]
#[inline]
pub fn taken(task: u64) -> u64 {
    if task == 0 { 0 } else { task | TAKEN }
}

/// Returns the task of a holder, and whether its guard can move to another task only together with the future that took
/// it.
#[must_use]
pub fn untaken(holder: u64) -> (u64, bool) {
    (holder & !TAKEN, holder & TAKEN == 0)
}

/// The place of the address `key` in a table, whose size is a power of two.
#[inline]
pub(crate) fn at<T, const N: usize>(table: &'static [T; N], key: u64) -> &'static T {
    &table[hash(key, N)]
}

/// A number below `places`, a power of two.
#[inline]
pub(crate) fn hash(key: u64, places: usize) -> usize {
    // The multiplier of Fibonacci hashing (Knuth, vol. 3): 2^64 by the golden ratio.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - places.trailing_zeros())) as usize
}

/// Notes the holder of the lock at the address `key`, for which tasks wait.
///
/// # Examples
///
/// ```
/// use mini_context::{Holder, holder, set_holder};
///
/// let lock = 7;
/// let key = std::ptr::from_ref(&lock).addr() as u64;
/// let here = Holder { task: 5, location: Some(std::panic::Location::caller()), number: 0 };
/// set_holder(key, here);
/// assert_eq!(holder(key), Some(here));
/// ```
#[inline]
pub fn set_holder(key: u64, holder: Holder) {
    at(&HOLDERS, key).note(key, holder);
}

/// Notes the holder like [`set_holder`], for the other end of a channel, at an address for each end.
///
/// # Examples
///
/// ```
/// use mini_context::{Holder, end, set_end};
///
/// let key = std::ptr::from_ref(&7).addr() as u64;
/// let senders = Holder { task: 0, location: Some(std::panic::Location::caller()), number: 3 };
/// set_end(key, senders);
/// assert_eq!(end(key), Some(senders));
/// ```
#[inline]
pub fn set_end(key: u64, end: Holder) {
    at(&ENDS, key).note(key, end);
}

/// Returns the note of [`set_end`], if that is known.
///
/// # Examples
///
/// See [`set_end`].
#[must_use]
pub fn end(key: u64) -> Option<Holder> {
    at(&ENDS, key).get(key)
}

/// Notes another number for the holder, if the table has that holder.
///
/// # Examples
///
/// ```
/// use mini_context::{Holder, holder, set_holder, set_number};
///
/// let key = std::ptr::from_ref(&7).addr() as u64;
/// set_holder(key, Holder { task: 5, location: None, number: 1 });
/// set_number(key, 0);
/// assert_eq!(holder(key).unwrap().number, 0);
/// ```
#[inline]
pub fn set_number(key: u64, number: u64) {
    if let Some(place) = at(&HOLDERS, key).find(key) {
        place.number.store(number, Release);
    }
}

/// Returns the holder for the address `key`, if that is known. While a lock changes hands, the parts of the result may
/// be those of different holders.
///
/// # Examples
///
/// See [`set_holder`].
#[must_use]
pub fn holder(key: u64) -> Option<Holder> {
    at(&HOLDERS, key).get(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many addresses with the same hash.
    fn alike<const N: usize>(table: &'static [Set; N], count: usize) -> Vec<u64> {
        let first = 1 << 40;
        (first..).filter(|&key| std::ptr::eq(at(table, key), at(table, first))).take(count).collect()
    }

    #[test]
    fn a_lock_never_lends_its_holder_to_another_one() {
        let [first, other] = alike(&HOLDERS, 2)[..] else { unreachable!("two") };
        let here = Holder { task: 3, location: Some(Location::caller()), number: 0 };
        let there = Holder { task: 4, location: Some(line()), number: 1 };
        set_holder(first, here);
        assert_eq!((holder(first), holder(other)), (Some(here), None));
        set_holder(other, there);
        assert_eq!((holder(first), holder(other)), (Some(here), Some(there)));
        set_holder(other, Holder { task: taken(5), location: None, number: 0 });
        let then = holder(other).unwrap();
        assert_eq!((untaken(then.task), then.location, then.number), ((5, false), None, 0));
        set_number(first, 7);
        assert_eq!((holder(first).unwrap().number, holder(other).unwrap().number), (7, 0));
    }

    #[test]
    fn of_five_alike_the_one_that_was_noted_first_is_pushed_out() {
        let keys = alike(&ENDS, 5);
        let note = |key, number| set_end(key, Holder { task: key, location: None, number });
        let known = || keys.iter().filter_map(|&key| end(key)).map(|end| end.task).collect::<Vec<_>>();
        keys[..4].iter().for_each(|&key| note(key, 0));
        assert_eq!(known(), keys[..4]);
        note(keys[0], 1); // takes no other place
        note(keys[4], 0);
        assert_eq!(known(), keys[1..]);
    }

    #[track_caller]
    fn line() -> &'static Location<'static> {
        Location::caller()
    }
}
