//! Tasks that wait for each other in a circle.
//!
//! A task that waits has one edge at most, to the task that it joins or that has what it waits for. So a walk along the
//! edges ends, or comes back to where it was.

use std::collections::HashMap;

use mini_context::{ITSELF, Reason, untaken};

use super::DumpedTask;
use crate::task::LastWait;

/// Each waits for the next one, the last for the first.
pub(super) type Circle = Vec<u64>;

/// The circles among `tasks` and main tasks.
pub(super) fn circles(tasks: &[DumpedTask], mains: impl Iterator<Item = (u64, LastWait)>) -> Vec<Circle> {
    let tasks = tasks.iter().filter_map(|task| Some((task.id().get(), task.waits()?)));
    let edges: HashMap<u64, u64> =
        tasks.chain(mains).filter_map(|(from, wait)| Some((from, waits_for(from, wait)?))).collect();
    let mut starts: Vec<u64> = edges.keys().copied().collect();
    starts.sort_unstable();
    let mut walked: HashMap<u64, usize> = HashMap::new(); // in which walk
    let mut circles = Vec::new();
    for (number, start) in starts.into_iter().enumerate() {
        let mut at = start;
        while let Some(&to) = edges.get(&at) {
            match walked.insert(at, number) {
                None => at = to,
                Some(earlier) if earlier == number => {
                    circles.push(circle(at, &edges));
                    break;
                }
                Some(_) => break, // an earlier walk has been here
            }
        }
    }
    circles
}

fn circle(start: u64, edges: &HashMap<u64, u64>) -> Circle {
    let next = |&at: &u64| Some(edges[&at]).filter(|&to| to != start);
    std::iter::successors(Some(start), next).collect()
}

/// The task for which another one waits.
fn waits_for(from: u64, wait: LastWait) -> Option<u64> {
    let LastWait::Known(wait) = wait else { return None };
    if wait.is_timed() {
        return None; // which ends by itself
    }
    match wait.reason() {
        Reason::Join(to) => Some(to),
        Reason::Sync(_, 0) => None,
        Reason::Sync(_, ITSELF) => Some(from),
        Reason::Sync(_, holder) => match untaken(holder) {
            (task, true) => Some(task),
            _ => None, // it may have passed on what it took, or be one of several
        },
        _ => None,
    }
}
