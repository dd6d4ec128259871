//! Stands in for `insight` in builds without that feature: nobody looks at a runtime.

use std::io;
use std::sync::Arc;

use crate::runtime::settings::Settings;
use crate::scheduler::observe::Observe;
use crate::scheduler::shared::Shared;

pub(crate) struct InTask;

pub(crate) fn recorder(_: &Settings) -> Option<Arc<dyn Observe>> {
    None
}

pub(crate) fn begin(_: &Arc<Shared>) -> io::Result<()> {
    Ok(())
}

impl Shared {
    pub(crate) fn dump_on_panic(&self) {}
}
