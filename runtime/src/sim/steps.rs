//! The steps of a simulation: which task ran, and when, in virtual time.
//!
//! Tasks are counted in the order of their first steps, the main task too, which has no id of the simulation. Two runs
//! of a seed are compared by these numbers.

use std::collections::VecDeque;
use std::time::Duration;

use mini_context::sim;
use mini_kernel::task::Queued;

use super::by_task::ByTask;
use super::tasks::Known;
use super::world::World;

/// How many steps are kept for the report of a failure.
const KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Steps {
    /// By id; the main task's is 0.
    numbers: ByTask<u64>,
    /// By their numbers.
    tasks: Vec<Known>,
    last: VecDeque<Step>,
    /// All of them, if they are to be compared or drawn.
    all: Option<Vec<Step>>,
    hash: u64,
    count: u64,
}

/// A run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The task's.
    pub(super) number: u64,
    /// Since the simulation began.
    pub(super) at: Duration,
    /// How many faults there had been before.
    pub(super) faults: usize,
}

impl Steps {
    pub(super) fn new(keeps_all: bool) -> Self {
        Self { all: keeps_all.then(Vec::new), ..Self::default() }
    }

    /// A step of a task, which is that of `host`.
    pub(super) fn note(&mut self, task: u64, host: u32, at: Duration) {
        let next = self.numbers.len() as u64;
        let number = *self.numbers.entry(task).or_insert(next);
        if number == next {
            self.tasks.push(Known { id: task, host, source: None });
        }
        let step = Step { number, at, faults: sim::injected() };
        for word in [number, at.as_nanos() as u64] {
            self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.count += 1;
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(step);
        if let Some(all) = &mut self.all {
            all.push(step);
        }
    }

    /// Says how many there were, and what they were.
    pub(super) fn sum(&self) -> (u64, u64) {
        (self.count, self.hash)
    }

    pub(super) fn last(&self) -> impl Iterator<Item = &Step> {
        self.last.iter()
    }

    /// All steps, if they are kept.
    pub(super) fn take_kept(&mut self) -> Vec<Step> {
        self.all.take().unwrap_or_default()
    }

    /// The tasks that have run.
    pub(super) fn take_tasks(&mut self) -> Vec<Known> {
        std::mem::take(&mut self.tasks)
    }
}

impl World {
    /// This entry was picked: keeps the name of its task, for those that read of its steps.
    pub(crate) fn note_entry(&self, task: &Queued) {
        if task.is_main() {
            return;
        }
        self.with_steps(|steps| {
            let id = task.id().get();
            if let Some(new) = steps.tasks.last_mut().filter(|last| last.id == id && last.source.is_none()) {
                new.source = Some(task.source());
            }
        });
    }
}
