//! Stands in for `insight` in builds without that feature: a runtime is not watched.

use crate::scheduler::shared::Shared;

/// The previous dump; there is none.
#[derive(Debug)]
pub(crate) enum Before {}

#[derive(Default)]
pub(crate) struct LastWarnings(());

/// There are none.
pub(crate) enum Warning {}

pub(crate) struct OnPanic;

impl OnPanic {
    pub(crate) fn new(_: &Shared) -> Self {
        Self
    }

    pub(crate) fn begin(&self) {}
}

pub(crate) struct InTask;

impl Shared {
    pub(crate) fn dump_on_panic(&self) {}
}

#[path = "insight/no_signal.rs"]
pub(crate) mod on_quit;

pub(crate) mod watcher {
    use std::sync::Arc;

    use crate::scheduler::shared::Shared;

    pub(crate) fn watch(_: &Arc<Shared>) {}
}
