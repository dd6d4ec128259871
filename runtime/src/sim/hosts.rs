//! `Hosts`: which host each task belongs to, and what becomes of the tasks when a host crashes or is paused.
//!
//! A task belongs to the host of the task that spawned it. Nobody is asked when a task is spawned: one that is queued
//! and not known yet was spawned in the last step, and so by the task that ran in it.
//!
//! The state is the thread's, as that of the network is: a simulation runs on one thread, and what starts a host need
//! not be `Send`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;

use mini_context::sim;

use crate::scheduler::core::{Core, Entry};
use crate::task::Class;

thread_local! {
    static HOSTS: RefCell<Hosts> = RefCell::default();
}

/// What a host runs.
pub(super) type Start = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = ()>>>>;

#[derive(Default)]
struct Hosts {
    /// By the id of the task. Empty while there is no host but that of the test.
    of_task: BTreeMap<u64, u32>,
    has_hosts: bool,
    starts: HashMap<u32, Start>,
    /// Tasks of hosts that have crashed: they are dropped before anything else happens.
    dying: HashSet<u64>,
    paused: HashSet<u32>,
    /// Tasks of paused hosts that could run.
    frozen: Vec<(u32, Entry)>,
}

/// Forgets all.
pub(super) fn reset() {
    drop(HOSTS.take());
}

/// `host` runs what `start` makes, again after each restart.
pub(super) fn note_start(host: u32, start: Start) {
    HOSTS.with_borrow_mut(|hosts| {
        hosts.has_hosts = true;
        hosts.starts.insert(host, start);
    });
}

pub(super) fn start_of(host: u32) -> Option<Start> {
    HOSTS.with_borrow(|hosts| hosts.starts.get(&host).cloned())
}

/// A task that was just spawned belongs to `host`, whoever spawned it.
pub(super) fn note_task(task: u64, host: u32) {
    HOSTS.with_borrow_mut(|hosts| {
        hosts.has_hosts = true;
        hosts.of_task.insert(task, host);
    });
}

/// The host of a task. Call it for all tasks that could run, before each step.
fn host_of(hosts: &mut Hosts, task: u64) -> u32 {
    match task {
        0 => 0, // the main task
        _ => *hosts.of_task.entry(task).or_insert_with(sim::host),
    }
}

/// Before a step: learns to whom the tasks belong. If one is to be dropped, says which, by its place.
pub(super) fn see(tasks: &[u64]) -> Option<usize> {
    HOSTS.with_borrow_mut(|hosts| {
        if !hosts.has_hosts {
            return None;
        }
        for &task in tasks {
            host_of(hosts, task);
        }
        tasks.iter().position(|task| hosts.dying.remove(task))
    })
}

/// The host of a task that was seen.
pub(super) fn of(task: u64) -> u32 {
    HOSTS.with_borrow(|hosts| hosts.of_task.get(&task).copied().unwrap_or_default())
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
pub(crate) fn freeze(host: u32, entry: Entry) {
    HOSTS.with_borrow_mut(|hosts| hosts.frozen.push((host, entry)));
}

pub(super) fn pause(host: u32) {
    HOSTS.with_borrow_mut(|hosts| hosts.paused.insert(host));
}

/// The tasks of `host`, or with `None` of all hosts, may run again. Owner of `core` only.
pub(crate) fn thaw(host: Option<u32>, core: &Core) {
    let thawed: Vec<Entry> = HOSTS.with_borrow_mut(|hosts| {
        let is_meant = |other: u32| host.is_none_or(|host| host == other);
        hosts.paused.retain(|&other| !is_meant(other));
        let (thawed, frozen) = std::mem::take(&mut hosts.frozen).into_iter().partition(|(other, _)| is_meant(*other));
        hosts.frozen = frozen;
        let thawed: Vec<(u32, Entry)> = thawed;
        thawed.into_iter().map(|(_, entry)| entry).collect()
    });
    for entry in thawed {
        core.push_entry(entry, Class::Woken);
    }
}

/// All tasks of `host` are dropped, before anything else happens.
pub(super) fn kill(host: u32, core: &Core) {
    thaw(Some(host), core);
    let mut all = Vec::new();
    core.each_task(|task| all.push(task.clone()), |_| {});
    let doomed: Vec<_> =
        HOSTS.with_borrow_mut(|hosts| all.into_iter().filter(|task| host_of(hosts, task.id().get()) == host).collect());
    HOSTS.with_borrow_mut(|hosts| hosts.dying.extend(doomed.iter().map(|task| task.id().get())));
    for task in doomed {
        task.abort();
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("paused", &self.paused).finish_non_exhaustive()
    }
}
