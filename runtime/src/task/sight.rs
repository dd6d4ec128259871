//! What a thread that does not run a task sees of it.
//!
//! The caller keeps the task alive, by a reference or by the lock of the list in which the task is; nothing here counts
//! or queues. What is read are several words, and the task may go on between two of them. A poll changes the number of
//! polls, so what was read counts if that is the same before and after, and the state with it; else it is read again.
//!
//! Rejected: to hold the task meanwhile, as its runner does. A task that is being polled could not be read at all, and
//! to read an owned one its owner would have to go on.

use mini_context::Holder;

use super::Task;
use super::error::Source;
use super::wait::LastWait;

/// Whether a task wants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    /// For a wake.
    Waits,
    /// It runs, is queued, or is on its way to a queue.
    Ready,
    Ended,
}

/// A task at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) source: Source,
    /// Modulo 2^30.
    pub(crate) polls: u32,
    pub(crate) standing: Standing,
    /// What its last poll was pending for; none before that.
    pub(crate) wait: Option<LastWait>,
    /// If that is a lock or a channel: the task that has it, or the other end.
    pub(crate) holder: Option<Holder>,
    /// Whether it waits for something beside that.
    pub(crate) has_beside: bool,
    /// References beside those of the runtime and of handles: wakers. Where handles that abort are not counted, which
    /// is in tasks that can have no name, these too.
    pub(crate) others: i32,
    /// There is a handle that may abort it, and that does not wait for it.
    pub(crate) is_kept: bool,
    /// For how many nanoseconds it has run since it last waited; at most `u32::MAX`.
    pub(crate) since_wait: u32,
}

/// What changes while it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Changing {
    polls: u32,
    standing: Standing,
    wait: Option<LastWait>,
    others: i32,
    aborts: i32,
}

/// How often a task is read that goes on meanwhile.
const TRIES: usize = 3;

impl Task {
    /// The task as it is now. Any thread.
    pub(crate) fn sight(&self) -> Sight {
        let header = self.header();
        let mut seen = Changing::read(self);
        for _ in 0..TRIES {
            let before = std::mem::replace(&mut seen, Changing::read(self));
            if before == seen {
                break;
            }
            seen.standing = Standing::Ready; // it goes on, whatever it has just been seen to do
        }
        let Changing { polls, standing, wait, others, aborts } = seen;
        Sight {
            source: self.source(),
            polls,
            standing,
            wait,
            holder: header.wait.holder(),
            has_beside: header.wait.has_beside(),
            others,
            is_kept: header.refs.is_kept() || aborts > 0,
            since_wait: header.times.since_wait(),
        }
    }
}

impl Changing {
    fn read(task: &Task) -> Self {
        let header = task.header();
        let polls = header.stage.polls();
        let wait = header.wait.get(header.id.get());
        let aborts = task.aborts(0);
        let others = header.refs.others(&header.local) - aborts;
        Self { polls, standing: header.state.standing(), wait, others, aborts }
    }
}
