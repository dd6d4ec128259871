//! `TaskHooks`: the observer behind [`Builder::on_task_spawn`](crate::runtime::Builder::on_task_spawn) and the three
//! hooks beside it.
//!
//! A worker keeps what it polls, as the end of a poll is told without the task, which may be gone by then.

use std::any::Any;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use mini_kernel::scheduler::observe::{Observe, ObserveCore, Then, Who};
use mini_kernel::task::Task;
use mini_kernel::threads;

use crate::task::Id;

/// A task, for the hooks of a [`Builder`](crate::runtime::Builder): its id, and the line that spawned it.
///
/// # Examples
///
/// See [`Builder::on_task_spawn`](crate::runtime::Builder::on_task_spawn).
#[derive(Clone, Copy, Debug)]
pub struct TaskMeta {
    id: Id,
    location: &'static Location<'static>,
}

impl TaskMeta {
    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// See [`Builder::on_task_spawn`](crate::runtime::Builder::on_task_spawn).
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`Builder::on_task_spawn`](crate::runtime::Builder::on_task_spawn).
    #[must_use]
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.location
    }
}

type Hook = Option<Arc<dyn Fn(&TaskMeta) + Send + Sync>>;

/// The hooks that are set.
#[derive(Clone, Default)]
pub(crate) struct TaskHooks {
    pub(crate) spawn: Hook,
    pub(crate) terminate: Hook,
    pub(crate) before_poll: Hook,
    pub(crate) after_poll: Hook,
}

/// The hooks, and what a worker polls.
struct HooksOfCore {
    hooks: Arc<TaskHooks>,
    polled: Mutex<Option<Who>>, // the owner alone locks it
}

impl TaskHooks {
    /// The observer, if a hook is set.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observe>> {
        let Self { spawn, terminate, before_poll, after_poll } = self;
        let is_set = [spawn, terminate, before_poll, after_poll].into_iter().any(Option::is_some);
        is_set.then(|| Arc::new(self.clone()) as _)
    }

    fn begins(&self, who: Who) {
        call(&self.before_poll, who, "on_before_task_poll");
    }

    fn ends(&self, who: Who, then: Then) {
        call(&self.after_poll, who, "on_after_task_poll");
        if then == Then::Ended {
            call(&self.terminate, who, "on_task_terminate");
        }
    }
}

/// Calls a hook, unless it is about the future of a `block_on`, which is no task.
fn call(hook: &Hook, Who { id, location }: Who, name: &str) {
    if let Some(hook) = hook
        && !mini_context::is_main(id.get())
    {
        threads::call(Some(|| hook(&TaskMeta { id, location })), name);
    }
}

impl Observe for TaskHooks {
    fn of_core(self: Arc<Self>, _index: usize, _is_guest: bool) -> Option<Box<dyn ObserveCore>> {
        Some(Box::new(HooksOfCore { hooks: self, polled: Mutex::new(None) }))
    }

    fn spawned(&self, task: &Task) {
        call(&self.spawn, Who::of(task), "on_task_spawn");
    }

    fn job_begins(&self, job: Who) {
        self.begins(job);
    }

    fn job_ends(&self, job: Who) {
        self.ends(job, Then::Ended);
    }

    fn discarded(&self, who: Who) {
        call(&self.terminate, who, "on_task_terminate");
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ObserveCore for HooksOfCore {
    fn begin(&self, who: Who, _nothing_else: bool) {
        *self.polled.lock().unwrap_or_else(PoisonError::into_inner) = Some(who);
        self.hooks.begins(who);
    }

    fn end(&self, then: Then, _was_compute_bound: bool) {
        let polled = self.polled.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(who) = polled {
            self.hooks.ends(who, then);
        }
    }

    fn has_hooks(&self) -> bool {
        true
    }

    fn spawned(&self, task: Task) -> Task {
        self.hooks.spawned(&task);
        task
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
