//! The ways of a new task into its core: from the owner, to its own tasks or to those that any worker may run; from
//! another thread; registered for somebody else who queues it.
//!
//! A closed core takes none: they are cancelled.
//!
//! `register_owned` is inlined into both of its callers: whether a task is pinned is known there, and was asked four
//! times for each spawn. The list of tasks knows whether a recorder must be told, so that one question is enough.

use super::Core;
use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::{lock, thread};
use crate::task::owned::OwnedTasks;
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
        if let Err(task) = self.owned_tasks().insert_untold(task, pinned)
            && !self.register_owned_late(task, pinned)
        {
            return false;
        }
        self.local(|local| local.queues[Class::Woken as usize].push_back(entry));
        self.counts.spawned.add(1);
        true
    }

    #[cold]
    fn register_owned_late(&self, task: Task, pinned: bool) -> bool {
        match self.owned_tasks().insert(self.tell_spawn(task), pinned) {
            Ok(()) => true,
            Err(task) => {
                task.into_queued().cancel();
                false
            }
        }
    }

    fn tell_spawn(&self, task: Task) -> Task {
        match &self.probe {
            Some(probe) => probe.spawned(task),
            None => task,
        }
    }

    /// Registers and queues a shared task that this thread, the owner, has spawned.
    pub(crate) fn spawn_shared(&self, task: Task) {
        let registered = match self.insert_shared(task, OwnedTasks::insert_untold) {
            Ok(entry) => Some(entry),
            Err(task) => self.register_shared(self.tell_spawn(task)),
        };
        if let Some(entry) = registered {
            self.push_shared(entry, Class::Woken);
            self.shared().wake_early(self);
        }
    }

    /// Registers a shared task of which a recorder knows; `None` if the core is closed and the task was cancelled.
    pub(crate) fn register_shared(&self, task: Task) -> Option<Queued> {
        self.insert_shared(task, OwnedTasks::insert).map_err(|task| task.into_queued().cancel()).ok()
    }

    /// Gives the task back, with the lock released, if `insert` does so.
    #[inline(always)]
    fn insert_shared(
        &self,
        task: Task,
        insert: impl FnOnce(&OwnedTasks<Task>, Task, bool) -> Result<(), Task>,
    ) -> Result<Queued, Task> {
        let entry = task.queued();
        let tasks = lock(&self.shared_tasks);
        insert(&tasks, task, false)?;
        self.shared_begun.store(self.shared_begun.load(Relaxed) + 1, Relaxed);
        Ok(entry)
    }

    /// Posts a task that another thread has spawned for this core. Cancels it if the core is closed.
    pub(crate) fn spawn_posted(&self, task: Task) {
        self.note_intruder(task.id().get());
        if let Some(recorder) = &self.shared().recorder {
            recorder.spawned(&task);
        }
        let registry = lock(&self.shared_tasks);
        if registry.is_closed() {
            drop(registry);
            return task.into_queued().cancel();
        }
        self.counts.posted.add(1);
        self.inbox.push(task); // under the lock: whoever closes the registry finds it
        drop(registry);
        self.unparker.unpark();
    }
}
