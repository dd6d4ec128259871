//! Without the feature `insight` nobody looks at what a runtime does.

use crate::scheduler::shared::Shared;

/// What a dump would have seen.
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
