//! The shared tasks that wait for the owner of a core: a local queue for each class, and the slot of the one to run next.
//!
//! Filled and emptied by the owner, but for thieves: a worker that has nothing left takes half of a queue, and the slot too where
//! the owner is stuck. What a queue has no room for goes to the injector of its class.

use std::ptr::NonNull;

use super::{Core, from_raw};
use crate::scheduler::context;
use crate::scheduler::rules::STEAL_BATCH;
use crate::task::{Class, Queued};

impl Core {
    /// Queues a shared task at the back of its class.
    pub(crate) fn push_shared(&self, task: Queued, class: Class) {
        let queue = match class {
            Class::Woken => &self.woken,
            Class::Again => &self.again,
        };
        if let Err(raw) = queue.push(task.into_raw()) {
            self.overflow(raw, class);
        }
    }

    /// The queue is full, and what comes next goes where any worker finds it. So it comes after all that wait here already.
    #[cold]
    fn overflow(&self, raw: NonNull<()>, class: Class) {
        match class {
            Class::Woken => self.shared().inject([from_raw(raw)]),
            Class::Again => self.shared().again.push(from_raw(raw)),
        }
    }

    /// Queues a shared task that this thread, the owner, has woken.
    ///
    /// At the end: who is woken by many runs once after them, and a server's connection answers in one go what it was asked in
    /// one. Only where nothing else waits there is a shorter way.
    pub(crate) fn queue_woken(&self, task: Queued) {
        if context::is_in_task() && self.woken_len() == 0 {
            self.next.put(task.into_raw());
        } else {
            self.push_shared(task, Class::Woken);
        }
        self.shared().wake_early(self);
    }

    /// The shared task to run next, of a class.
    pub(crate) fn pop_shared_of(&self, class: Class) -> Option<Queued> {
        match class {
            // What is in the slot came when the queue was empty.
            Class::Woken => self.next.take().or_else(|| self.woken.pop()),
            Class::Again => self.again.pop(),
        }
        .map(from_raw)
    }

    /// Any shared task.
    pub(super) fn pop_shared(&self) -> Option<Queued> {
        self.pop_shared_of(Class::Woken).or_else(|| self.pop_shared_of(Class::Again))
    }

    /// Shared tasks of the class *woken* that wait for this core's owner.
    pub(crate) fn woken_len(&self) -> usize {
        self.woken.len() as usize + usize::from(!self.next.is_empty())
    }

    /// Shared tasks of the class *again* that wait for this core's owner.
    pub(crate) fn again_len(&self) -> usize {
        self.again.len() as usize
    }

    /// Shared tasks that wait for this core's owner.
    pub(crate) fn shared_len(&self) -> usize {
        self.woken_len() + self.again_len()
    }

    /// Shared tasks of a class that wait for this core's owner.
    pub(crate) fn len_of(&self, class: Class) -> usize {
        match class {
            Class::Woken => self.woken_len(),
            Class::Again => self.again_len(),
        }
    }

    /// Whether a searching worker can take something from here.
    pub(crate) fn is_worth_stealing(&self) -> bool {
        self.woken.len() > 0 || self.again.len() > 0 || self.is_stuck() && !self.next.is_empty()
    }

    /// Takes work from this core for `thief`, whose owner calls: woken tasks, or if there are none others. Returns how much.
    pub(crate) fn steal_for(&self, thief: &Core) -> usize {
        let mut found = self.steal_half(thief, Class::Woken, STEAL_BATCH);
        if self.is_stuck()
            && let Some(raw) = self.next.take()
        {
            thief.push_shared(from_raw(raw), Class::Woken);
            thief.counts.steals.add(1);
            found += 1;
        }
        if found == 0 {
            found = self.steal_half(thief, Class::Again, STEAL_BATCH);
        }
        found
    }

    /// Moves half of a queue to that of `thief`, whose owner calls, `most` tasks at most; returns how many.
    pub(crate) fn steal_half(&self, thief: &Core, class: Class, most: u32) -> usize {
        let found = match class {
            Class::Woken => self.woken.steal_into(&thief.woken, most),
            Class::Again => self.again.steal_into(&thief.again, most),
        };
        thief.counts.steals.add(found.into());
        found as usize
    }

    /// Moves the shared tasks queued here to the injectors. Owner only; the core is about to be left.
    pub(crate) fn flush(&self) {
        let shared = self.shared();
        while let Some(task) = self.pop_shared_of(Class::Woken) {
            shared.injector.push(task);
        }
        while let Some(task) = self.pop_shared_of(Class::Again) {
            shared.again.push(task);
        }
    }
}
