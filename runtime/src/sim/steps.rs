//! The steps of a simulation: which task ran, and when, in virtual time.
//!
//! Task ids are the process's, and other threads take some too; so here tasks are counted in the order of their first
//! steps. What two runs of a seed have done is compared by these numbers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How many steps are kept for the report of a failure.
const KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Steps {
    /// By id; the main task's is 0.
    numbers: HashMap<u64, u64>,
    last: VecDeque<Step>,
    /// All of them, if they are to be compared.
    all: Option<Vec<Step>>,
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

impl Steps {
    pub(super) fn new(keeps_all: bool) -> Self {
        Self { all: keeps_all.then(Vec::new), ..Self::default() }
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

    pub(super) fn take_all(&mut self) -> Vec<Step> {
        self.all.take().unwrap_or_default()
    }
}
