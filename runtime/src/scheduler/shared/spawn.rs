//! The ways of a new task to its worker.

use super::Shared;
use crate::scheduler::context;
use crate::scheduler::core::Core;
use crate::task::{Start, Task};

/// How a new task reaches its worker.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// The core's own queue. This thread holds the core, as for the next.
    Queue,
    LocalQueue,
    /// The core's inbox.
    Inbox,
    Injector,
}

impl Way {
    pub(super) fn start(self) -> Start {
        match self {
            Way::Queue => Start::Owned,
            Way::Inbox => Start::Posted,
            Way::LocalQueue | Way::Injector => Start::Shared,
        }
    }
}

impl Shared {
    /// The core of a task that this thread spawns, and how it gets there.
    pub(super) fn place(&self) -> (&Core, Way) {
        match (context::held_of(self), self.is_multi_thread()) {
            (Some(core), true) => (core, Way::LocalQueue),
            (Some(core), false) => (core, Way::Queue),
            (None, is_multi_thread) => {
                self.process.check("spawn");
                (self.external_core(), if is_multi_thread { Way::Injector } else { Way::Inbox })
            }
        }
    }

    /// Registers and queues a new task.
    #[inline]
    pub(super) fn start(&self, task: Task, core: &Core, way: Way) {
        match way {
            Way::Queue => core.spawn_owned(task, false),
            Way::LocalQueue => core.spawn_shared(task),
            Way::Inbox => core.spawn_posted(task),
            Way::Injector => self.spawn_injected(core, task),
        }
    }

    /// Registers a shared task with `core`, and leaves it for any worker.
    fn spawn_injected(&self, core: &Core, task: Task) {
        if let Some(entry) = core.register_shared(task) {
            self.inject([entry]);
        }
    }
}
