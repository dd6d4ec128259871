//! The ways of a new task to its worker.

use super::Shared;
use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::task::{Start, Task};

impl Shared {
    /// The core of a task that this thread spawns, and how it gets there.
    pub(super) fn place(&self) -> (&Core, Start) {
        match (current::held_of(self), self.is_multi_thread()) {
            (Some(core), true) if !core.is_guest() => (core, Start::Shared),
            (Some(core), false) => (core, Start::Owned),
            (_, is_multi_thread) => {
                self.process.check("spawn");
                (self.external_core(), if is_multi_thread { Start::Injected } else { Start::Posted })
            }
        }
    }

    /// Registers and queues a new task. With [`Start::Shared`] and [`Start::Owned`] this thread holds the core.
    #[inline]
    pub(super) fn start(&self, task: Task, core: &Core, start: Start) {
        match start {
            Start::Owned => core.spawn_owned(task),
            Start::Shared => core.spawn_shared(task),
            Start::Posted => core.spawn_posted(task),
            Start::Injected => self.spawn_injected(core, task),
        }
    }

    /// Registers a shared task with `core`, and leaves it for any worker.
    fn spawn_injected(&self, core: &Core, task: Task) {
        for observer in &self.config.observers {
            observer.spawned(&task);
        }
        if let Some(entry) = core.register_shared(task) {
            self.inject(entry);
        }
    }
}
