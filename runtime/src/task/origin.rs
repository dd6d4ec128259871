//! Where a task comes from: the line that spawned it, and the name that it may have.
//!
//! The line is in every header. A name is behind the future, only in the cells of tasks that may have one: a cell is
//! generic over its [`Label`], and the label of a task spawned without a [`Builder`](super::Builder) has no size. So
//! names cost other tasks neither a byte nor an instruction, can be read by any thread as long as the task is there,
//! and outlive the future, for the error that follows it.
//!
//! Rejected: a pointer in the header (8 bytes per task). A table beside the registry (a lock, and a look per ended
//! task). A wrapper around the future (gone when the future is, and only the runner may look into it).

use std::panic::Location;
use std::sync::Arc;

/// What a task is called.
pub(crate) trait Label: Send + Sync + 'static {
    fn name(&self) -> Option<&Arc<str>>;
}

impl Label for () {
    fn name(&self) -> Option<&Arc<str>> {
        None
    }
}

impl Label for Option<Arc<str>> {
    fn name(&self) -> Option<&Arc<str>> {
        self.as_ref()
    }
}

/// The line that spawned a task, with or without a place for a name.
pub(crate) trait Origin {
    type Label: Label;

    fn split(self) -> (&'static Location<'static>, Self::Label);
}

impl Origin for &'static Location<'static> {
    type Label = ();

    fn split(self) -> (&'static Location<'static>, ()) {
        (self, ())
    }
}

impl Origin for (&'static Location<'static>, Option<Arc<str>>) {
    type Label = Option<Arc<str>>;

    fn split(self) -> (&'static Location<'static>, Option<Arc<str>>) {
        self
    }
}
