//! The steps of a simulation: which task ran, and when, in virtual time.
//!
//! Task ids are the process's, and other threads take some too; so here tasks are counted in the order of their first
//! steps. What two runs of a seed have done is compared by these numbers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mini_context::sim;

use super::by_task::ByTask;
use super::world::World;
use crate::scheduler::core::Core;
use crate::task::{Source, Task};

/// How many steps are kept for the report of a failure.
const KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Steps {
    /// By id; the main task's is 0.
    numbers: ByTask<u64>,
    last: VecDeque<Step>,
    /// All of them, if they are to be compared or drawn.
    all: Option<Kept>,
    hash: u64,
    count: u64,
}

/// A run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) task: u64,
    /// Since the simulation began.
    pub(super) at: Duration,
}

/// The steps of a simulation.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) steps: Vec<Step>,
    /// How many faults there had been before each step.
    pub(super) faults: Vec<usize>,
    /// How each task is called, by its number: by its name, else by the line of its spawn.
    pub(super) names: BTreeMap<u64, String>,
}

impl Steps {
    pub(super) fn new(keeps_all: bool) -> Self {
        Self { all: keeps_all.then(Kept::default), ..Self::default() }
    }

    pub(super) fn note(&mut self, task: u64, at: Duration) {
        let next = self.numbers.len() as u64;
        let number = *self.numbers.entry(task).or_insert(next);
        let step = Step { number, task, at };
        for word in [number, at.as_nanos() as u64] {
            self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.count += 1;
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(step);
        if let Some(all) = &mut self.all {
            all.steps.push(step);
            all.faults.push(sim::injected());
        }
    }

    /// Says how many there were, and what they were.
    pub(super) fn sum(&self) -> (u64, u64) {
        (self.count, self.hash)
    }

    pub(super) fn last(&self) -> impl Iterator<Item = &Step> {
        self.last.iter()
    }

    pub(super) fn take_kept(&mut self) -> Kept {
        self.all.take().unwrap_or_default()
    }
}

impl World {
    /// The task of that id was picked: how is it called, for those that read of its steps?
    pub(crate) fn note_task(&self, core: &Core, id: u64) {
        let unnamed = self.with_steps(|steps| {
            let all = steps.all.as_ref()?;
            steps.numbers.get(&id).copied().filter(|number| !all.names.contains_key(number))
        });
        let Some(number) = unnamed else { return };
        let mut source = None;
        let look = |task: &Task| {
            if task.id().get() == id {
                source = Some(task.source());
            }
        };
        core.each_task(look, |_| ());
        let Some(Source { location, name, .. }) = source else { return };
        let name = name.map_or_else(|| format!("{}:{}", location.file(), location.line()), |name| name.to_string());
        self.with_steps(|steps| steps.all.as_mut().map(|all| all.names.insert(number, name)));
    }
}
