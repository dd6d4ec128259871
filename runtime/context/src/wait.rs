//! The wait of a task or a future: the most informative of its [`Notes`], and its representation.
//!
//! There is room for one leaf: one that waits for an event rather than a timer, and a timer rather than a time limit,
//! which does not describe what it limits. A flag records that there was a timer too.
//!
//! The reason is one word, so that a runtime can keep a wait in a place that other threads read, an error with a wait
//! stays small, and the notes of a poll are two words each.
//!
//! Rejected: the [`Note`] itself, which takes a word more, and has no room for the flag.

use std::fmt;
use std::panic::Location;
use std::ptr;

use crate::holders::{Holder, end, holder, untaken};
use crate::is_main;
use crate::notes::{IoKind, Note, Notes, Reason, SyncKind};

/// The reason why a task or a future waits, or has waited, with the line of the call.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
/// use mini_context::{IoKind, Note, Notes, Reason, Wait};
///
/// let location = Location::caller();
/// let read = Wait::from(Note { reason: Reason::Io(IoKind::Read, 7), location });
/// let notes = Notes { wait: Some(read), timer: None };
/// let wait = Wait::of(notes).unwrap();
/// assert_eq!(wait.to_string(), format!("Read on fd 7 at {location}"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The kind in the top four bits; below it whether there is a timer too; then fd, task id, number or nanoseconds.
    word: u64,
    location: &'static Location<'static>,
}

const KIND_SHIFT: u32 = 60;
const TIMED: u64 = 1 << (KIND_SHIFT - 1);
const VALUE: u64 = TIMED - 1;
const TIMER: u64 = 1;
const JOIN: u64 = 2;
const IO: u64 = 3;
const JOIN_SET: u64 = 4;
const IDLE: u64 = 5;
const LIMIT: u64 = 6;
const SYNC: u64 = 7;
const CANCEL: u64 = 8;
/// For a lock or channel: the kind above, below it the id of the task that has it.
const HOLDER_BITS: u32 = 48;
const HOLDER: u64 = (1 << HOLDER_BITS) - 1;

/// In the value of a wait for a lock: below the kind is its address.
const KEYED: u64 = 1 << (KIND_SHIFT - 2);

/// In place of the id of a task in a [`Reason::Sync`]: the task waits for something that it took itself.
pub const ITSELF: u64 = HOLDER;

impl Wait {
    /// Returns the wait that is reported for these notes, or `None` if there is no note.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_context::{Notes, Wait};
    ///
    /// assert_eq!(Wait::of(Notes::default()), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn of(notes: Notes) -> Option<Wait> {
        match (notes.wait, notes.timer) {
            (Some(wait), Some(_)) => Some(Wait { word: wait.word | TIMED, ..wait }),
            (wait, timer) => wait.or(timer),
        }
    }

    /// Returns the reason and the flag as one word, which is at least `1 << 60` and less than `14 << 60`.
    ///
    /// # Examples
    ///
    /// See [`from_word`](Wait::from_word).
    #[must_use]
    #[inline]
    pub fn word(self) -> u64 {
        self.word
    }

    /// Returns the wait with that word, at that line, or `None` if no wait has such a word.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Reason, Wait};
    ///
    /// let note = Note { reason: Reason::Join(5), location: Location::caller() };
    /// let wait = Wait::from(note);
    /// assert_eq!(Wait::from_word(wait.word(), wait.location()), Some(wait));
    /// assert_eq!(Wait::from_word(0, wait.location()), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn from_word(word: u64, location: &'static Location<'static>) -> Option<Wait> {
        matches!(word >> KIND_SHIFT, TIMER..=CANCEL).then_some(Wait { word, location })
    }

    /// Returns the reason. A number in it has lost its upper five bits.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Reason, Wait};
    ///
    /// let timer = Note { reason: Reason::Timer(5), location: Location::caller() };
    /// assert_eq!(Wait::from(timer).reason(), Reason::Timer(5));
    /// ```
    #[must_use]
    pub fn reason(self) -> Reason {
        unpack(self.word).expect("the word of a wait has a reason")
    }

    /// Returns `true` if both are of one leaf. Lines are compared by their address: comparing their text would cost a
    /// call and more. If the compiler has a line twice, a leaf that is polled twice in a poll seems to be two.
    #[inline]
    pub(crate) fn is_same(self, other: Wait) -> bool {
        self.word == other.word && ptr::eq(self.location, other.location)
    }

    /// Returns `true` if that is the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Reason, Wait};
    ///
    /// let wait = Wait::from(Note { reason: Reason::Join(5), location: Location::caller() });
    /// assert!(wait.is_for(Reason::Join(5)) && !wait.is_for(Reason::Join(6)));
    /// ```
    #[must_use]
    #[inline]
    pub fn is_for(self, reason: Reason) -> bool {
        self.word & !TIMED == pack(reason)
    }

    /// Returns this wait, at another line.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Reason, Wait};
    ///
    /// let wait = Wait::from(Note { reason: Reason::Idle, location: Location::caller() });
    /// let here = Location::caller();
    /// assert_eq!(wait.at(here).location(), here);
    /// ```
    #[must_use]
    #[inline]
    pub fn at(self, location: &'static Location<'static>) -> Wait {
        Wait { location, ..self }
    }

    /// Returns this wait, of the task `task`, with the current holder of the lock or channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Holder, Note, Reason, SyncKind, Wait};
    ///
    /// let key = std::ptr::from_ref(&0).addr() as u64;
    /// let wait = Wait::from(Note { reason: Reason::SyncAt(SyncKind::Lock, key), location: Location::caller() });
    /// mini_context::set_holder(key, Holder { task: 5, location: None, number: 0 });
    /// assert_eq!(wait.resolve(7).reason(), Reason::Sync(SyncKind::Lock, 5));
    /// assert_eq!(wait.resolve(5).reason(), Reason::Sync(SyncKind::Lock, mini_context::ITSELF));
    /// ```
    #[must_use]
    pub fn resolve(self, task: u64) -> Wait {
        self.resolve_with_holder(task).0
    }

    /// Resolves the wait like [`resolve`](Wait::resolve), and returns everything known about the holder.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Holder, Note, Reason, SyncKind, Wait};
    ///
    /// let key = std::ptr::from_ref(&0).addr() as u64;
    /// let wait = Wait::from(Note { reason: Reason::SyncAt(SyncKind::Lock, key), location: Location::caller() });
    /// let holder = Holder { task: 5, location: None, number: 0 };
    /// mini_context::set_holder(key, holder);
    /// assert_eq!(wait.resolve_with_holder(7), (wait.resolve(7), Some(holder)));
    /// ```
    #[must_use]
    pub fn resolve_with_holder(self, task: u64) -> (Wait, Option<Holder>) {
        if !Self::has_address(self.word) {
            return (self, None);
        }
        let known = self.holder();
        let holder = match known.map_or(0, |holder| holder.task) {
            0 => 0,
            holder if holder == task => ITSELF,
            holder => holder,
        };
        let word = self.word & !(KEYED | HOLDER) | holder & HOLDER;
        (Wait { word, location: self.location }, known)
    }

    /// Returns `true` if a wait with that word names a lock or a channel by its address, so that
    /// [`resolve`](Wait::resolve) changes it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Reason, SyncKind, Wait};
    ///
    /// let word = |reason| Wait::from(Note { reason, location: Location::caller() }).word();
    /// assert!(Wait::has_address(word(Reason::SyncAt(SyncKind::Lock, 64))));
    /// assert!(!Wait::has_address(word(Reason::Timer(u64::MAX))));
    /// ```
    #[must_use]
    #[inline]
    pub fn has_address(word: u64) -> bool {
        word >> KIND_SHIFT == SYNC && word & KEYED != 0
    }

    /// Returns the known facts about the holder that it waits for.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Holder, Note, Reason, SyncKind, Wait};
    ///
    /// let key = std::ptr::from_ref(&0).addr() as u64;
    /// let holder = Holder { task: 5, location: None, number: 0 };
    /// mini_context::set_holder(key, holder);
    /// let wait = Wait::from(Note { reason: Reason::SyncAt(SyncKind::Lock, key), location: Location::caller() });
    /// assert_eq!(wait.holder(), Some(holder));
    /// ```
    #[must_use]
    pub fn holder(self) -> Option<Holder> {
        const ENDS: [u64; 2] = [SyncKind::Send as u64, SyncKind::Receive as u64];
        if !Self::has_address(self.word) {
            return None;
        }
        let (kind, key) = ((self.word & VALUE & !KEYED) >> HOLDER_BITS, self.word & HOLDER);
        if ENDS.contains(&kind) { end(key) } else { holder(key) }
    }

    /// Returns the line of the [`Note`].
    ///
    /// # Examples
    ///
    /// See [`from_word`](Wait::from_word).
    #[must_use]
    #[inline]
    pub fn location(self) -> &'static Location<'static> {
        self.location
    }

    /// Returns this wait without the timer, for code that has already reported more about the timer.
    ///
    /// # Examples
    ///
    /// See [`is_timed`](Wait::is_timed).
    #[must_use]
    pub fn without_timer(self) -> Wait {
        Wait { word: self.word & !TIMED, ..self }
    }

    /// Returns `true` if it waits for a timer too.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    /// use mini_context::{Note, Notes, Reason, Wait};
    ///
    /// let note = |reason| Some(Wait::from(Note { reason, location: Location::caller() }));
    /// let [wait, timer] = [Reason::Join(1), Reason::Timer(5)].map(note);
    /// let both = Wait::of(Notes { wait, timer }).unwrap();
    /// assert!(both.is_timed() && !both.without_timer().is_timed());
    /// assert!(!Wait::of(Notes { wait: None, timer }).unwrap().is_timed());
    /// ```
    #[must_use]
    pub fn is_timed(self) -> bool {
        self.word & TIMED != 0
    }
}

#[inline]
fn pack(reason: Reason) -> u64 {
    let (kind, value) = match reason {
        Reason::Timer(ns) => (TIMER, ns),
        Reason::Limit(ns) => (LIMIT, ns),
        Reason::Join(id) => (JOIN, id),
        Reason::JoinSet(tasks) => (JOIN_SET, tasks),
        Reason::Idle => (IDLE, 0),
        Reason::Cancel => (CANCEL, 0),
        Reason::Sync(kind, holder) => (SYNC, (kind as u64) << HOLDER_BITS | holder & HOLDER),
        Reason::SyncAt(kind, key) => (SYNC, KEYED | (kind as u64) << HOLDER_BITS | key & HOLDER),
        Reason::Io(kind, fd) => (IO, u64::from(kind as u8) << 32 | u64::from(fd as u32)),
    };
    kind << KIND_SHIFT | value & VALUE
}

fn unpack(word: u64) -> Option<Reason> {
    let value = word & VALUE;
    Some(match word >> KIND_SHIFT {
        TIMER => Reason::Timer(value),
        JOIN => Reason::Join(value),
        IO => Reason::Io(kind_from(value >> 32), value as u32 as i32),
        JOIN_SET => Reason::JoinSet(value),
        IDLE => Reason::Idle,
        CANCEL => Reason::Cancel,
        LIMIT => Reason::Limit(value),
        SYNC if value & KEYED != 0 => Reason::SyncAt(sync_kind_from((value & !KEYED) >> HOLDER_BITS), value & HOLDER),
        SYNC => Reason::Sync(sync_kind_from(value >> HOLDER_BITS), value & HOLDER),
        _ => return None,
    })
}

/// The kind that was stored as `kind as u8`.
fn kind_from(number: u64) -> IoKind {
    use IoKind::{Accept, Child, Connect, Read, Resolve, Signal, Write};
    const KINDS: [IoKind; 7] = [Read, Write, Accept, Connect, Resolve, Signal, Child];
    KINDS.into_iter().find(|&kind| kind as u64 == number).unwrap_or(IoKind::Ready)
}

/// The kind of a lock or channel that was stored as `kind as u8`.
fn sync_kind_from(number: u64) -> SyncKind {
    use SyncKind::{Barrier, Closed, Lock, Notify, Once, Permit, ReadLock, Receive, Send, WriteLock};
    const KINDS: [SyncKind; 10] = [Lock, ReadLock, WriteLock, Permit, Notify, Barrier, Once, Receive, Send, Closed];
    KINDS.into_iter().find(|&kind| kind as u64 == number).unwrap_or(Notify)
}

impl From<Note> for Wait {
    #[inline]
    fn from(note: Note) -> Wait {
        Wait { word: pack(note.reason), location: note.location }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Note { reason: self.reason(), location: self.location }.fmt(f)?;
        if self.is_timed() { f.write_str(", or a timer") } else { Ok(()) }
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As it reads in "waits for ..."; a wait for something unknown reads as "unknown, with a time limit at ...".
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.location;
        match self.reason {
            Reason::Io(kind, fd) if fd < 0 => write!(f, "{kind:?} at {location}"),
            Reason::Io(kind, fd) => write!(f, "{kind:?} on fd {fd} at {location}"),
            Reason::Timer(_) => write!(f, "Timer at {location}"),
            Reason::Limit(_) => write!(f, "unknown, with a time limit at {location}"),
            Reason::Join(id) => write!(f, "Join of task {id}, spawned at {location}"),
            Reason::JoinSet(1) => write!(f, "Join of one task at {location}"),
            Reason::JoinSet(tasks) => write!(f, "Join of one of {tasks} tasks at {location}"),
            Reason::Idle => write!(f, "Idle worker at {location}"),
            Reason::Cancel => write!(f, "Cancellation at {location}"),
            Reason::Sync(kind, 0) | Reason::SyncAt(kind, _) => write!(f, "{kind:?} at {location}"),
            Reason::Sync(kind, holder) => {
                let used = match kind {
                    SyncKind::Send => "received",
                    SyncKind::Receive => "sent",
                    _ => "taken",
                };
                write!(f, "{kind:?} at {location}, last {used} by ")?;
                match untaken(holder).0 {
                    _ if holder == ITSELF => f.write_str("this task itself"),
                    task if is_main(task) => f.write_str("the main task"),
                    task => write!(f, "task {task}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn note(reason: Reason) -> Option<Wait> {
        Some(Wait::from(Note { reason, location: Location::caller() }))
    }

    #[test]
    fn every_reason_survives_its_word() {
        let io = (0..=IoKind::Child as u64).map(|number| {
            let kind = kind_from(number);
            assert_eq!(kind as u64, number);
            kind
        });
        let io = io.flat_map(|kind| [-1, 0, i32::MAX].map(|fd| Reason::Io(kind, fd)));
        let number = VALUE;
        let others = [
            Reason::Timer(number),
            Reason::Limit(number),
            Reason::Join(number),
            Reason::JoinSet(number),
            Reason::Idle,
            Reason::Cancel,
        ];
        let sync = (0..=SyncKind::Closed as u64).map(|number| {
            let kind = sync_kind_from(number);
            assert_eq!(kind as u64, number);
            kind
        });
        let sync = sync.flat_map(|kind| {
            [0, HOLDER].into_iter().flat_map(move |value| [Reason::Sync(kind, value), Reason::SyncAt(kind, value)])
        });
        for reason in io.chain(others).chain(sync) {
            for timer in [None, note(Reason::Timer(1))] {
                let wait = Wait::of(Notes { wait: note(reason), timer }).unwrap();
                assert_eq!((wait.reason(), wait.is_timed()), (reason, timer.is_some()));
                assert!((1 << KIND_SHIFT..14 << KIND_SHIFT).contains(&wait.word()));
                assert_eq!(Wait::from_word(wait.word(), wait.location()), Some(wait));
            }
        }
        assert_eq!(Wait::from_word(14 << KIND_SHIFT, Location::caller()), None);
    }

    #[test]
    fn a_number_too_large_touches_neither_kind_nor_flag() {
        let wait = Wait::of(Notes { wait: None, timer: note(Reason::Limit(u64::MAX)) }).unwrap();
        assert_eq!((wait.reason(), wait.is_timed()), (Reason::Limit(VALUE), false));
    }

    #[test]
    fn what_is_no_timer_says_more() {
        let (wait, timer) = (note(Reason::Io(IoKind::Write, 9)), note(Reason::Timer(1)));
        let at = |wait: Option<Wait>| wait.unwrap().location;
        let told = |wait, timer| Wait::of(Notes { wait, timer }).unwrap().to_string();
        assert_eq!(told(wait, timer), format!("Write on fd 9 at {}, or a timer", at(wait)));
        assert_eq!(told(None, timer), format!("Timer at {}", at(timer)));
        let nowhere = note(Reason::Io(IoKind::Read, -1));
        assert_eq!(told(nowhere, None), format!("Read at {}", at(nowhere)));
    }
}
