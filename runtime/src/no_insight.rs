//! Stands in for `insight` in builds without that feature: nobody looks at a runtime.

use std::io;
use std::sync::Arc;

use crate::scheduler::shared::Shared;

#[derive(Default)]
pub(crate) struct Kept(());

/// There are none.
pub(crate) enum Warning {}

pub(crate) struct OnPanic;

pub(crate) struct InTask;

pub(crate) fn begin(_: &Arc<Shared>) -> io::Result<()> {
    Ok(())
}

impl OnPanic {
    pub(crate) fn new(_: &Shared) -> Self {
        Self
    }

    pub(crate) fn begin(&self) {}
}

impl Shared {
    pub(crate) fn dump_on_panic(&self) {}
}
