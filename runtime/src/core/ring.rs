//! The shared tasks that wait for the owner of a core: in its ring, and in the slot of the one to run next.
//!
//! Filled and emptied by the owner, but for thieves: a worker that has nothing left takes half of a ring, and the slot too where
//! the owner is stalled. What the ring has no room for goes to the injector.

use std::ptr::NonNull;

use super::{Core, from_raw};
use crate::context;
use crate::queue::LOOT;
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::Queued;

/// With more tasks than this in the injector somebody is called for them before the one who makes them comes to run any: when a ring is
/// full for the first time, unless others take what comes.
const CROWD: usize = 512;

impl Core {
    /// Queues a shared task at the back of the owner's ring.
    pub(crate) fn push_back(&self, task: Queued) {
        if let Err(raw) = self.ring.push(task.into_raw()) {
            self.overflow(raw);
        }
    }

    /// The ring is full: half of it goes to the injector, where any worker finds it, and then the new entry.
    #[cold]
    fn overflow(&self, raw: NonNull<()>) {
        let pool = self.pool();
        pool.inject(self.ring.take_half().chain([raw]).map(from_raw));
        if pool.injector.len() > CROWD {
            pool.call_for_help();
        }
    }

    /// Queues a shared task that this thread, the owner, has woken.
    ///
    /// At the end: who is woken by many runs once after them, and a server's connection answers in one go what it was asked in
    /// one. Only where nothing else waits there is a shorter way.
    pub(crate) fn queue_woken(&self, task: Queued) {
        if context::is_in_task() && self.backlog() == 0 {
            self.next.put(task.into_raw());
        } else {
            self.push_back(task);
        }
        self.pool().share_early(self);
    }

    pub(crate) fn pop_next(&self) -> Option<Queued> {
        self.next.take().map(from_raw)
    }

    pub(crate) fn pop_front(&self) -> Option<Queued> {
        self.ring.pop().map(from_raw)
    }

    /// How many tasks are in the ring.
    pub(crate) fn ring_len(&self) -> usize {
        self.ring.len() as usize
    }

    /// Shared tasks that wait for this core's owner.
    pub(crate) fn backlog(&self) -> usize {
        self.ring.len() as usize + usize::from(!self.next.is_empty())
    }

    /// Whether a searching worker can take something from here.
    pub(crate) fn is_worth_stealing(&self) -> bool {
        self.ring.len() > 0 || self.is_stalled.load(Relaxed) && !self.next.is_empty()
    }

    /// Takes work from this core for `thief`, whose owner calls; says whether there was any.
    pub(crate) fn steal_for(&self, thief: &Core) -> bool {
        let mut found = u64::from(self.ring.steal_into(&thief.ring, u32::MAX));
        if self.is_stalled.load(Relaxed)
            && let Some(task) = self.pop_next()
        {
            thief.push_back(task);
            found += 1;
        }
        thief.counts.steals.add(found);
        found > 0
    }

    /// Moves `most` tasks at most to `thief`, whose owner calls and has some itself; fewer where this core's owner takes one in the time
    /// that it needs for more.
    pub(crate) fn give_some(&self, thief: &Core, most: usize) {
        let mut most = u32::try_from(most).unwrap_or(u32::MAX).min(LOOT);
        while most > 0 {
            let given = self.ring.steal_into(&thief.ring, most);
            if given > 0 {
                thief.counts.steals.add(given.into());
                return;
            }
            most /= 4;
        }
    }

    /// Moves the shared tasks queued here to the injector. Owner only; the core is about to be left.
    pub(crate) fn flush(&self) {
        let pool = self.pool();
        while let Some(task) = self.pop_next().or_else(|| self.pop_front()) {
            pool.injector.push(task);
        }
    }
}
