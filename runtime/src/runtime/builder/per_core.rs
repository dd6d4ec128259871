//! The settings that only a builder of a [`PerCore`] has.

use std::io;

use mini_kernel::scheduler::config;

use super::Builder;
use crate::runtime::per_core::PerCore;

impl Builder<PerCore> {
    /// Binds each thread to a processor of its own, in the order of the processors' numbers. If there are more threads
    /// than processors, numbering restarts with the first. Off by default.
    ///
    /// Only processors that the process may use count (taskset(1), cpusets). Linux and Android only: elsewhere the
    /// system places threads as it likes.
    ///
    /// Source: sched_setaffinity(2).
    ///
    /// # Examples
    ///
    /// ```
    /// let cores = mini::runtime::Builder::new_per_core().worker_threads(1).pin_cores(true).build()?;
    /// cores.run(|_| async { /* always on the same processor */ })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn pin_cores(&mut self, pin: bool) -> &mut Self {
        self.pins = pin;
        self
    }

    /// Builds the runtimes. No thread is started yet.
    ///
    /// # Examples
    ///
    /// See [`new_per_core`](Builder::new_per_core).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Builder::build`] for a [`Runtime`](crate::runtime::Runtime).
    pub fn build(&self) -> io::Result<PerCore> {
        let count = config::workers(self.workers)?;
        self.config.check()?;
        PerCore::new_from(&self.config, &self.settings.checked()?, count, self.pins)
    }
}
