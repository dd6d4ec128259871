//! Without the feature `sim` no runtime is simulated, and none of this costs an instruction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mini_time::Clock;

use super::Worker;
use crate::scheduler::config::Config;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::task::Queued;

impl Config {
    pub(crate) fn simulated_clock(&self) -> Option<Clock> {
        None
    }
}

impl Core {
    pub(crate) fn simulated(self, _: &Config, _: &Clock) -> Self {
        self
    }

    #[inline]
    pub(crate) fn note_intruder(&self, _: u64) {}
}

impl Worker<'_> {
    #[inline]
    pub(super) fn next_simulated(&mut self) -> Option<Option<Queued>> {
        None
    }

    pub(super) fn is_halted(&self) -> bool {
        false
    }
}

impl Shared {
    pub(crate) const fn virtual_time(&self) -> Option<Duration> {
        None
    }

    pub(crate) fn hosts_of(&self, _: impl Iterator<Item = u64>) -> HashMap<u64, Arc<str>> {
        HashMap::new()
    }
}
