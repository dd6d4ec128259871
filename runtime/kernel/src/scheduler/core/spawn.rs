//! The ways of a new task into its core: from the owner, to its own tasks or to those that any worker may run; from
//! another thread; registered for somebody else who queues it.
//!
//! A closed core takes none: they are cancelled.
//!
//! `register_owned` is inlined into both of its callers: whether a task is pinned is known there, and was asked four
//! times for each spawn.

use super::Core;
use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::{lock, thread};
use crate::task::{Class, Queued, Task};

impl Core {
    /// Registers and queues a task that this thread, the owner, has spawned. Cancels it if the core is closed.
    pub(crate) fn spawn_owned(&self, task: Task) {
        self.register_owned(task, false);
    }

    /// The same for a task that this thread alone may run.
    pub(crate) fn spawn_pinned(&self, task: Task) {
        if self.register_owned(task, true) {
            self.local(|local| local.pinned_to = Some(thread::current().id()));
        }
    }

    /// Says whether the task will run.
    #[inline(always)]
    fn register_owned(&self, task: Task, pinned: bool) -> bool {
        let entry = task.queued();
        if let Err(task) = self.owned_tasks().insert(self.tell_spawn(task), pinned) {
            task.into_queued().refuse();
            return false;
        }
        self.local(|local| local.queues[Class::Woken as usize].push_back(entry));
        self.counts.spawned.add(1);
        true
    }

    #[inline]
    fn tell_spawn(&self, task: Task) -> Task {
        if self.observers.is_empty() || self.is_closed() {
            return task;
        }
        self.observers.iter().fold(task, |task, observer| observer.spawned(task))
    }

    /// Registers and queues a shared task that this thread, the owner, has spawned.
    pub(crate) fn spawn_shared(&self, task: Task) {
        if let Some(entry) = self.register_shared(self.tell_spawn(task)) {
            self.push_shared(entry, Class::Woken);
            self.shared().wake_early(self);
        }
    }

    /// Registers a shared task of which the observer knows; `None` if the core is closed and the task was cancelled.
    pub(crate) fn register_shared(&self, task: Task) -> Option<Queued> {
        let entry = task.queued();
        let tasks = lock(&self.shared_tasks);
        if let Err(task) = tasks.insert(task, false) {
            drop(tasks);
            task.into_queued().refuse();
            return None;
        }
        self.shared_begun.store(self.shared_begun.load(Relaxed) + 1, Relaxed);
        Some(entry)
    }

    /// Posts a task that another thread has spawned for this core. Cancels it if the core is closed.
    pub(crate) fn spawn_posted(&self, task: Task) {
        self.note_intruder(task.id().get());
        if !self.is_closed() {
            for observer in &self.shared().config.observers {
                observer.spawned(&task);
            }
        }
        let registry = lock(&self.shared_tasks);
        if registry.is_closed() {
            drop(registry);
            return task.into_queued().refuse();
        }
        self.counts.posted.add(1);
        self.inbox.push(task); // under the lock: whoever closes the registry finds it
        drop(registry);
        self.unparker.unpark();
    }
}
