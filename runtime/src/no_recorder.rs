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

pub(crate) struct Recorder(Infallible);

pub(crate) struct Probe(Infallible);

impl Recorder {
    pub(crate) fn of(_: &Config) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn probe(self: &Arc<Self>) -> Box<Probe> {
        match self.0 {}
    }

    pub(crate) fn woken(&self, _: u64) {
        match self.0 {}
    }

    pub(crate) fn spawned(&self, _: &Task) {
        match self.0 {}
    }

    pub(crate) fn job(&self, _: u64, _: impl FnOnce()) {
        match self.0 {}
    }
}

impl Probe {
    pub(crate) fn begin(&self, _: u64, _: bool) {
        match self.0 {}
    }

    pub(crate) fn end(&self, _: Then) {
        match self.0 {}
    }

    pub(crate) fn parks(&self) {
        match self.0 {}
    }

    pub(crate) fn unparks(&self) {
        match self.0 {}
    }

    pub(crate) fn woken(&self, _: u64) {
        match self.0 {}
    }

    pub(crate) fn spawned(&self, _: Task) -> Task {
        match self.0 {}
    }

    pub(crate) fn stole(&self, _: usize) {
        match self.0 {}
    }

    pub(crate) fn delivered(&self, _: usize, _: usize) {
        match self.0 {}
    }

    pub(crate) fn queues(&self, _: usize, _: usize) {
        match self.0 {}
    }
}

impl Shared {
    pub(crate) fn write_trace(&self) {}
}
