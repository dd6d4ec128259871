//! Tasks that wait for each other in a circle.
//!
//! A task that waits has one edge at most, to the task that it joins or that has what it waits for. So a walk along the
//! edges ends, or comes back to where it was.
//!
//! Some edges are strong: a join, which is certain, and a guard that leaves its task only together with the future that
//! took it, which is rare. Others are what was seen last: which task has sent by the only sender of a channel, has
//! received, or has taken a permit. Circles with some of these are possible ones, if none of its tasks waits for
//! something else too.
//!
//! Rejected: to follow that future. It is polled as a part of some task, and its guard is never polled.

use crate::order::sorted;
use mini_context::{ITSELF, Reason, untaken};
use mini_kernel::task::LastWait;

/// Each waits for the next one, the last for the first.
pub(super) type Circle = Vec<u64>;

/// An edge from a waiting task to the task that it waits for.
#[derive(Clone, Copy)]
struct Edge {
    from: u64,
    to: u64,
    is_strong: bool,
}

/// No edge.
const NONE: u32 = u32::MAX;

/// The circles among those that wait, by their ids.
pub(super) fn circles(waits: impl Iterator<Item = (u64, LastWait)>) -> Vec<Circle> {
    let edges = waits.filter_map(edge).filter(|edge| edge.is_strong);
    ids(circles_of(edges.collect()))
}

/// The possible circles among those that wait, and for nothing else.
pub(super) fn possible_circles(waits: impl Iterator<Item = (u64, LastWait)>) -> Vec<Circle> {
    let mut circles = circles_of(waits.filter_map(edge).collect());
    circles.retain(|circle| !circle.iter().all(|edge| edge.is_strong));
    ids(circles)
}

fn ids(circles: Vec<Vec<Edge>>) -> Vec<Circle> {
    circles.into_iter().map(|circle| circle.iter().map(|edge| edge.from).collect()).collect()
}

fn circles_of(edges: Vec<Edge>) -> Vec<Vec<Edge>> {
    let edges = sorted(edges, |edge| edge.from);
    let next = next(&edges);
    let mut walked = vec![NONE; edges.len()]; // in which walk
    let mut circles = Vec::new();
    for start in 0..edges.len() as u32 {
        let mut at = start;
        while at != NONE {
            match std::mem::replace(&mut walked[at as usize], start) {
                NONE => at = next[at as usize],
                earlier if earlier == start => {
                    circles.push(circle(at, &edges, &next));
                    break;
                }
                _ => break, // an earlier walk has been here
            }
        }
    }
    circles
}

/// Of each of the edges, which are in order, the one that begins where it ends.
fn next(edges: &[Edge]) -> Vec<u32> {
    let mut ends: Vec<(u64, u32)> = edges.iter().map(|edge| edge.to).zip(0..).collect();
    ends.sort();
    let mut next = vec![NONE; edges.len()];
    let mut begins = edges.iter().zip(0..).peekable();
    for (to, at) in ends {
        while begins.next_if(|(edge, _)| edge.from < to).is_some() {}
        match begins.peek() {
            Some(&(edge, begin)) if edge.from == to => next[at as usize] = begin,
            _ => {}
        }
    }
    next
}

fn circle(start: u32, edges: &[Edge], next: &[u32]) -> Vec<Edge> {
    let rest = std::iter::successors(Some(start), |&at| Some(next[at as usize]).filter(|&next| next != start));
    rest.map(|at| edges[at as usize]).collect()
}

/// For which task the task `from` waits, if that edge is strong.
pub(super) fn strong_target(from: u64, wait: LastWait) -> Option<u64> {
    edge((from, wait)).filter(|edge| edge.is_strong).map(|edge| edge.to)
}

/// From a task that waits to that for which it does.
fn edge((from, wait): (u64, LastWait)) -> Option<Edge> {
    let LastWait::Known(wait) = wait else { return None };
    if wait.is_timed() {
        return None; // which ends by itself
    }
    let (to, is_strong) = match wait.reason() {
        Reason::Join(to) => (to, true),
        Reason::Sync(_, 0) => return None,
        Reason::Sync(_, ITSELF) => (from, true),
        Reason::Sync(_, holder) => untaken(holder),
        _ => return None,
    };
    Some(Edge { from, to, is_strong })
}
