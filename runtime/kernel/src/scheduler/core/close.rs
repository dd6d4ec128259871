//! The end of a core: its tasks are cancelled and dropped here, and none runs or starts afterwards. A worker that is at
//! rest, or between two polls, also drops the shared tasks of workers that are busy.
//!
//! Called by the worker that holds the core, or by the thread that closes a core without an owner. The hard part is
//! that destructors go on using the core: they wake, spawn and post while it is being emptied.

use std::ptr;

use mini_context::rules::MAIL_LIMIT;

use super::{Core, OwnedTasks, from_raw};
use crate::primitives::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::primitives::lock;
use crate::primitives::thread::ThreadId;
use crate::scheduler::observe::Who;
use crate::task::{Class, Queued, Task};

/// How many generations of tasks the destructors of dropped tasks may spawn before the last generation is leaked.
const MAX_GENERATIONS: usize = 1000;

impl Core {
    /// Drops all owned tasks, and those their destructors spawn. Owner only.
    pub(crate) fn drop_owned(&self) {
        let mut rounds = 0;
        while self.owned_alive() > 0 || self.has_mail() {
            rounds += 1;
            if rounds > MAX_GENERATIONS {
                return self.give_up_owned();
            }
            for _ in 0..=self.inbox.len() / MAIL_LIMIT {
                self.read_inbox();
            }
            let tasks = self.owned_tasks().list();
            for task in tasks {
                if let Some(entry) = task.cancel_here() {
                    entry.cancel();
                }
            }
            self.discard_queue();
        }
    }

    /// Leaks owned tasks whose destructors spawn new tasks without end.
    #[cold]
    fn give_up_owned(&self) {
        self.local(|local| local.forget(|_| true));
        let tasks = self.owned_tasks().take_all();
        self.counts.ended.add(tasks.len() as u64);
        for task in tasks {
            say!("{} is leaked: dropping it spawns another task each time", task.source());
            self.abandon(task);
        }
    }

    /// Drops the tasks in the owner's queue.
    fn discard_queue(&self) {
        let queues = self.local(|local| std::mem::take(&mut local.queues));
        queues.into_iter().flatten().for_each(Queued::cancel);
    }

    /// Cancels the shared tasks that belong here, and drops those that no worker polls just now. No task runs or starts
    /// here afterwards. Owner only; `false` if that has been done before.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        // From here on wakes go to the injector, and a thread that posts empties the inbox itself.
        if self.closed.swap(true, SeqCst) {
            return false;
        }
        self.takes_shared.store(false, Relaxed);
        self.owned_tasks().refuse();
        self.drop_shared();
        self.drop_queued();
        self.drop_owned();
        fence(SeqCst); // pairs with the fence in `post`
        self.bury_inbox();
        self.idle_queue.disperse(); // nobody releases one here any more
        true
    }

    /// Refuses shared tasks from now on, cancels those that belong here, and drops those that neither run nor wait in a
    /// queue. Any thread.
    fn drop_shared(&self) {
        let tasks = lock(&self.shared_tasks).close();
        for task in tasks {
            if let Some(entry) = task.cancel_here() {
                entry.cancel();
            }
        }
    }

    /// Drops the shared tasks in the owner's queues, which are cancelled.
    fn drop_queued(&self) {
        while let Some(task) = self.pop_shared(Class::Woken).or_else(|| self.pop_shared(Class::ComputeBound)) {
            task.cancel();
        }
    }

    /// Does that for all cores, as far as another thread can: their owners may be in long polls. Owner only.
    ///
    /// Not for the thread that shuts down: it would run destructors of tasks that have their own workers.
    pub(crate) fn drop_shared_of_others(&self) {
        let others = || self.shared().cores.iter().filter(|other| !ptr::eq(*other, self));
        others().for_each(Core::drop_shared);
        for other in others() {
            if let Some(raw) = other.next.take() {
                from_raw(raw).cancel();
            }
            while other.steal_for(self) > 0 {
                self.drop_queued();
            }
        }
        self.shared().discard_injected();
    }

    /// Gives up the tasks that may not leave `thread`, which is not the calling one: their futures are leaked, and that
    /// is reported.
    pub(crate) fn forget_pinned(&self, thread: ThreadId) {
        self.local(|local| {
            local.forget(|entry| OwnedTasks::<Task>::is_pinned(entry.seat()));
        });
        let forgotten = self.owned_tasks().take_pinned();
        self.counts.ended.add(forgotten.len() as u64);
        for task in forgotten {
            say!(
                "{} is leaked: it is bound to {thread:?}, and its runtime was dropped on another thread",
                task.source()
            );
            self.abandon(task);
        }
    }

    fn abandon(&self, task: Task) {
        let who = Who::of(&task);
        task.abandon();
        for observer in &self.shared().config.observers {
            observer.discarded(who);
        }
    }
}
