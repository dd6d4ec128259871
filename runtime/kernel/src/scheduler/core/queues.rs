//! The shared tasks that wait for the owner of a core: a local queue for each class, and the slot of the task to
//! poll next.
//!
//! Filled and emptied by the owner. Only thieves take from them too: a worker that has nothing left takes half of a
//! queue, and the slot if the owner is stuck. What a queue has no room for goes to the injector of its class.

use std::ptr::NonNull;

use mini_context::rules::STEAL_BATCH;

use super::{Core, from_raw};
use crate::scheduler::current;
use crate::task::{Class, Queued};

impl Core {
    /// Queues a shared task at the back of its class.
    pub(crate) fn push_shared(&self, task: Queued, class: Class) {
        if let Err(raw) = self.queues[class as usize].push(task.into_raw()) {
            self.overflow(raw, class);
        }
    }

    /// The queue is full: the task goes to the injector, from which each worker takes a part of its polls (`Quota`). It
    /// may overtake tasks that wait here.
    #[cold]
    fn overflow(&self, raw: NonNull<()>, class: Class) {
        match class {
            Class::Woken => self.shared().inject(from_raw(raw)),
            Class::ComputeBound => self.shared().injector(class).push(from_raw(raw)),
        }
    }

    /// Queues a shared task that this thread, the owner, has woken.
    ///
    /// The task goes to the back: a task that is woken in many polls is then polled once after all of them, and a
    /// server's connection answers in one go what it was asked in one. Only if nothing else waits is there a shorter
    /// way.
    pub(crate) fn queue_woken(&self, task: Queued) {
        self.tell_wake(&task);
        if current::is_in_task() && self.len_of(Class::Woken) == 0 {
            self.next.put(task.into_raw());
        } else {
            self.push_shared(task, Class::Woken);
        }
        self.shared().wake_early(self);
    }

    /// The shared task to poll next, of a class.
    pub(crate) fn pop_shared(&self, class: Class) -> Option<Queued> {
        // A task is put into the slot while the queue of woken tasks is empty, so it is the oldest of them.
        let next = if class == Class::Woken { self.next.take() } else { None };
        next.or_else(|| self.queues[class as usize].pop()).map(from_raw)
    }

    /// Shared tasks that wait for this core's owner.
    pub(crate) fn shared_len(&self) -> usize {
        self.len_of(Class::Woken) + self.len_of(Class::ComputeBound)
    }

    /// Shared tasks of a class that wait for this core's owner.
    #[inline]
    pub(crate) fn len_of(&self, class: Class) -> usize {
        let in_slot = class == Class::Woken && !self.next.is_empty();
        self.queues[class as usize].len() as usize + usize::from(in_slot)
    }

    /// Whether a searching worker can take something from here.
    pub(crate) fn is_worth_stealing(&self) -> bool {
        self.queues.iter().any(|queue| queue.len() > 0) || self.is_stuck() && !self.next.is_empty()
    }

    /// Takes tasks from this core for `thief`, which the caller owns: woken tasks, or others if there are none. Returns
    /// how many.
    pub(crate) fn steal_for(&self, thief: &Core) -> usize {
        let mut found = self.steal_half(thief, Class::Woken, STEAL_BATCH);
        if self.is_stuck()
            && let Some(raw) = self.next.take()
        {
            thief.push_shared(from_raw(raw), Class::Woken);
            thief.note_steal(1);
            found += 1;
        }
        if found == 0 {
            found = self.steal_half(thief, Class::ComputeBound, STEAL_BATCH);
        }
        found
    }

    /// Moves half of a queue to that of `thief`, which the caller owns, at most `most` tasks; returns how many.
    pub(crate) fn steal_half(&self, thief: &Core, class: Class, most: u32) -> usize {
        let found = self.queues[class as usize].steal_into(&thief.queues[class as usize], most);
        thief.note_steal(found as usize);
        found as usize
    }

    /// The owner has taken tasks from another core.
    fn note_steal(&self, tasks: usize) {
        self.counts.steals.add(tasks as u64);
        if tasks > 0 {
            self.observers.iter().for_each(|observer| observer.stole(tasks));
        }
    }
}
