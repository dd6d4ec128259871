//! The wait of a task: written by its runner after a poll that was not ready, read by threads that print the task.
//!
//! The slot has room for one leaf of the last poll, which [`Wait::of`] chooses. If there are several of one kind it is
//! the last, the furthest point of the task. Each poll writes the slot anew: if no leaf of mini's is left waiting, the
//! slot is `unknown`.
//!
//! One or two plain stores per pending poll. A reader on another thread may see the two fields of different waits of
//! the task; then the number of polls has changed during the read (`sight.rs`).
//!
//! Rejected: the first leaf of a poll in place of the last one. A poll that continues after a leaf, and drops it or
//! not, waits further down.

#![allow(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::ptr;

use mini_context::{Holder, Notes, Reason, Wait};

use crate::primitives::atomic::{AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Release};

/// The wait slot of a task: what its last poll was pending for.
#[derive(Debug)]
pub struct WaitSlot {
    /// With `BESIDE` in it.
    location: AtomicPtr<Location<'static>>,
    /// That of a [`Wait`], `UNKNOWN`, `YIELDED` or `SPENT`; zero before the first pending poll.
    word: AtomicU64,
}

/// The wait of the last poll of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWait {
    /// For nothing that mini knows of.
    Unknown,
    /// For nothing: it is polled again after the others.
    Yielded,
    /// It was to let others run, with more to do.
    Spent,
    Known(Wait),
}

/// What else a task waits for.
pub type Beside = [Option<Wait>; 3];

/// Words that are no [`Wait`]'s; there is no location then.
const UNKNOWN: u64 = 14 << 60;
const YIELDED: u64 = 15 << 60;
const SPENT: u64 = YIELDED | SPENT_BIT;
const SPENT_BIT: u64 = 1;

/// In the address of the location: the task waits for something beside this.
const BESIDE: usize = 1;

impl WaitSlot {
    pub(crate) fn new() -> Self {
        Self { location: AtomicPtr::new(ptr::null_mut()), word: AtomicU64::new(0) }
    }

    /// After a poll of `task` that was pending: what its leaves have noted. The runner only. It is seldom asked which
    /// task that is.
    #[inline]
    pub(crate) fn fill(&self, notes: Notes, has_yielded: bool, task: impl FnOnce() -> u64) {
        let Some(wait) = Wait::of(notes) else {
            let yielded = YIELDED | if mini_context::was_refused() { SPENT_BIT } else { 0 };
            return self.word.store(if has_yielded { yielded } else { UNKNOWN }, Release);
        };
        // Release: a reader that sees one of these sees the number of the poll too.
        self.word.store(wait.word(), Release);
        let mut location = ptr::from_ref(wait.location()).cast_mut();
        if mini_context::has_others() {
            let _: bool = mini_context::note_others(task()); // or the bit alone says that there are some
            location = location.map_addr(|address| address | BESIDE);
        }
        self.location.store(location, Release);
    }

    /// Fills the slot after a poll of a task that has asked for another poll: usually the task waits for nothing.
    #[inline]
    pub(crate) fn fill_asked(&self, notes: Notes, task: impl FnOnce() -> u64) {
        match notes.is_empty() && !mini_context::was_refused() {
            true => self.word.store(YIELDED, Release),
            false => self.fill_asked_late(notes, task()),
        }
    }

    #[cold]
    fn fill_asked_late(&self, notes: Notes, task: u64) {
        self.fill(notes, true, || task);
    }

    /// Whether the task waits for something beside the last wait.
    pub fn has_beside(&self) -> bool {
        self.read().has_beside()
    }

    /// There is no task any more.
    pub(crate) fn clear(&self) {
        self.word.store(0, Release);
    }

    /// If it waits for a lock or a channel: the task that has it, or the other end.
    pub fn holder(&self) -> Option<Holder> {
        self.read().wait().resolve(0).1
    }

    /// The last wait of the task `task`, whose slot this is, if a poll was pending.
    pub(crate) fn get(&self, task: u64) -> Option<LastWait> {
        self.read().wait().resolve(task).0.get()
    }

    /// Returns the content of the slot.
    #[inline]
    pub(super) fn read(&self) -> SlotWords {
        let word = self.word.load(Acquire);
        SlotWords { word, location: self.location.load(Acquire) }
    }
}

/// The words of a slot as they are: quick to read, and to compare with those that are there later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotWords {
    word: u64,
    /// With `BESIDE` in it. Without a wait it is that of an earlier poll.
    location: *mut Location<'static>,
}

impl SlotWords {
    /// Returns `true` if there is a wait, and a further one.
    #[inline]
    pub(super) fn has_beside(self) -> bool {
        !matches!(self.word, 0 | UNKNOWN | YIELDED | SPENT) && self.location.addr() & BESIDE != 0
    }

    /// Returns `true` if the task has asked for another poll.
    #[inline]
    pub(super) fn asks(self) -> bool {
        matches!(self.word, YIELDED | SPENT)
    }

    /// The wait, which names a lock or a channel by its address.
    #[inline]
    pub(super) fn wait(self) -> SeenWait {
        let location = self.location.map_addr(|address| address & !BESIDE);
        // SAFETY: the pointer is null or came from a `&'static Location` in `fill`.
        // Test: tests/tests/tasks/tasks.rs `debug_shows_where_a_task_waits`.
        SeenWait { word: self.word, location: unsafe { location.as_ref() } }
    }
}

/// A [`LastWait`], or none, in two words.
#[derive(Clone, Copy, Debug)]
pub struct SeenWait {
    word: u64,
    location: Option<&'static Location<'static>>,
}

impl SeenWait {
    pub fn get(self) -> Option<LastWait> {
        match self.word {
            UNKNOWN => Some(LastWait::Unknown),
            YIELDED => Some(LastWait::Yielded),
            SPENT => Some(LastWait::Spent),
            word => Some(LastWait::Known(Wait::from_word(word, self.location?)?)),
        }
    }

    /// Whether this is the same wait, at a lock or channel whose holder is the same if both are resolved.
    pub fn is_same(self, other: Self) -> bool {
        self.word == other.word && self.location.map(ptr::from_ref) == other.location.map(ptr::from_ref)
    }

    /// Returns `true` if the wait names a lock or a channel by its address.
    #[inline]
    pub fn has_address(self) -> bool {
        Wait::has_address(self.word)
    }

    /// The wait of the task `task`; and if it is for a lock or a channel, the task that has it now, or its other end.
    pub(super) fn resolve(self, task: u64) -> (Self, Option<Holder>) {
        let wait = self.location.and_then(|location| Wait::from_word(self.word, location));
        let Some(wait) = wait else { return (self, None) };
        let (wait, holder) = wait.resolve_with_holder(task);
        (Self { word: wait.word(), ..self }, holder)
    }
}

/// What the task `task`, if its slot says that there is something, waits for beside its last wait.
pub fn beside(task: u64) -> Beside {
    mini_context::others(task).map(|wait| Some(wait?.resolve(task)))
}

/// The flag is in none of the addresses.
const _: () = assert!(align_of::<Location<'static>>() > BESIDE);

impl LastWait {
    /// The id of the task that has what this one waits for, if that is known to be another task.
    pub fn holder(self) -> Option<u64> {
        match self {
            Self::Known(wait) => match wait.reason() {
                Reason::Sync(_, 0 | mini_context::ITSELF) => None,
                Reason::Sync(_, holder) => Some(mini_context::untaken(holder).0),
                _ => None,
            },
            _ => None,
        }
    }

    /// The task that it joins, if it does.
    pub fn joins(self) -> Option<u64> {
        match self {
            Self::Known(wait) => match wait.reason() {
                Reason::Join(task) => Some(task),
                _ => None,
            },
            _ => None,
        }
    }

    /// What `notes` say of a poll of `task` that was pending.
    pub fn of(notes: Notes, task: u64) -> Self {
        Wait::of(notes).map_or(Self::Unknown, Self::Known).resolve(task)
    }

    /// That of the task `task`, with the holder of what it waits for as it is now.
    fn resolve(self, task: u64) -> Self {
        match self {
            Self::Known(wait) => Self::Known(wait.resolve(task)),
            other => other,
        }
    }
}

impl LastWait {
    /// The same without a timer beside it.
    pub fn without_timer(self) -> Self {
        match self {
            Self::Known(wait) => Self::Known(wait.without_timer()),
            other => other,
        }
    }
}

impl fmt::Display for LastWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Yielded => f.write_str("nothing, as it has yielded"),
            Self::Spent => f.write_str("nothing, as its budget was spent"),
            Self::Known(wait) => wait.fmt(f),
        }
    }
}
