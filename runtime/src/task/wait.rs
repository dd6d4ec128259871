//! What a task waits for: written by its runner after a poll that was not ready, read by whoever prints the task.
//!
//! Two plain stores per pending poll. A reader on another thread may catch the two fields of different waits; this
//! is for people, not for decisions.

#![allow(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use mini_net::Kind;

/// The wait slot of a task: source line and reason of its last pending leaf future.
#[derive(Debug)]
pub(crate) struct WaitSlot {
    location: AtomicPtr<Location<'static>>,
    reason: AtomicU64, // kind in the top four bits; fd, task id, number or nanoseconds below
}

/// Why a task is not running, with the fd, task or time it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// For a socket or another file descriptor.
    Io(Kind, i32),
    /// For a timer; nanoseconds since the clock's base.
    Timer(u64),
    /// For another task.
    Join(u64),
    /// For one of the tasks of a set, which has that many.
    JoinSet(u64),
    /// For its worker to have nothing else to do.
    Idle,
}

const KIND_SHIFT: u32 = 60;
const VALUE: u64 = (1 << KIND_SHIFT) - 1;
const TIMER: u64 = 1;
const JOIN: u64 = 2;
const IO: u64 = 3;
const JOIN_SET: u64 = 4;
const IDLE: u64 = 5;

impl WaitSlot {
    pub(crate) const fn new() -> Self {
        Self { location: AtomicPtr::new(ptr::null_mut()), reason: AtomicU64::new(0) }
    }

    pub(crate) fn set(&self, reason: Reason, location: &'static Location<'static>) {
        let (kind, value) = match reason {
            Reason::Timer(ns) => (TIMER, ns),
            Reason::Join(id) => (JOIN, id),
            Reason::JoinSet(tasks) => (JOIN_SET, tasks),
            Reason::Idle => (IDLE, 0),
            Reason::Io(kind, fd) => (IO, u64::from(kind as u8) << 32 | u64::from(fd as u32)),
        };
        self.reason.store(kind << KIND_SHIFT | value & VALUE, Relaxed);
        self.location.store(ptr::from_ref(location).cast_mut(), Relaxed);
    }

    /// The last wait, if the task has waited for something that mini knows.
    pub(crate) fn get(&self) -> Option<(Reason, &'static Location<'static>)> {
        // SAFETY: the pointer is null or came from a `&'static Location` in `set`.
        // Test: tests/tests/tasks.rs `debug_shows_where_a_task_waits`.
        let location = unsafe { self.location.load(Relaxed).as_ref() }?;
        let reason = self.reason.load(Relaxed);
        let value = reason & VALUE;
        let reason = match reason >> KIND_SHIFT {
            TIMER => Reason::Timer(value),
            JOIN => Reason::Join(value),
            JOIN_SET => Reason::JoinSet(value),
            IDLE => Reason::Idle,
            _ => Reason::Io(kind_from(value >> 32), value as u32 as i32),
        };
        Some((reason, location))
    }
}

/// The kind that was stored as `kind as u8`.
fn kind_from(number: u64) -> Kind {
    const KINDS: [Kind; 5] = [Kind::Read, Kind::Write, Kind::Accept, Kind::Connect, Kind::Resolve];
    KINDS.into_iter().find(|&kind| kind as u64 == number).unwrap_or(Kind::Ready)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind, fd) => write!(f, "{kind:?} on fd {fd}"),
            Self::Timer(_) => write!(f, "Timer"),
            Self::Join(id) => write!(f, "Join of task {id}"),
            Self::JoinSet(tasks) => write!(f, "Join of one of {tasks} tasks"),
            Self::Idle => write!(f, "Idle worker"),
        }
    }
}
