//! Where a poll waits: left by a leaf future each time it returns `Pending`, taken back when that is dropped.
//!
//! There is room for two notes: the last leaf that waits for something to happen, and the last that waits for a time.
//! Many tasks wait for whichever of the two comes first.

use std::panic::Location;

use crate::LOCAL;

/// What a task waits for with a file descriptor.
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
}

/// What a task waits for. A runtime must know every reason, so a new reason is a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// For a socket or another file descriptor; -1 if for none.
    Io(IoKind, i32),
    /// For a time: nanoseconds since the base of the clock that the future goes by, `u64::MAX` for never.
    Timer(u64),
    /// For something unknown, until that time at most.
    Limit(u64),
    /// For the task of that number.
    Join(u64),
    /// For one of so many tasks.
    JoinSet(u64),
    /// For its worker to have nothing else to do.
    Idle,
    /// For the cancellation of a token.
    Cancel,
}

/// Where a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it waits for.
    pub reason: Reason,
    /// The source line of the call that made the future; for the wait for a task, the line of that task's spawn.
    pub location: &'static Location<'static>,
}

/// The notes of the last leaves of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// What the task waits for to happen.
    pub wait: Option<Note>,
    /// The time that the task waits for. A limit's note gives way to any other, and an outer limit's to an inner one's.
    pub timer: Option<Note>,
}

impl Notes {
    /// Whether nothing is known.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.wait.is_none() && self.timer.is_none()
    }
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
/// assert_eq!(take_notes().timer, Some(note));
/// ```
#[inline]
pub fn leave_note(note: Note) {
    LOCAL.with(|local| match note.reason {
        Reason::Limit(_) if local.timer.get().is_some() => {}
        Reason::Timer(_) | Reason::Limit(_) => local.timer.set(Some(note)),
        _ => local.wait.set(Some(note)),
    });
}

/// Takes back the note of a leaf that no longer waits, if it is the last note that is not a timer's. The note of an
/// earlier leaf is lost as well: then nothing is known.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, forget_wait, leave_note, notes};
///
/// leave_note(Note { reason: Reason::Idle, location: Location::caller() });
/// forget_wait(|note| note.reason == Reason::Idle);
/// assert!(notes().is_empty());
/// ```
#[inline]
pub fn forget_wait(is_mine: impl FnOnce(&Note) -> bool) {
    LOCAL.with(|local| {
        if local.wait.get().as_ref().is_some_and(is_mine) {
            local.wait.set(None);
        }
    });
}

/// As [`forget_wait`], for a timer.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{Note, Reason, forget_timer, leave_note, notes};
///
/// leave_note(Note { reason: Reason::Timer(1), location: Location::caller() });
/// forget_timer(|note| note.reason == Reason::Timer(1));
/// assert!(notes().is_empty());
/// ```
#[inline]
pub fn forget_timer(is_mine: impl FnOnce(&Note) -> bool) {
    LOCAL.with(|local| {
        if local.timer.get().as_ref().is_some_and(is_mine) {
            local.timer.set(None);
        }
    });
}

/// The notes of the poll in progress, which stay.
///
/// # Examples
///
/// ```
/// # mini_context::begin_poll();
/// assert!(mini_context::notes().is_empty());
/// ```
#[inline]
pub fn notes() -> Notes {
    LOCAL.with(|local| Notes { wait: local.wait.get(), timer: local.timer.get() })
}

/// Takes the notes.
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

/// Sets the notes, and returns those before. For a poll within a poll: it must not touch the notes of the outer one.
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
    LOCAL.with(|local| Notes { wait: local.wait.replace(notes.wait), timer: local.timer.replace(notes.timer) })
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
        assert_eq!(take_notes(), Notes { wait: Some(idle), timer: Some(timer) });
    }

    #[test]
    fn a_limit_gives_way_to_other_timers() {
        take_notes();
        let [limit, inner, timer] = [Reason::Limit(2), Reason::Limit(1), Reason::Timer(3)].map(note);
        leave_note(inner);
        leave_note(limit);
        assert_eq!(notes().timer, Some(inner));
        leave_note(timer);
        assert_eq!(take_notes().timer, Some(timer));
        leave_note(timer);
        leave_note(limit);
        assert_eq!(take_notes().timer, Some(timer));
    }

    #[test]
    fn only_the_last_note_is_taken_back() {
        take_notes();
        leave_note(note(Reason::Join(1)));
        leave_note(note(Reason::Join(2)));
        forget_wait(|note| note.reason == Reason::Join(1));
        assert_eq!(notes().wait.unwrap().reason, Reason::Join(2));
        forget_timer(|_| true);
        forget_wait(|note| note.reason == Reason::Join(2));
        assert!(notes().is_empty());
    }
}
