//! `Hosts`: which host each task belongs to, and what becomes of the tasks when a host crashes or is paused.
//!
//! A task belongs to the host of the task that spawned it. Nobody is asked when a task is spawned: one that is queued
//! and not known yet was spawned in the last step, and so by the task that ran in it.
//!
//! The state is the thread's, as that of the network is: a simulation runs on one thread, and what starts a host need
//! not be `Send`.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;

use mini_context::sim;
use mini_kernel::scheduler::core::Core;
use mini_kernel::task::{Class, Queued, Task};

use super::by_task::ByTask;
use crate::task::AbortHandle;

thread_local! {
    static HOSTS: RefCell<Hosts> = RefCell::default();
}

/// What a host runs.
pub(super) type Start = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>>;

#[derive(Default)]
struct Hosts {
    /// By the id of the task. Empty while there is no host but that of the test.
    of_task: ByTask<u32>,
    has_hosts: bool,
    /// How many tasks had been spawned when the last of them were learnt.
    learnt: u64,
    starts: HashMap<u32, Start>,
    /// The tasks that were started last.
    started: HashMap<u32, AbortHandle>,
    /// The task of the last step.
    last: u64,
    /// Tasks of hosts that have crashed: they are dropped before anything else happens.
    dying: HashSet<u64>,
    paused: HashSet<u32>,
    /// Tasks of paused hosts that could run.
    frozen: Vec<(u32, Queued)>,
}

/// Forgets all.
pub(super) fn reset() {
    drop(HOSTS.take());
}

/// There are hosts from now on: the tasks that there are belong to that of the test.
pub(super) fn begin(core: &Core) {
    if !HOSTS.with_borrow_mut(|hosts| std::mem::replace(&mut hosts.has_hosts, true)) {
        tasks(core).iter().for_each(|task| note_task(task.id().get(), 0));
    }
}

fn tasks(core: &Core) -> Vec<Task> {
    let mut all = Vec::new();
    core.each_task(|task| all.push(task.clone()), |_| {});
    all
}

/// `host` runs what `start` makes, again after each restart.
pub(super) fn note_start(host: u32, start: Start) {
    HOSTS.with_borrow_mut(|hosts| hosts.starts.insert(host, start));
}

pub(super) fn start_of(host: u32) -> Option<Start> {
    HOSTS.with_borrow(|hosts| hosts.starts.get(&host).cloned())
}

/// `host` has begun to run what it starts.
pub(super) fn note_started(host: u32, task: AbortHandle) {
    note_task(task.id().get(), host);
    drop(HOSTS.with_borrow_mut(|hosts| hosts.started.insert(host, task)));
}

/// Whether that task is what a host runs, or was.
pub(super) fn is_program(task: u64) -> bool {
    HOSTS.with_borrow(|hosts| hosts.started.values().any(|started| started.id().get() == task))
}

/// Whether this thread is in a simulation that has hosts beside that of the test. It may be about to end.
pub(crate) fn has_some() -> bool {
    HOSTS.try_with(|hosts| hosts.borrow().has_hosts).unwrap_or(false)
}

/// The host of a task.
pub(crate) fn host_of(task: u64) -> u32 {
    HOSTS.with_borrow(|hosts| hosts.of_task.get(&task).copied()).unwrap_or_else(sim::host)
}

/// What the host has started last has come to its end.
pub(super) fn is_over(host: u32) -> bool {
    HOSTS.with_borrow(|hosts| hosts.started.get(&host).is_some_and(AbortHandle::is_finished))
}

/// A task that was just spawned belongs to `host`, whoever spawned it.
pub(super) fn note_task(task: u64, host: u32) {
    HOSTS.with_borrow_mut(|hosts| _ = hosts.of_task.insert(task, host));
}

/// Before a step: learns to whom those `tasks` belong that the last step has spawned. If that was of a task that dies
/// with its host, or its drop, they die with it. Owner of `core` only.
pub(crate) fn learn(tasks: &[u64], core: &Core) {
    let has_orphans = HOSTS.with_borrow_mut(|hosts| {
        let has_new = hosts.learnt != core.counts.owned_begun();
        if !hosts.has_hosts || !has_new {
            return false;
        }
        hosts.learnt = core.counts.owned_begun();
        let is_new = |task: &&u64| **task != 0 && !hosts.of_task.contains_key(task); // 0 is the main task
        let new: Vec<u64> = tasks.iter().filter(is_new).copied().collect();
        hosts.of_task.extend(new.iter().map(|&task| (task, sim::host())));
        let are_orphans = !new.is_empty() && hosts.dying.contains(&hosts.last);
        if are_orphans {
            hosts.dying.extend(new);
        }
        are_orphans
    });
    if has_orphans {
        abort_dying(core);
    }
}

/// The place of a task that is to be dropped.
pub(super) fn dying_among(tasks: &[u64]) -> Option<usize> {
    HOSTS.with_borrow(|hosts| {
        if hosts.dying.is_empty() {
            return None;
        }
        tasks.iter().position(|task| hosts.dying.contains(task))
    })
}

/// The host of the task whose step begins.
pub(super) fn begin_step(task: u64) -> u32 {
    HOSTS.with_borrow_mut(|hosts| {
        hosts.last = task;
        hosts.of_task.get(&task).copied().unwrap_or_default()
    })
}

/// The places of those `tasks` that cannot run, as their host is paused; the last one first.
pub(crate) fn frozen_among(tasks: &[u64]) -> Vec<(usize, u32)> {
    HOSTS.with_borrow(|hosts| {
        if hosts.paused.is_empty() {
            return Vec::new();
        }
        let host = |task: &u64| hosts.of_task.get(task).copied().unwrap_or_default();
        let all = tasks.iter().enumerate().map(|(at, task)| (at, host(task)));
        let mut frozen: Vec<_> = all.filter(|(_, host)| hosts.paused.contains(host)).collect();
        frozen.reverse();
        frozen
    })
}

/// Keeps an entry until its host is resumed.
pub(crate) fn freeze(host: u32, entry: Queued) {
    HOSTS.with_borrow_mut(|hosts| hosts.frozen.push((host, entry)));
}

pub(super) fn pause(host: u32) {
    HOSTS.with_borrow_mut(|hosts| hosts.paused.insert(host));
}

/// The hosts that are paused.
pub(super) fn paused() -> Vec<u32> {
    let mut paused: Vec<u32> = HOSTS.with_borrow(|hosts| hosts.paused.iter().copied().collect());
    paused.sort_unstable();
    paused
}

/// The tasks of `host`, or with `None` of all hosts, may run again. Owner of `core` only.
pub(crate) fn thaw(host: Option<u32>, core: &Core) {
    let thawed: Vec<Queued> = HOSTS.with_borrow_mut(|hosts| {
        let is_meant = |other: u32| host.is_none_or(|host| host == other);
        hosts.paused.retain(|&other| !is_meant(other));
        let (thawed, frozen) = std::mem::take(&mut hosts.frozen).into_iter().partition(|(other, _)| is_meant(*other));
        hosts.frozen = frozen;
        let thawed: Vec<(u32, Queued)> = thawed;
        thawed.into_iter().map(|(_, entry)| entry).collect()
    });
    for entry in thawed {
        core.push_entry(entry, Class::Woken);
    }
}

/// All tasks of `host` are dropped, before anything else happens.
pub(super) fn kill(host: u32, core: &Core) {
    thaw(Some(host), core);
    let all = tasks(core);
    HOSTS.with_borrow_mut(|hosts| {
        for task in all.iter().map(|task| task.id().get()) {
            // One that is not known was spawned in this step.
            if *hosts.of_task.entry(task).or_insert_with(sim::host) == host {
                hosts.dying.insert(task);
            }
        }
    });
    abort_dying(core);
}

/// A task that was aborted runs once more, to be dropped.
fn abort_dying(core: &Core) {
    let is_dying = |task: &&Task| HOSTS.with_borrow(|hosts| hosts.dying.contains(&task.id().get()));
    tasks(core).iter().filter(is_dying).for_each(|task| task.abort());
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("paused", &self.paused).finish_non_exhaustive()
    }
}
