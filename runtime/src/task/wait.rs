//! What a task waits for: written by its runner after a poll that was not ready, read by threads that print the task.
//!
//! The slot has room for one leaf of the last poll: a socket's rather than a timer's, and a timer's rather than the
//! limit of a `timeout`, which says nothing of what it limits. Of several of one kind it has the last, the furthest
//! point of the task. Each poll writes the slot anew: if no leaf of mini's is left waiting, it is `unknown`.
//!
//! One or two plain stores per pending poll. A reader on another thread may see the two fields of different waits of
//! the task; this is for people, not for decisions.
//!
//! Rejected: the first leaf of a poll in place of the last one. A poll that goes on after a leaf, and drops it or not,
//! waits further down.

#![allow(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use mini_context::{IoKind, Notes, Reason};

/// The wait slot of a task: what its last poll was pending for.
#[derive(Debug)]
pub(crate) struct WaitSlot {
    location: AtomicPtr<Location<'static>>,
    /// The kind in the top four bits; below it whether there is a timer too; then fd, task id, number or nanoseconds.
    reason: AtomicU64,
}

/// What the last poll of a task was pending for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastWait {
    /// For nothing that mini knows of.
    Unknown,
    /// For nothing: it runs again after the others.
    Yielded,
    Known {
        reason: Reason,
        location: &'static Location<'static>,
        /// For a timer too.
        is_timed: bool,
    },
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
const UNKNOWN: u64 = 7;
const YIELDED: u64 = 8;
const CANCEL: u64 = 9;

impl WaitSlot {
    pub(crate) const fn new() -> Self {
        Self { location: AtomicPtr::new(ptr::null_mut()), reason: AtomicU64::new(0) }
    }

    /// After a poll that was pending: what its leaves have noted. The runner only.
    #[inline]
    pub(super) fn fill(&self, notes: Notes, has_yielded: bool) {
        let (note, timed) = match (notes.wait, notes.timer) {
            (Some(wait), None) => (wait, 0),
            (Some(wait), Some(_)) => (wait, TIMED),
            (None, Some(timer)) => (timer, 0),
            (None, None) => {
                return self.reason.store(if has_yielded { YIELDED } else { UNKNOWN } << KIND_SHIFT, Relaxed);
            }
        };
        self.reason.store(pack(note.reason) | timed, Relaxed);
        self.location.store(ptr::from_ref(note.location).cast_mut(), Relaxed);
    }

    /// The last wait, if a poll was pending.
    pub(crate) fn get(&self) -> Option<LastWait> {
        let word = self.reason.load(Relaxed);
        let value = word & VALUE;
        let reason = match word >> KIND_SHIFT {
            TIMER => Reason::Timer(value),
            JOIN => Reason::Join(value),
            IO => Reason::Io(kind_from(value >> 32), value as u32 as i32),
            JOIN_SET => Reason::JoinSet(value),
            IDLE => Reason::Idle,
            CANCEL => Reason::Cancel,
            LIMIT => Reason::Limit(value),
            UNKNOWN => return Some(LastWait::Unknown),
            YIELDED => return Some(LastWait::Yielded),
            _ => return None,
        };
        // SAFETY: the pointer is null or came from a `&'static Location` in `fill`.
        // Test: tests/tests/tasks.rs `debug_shows_where_a_task_waits`.
        let location = unsafe { self.location.load(Relaxed).as_ref() }?;
        Some(LastWait::Known { reason, location, is_timed: word & TIMED != 0 })
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
        Reason::Io(kind, fd) => (IO, u64::from(kind as u8) << 32 | u64::from(fd as u32)),
    };
    kind << KIND_SHIFT | value & VALUE
}

impl LastWait {
    /// What `notes` say of a poll that was pending.
    pub(super) fn of(notes: Notes) -> Self {
        let slot = WaitSlot::new();
        slot.fill(notes, false);
        slot.get().unwrap_or(Self::Unknown)
    }
}

/// While it lives, nothing that this thread polls is part of the poll in progress. Dropping it restores the notes of
/// that poll.
pub(super) struct NoteAside(Notes);

impl NoteAside {
    pub(super) fn set() -> Self {
        Self(mini_context::take_notes())
    }
}

impl Drop for NoteAside {
    fn drop(&mut self) {
        mini_context::swap_notes(self.0);
    }
}

/// The kind that was stored as `kind as u8`.
fn kind_from(number: u64) -> IoKind {
    const KINDS: [IoKind; 5] = [IoKind::Read, IoKind::Write, IoKind::Accept, IoKind::Connect, IoKind::Resolve];
    KINDS.into_iter().find(|&kind| kind as u64 == number).unwrap_or(IoKind::Ready)
}

impl fmt::Display for LastWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, location, is_timed) = match self {
            Self::Unknown => return f.write_str("unknown"),
            Self::Yielded => return f.write_str("nothing, as it has yielded"),
            Self::Known { reason, location, is_timed } => (reason, location, is_timed),
        };
        match reason {
            Reason::Io(kind, fd) => write!(f, "{kind:?} on fd {fd} at {location}"),
            Reason::Timer(_) => write!(f, "Timer at {location}"),
            Reason::Limit(_) => write!(f, "unknown, with a time limit at {location}"),
            Reason::Join(id) => write!(f, "Join of task {id}, spawned at {location}"),
            Reason::JoinSet(tasks) => write!(f, "Join of one of {tasks} tasks at {location}"),
            Reason::Idle => write!(f, "Idle worker at {location}"),
            Reason::Cancel => write!(f, "Cancellation at {location}"),
        }?;
        if *is_timed { f.write_str(", or a timer") } else { Ok(()) }
    }
}
