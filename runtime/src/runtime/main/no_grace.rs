//! In place of `grace.rs` where there are no signals: nothing can call it, as `HasSignals` is not implemented.

use std::panic::Location;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mini_kernel::scheduler::shared::Shared;

use crate::runtime::Runtime;
use crate::task::{CancelOnDrop, JoinHandle};

pub(super) fn run<S>(_: Runtime, _: Duration, _: &'static Location<'static>, _: S) -> ExitCode
where
    S: FnOnce(&Arc<Shared>, CancelOnDrop) -> JoinHandle<ExitCode>,
{
    unreachable!("the attribute does not compile without the feature `signal`")
}
