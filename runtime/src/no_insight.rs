//! Stands in for `insight` in builds without that feature: nobody looks at a runtime.

use std::io;
use std::sync::Arc;

use mini_kernel::scheduler::observe::Observe;
use mini_kernel::scheduler::shared::Shared;

use crate::runtime::settings::Settings;

pub(crate) struct InTask;

pub(crate) fn recorder(_: &Settings) -> Option<Arc<dyn Observe>> {
    None
}

pub(crate) fn begin(_: &Arc<Shared>) -> io::Result<()> {
    Ok(())
}

pub(crate) fn dump_on_panic(_: &Shared) {}
