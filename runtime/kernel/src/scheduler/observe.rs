//! Observers: who is told what the workers of a runtime do.
//!
//! Set by [`Config`](super::config::Config); most runtimes have none, and pay a branch for each question. The owner of
//! a core tells that core's observers, other threads the runtime's. An observer says only what it hears.

use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

use super::shared::Shared;
use crate::task::{Id, Task};

/// The observer of a runtime, told by threads that hold no core.
pub trait Observe: Send + Sync {
    /// An observer for one more core, if it has one: that of a worker, or of a guest.
    fn of_core(self: Arc<Self>, index: usize, is_guest: bool) -> Option<Box<dyn ObserveCore>>;

    fn woken(&self, _id: u64) {}

    /// Also of a blocking job, which any thread spawns. Neither this nor [`discarded`](Self::discarded) is called for a
    /// task that a core refuses, as it is closed: an observer that spawns a task for each that ends would never end.
    fn spawned(&self, _task: &Task) {}

    fn job_begins(&self, _job: Who) {}

    fn job_ends(&self, _job: Who) {}

    /// A task has ended without a poll: as its core closes, or a job before it began.
    fn discarded(&self, _task: Who) {}

    /// The runtime has ended, or a `block_on` has panicked: what was seen may be written. Called more than once.
    fn ended(&self, _shared: &Shared) {}

    /// For the module that has set it.
    fn as_any(&self) -> &dyn Any;
}

/// The observer of a core, told by the core's owner.
pub trait ObserveCore: Send + Sync {
    /// The poll of a task begins, with the end of the last one if the worker did `nothing_else` since.
    fn begin(&self, task: Who, nothing_else: bool);

    /// The poll is over, of a task that may have been compute-bound.
    fn end(&self, then: Then, was_compute_bound: bool);

    /// Whether [`end`](Self::end) may run code of a user, whose time is no part of the next poll.
    fn has_hooks(&self) -> bool {
        false
    }

    /// The owner waits for something to do.
    fn parks(&self) {}

    /// The owner leaves the core.
    fn leaves(&self) {
        self.parks();
    }

    /// The owner has waited, or a thread has taken the core.
    fn unparks(&self) {}

    /// The owner queues a task.
    fn woken(&self, _id: u64) {}

    /// The owner spawns a task, which is given back: a reference to it would be a store for those who do not observe.
    fn spawned(&self, task: Task) -> Task {
        task
    }

    /// The owner has taken tasks from another core.
    fn stole(&self, _tasks: usize) {}

    /// The owner has delivered events and fired timers.
    fn delivered(&self, _events: usize, _timers: usize) {}

    /// The owner wakes a future of the idle queue.
    fn wakes_idle(&self) {}

    /// A driver check or a wait follows, or the owner leaves the core. May run code of a user.
    fn turn_ends(&self) {}

    /// The numbers of tasks that wait here, and for any worker.
    fn queues(&self, _here: usize, _injected: usize) {}

    /// For the module that has set it.
    fn as_any(&self) -> &dyn Any;
}

/// The task that an observer is told of, which may be gone afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub id: Id,
    pub location: &'static Location<'static>,
}

impl Who {
    pub fn of(task: &Task) -> Self {
        Self { id: task.id(), location: task.location() }
    }
}

/// The state of a task after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Waits,
    /// It asks to be polled again, or was woken meanwhile.
    Asks,
    Ended,
}
