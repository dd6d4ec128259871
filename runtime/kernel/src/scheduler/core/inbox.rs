//! The inbox of a core: its owned tasks that other threads have woken, and those that they have spawned for it.
//!
//! Any thread posts, the owner reads. Once the core is closed, a thread that posts empties the inbox too.

use mini_context::rules::MAIL_LIMIT;

use super::Core;
use crate::primitives::atomic::Ordering::SeqCst;
use crate::task::owned::Seated;
use crate::task::{Class, Task};

impl Core {
    /// Leaves a task for the owner, and unparks it.
    pub(crate) fn post(&self, task: Task) {
        self.note_intruder(task.id().get());
        for observer in &self.shared().config.observers {
            observer.woken(task.id().get());
        }
        self.inbox.push(task);
        self.unparker.unpark(); // a SeqCst fence, which also orders the push before the look at `closed`
        if self.closed.load(SeqCst) {
            self.bury_inbox();
        }
    }

    pub fn has_mail(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Queues what other threads have posted, a bounded number at a time: they may post faster than this polls.
    pub(crate) fn read_inbox(&self) {
        for _ in 0..MAIL_LIMIT {
            let Some(task) = self.inbox.pop() else { break };
            if task.seat().is_some() {
                self.queue_remote(&task);
                continue; // drops the inbox's reference
            }
            self.admit(task);
        }
    }

    /// Registers a task that came through the inbox for the first time (or has ended meanwhile).
    fn admit(&self, task: Task) {
        if task.is_finished() {
            self.counts.ended.add(1);
            return;
        }
        let inbox_ref = task.clone();
        let inserted = self.owned_tasks().insert(task, false);
        match inserted {
            Ok(()) => self.queue_remote(&inbox_ref),
            Err(task) => {
                drop(inbox_ref);
                self.counts.ended.add(1);
                task.into_queued().cancel();
            }
        }
    }

    /// Queues a task of this core that another thread has woken, unless that has been done. Owner only.
    fn queue_remote(&self, task: &Task) {
        if let Some(entry) = task.take_remote() {
            self.push_entry(entry, Class::Woken); // the thread that has posted it has recorded that
        }
    }

    /// After the core was closed any thread may empty its inbox: what lies there has ended, or was never admitted.
    pub(super) fn bury_inbox(&self) {
        while let Some(task) = self.inbox.pop() {
            if task.seat().is_none() && !task.is_finished() {
                task.into_queued().cancel();
            }
        }
    }
}
