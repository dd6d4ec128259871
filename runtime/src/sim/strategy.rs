//! Chooses which runnable task runs next, by a strategy that is itself drawn from the seed.
//!
//! - *Uniform*: each with the same probability.
//! - *Priorities*: each task has a random priority, and the highest runs. At one to three random choices the task that
//!   would run falls below all others; a moment with only one runnable task is not a choice. So one task may fall far
//!   behind the others, which is very unlikely with uniform choice (PCT: Burckhardt and others, A randomized scheduler
//!   with probabilistic guarantees of finding bugs, ASPLOS 2010).
//! - *First in, first out*, as without a simulation, and *last in, first out*.
//!
//! The last three may run one task forever, if it waits for another by yielding. A worker of mini runs each in turn, so
//! that would be no bug of the program. So after 64 runs in a row while others are runnable, a task falls behind them,
//! and the task that has waited longest runs.

use mini_context::sim::Random;

use super::by_task::ByTask;

/// The most runs in a row of one task while others could run.
const IN_A_ROW: u32 = 64;

/// Priorities change within so many choices, or two, four, up to 256 times as many; which of these is drawn. The number
/// of choices of a program is not known before, and in a range that is much longer hardly any change would be met.
const SHORTEST: u64 = 4;

/// So many ranges there are.
const RANGES: u64 = 9;

#[derive(Debug)]
pub(super) struct Strategy {
    random: Random,
    kind: Kind,
    last: u64,
    in_a_row: u32,
}

#[derive(Debug)]
enum Kind {
    Uniform,
    Priorities(Priorities),
    Fifo,
    Lifo,
}

#[derive(Debug, Default)]
struct Priorities {
    /// By task.
    given: ByTask<i64>,
    /// Choices at which a priority falls.
    changes: Vec<u64>,
    choice: u64,
    /// One below all that were given.
    lowest: i64,
}

impl Strategy {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let kind = match random.below(10) {
            0..5 => Kind::Uniform,
            5..8 => {
                let count = 1 + random.below(3);
                let range = SHORTEST << random.below(RANGES);
                let changes = (0..count).map(|_| random.below(range)).collect();
                Kind::Priorities(Priorities { changes, ..Priorities::default() })
            }
            8 => Kind::Fifo,
            _ => Kind::Lifo,
        };
        Self { random, kind, last: 0, in_a_row: 0 }
    }

    /// The one that does without random numbers.
    pub(super) fn fifo() -> Self {
        Self { random: Random::new(0, 0), kind: Kind::Fifo, last: 0, in_a_row: 0 }
    }

    /// Which of the `tasks` that could run does, at least one, the one that has waited longest first.
    pub(super) fn pick(&mut self, tasks: &[u64]) -> usize {
        let is_stubborn = self.in_a_row >= IN_A_ROW && tasks.len() > 1;
        let at = match is_stubborn.then(|| tasks.iter().position(|&task| task == self.last)).flatten() {
            Some(stubborn) => usize::from(stubborn == 0), // of the others the first, or a few would take turns for good
            None => self.choose(tasks),
        };
        self.in_a_row = if tasks[at] == self.last { self.in_a_row + 1 } else { 1 };
        self.last = tasks[at];
        at
    }

    fn choose(&mut self, tasks: &[u64]) -> usize {
        match &mut self.kind {
            Kind::Uniform => self.random.below(tasks.len() as u64) as usize,
            Kind::Priorities(priorities) => priorities.pick(tasks, &mut self.random),
            Kind::Fifo => 0,
            Kind::Lifo => tasks.len() - 1,
        }
    }
}

impl Priorities {
    fn pick(&mut self, tasks: &[u64], random: &mut Random) -> usize {
        for &task in tasks {
            self.given.entry(task).or_insert_with(|| (random.draw() >> 1) as i64);
        }
        if tasks.len() > 1 {
            if self.changes.contains(&self.choice) {
                self.lowest -= 1;
                let highest = tasks[self.highest(tasks)];
                self.given.insert(highest, self.lowest);
            }
            self.choice += 1;
        }
        self.highest(tasks)
    }

    fn highest(&self, tasks: &[u64]) -> usize {
        (0..tasks.len()).max_by_key(|&at| self.given[&tasks[at]]).expect("there is one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_drawn_and_no_task_runs_for_ever() {
        let mut kinds = [0; 4];
        for seed in 0..200 {
            let mut strategy = Strategy::new(seed);
            let kind = match strategy.kind {
                Kind::Uniform => 0,
                Kind::Priorities(_) => 1,
                Kind::Fifo => 2,
                Kind::Lifo => 3,
            };
            kinds[kind] += 1;
            let picks: Vec<usize> = (0..200).map(|_| strategy.pick(&[1, 2])).collect();
            assert!(picks.contains(&0) && picks.contains(&1), "seed {seed}: {strategy:?}");
        }
        assert!(kinds.iter().all(|&count| count > 5), "{kinds:?}");
    }

    /// A task that yields waits behind the others, as in the queue.
    #[test]
    fn tasks_that_yield_in_turn_keep_no_other_waiting() {
        for seed in 0..1000 {
            let mut strategy = Strategy::new(seed);
            let mut queue: Vec<u64> = (1..=9).collect();
            let mut steps = 0;
            while queue.contains(&9) {
                let task = queue.remove(strategy.pick(&queue));
                queue.extend((task != 9).then_some(task));
                steps += 1;
                assert!(steps < 2000, "seed {seed}: {strategy:?}");
            }
        }
    }

    /// Of two tasks that could run, the first is left for the second within the first six choices: in how many of 1,000
    /// seeds. Steps without a choice come between.
    #[test]
    fn priorities_change_early_enough_for_short_programs() {
        let changes = |seed: &u64| {
            let mut strategy = Strategy::new(*seed);
            let mut picks = (0..6).map(|_| {
                assert_eq!(strategy.pick(&[1]) + strategy.pick(&[2]), 0);
                strategy.pick(&[1, 2])
            });
            let first = picks.next();
            let is_other = picks.any(|pick| Some(pick) != first);
            matches!(strategy.kind, Kind::Priorities(_)) && is_other
        };
        let count = (0..1000).filter(changes).count();
        assert!((60..200).contains(&count), "{count}, of about 300 that have priorities");
    }

    #[test]
    fn a_seed_determines_every_pick() {
        let picks = |seed| {
            let mut strategy = Strategy::new(seed);
            (0..100).map(|_| strategy.pick(&[3, 4, 5])).collect::<Vec<_>>()
        };
        assert!((0..50).all(|seed| picks(seed) == picks(seed)));
        assert!((0..50).map(picks).collect::<std::collections::HashSet<_>>().len() > 10);
    }
}
