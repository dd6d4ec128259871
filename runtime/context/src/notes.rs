//! Notes of where a poll waits. A leaf future leaves one each time it returns `Pending`, and takes it back when it is
//! dropped.
//!
//! There is room for two notes: the last leaf that waits for something to happen, and the last that waits for a time.
//! Many tasks wait for whichever of the two comes first. Other leaves of the same poll are kept aside (`others.rs`).
//!
//! A note is kept as a [`Wait`], the form in which a runtime keeps what a task waits for: two words. A leaf knows what
//! kind of reason it has, so it makes them in a few instructions; after the poll the runtime would have to find out.
//!
//! A future that limits another one asks for the notes of that one alone ([`mark_notes`], [`notes_since`]): those of
//! its neighbours in the same task do not count. For this, notes are counted, the two kinds apart. It costs the
//! future one load, and each note one addition. A limit that gave way to a neighbour's timer is not known then.
//!
//! Rejected: taking the notes out before the inner poll and merging them afterwards. It costs ten loads and stores in
//! each poll, for a question asked once, if ever.

use std::marker::PhantomData;
use std::panic::Location;

use crate::budget::Refused;
use crate::wait::Wait;
use crate::{LOCAL, others};

/// The event that a task waits for with a file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum IoKind {
    /// Data to read, or a datagram.
    Read,
    /// Room to write.
    Write,
    /// A connection to accept.
    Accept,
    /// A connection being made.
    Connect,
    /// A host name being looked up.
    Resolve,
    /// Readiness alone (`readable`, `writable`, `ready`, `async_io`).
    Ready,
    /// A signal of the system.
    Signal,
    /// The end of a child process.
    Child,
}

/// The event that a task waits for with a lock or channel of `mini-sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum SyncKind {
    /// A mutex.
    Lock,
    /// The read lock of a read-write lock.
    ReadLock,
    /// The write lock of a read-write lock.
    WriteLock,
    /// A semaphore's permits.
    Permit,
    /// A notification.
    Notify,
    /// Other tasks to arrive at a barrier.
    Barrier,
    /// A value that another task is making.
    Once,
    /// A message.
    Receive,
    /// Room for a message.
    Send,
    /// The end of a channel's other side.
    Closed,
}

/// The reason why a task waits. A runtime must know every reason, so a new reason is a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// For a socket or another file descriptor; -1 if for none.
    Io(IoKind, i32),
    /// For a time: nanoseconds since the base of the future's clock, `u64::MAX` for never.
    Timer(u64),
    /// For something unknown, until that time at most.
    Limit(u64),
    /// For the task of that number.
    Join(u64),
    /// For one of this number of tasks.
    JoinSet(u64),
    /// For its worker to have nothing else to do.
    Idle,
    /// For a lock or channel, with the id of the task that took it: 0 if that is not known, [`ITSELF`](crate::ITSELF)
    /// if it is the waiting task itself. See also [`taken`](crate::taken).
    Sync(SyncKind, u64),
    /// For a lock at that address, whose [`holder`](crate::holder) is to be looked up when the wait is reported.
    SyncAt(SyncKind, u64),
    /// For the cancellation of a token.
    Cancel,
}

/// The place where a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The reason for the wait.
    pub reason: Reason,
    /// The source line of the call that made the future; for the wait for a task, the line of that task's spawn.
    pub location: &'static Location<'static>,
}

/// The notes of the last leaves of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The event that the task waits for.
    pub wait: Option<Wait>,
    /// The time that the task waits for. A limit's note gives way to any other, and an outer limit's to an inner one's.
    pub timer: Option<Wait>,
}

impl Notes {
    /// Returns `true` if nothing is known.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.wait.is_none() && self.timer.is_none()
    }
}

/// The number of notes left before; see [`mark_notes`].
#[derive(Clone, Copy, Debug)]
pub struct NoteMark(u64);

/// The counts in `Local::noted`: waits in the upper half, timers in the lower one. After 2³² timers the lower half
/// carries into the upper one: a future that is polled at that moment may take an earlier wait for its own.
const ONE_WAIT: u64 = 1 << 32;
const ONE_TIMER: u64 = 1;

/// A guard: while it lives, nothing that this thread polls is part of the poll in progress. Dropping it restores the
/// notes, the budget and the task of that poll. Made by [`set_poll_aside`].
#[derive(Debug)]
#[must_use = "dropping it brings the poll back at once"]
pub struct PollAside {
    notes: Notes,
    noted: u64,
    promoted: u64,
    /// The poll has waits that are not in its notes, which are unknown from then on.
    has_others: bool,
    budget: u8,
    refusals: u16,
    refused: Refused,
    task: u64,
    /// The poll belongs to this thread.
    stays: PhantomData<*const ()>,
}

/// Leaves a note: the leaf that is polled waits.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, leave_note, take_notes};
///
/// let note = Note { reason: Reason::Timer(3_000), location: Location::caller() };
/// leave_note(note);
/// assert_eq!(take_notes().timer, Some(note.into()));
/// ```
#[inline]
pub fn leave_note(note: Note) {
    LOCAL.with(|local| match note.reason {
        Reason::Limit(_) if local.timer.get().is_some() => {}
        Reason::Timer(_) | Reason::Limit(_) => {
            local.timer.set(Some(Wait::from(note)));
            local.noted.set(local.noted.get().wrapping_add(ONE_TIMER));
        }
        _ => {
            let wait = Wait::from(note);
            if local.wait.get().is_some() {
                others::add(local, wait);
            }
            local.wait.set(Some(wait));
            local.noted.set(local.noted.get().wrapping_add(ONE_WAIT));
        }
    });
}

/// Takes back the note of a leaf that no longer waits, unless it is a timer's. Then the note of an earlier leaf of this
/// poll is the last one, as far as these are kept.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, forget_wait, leave_note, notes};
///
/// leave_note(Note { reason: Reason::Idle, location: Location::caller() });
/// forget_wait(|wait| wait.is_for(Reason::Idle));
/// assert!(notes().is_empty());
/// ```
#[inline]
pub fn forget_wait(mut is_mine: impl FnMut(Wait) -> bool) {
    LOCAL.with(|local| {
        let Some(wait) = local.wait.get() else { return }; // then there are no others
        if is_mine(wait) {
            local.wait.set(None);
        }
        if local.others.get() > 0 {
            others::remove(local, &mut is_mine);
        }
    });
}

/// Takes back the note of a timer that no longer waits, like [`forget_wait`].
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, forget_timer, leave_note, notes};
///
/// leave_note(Note { reason: Reason::Timer(1), location: Location::caller() });
/// forget_timer(|timer| timer.is_for(Reason::Timer(1)));
/// assert!(notes().is_empty());
/// ```
#[inline]
pub fn forget_timer(is_mine: impl FnOnce(Wait) -> bool) {
    LOCAL.with(|local| {
        if local.timer.get().is_some_and(is_mine) {
            local.timer.set(None);
        }
    });
}

/// Returns the notes of the poll in progress, and keeps them.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll(0);
/// assert!(mini_context::notes().is_empty());
/// ```
#[inline]
pub fn notes() -> Notes {
    LOCAL.with(|local| Notes { wait: local.wait.get(), timer: local.timer.get() })
}

/// Takes the notes of the poll in progress.
///
/// # Examples
///
/// ```
/// mini_context::take_notes();
/// assert!(mini_context::notes().is_empty());
/// ```
#[inline]
pub fn take_notes() -> Notes {
    swap_notes(Notes::default())
}

/// Sets the notes, and returns the previous ones. Other waits that were kept with them are lost. For a poll within a
/// poll, which must not touch the notes of the outer one.
///
/// # Examples
///
/// ```
/// let outer = mini_context::take_notes();
/// // What is polled here leaves its own.
/// mini_context::swap_notes(outer);
/// ```
#[inline]
pub fn swap_notes(notes: Notes) -> Notes {
    LOCAL.with(|local| {
        others::forget(local);
        Notes { wait: local.wait.replace(notes.wait), timer: local.timer.replace(notes.timer) }
    })
}

/// Remembers the number of notes before a future is polled; see [`notes_since`].
///
/// # Examples
///
/// See [`notes_since`].
#[must_use]
#[inline]
pub fn mark_notes() -> NoteMark {
    LOCAL.with(|local| NoteMark(local.noted.get()))
}

/// Returns the notes that were left since the mark, in the same poll, and not taken back. There is no wait among them
/// if the last one was taken back and an earlier one is left: that may be from before the mark.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, leave_note, mark_notes, notes_since};
///
/// let [wait, timer] = [Reason::Idle, Reason::Timer(1)].map(|reason| Note { reason, location: Location::caller() });
/// leave_note(wait);
/// let mark = mark_notes();
/// leave_note(timer);
/// assert_eq!((notes_since(mark).wait, notes_since(mark).timer), (None, Some(timer.into())));
/// ```
#[must_use]
pub fn notes_since(mark: NoteMark) -> Notes {
    LOCAL.with(|local| {
        let changed = local.noted.get() ^ mark.0;
        // The wait of an earlier leaf may be one from before the mark.
        let is_last = local.promoted.get() != local.noted.get();
        let (wait, timer) = (changed >= ONE_WAIT && is_last, changed as u32 != 0);
        Notes { wait: local.wait.get().filter(|_| wait), timer: local.timer.get().filter(|_| timer) }
    })
}

/// Sets the poll in progress aside until the guard is dropped: its notes, its budget, its task. For code in a poll that
/// polls futures which are no part of it, as if no runtime polled on this thread.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, leave_note, notes, set_poll_aside};
///
/// let note = Note { reason: Reason::Idle, location: Location::caller() };
/// mini_context::begin_poll(7);
/// leave_note(note);
/// mini_context::spend(mini_context::BUDGET);
/// let aside = set_poll_aside();
/// assert!(notes().is_empty() && mini_context::has_budget());
/// drop(aside);
/// assert_eq!(notes().wait, Some(note.into()));
/// assert!(!mini_context::has_budget());
/// ```
pub fn set_poll_aside() -> PollAside {
    let has_others = others::has_others();
    let notes = take_notes();
    LOCAL.with(|local| PollAside {
        notes,
        noted: local.noted.get(),
        promoted: local.promoted.get(),
        has_others,
        budget: local.budget.replace(crate::ENDLESS),
        refusals: local.refusals.get(),
        refused: local.refused.get(),
        task: local.task.replace(0),
        stays: PhantomData,
    })
}

impl Drop for PollAside {
    fn drop(&mut self) {
        swap_notes(self.notes);
        LOCAL.with(|local| {
            local.noted.set(self.noted);
            local.promoted.set(self.promoted);
            local.budget.set(self.budget);
            local.refusals.set(self.refusals);
            local.refused.set(self.refused);
            local.task.set(self.task);
        });
        if self.has_others {
            others::note_unknown();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn note(reason: Reason) -> Note {
        Note { reason, location: Location::caller() }
    }

    #[test]
    fn a_timer_stands_beside_another_wait_and_the_last_of_each_counts() {
        take_notes();
        let [timer, read, idle] = [Reason::Timer(1), Reason::Io(IoKind::Read, 3), Reason::Idle].map(note);
        for note in [timer, read, idle] {
            leave_note(note);
        }
        assert_eq!(take_notes(), Notes { wait: Some(idle.into()), timer: Some(timer.into()) });
    }

    #[test]
    fn a_limit_gives_way_to_other_timers() {
        take_notes();
        let [limit, inner, timer] = [Reason::Limit(2), Reason::Limit(1), Reason::Timer(3)].map(note);
        leave_note(inner);
        leave_note(limit);
        assert_eq!(notes().timer, Some(inner.into()));
        leave_note(timer);
        assert_eq!(take_notes().timer, Some(timer.into()));
        leave_note(timer);
        leave_note(limit);
        assert_eq!(take_notes().timer, Some(timer.into()));
    }

    #[test]
    fn only_the_last_note_is_taken_back() {
        take_notes();
        leave_note(note(Reason::Join(1)));
        leave_note(note(Reason::Join(2)));
        forget_wait(|wait| wait.is_for(Reason::Join(1)));
        assert_eq!(notes().wait.unwrap().reason(), Reason::Join(2));
        forget_timer(|_| true);
        forget_wait(|wait| wait.is_for(Reason::Join(2)));
        assert!(notes().is_empty());
    }

    #[test]
    fn a_neighbours_notes_are_not_those_since_the_mark() {
        take_notes();
        let [read, timer, limit] = [Reason::Io(IoKind::Read, 3), Reason::Timer(1), Reason::Limit(2)].map(note);
        leave_note(read);
        leave_note(timer);
        let mark = mark_notes();
        assert!(notes_since(mark).is_empty());
        leave_note(limit);
        assert!(notes_since(mark).is_empty(), "it gave way to the neighbour's timer, which stays the neighbour's");
        // The same note once more is a new one.
        leave_note(read);
        assert_eq!(notes_since(mark), Notes { wait: Some(read.into()), timer: None });
        let mark = mark_notes();
        leave_note(timer);
        assert_eq!(notes_since(mark), Notes { wait: None, timer: Some(timer.into()) });
        forget_timer(|_| true);
        assert!(notes_since(mark).is_empty());
    }

    #[test]
    fn notes_of_another_poll_are_not_those_since_the_mark() {
        take_notes();
        let [read, timer] = [Reason::Io(IoKind::Read, 3), Reason::Timer(1)].map(note);
        leave_note(read);
        let mark = mark_notes();
        let aside = set_poll_aside();
        leave_note(timer);
        leave_note(note(Reason::Idle));
        drop(aside);
        assert_eq!(notes(), Notes { wait: Some(read.into()), timer: None });
        assert!(notes_since(mark).is_empty());
    }
}
