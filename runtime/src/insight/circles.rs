//! Tasks that wait for each other in a circle.
//!
//! A task that waits has one edge at most, to the task that it joins or that has what it waits for. So a walk along the
//! edges ends, or comes back to where it was.

use std::collections::HashMap;

use mini_context::{ITSELF, MAIN, Reason, SyncKind};

use super::DumpedTask;
use crate::task::LastWait;

/// Each waits for the next one, the last for the first.
#[derive(Clone, Debug)]
pub(super) struct Circle {
    pub(super) tasks: Vec<u64>,
    /// None of them waits for anything else.
    pub(super) is_deadlock: bool,
}

/// Whom a task waits for.
#[derive(Clone, Copy)]
struct Edge {
    to: u64,
    /// And for nothing and nobody else.
    is_only: bool,
}

/// The circles among `tasks`, and the main task that waits for the one of `mains`, if there is one.
pub(super) fn circles(tasks: &[DumpedTask], mains: impl Iterator<Item = LastWait>) -> Vec<Circle> {
    let mut edges = HashMap::new();
    for task in tasks {
        let id = task.id().get();
        // The one waker is with the one that it waits for.
        let is_alone = task.sight.others == 1;
        if let Some(edge) = task.waits().and_then(|wait| edge(id, wait, is_alone)) {
            edges.insert(id, edge);
        }
    }
    let mains: Vec<LastWait> = mains.collect();
    if let [main] = mains[..] // of several nobody knows which one has a lock
        && let Some(edge) = edge(MAIN, main, false)
    {
        edges.insert(MAIN, edge);
    }
    let mut starts: Vec<u64> = edges.keys().copied().collect();
    starts.sort_unstable();
    let mut walked: HashMap<u64, usize> = HashMap::new(); // in which walk
    let mut circles = Vec::new();
    for (number, start) in starts.into_iter().enumerate() {
        let mut at = start;
        while let Some(edge) = edges.get(&at) {
            match walked.insert(at, number) {
                None => at = edge.to,
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

fn circle(start: u64, edges: &HashMap<u64, Edge>) -> Circle {
    let (mut tasks, mut is_deadlock, mut at) = (Vec::new(), true, start);
    loop {
        let edge = edges[&at];
        tasks.push(at);
        is_deadlock &= edge.is_only;
        at = edge.to;
        if at == start {
            return Circle { tasks, is_deadlock };
        }
    }
}

fn edge(from: u64, wait: LastWait, is_alone: bool) -> Option<Edge> {
    let LastWait::Known(wait) = wait else { return None };
    let is_only = is_alone && !wait.is_timed();
    match wait.reason() {
        Reason::Join(to) => Some(Edge { to, is_only }),
        Reason::Sync(_, 0) => None,
        Reason::Sync(kind, holder) => {
            let is_certain = matches!(kind, SyncKind::Lock | SyncKind::Once); // of others it may be one of several
            let to = if holder == ITSELF { from } else { holder };
            Some(Edge { to, is_only: is_only && is_certain })
        }
        _ => None,
    }
}
