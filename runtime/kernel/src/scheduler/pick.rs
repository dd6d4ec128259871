//! `Pick`: who chooses the task that is polled next, in place of the worker's rule (`worker/next.rs`).
//!
//! A simulation does. Its runtime is a `current_thread` one with a paused clock, so all tasks are owned. Set by
//! [`Config`](super::config::Config), once for each core; without one each question costs a branch.

use std::collections::HashMap;
use std::fmt::Debug;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use mini_time::Instant;

use super::worker::Worker;
use crate::task::Queued;

pub trait Pick: Debug + Send + Sync {
    /// Lets time go on until a task can run, and returns it; `None` if there is none, or should be none.
    fn next(&self, worker: &mut Worker<'_>) -> Option<Queued>;

    /// If there is nothing to run: whether nobody else would end a wait.
    fn is_halted(&self, worker: &Worker<'_>) -> bool;

    /// The number of a task that is spawned now.
    fn next_id(&self) -> NonZeroU64;

    /// A task or a main task is about to be polled.
    fn begin_poll(&self);

    /// Another thread than the owner has woken a task.
    fn note_intruder(&self, task: u64);

    /// How long a blocking job takes, which is a task.
    fn job_delay(&self) -> Duration;

    fn seed(&self) -> u64;

    /// The time since the beginning, at `now`.
    fn elapsed(&self, now: Instant) -> Duration;

    /// The names of the hosts of `tasks`, by their ids: empty if there is no host but that of the test.
    fn hosts_of(&self, tasks: &mut dyn Iterator<Item = u64>) -> HashMap<u64, Arc<str>>;

    /// For the module that has set it.
    fn as_any(&self) -> &dyn std::any::Any;
}
