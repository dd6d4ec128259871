//! Finds the faults that a failed run needs to fail, by delta debugging (Zeller and Hildebrandt, Simplifying and
//! isolating failure-inducing input, IEEE Transactions on Software Engineering 28, 2002; the algorithm *ddmin*).
//!
//! The run is repeated with only some of its faults, first with few of them, then with all but few. A repeated run that
//! fails in the same way leaves fewer faults to examine. At the end, none of the remaining faults can be removed alone.
//!
//! A program takes another path without a fault, so a later number may be another fault than before. That does no harm:
//! a set of numbers is judged only by the run that it makes. But its numbers have a meaning only together: hence a last
//! run, whose faults are shown. The remaining set may also be larger than necessary, if a fault only shifts the number
//! of the one that is needed. Most failures need one fault, so if there are at most a hundred faults, and two or more
//! of them remain, each is tried alone. While more remain than a person can reason about, the faults are tried again in
//! another order.
//!
//! Rejected:
//! - Several runs at once (a test has the processor for itself only by chance, and the result would depend on which
//!   came first).
//! - A count of faults and random numbers for each host, so that one that is skipped shifts those of its host alone (of
//!   24 failures of a system of five hosts four kept more than three faults, as before: what shifts is what the program
//!   does).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use mini_context::sim::Random;

/// The limits of shrinking.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) runs: u32,
    pub(super) time: Duration,
}

impl Budget {
    pub(super) const DEFAULT: Self = Self { runs: 300, time: Duration::from_secs(10) };
}

/// Of so many faults each is tried alone, in the end.
const SINGLES: usize = 100;

/// So few faults are good enough.
const FEW: usize = 3;

/// The result of shrinking.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shrunk {
    pub(super) kept: Vec<u64>,
    /// How many runs it took.
    pub(super) runs: u32,
    /// The budget was spent first: fewer may do.
    pub(super) is_capped: bool,
}

/// Shrinks `faults`. `fails` makes a run with only the faults that it is given; if that fails in the same way, it
/// returns those of them that were met.
pub(super) fn shrink(faults: Vec<u64>, budget: Budget, fails: impl FnMut(&[u64]) -> Option<Vec<u64>>) -> Shrunk {
    let until = Instant::now() + budget.time;
    let mut search = Search { fails, passed: HashSet::new(), runs: 0, most: budget.runs, until, is_capped: false };
    let mut kept = search.minimize(faults.clone());
    if kept.len() > 1 && faults.len() <= SINGLES {
        kept = faults.iter().find_map(|&fault| search.run(&[fault])).unwrap_or(kept);
    }
    let is_capped = search.is_capped;
    let mut random = Random::new(0, 0);
    while kept.len() > FEW && !search.is_capped {
        let before = search.runs;
        let other = search.minimize(shuffled(&faults, &mut random));
        if search.runs == before {
            break; // all of it is known
        }
        if other.len() < kept.len() {
            kept = other;
        }
    }
    Shrunk { kept, runs: search.runs, is_capped }
}

struct Search<F> {
    fails: F,
    /// Sets that are not enough.
    passed: HashSet<Vec<u64>>,
    runs: u32,
    most: u32,
    until: Instant,
    is_capped: bool,
}

impl<F: FnMut(&[u64]) -> Option<Vec<u64>>> Search<F> {
    fn minimize(&mut self, mut kept: Vec<u64>) -> Vec<u64> {
        if let Some(left) = self.run(&[]) {
            return left;
        }
        let mut parts = 2;
        while kept.len() > 1 && !self.is_capped {
            let chunks: Vec<&[u64]> = kept.chunks(kept.len().div_ceil(parts)).collect();
            if let Some(left) = chunks.iter().find_map(|chunk| self.run(chunk)) {
                (kept, parts) = (left, 2);
            } else if let Some(left) = (0..chunks.len()).find_map(|at| self.run(&without(&chunks, at))) {
                (kept, parts) = (left, (parts - 1).max(2));
            } else if parts < kept.len() {
                parts = (2 * parts).min(kept.len());
            } else {
                break;
            }
        }
        kept
    }

    /// Those of `kept` that were met, if they are enough.
    fn run(&mut self, kept: &[u64]) -> Option<Vec<u64>> {
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        if self.is_capped || self.passed.contains(&kept) {
            return None;
        }
        if self.runs == self.most || Instant::now() >= self.until {
            self.is_capped = true;
            return None;
        }
        self.runs += 1;
        let left = (self.fails)(&kept);
        if left.is_none() {
            self.passed.insert(kept);
        }
        left
    }
}

fn shuffled(faults: &[u64], random: &mut Random) -> Vec<u64> {
    let mut order = faults.to_vec();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    order
}

/// All `chunks` but one.
fn without(chunks: &[&[u64]], at: usize) -> Vec<u64> {
    let others = chunks.iter().enumerate().filter(|(index, _)| *index != at);
    others.flat_map(|(_, chunk)| chunk.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(needed: impl Fn(&[u64]) -> bool, budget: Budget) -> Shrunk {
        shrink((1..=40).collect(), budget, |kept| needed(kept).then(|| kept.to_vec()))
    }

    #[test]
    fn what_is_needed_is_left() {
        for needed in [&[][..], &[1], &[40], &[7, 19], &[1, 2, 3], &[5, 20, 21, 33, 40]] {
            let left = shrunk(|kept| needed.iter().all(|number| kept.contains(number)), Budget::DEFAULT);
            assert_eq!((&left.kept[..], left.is_capped), (needed, false), "{left:?}");
        }
        let one_of_two = shrunk(|kept| kept.contains(&9) || kept.contains(&30), Budget::DEFAULT);
        assert_eq!(one_of_two.kept, [9]);
        let odd = shrunk(|kept| kept.len() % 2 == 0 && kept.contains(&9), Budget::DEFAULT);
        assert_eq!(odd.kept.len(), 2);
    }

    #[test]
    fn no_set_is_tried_twice() {
        let mut tried = HashSet::new();
        shrink((1..=40).collect(), Budget::DEFAULT, |kept| {
            assert!(tried.insert(kept.to_vec()), "{kept:?}");
            (kept.contains(&3) && kept.contains(&38)).then(|| kept.to_vec())
        });
    }

    #[test]
    fn faults_that_are_met_no_more_are_gone_at_once() {
        let left = shrink((1..=40).collect(), Budget::DEFAULT, |kept| kept.contains(&30).then(|| vec![30]));
        assert_eq!(left, Shrunk { kept: vec![30], runs: 3, is_capped: false });
    }

    #[test]
    fn a_fault_that_only_shifts_the_number_of_another_is_found_out() {
        // The third or the fourth of those that are met, which is #17 if it is alone.
        let needed = |kept: &[u64]| kept.len() >= 20 || kept == [17] || kept.contains(&3) && kept.contains(&4);
        assert_eq!(shrunk(needed, Budget::DEFAULT).kept, [17]);
    }

    #[test]
    fn another_order_may_find_fewer() {
        // Two ways to fail: one by the first six faults together, the other by two that lie far apart.
        let needed = |kept: &[u64]| kept.starts_with(&[1, 2, 3, 4, 5, 6]) || kept.contains(&9) && kept.contains(&37);
        assert_eq!(shrunk(needed, Budget::DEFAULT).kept, [9, 37]);
        let all = shrink((1..=4).collect(), Budget::DEFAULT, |kept| (kept.len() == 4).then(|| kept.to_vec()));
        assert_eq!((all.kept.len(), all.is_capped), (4, false), "it ends, though no order helps");
    }

    #[test]
    fn it_stops_when_the_budget_is_spent() {
        let all = |kept: &[u64]| kept.len() == 40;
        let runs = shrunk(all, Budget { runs: 10, ..Budget::DEFAULT });
        assert_eq!((runs.kept.len(), runs.runs, runs.is_capped), (40, 10, true));
        let time = shrunk(all, Budget { time: Duration::ZERO, ..Budget::DEFAULT });
        assert_eq!((time.kept.len(), time.runs, time.is_capped), (40, 0, true));
    }
}
