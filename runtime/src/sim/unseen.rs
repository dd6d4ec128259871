//! Panics that nobody will see, as the handle of the task was dropped: each ends the simulation.
//!
//! What comes after it would be told instead: that nobody answers, or that nothing is left to wake a task.

use std::cell::RefCell;

use mini_context::sim;
use mini_net::sim as network;

use super::{hosts, panics};
use crate::task::{JoinError, TaskError};

thread_local! {
    static UNSEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A simulation begins on this thread, or ends.
pub(super) fn reset() {
    UNSEEN.take();
}

/// A task has panicked.
pub(super) fn note_panic(error: &JoinError) {
    let place = panics::last().map_or(String::new(), |place| format!(" (at {place})"));
    note(if hosts::is_program(error.id().get()) {
        format!("{error}{place}")
    } else {
        format!("{}{error}{place}, and nobody awaits it", on_host())
    });
}

/// A task has ended with an error, which counts if it is what a host runs: for another one it may be the right end.
pub(super) fn note_error(error: &TaskError) {
    if hosts::is_program(error.id().get()) {
        note(format!("{}{error}, and nobody awaits it", on_host()));
    }
}

fn on_host() -> String {
    match sim::host() {
        0 => String::new(),
        host => format!("on host {}: ", network::host_name(host)),
    }
}

fn note(text: String) {
    UNSEEN.with_borrow_mut(|unseen| unseen.push(text));
}

/// Whether there are some.
#[inline]
pub(crate) fn has_some() -> bool {
    UNSEEN.with_borrow(|unseen| !unseen.is_empty())
}

pub(super) fn take() -> Vec<String> {
    UNSEEN.take()
}
