//! Panics and errors of tasks whose handle was dropped, which would be unseen.
//!
//! A panic ends the simulation. Otherwise only its consequences would be reported: that no task answers, or that
//! nothing is left to wake a task. An error of a host's program ends the simulation too. For another task an error may
//! be the right end, so it is only reported if the simulation fails.

use std::cell::RefCell;

use mini_net::sim as network;

use super::{hosts, panics};
use crate::task::{JoinError, TaskError};

/// Of more errors the last ones are told.
const TOLD: usize = 3;

thread_local! {
    static UNSEEN: RefCell<Vec<Unseen>> = const { RefCell::new(Vec::new()) };
    static ERRORS: RefCell<Errors> = const { RefCell::new(Errors { count: 0, last: Vec::new() }) };
}

/// The panic or error that ends the simulation.
#[derive(Debug)]
pub(super) struct Unseen {
    pub(super) text: String,
    /// Of a panic, if that is known.
    pub(super) place: Option<String>,
}

/// The errors of tasks that may end with one.
#[derive(Debug, Default)]
pub(super) struct Errors {
    count: usize,
    last: Vec<String>,
}

/// A simulation begins on this thread.
pub(super) fn reset() {
    UNSEEN.take();
    ERRORS.take();
}

/// A task has panicked.
pub(super) fn note_panic(error: &JoinError) {
    let id = error.id().get();
    let place = panics::last_of(id);
    let at = place.as_ref().map_or(String::new(), |place| format!(" (at {place})"));
    let end = if hosts::is_program(id) { "" } else { ", and no task awaits it" };
    note(format!("{}{error}{at}{end}", on_host(id)), place);
}

/// A task has ended with an error.
pub(super) fn note_error(error: &TaskError) {
    let id = error.id().get();
    let text = format!("{}{error}", on_host(id));
    if hosts::is_program(id) {
        return note(text + ", and no task awaits it", None);
    }
    ERRORS.with_borrow_mut(|errors| {
        errors.count += 1;
        if errors.last.len() == TOLD {
            errors.last.remove(0);
        }
        errors.last.push(text);
    });
}

fn on_host(task: u64) -> String {
    match hosts::host_of(task) {
        0 => String::new(),
        host => format!("on host {}: ", network::host_name(host)),
    }
}

fn note(text: String, place: Option<String>) {
    UNSEEN.with_borrow_mut(|unseen| unseen.push(Unseen { text, place }));
}

/// Returns `true` if there are some.
#[inline]
pub(crate) fn has_some() -> bool {
    UNSEEN.with_borrow(|unseen| !unseen.is_empty())
}

pub(super) fn take() -> Vec<Unseen> {
    UNSEEN.take()
}

pub(super) fn take_errors() -> Errors {
    ERRORS.take()
}

impl Errors {
    /// Lines for the report of a failure.
    pub(super) fn told(&self) -> String {
        let lines = self.last.iter().map(|error| format!("    {error}\n"));
        match self.count {
            0 => String::new(),
            1 => format!("  an error that no task awaited:\n{}", lines.collect::<String>()),
            count => format!("  {count} errors that no task awaited, the last of them:\n{}", lines.collect::<String>()),
        }
    }
}
