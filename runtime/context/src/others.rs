//! Further waits of a task besides its [wait](crate::Wait): up to three leaves of a `join!` or `race!` that its last
//! poll has left.
//!
//! While a poll is in progress they are in the thread's `Local`, put there by a leaf that finds the note of another
//! one. After a poll that has left some, the runtime has them written into a table, by the task's id, and marks the
//! task; so a poll with one leaf pays for one comparison in `leave_note` and one after the poll.
//!
//! A place of the table is written by one thread at a time and read by any, behind a sequence number, odd while it is
//! written. Two tasks may have the same place: the later one replaces the other.
//!
//! A simulation has a table of its own, on its thread: its tasks may have the ids of others, and the tasks that they
//! replace are the same in each run of a seed.
//!
//! Rejected: room in each task (48 bytes, and most never need it). All leaves between their first `Pending` and their
//! drop, as a list through them (each leaf pays for joining and leaving it). So leaves that a combinator has not polled
//! in the last poll are not known.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::holders::hash;
use crate::location::AtomicLocation;
use crate::sim::{is_simulated, with_places};
use crate::wait::Wait;
use crate::{LOCAL, Local};

/// The number of waits that are kept.
pub(crate) const MOST: usize = 3;

/// A flag in `Local::others`, next to their number: the task waits for something else that is not known.
const UNKNOWN: u8 = 1 << 7;

/// The waits of one task.
pub(crate) struct TableEntry {
    sequence: AtomicU64,
    task: AtomicU64,
    leaves: [Leaf; MOST],
}

/// A [`Wait`], or none.
struct Leaf {
    word: AtomicU64,
    location: AtomicLocation,
}

/// 32 KiB, of which the system gives what is written.
pub(crate) const PLACES: usize = 512;

static TABLE: [TableEntry; PLACES] = [const { TableEntry::new() }; PLACES];

impl TableEntry {
    pub(crate) const fn new() -> Self {
        Self { sequence: AtomicU64::new(0), task: AtomicU64::new(0), leaves: [const { Leaf::new() }; MOST] }
    }

    /// The leaves of that task, if they are here as a whole.
    fn read(&self, task: u64) -> [Option<Wait>; MOST] {
        let before = self.sequence.load(Acquire);
        let is_its = self.task.load(Acquire) == task;
        let leaves = std::array::from_fn(|at| self.leaves[at].get());
        // Acquire above: if a leaf is of a later writer, its odd number is seen here.
        let is_whole = before & 1 == 0 && self.sequence.load(Relaxed) == before;
        if is_its && is_whole { leaves } else { [None; MOST] }
    }
}

impl Leaf {
    const fn new() -> Self {
        Self { word: AtomicU64::new(0), location: AtomicLocation::none() }
    }

    fn set(&self, wait: Option<Wait>) {
        // Release: a reader that sees one of these sees the odd number too.
        self.word.store(wait.map_or(0, Wait::word), Release);
        self.location.set(wait.map(Wait::location));
    }

    fn get(&self) -> Option<Wait> {
        let word = self.word.load(Acquire);
        Wait::from_word(word, self.location.get()?)
    }
}

/// Adds the leaf of `wait`, in a poll in which a leaf of another wait has waited.
#[cold]
pub(crate) fn add(local: &Local, wait: Wait) {
    let Some(before) = local.wait.get().filter(|before| !before.is_same(wait)) else { return };
    if local.others.get() > 0 {
        remove(local, &mut |other| other.is_same(wait)); // polled a second time: it is the last one now
    }
    if let Some(free) = local.other.get(count(local)) {
        free.set(Some(before));
        local.others.set(local.others.get() + 1);
    }
}

fn count(local: &Local) -> usize {
    usize::from(local.others.get() & !UNKNOWN)
}

/// Forgets the further waits of the poll, but not that it may wait for something unknown.
#[inline]
pub(crate) fn forget(local: &Local) {
    local.others.set(local.others.get() & UNKNOWN);
}

/// Notes that the task waits for something that this poll does not see.
#[cold]
pub(crate) fn note_unknown() {
    LOCAL.with(|local| local.others.set(local.others.get() | UNKNOWN));
}

/// Removes a leaf that no longer waits. If it was the last one, another one takes its place.
#[cold]
pub(crate) fn remove(local: &Local, is_it: &mut dyn FnMut(Wait) -> bool) {
    let mut kept = 0;
    for other in &local.other[..count(local)] {
        if let Some(wait) = other.take().filter(|&wait| !is_it(wait)) {
            local.other[kept].set(Some(wait));
            kept += 1;
        }
    }
    if local.wait.get().is_none() && kept > 0 {
        kept -= 1;
        local.wait.set(local.other[kept].take());
        local.promoted.set(local.noted.get());
    }
    local.others.set(local.others.get() & UNKNOWN | kept as u8);
}

/// Returns `true` if the last poll of this thread has left more than one leaf that waits for an event, or one that is
/// not polled by each poll of its task ([`note_waker`](crate::note_waker)).
///
/// # Examples
///
/// See [`note_others`].
#[inline]
pub fn has_others() -> bool {
    LOCAL.with(|local| local.others.get() > 0)
}

/// Records the waits of the task that are not in [`notes`](crate::notes). Returns `true` if it could.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, Wait, has_others, leave_note, note_others, notes, others};
///
/// mini_context::begin_poll(7);
/// let [first, last] = [Reason::Idle, Reason::Join(3)].map(|reason| Note { reason, location: Location::caller() });
/// leave_note(first);
/// leave_note(last);
/// assert_eq!((notes().wait, has_others()), (Some(last.into()), true));
/// assert!(note_others(7));
/// assert_eq!(others(7), [Some(Wait::from(first)), None, None]);
/// ```
#[cold]
pub fn note_others(task: u64) -> bool {
    with_place(task, |place| note_at(place, task))
}

/// Calls `f` with the place of the task in the table of this thread's simulation, or in that of the process.
fn with_place<T>(task: u64, f: impl FnOnce(&TableEntry) -> T) -> T {
    let at = hash(task, PLACES);
    match is_simulated() {
        true => with_places(|places| f(&places[at])),
        false => f(&TABLE[at]),
    }
}

fn note_at(place: &TableEntry, task: u64) -> bool {
    let sequence = place.sequence.load(Relaxed);
    let is_mine =
        sequence & 1 == 0 && place.sequence.compare_exchange(sequence, sequence + 1, Acquire, Relaxed).is_ok();
    if !is_mine {
        return false; // another task writes there
    }
    let count = LOCAL.with(count);
    if count == 0 && place.task.load(Relaxed) != task {
        place.sequence.store(sequence, Release); // it stays another task's
        return true;
    }
    place.task.store(task, Release);
    LOCAL.with(|local| {
        for (at, (leaf, other)) in place.leaves.iter().zip(&local.other).enumerate() {
            leaf.set(other.get().filter(|_| at < count));
        }
    });
    place.sequence.store(sequence + 2, Release);
    true
}

/// Returns the waits of the task recorded by [`note_others`]; none if another task has replaced them.
///
/// # Examples
///
/// See [`note_others`].
#[must_use]
pub fn others(task: u64) -> [Option<Wait>; MOST] {
    with_place(task, |place| place.read(task))
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::{Note, Reason, begin_poll, forget_wait, leave_note, notes};

    #[track_caller]
    fn note(reason: Reason) -> Note {
        Note { reason, location: Location::caller() }
    }

    /// Leaves the notes of joins of these tasks.
    fn poll(task: u64, joins: &[u64]) -> Vec<Wait> {
        begin_poll(task);
        let notes: Vec<Note> = joins.iter().map(|&id| note(Reason::Join(id))).collect();
        notes.iter().for_each(|&note| leave_note(note));
        notes.into_iter().map(Wait::from).collect()
    }

    /// Leaves the note of that wait once more.
    fn again(wait: Wait) {
        leave_note(Note { reason: wait.reason(), location: wait.location() });
    }

    fn kept() -> Vec<Wait> {
        LOCAL.with(|local| {
            local.other.iter().take(local.others.get() as usize).filter_map(std::cell::Cell::get).collect()
        })
    }

    #[test]
    fn three_leaves_are_kept_beside_the_last_one() {
        let noted = poll(1, &[1, 2, 3, 4]);
        assert_eq!((notes().wait, kept()), (Some(noted[3]), noted[..3].to_vec()));
        let noted = poll(1, &[1, 2, 3, 4, 5]);
        assert_eq!((notes().wait, kept()), (Some(noted[4]), noted[..3].to_vec()));
        poll(1, &[1]);
        assert!(!has_others(), "each poll begins anew");
    }

    #[test]
    fn a_leaf_that_is_polled_twice_is_one() {
        let noted = poll(1, &[1]);
        again(noted[0]);
        assert!(!has_others());
        let noted = poll(1, &[1, 2]);
        again(noted[0]);
        assert_eq!((notes().wait, kept()), (Some(noted[0]), vec![noted[1]]));
    }

    #[test]
    fn a_leaf_that_is_ready_is_none() {
        let noted = poll(1, &[1, 2, 3]);
        forget_wait(|wait| wait.is_for(Reason::Join(2)));
        assert_eq!((notes().wait, kept()), (Some(noted[2]), vec![noted[0]]));
        forget_wait(|wait| wait.is_for(Reason::Join(3)));
        assert_eq!((notes().wait, kept()), (Some(noted[0]), vec![]));
        forget_wait(|wait| wait.is_for(Reason::Join(1)));
        assert!(notes().is_empty() && !has_others());
    }

    #[test]
    fn another_task_pushes_one_out() {
        let first = 1 << 40;
        let other = (first + 1..).find(|&task| hash(task, PLACES) == hash(first, PLACES)).unwrap();
        let noted = poll(first, &[1, 2, 3]);
        assert!(note_others(first));
        let waits = |noted: &[Wait]| std::array::from_fn(|at| noted.get(at).copied());
        assert_eq!(others(first), waits(&noted[..2]));
        let theirs = poll(other, &[4, 5]);
        assert!(note_others(other));
        assert_eq!((others(first), others(other)), (waits(&[]), waits(&theirs[..1])));
        let place = &TABLE[hash(first, PLACES)];
        place.sequence.fetch_add(1, Relaxed);
        assert!(!note_others(first) && others(other) == waits(&[]), "it is being written");
        place.sequence.fetch_add(1, Relaxed);
    }
}
