//! Without the feature `insight` nothing is recorded: there is no recorder, and a core has no probe.

use std::convert::Infallible;
use std::sync::Arc;

use crate::scheduler::config::Config;
use crate::scheduler::shared::Shared;
use crate::task::Task;

pub(crate) const SIZES: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 30;

/// The outcome of a poll.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Waits,
    Asks,
    Ended,
}

/// Methods of what never is.
macro_rules! never {
    ($($name:ident($($argument:ty),*) $(-> $output:ty)?;)*) => {
        $(pub(crate) fn $name(&self, $(_: $argument),*) $(-> $output)? {
            match self.0 {}
        })*
    };
}

pub(crate) struct Recorder(Infallible);

pub(crate) struct Probe(Infallible);

impl Recorder {
    pub(crate) fn of(_: &Config) -> Option<Arc<Self>> {
        None
    }

    never! {
        probe() -> Box<Probe>;
        woken(u64);
        spawned(&Task);
        job(u64, impl FnOnce());
    }
}

impl Probe {
    never! {
        begin(u64, bool);
        end(Then);
        parks();
        unparks();
        woken(u64);
        spawned(Task) -> Task;
        stole(usize);
        delivered(usize, usize);
        queues(usize, usize);
    }
}

impl Shared {
    pub(crate) fn write_trace(&self) {}
}
