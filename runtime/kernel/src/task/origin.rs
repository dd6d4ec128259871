//! The origin of a task: the line that spawned it, and the name that it may have.
//!
//! The line is in every header. A name is behind the future, only in the cells of tasks that may have one: a cell is
//! generic over its [`Label`], and the label of a task spawned without a `Builder` has no size. So names cost other
//! tasks neither a byte nor an instruction, can be read by any thread while the task exists, and outlive the future,
//! for a later error.
//!
//! Rejected: a pointer in the header (8 bytes per task). A table in addition to the registry (a lock, and a look-up per
//! ended task). A wrapper around the future (gone when the future is, and only the runner may look into it).

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::AcqRel, Ordering::Acquire};

/// What a task is called, and how many handles that abort it there are.
pub trait Label: Send + Sync + 'static {
    fn name(&self) -> Option<&Arc<str>>;

    /// Adds to the number of handles, if it is counted, and returns it.
    fn aborts(&self, _change: i32) -> i32 {
        0
    }
}

/// The label of a task that may have a name.
pub struct Named {
    name: Option<Arc<str>>,
    /// Of the references, those that wake nobody. A group has one to each of its tasks.
    aborts: AtomicI32,
}

impl Label for () {
    fn name(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Label for Named {
    fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    fn aborts(&self, change: i32) -> i32 {
        // A handle is counted after its reference, and no longer counted before that is given back.
        if change == 0 { self.aborts.load(Acquire) } else { self.aborts.fetch_add(change, AcqRel) + change }
    }
}

/// The line that spawned a task, with or without a place for a name.
pub trait Origin {
    type Label: Label;

    fn location(&self) -> &'static Location<'static>;

    fn split(self) -> (&'static Location<'static>, Self::Label);
}

impl Origin for &'static Location<'static> {
    type Label = ();

    fn location(&self) -> &'static Location<'static> {
        self
    }

    fn split(self) -> (&'static Location<'static>, ()) {
        (self, ())
    }
}

impl Origin for (&'static Location<'static>, Option<Arc<str>>) {
    type Label = Named;

    fn location(&self) -> &'static Location<'static> {
        self.0
    }

    fn split(self) -> (&'static Location<'static>, Named) {
        (self.0, Named { name: self.1, aborts: AtomicI32::new(0) })
    }
}
