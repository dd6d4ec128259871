//! The view of a task from a thread that does not poll it.
//!
//! The caller keeps the task alive, by a reference or by the lock of the list in which the task is; nothing here counts
//! or queues. The view has several words, and the task may be polled between the reads of two of them:
//!
//! ```text
//!   runner of poll n              reader
//!   state = CLAIMED               number of polls, state
//!   number of polls = n           what it waits for
//!   what it waits for             state, number of polls
//!   state = idle
//! ```
//!
//! Each store of the runner releases what came before it, each load acquires. A reader that finds the number n sees
//! that the task was claimed for poll n. So if it then finds the task idle, poll n has ended, and the reader sees the
//! values that this poll has left. The values of a later poll come with the number of that poll, which the last read
//! finds. So the values in between belong together if number and state are the same at both ends. If not, the task is
//! being polled, and waits for nothing.
//!
//! These are the orders of plain loads and stores on x86, so the runner pays nothing for them there.
//!
//! Rejected: to hold the task during the read, as its runner does. A task that is being polled could not be read at
//! all, and to read an owned task its owner would have to make progress. To read a task again until two reads agree:
//! for a task that makes progress the report is just that.

use std::panic::Location;

use mini_context::Holder;

use super::owned::OwnedTasks;
use super::refcount::{LocalCount, RefCount};
use super::stage::StageWord;
use super::state::State;
use super::wait::{SeenWait, SlotWords, WaitSlot};
use super::{Header, Id, Task};

/// The readiness of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// For a wake.
    Waits,
    /// It is polled, is queued, or is on its way to a queue.
    Ready,
    Ended,
}

/// The waits of a task in addition to its last wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Besides {
    Nothing,
    /// Leaves that its last poll has noted.
    Noted,
    /// Nothing that was noted; but there are more wakers of it than the one that its last wait has: of a leaf that is
    /// not mini's, or of one that its last poll has not polled.
    Unnoted,
}

/// The permanent place of a task: the tasks of a core are read in the order of their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u32);

/// Set in the place of a shared task: those are looked at behind the owned ones.
const SHARED: u32 = 1 << 31;

impl Place {
    pub(crate) fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    /// The number of the seat in its list.
    pub fn seat(self) -> usize {
        (self.0 & !SHARED) as usize
    }
}

/// A snapshot of a task: plain words, as a dump has one for each of very many tasks. Its name is read separately.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    pub id: Id,
    pub location: &'static Location<'static>,
    /// What its last poll was pending for; none before that.
    pub wait: SeenWait,
    /// Modulo 2^30.
    pub polls: u32,
    /// For how many nanoseconds it has run since it last waited; at most `u32::MAX`.
    pub since_wait: u32,
    pub place: Place,
    pub standing: Standing,
    pub besides: Besides,
    /// There is a handle that may abort it, and that does not wait for it.
    pub is_kept: bool,
    /// It waits, and has no references beside those of the runtime and of handles, so nobody has a waker. Where handles
    /// that abort are not counted, which is in tasks that can have no name, these count as somebody.
    pub seems_lost: bool,
}

const _: () = assert!(size_of::<Sight>() <= 48, "a dump writes one for each task");

/// Those parts of a task that change while it is looked at.
#[derive(Clone, Copy)]
struct Parts<'a> {
    state: &'a State,
    stage: &'a StageWord,
    wait: &'a WaitSlot,
    refs: &'a RefCount,
    local: &'a LocalCount,
}

impl Parts<'_> {
    /// The number of polls, whether the task wants to run, and what is in its wait slot: which belong together if
    /// [`is_at`](Self::is_at) says so then.
    #[inline]
    fn read(self) -> (u32, Standing, SlotWords) {
        let polls = self.stage.polls();
        let standing = self.state.standing();
        (polls, standing, self.wait.read())
    }

    /// Returns `Ok` if the task was not polled since; otherwise whether it has ended.
    #[inline]
    fn is_at(self, polls: u32, before: Standing) -> Result<(), Standing> {
        let standing = self.state.standing();
        match standing {
            _ if (standing, self.stage.polls()) == (before, polls) => Ok(()),
            Standing::Ended => Err(standing),
            _ => Err(Standing::Ready),
        }
    }

    /// Returns `true` if the task waits since the poll of that number, and seems to have no references except those of
    /// the runtime and of handles, of which `aborts` are counted.
    #[inline]
    fn seems_lost(self, polls: u32, aborts: impl Fn() -> i32) -> bool {
        let has_others = || self.refs.others(self.local) != aborts();
        let waits = || self.state.standing() == Standing::Waits && self.stage.polls() == polls;
        // Twice, as references are counted in two words.
        polls > 0 && waits() && !self.wait.read().asks() && !has_others() && !has_others() && waits()
    }
}

impl Header {
    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts { state: &self.state, stage: &self.stage, wait: &self.wait, refs: &self.refs, local: &self.local }
    }
}

impl Task {
    /// The task as it is now, but for the [`holder`](Self::holder) of what it waits for. Any thread, for a task in a
    /// registry.
    #[inline]
    pub fn sight(&self) -> Sight {
        let header = self.header();
        let (polls, standing, words) = header.parts().read();
        let aborts = self.aborts(0);
        let others = header.refs.others(&header.local) - aborts;
        let besides = match others {
            _ if words.has_beside() => Besides::Noted,
            ..2 => Besides::Nothing,
            2.. => Besides::Unnoted,
        };
        let sight = Sight {
            id: header.id,
            location: header.location,
            wait: words.wait(),
            polls,
            since_wait: header.times.since_wait(),
            place: self.place(),
            standing,
            besides,
            is_kept: header.refs.is_kept() || aborts > 0,
            seems_lost: others == 0 && self.seems_lost(polls),
        };
        self.check(sight)
    }

    /// Returns `true` if the task waits since the poll of that number, and seems to have no references except those of
    /// the runtime and of handles.
    #[inline]
    pub fn seems_lost(&self, polls: u32) -> bool {
        self.header().parts().seems_lost(polls, || self.aborts(0))
    }

    /// Returns `true` if the task waits, and has no references except those of the runtime and its join handle. Exact
    /// for tasks of cores that are at rest.
    pub(crate) fn is_lost(&self) -> bool {
        let parts = self.header().parts();
        parts.seems_lost(parts.stage.polls(), || 0)
    }

    /// The task that holds the lock for which this one waits, or has the other end of the channel; `sight` names it
    /// from now on.
    pub fn holder(&self, sight: &mut Sight) -> Option<Holder> {
        let (wait, holder) = sight.wait.resolve(sight.id.get());
        *sight = self.check(Sight { wait, ..*sight });
        holder
    }

    /// The task as it is now, and the holder of what it waits for.
    pub fn sight_with_holder(&self) -> (Sight, Option<Holder>) {
        let mut sight = self.sight();
        let holder = self.holder(&mut sight);
        (sight, holder)
    }

    /// `sight`, if the task has not gone on since; else a task that does.
    #[inline]
    fn check(&self, sight: Sight) -> Sight {
        match self.header().parts().is_at(sight.polls, sight.standing) {
            Ok(()) => sight,
            Err(standing) => Sight { standing, seems_lost: false, ..sight },
        }
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        let header = self.header();
        let seat = OwnedTasks::<Self>::place(header.seat.get());
        Place(if header.state.is_shared() { seat | SHARED } else { seat })
    }
}

#[cfg(all(test, loom))]
mod models;
