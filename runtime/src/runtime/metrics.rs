//! `Metrics`: what a runtime does, in numbers, read while it runs.
//!
//! Asked by the user's exporter, from any thread, at any rate: reading takes a lock for the shared tasks and one for
//! the blocking threads, each for a few instructions; the rest are plain loads of what `counts.rs` describes.
//!
//! Rejected: a snapshot of all at once (an allocation per look, for numbers that differ by what happens meanwhile
//! either way).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::Class;

#[cfg(feature = "insight")]
use crate::insight;
#[cfg(feature = "insight")]
use crate::recorder::{Histogram, Probe, Recorder};

/// Numbers of a runtime, as they are when they are asked for; see [`Handle::metrics`](crate::runtime::Handle::metrics).
///
/// Counts of events never decrease. Counts of existing things are from some moment during the call. A `Metrics` does
/// not keep the runtime running.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let metrics = mini::runtime::Handle::current().metrics();
///     let task = mini::spawn(async {});
///     assert_eq!(metrics.num_alive_tasks(), 1);
///     task.await.unwrap();
///     assert_eq!(metrics.num_alive_tasks(), 0);
///     assert!(metrics.total_poll_count() >= 2);
/// });
/// ```
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

/// Makes two methods for a number: of one worker, and of all of them.
macro_rules! counted {
    ($($worker:ident, $total:ident: $ty:ty = $value:expr, $zero:expr, $doc:literal;)*) => { $(
        #[doc = concat!($doc, ", at the worker with this index.")]
        ///
        /// # Examples
        ///
        /// See [`Metrics`].
        ///
        /// # Panics
        ///
        /// If there is no such worker.
        #[track_caller]
        pub fn $worker(&self, worker: usize) -> $ty {
            let value: fn(&Core) -> $ty = $value;
            value(self.core(worker))
        }

        #[doc = concat!($doc, ", at all workers and threads in `block_on`.")]
        ///
        /// # Examples
        ///
        /// See [`Metrics`].
        pub fn $total(&self) -> $ty {
            let value: fn(&Core) -> $ty = $value;
            self.shared.all_cores().map(value).fold($zero, |sum, next| sum + next)
        }
    )* };
}

impl Metrics {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    #[track_caller]
    fn core(&self, worker: usize) -> &Core {
        match self.shared.cores.get(worker) {
            Some(core) => core,
            None => panic!("there is no worker {worker}: the runtime has {}", self.shared.cores.len()),
        }
    }

    /// Returns the number of workers of the runtime, including workers without a thread at the moment.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().worker_threads(3).build()?;
    /// assert_eq!(runtime.metrics().num_workers(), 3);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_workers(&self) -> usize {
        self.shared.cores.len()
    }

    /// Returns the number of lost tasks: they wait, no waker is left that could wake them, and they never run again
    /// unless they are aborted; see [`Dump`](crate::runtime::Dump). The call reads every task, at 0.2 µs each, so do
    /// not call it every second on a large server.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(std::future::pending::<()>()); // drops the waker that it is given
    ///     mini::task::yield_now().await;
    ///     assert_eq!(mini::runtime::Handle::current().metrics().num_lost_tasks(), 1);
    /// #   drop(task);
    /// });
    /// ```
    #[cfg(feature = "insight")]
    pub fn num_lost_tasks(&self) -> usize {
        insight::lost_now(&self.shared)
    }

    /// Returns the number of tasks that have not ended. Blocking jobs and the futures given to `block_on` do not count.
    ///
    /// # Examples
    ///
    /// See [`Metrics`].
    pub fn num_alive_tasks(&self) -> usize {
        self.shared.all_cores().map(Core::alive).sum()
    }

    /// Returns the number of tasks that wait for any worker: those woken by threads that are not workers, and those
    /// that did not fit into the queue of a worker.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// assert_eq!(runtime.metrics().global_queue_depth(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn global_queue_depth(&self) -> usize {
        Class::ALL.iter().map(|&class| self.shared.injector(class).len()).sum()
    }

    /// Returns the number of threads for blocking jobs, busy or idle.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let metrics = mini::runtime::Handle::current().metrics();
    ///     assert_eq!(metrics.num_blocking_threads(), 0);
    ///     mini::spawn_blocking(|| ()).await.unwrap();
    ///     assert_eq!(metrics.num_blocking_threads(), 1);
    /// });
    /// ```
    pub fn num_blocking_threads(&self) -> usize {
        self.shared.blocking.gauge().threads
    }

    /// Returns the number of blocking threads that wait for a job.
    ///
    /// # Examples
    ///
    /// See [`num_blocking_threads`](Self::num_blocking_threads).
    pub fn num_idle_blocking_threads(&self) -> usize {
        self.shared.blocking.gauge().idle
    }

    /// Returns the number of blocking jobs that wait for a thread.
    ///
    /// # Examples
    ///
    /// See [`num_blocking_threads`](Self::num_blocking_threads).
    pub fn blocking_queue_depth(&self) -> usize {
        self.shared.blocking.gauge().queued
    }

    /// Returns a histogram of the duration of polls since the runtime began, including polls of `block_on` futures.
    /// Returns `None` unless [`Builder::histograms`](crate::runtime::Builder::histograms) is on.
    ///
    /// # Examples
    ///
    /// See [`Histogram`].
    #[cfg(feature = "insight")]
    pub fn poll_time(&self) -> Option<Histogram> {
        self.histogram(self.shared.all_cores(), Probe::add_polls)
    }

    /// Returns the [`poll_time`](Self::poll_time) of the worker with this index.
    ///
    /// # Examples
    ///
    /// See [`poll_time`](Self::poll_time).
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[cfg(feature = "insight")]
    #[track_caller]
    pub fn worker_poll_time(&self, worker: usize) -> Option<Histogram> {
        self.histogram([self.core(worker)].into_iter(), Probe::add_polls)
    }

    /// Returns a histogram of the time that tasks waited for a worker: from a wake, a spawn, or the end of a poll that
    /// asks for another one, to the next poll. Returns `None` unless
    /// [`Builder::histograms`](crate::runtime::Builder::histograms) is on.
    ///
    /// A sample. While fewer than 4,096 tasks wait it has nearly all waits; of more tasks that wait at once it has the
    /// first ones, so a long wait is as likely in it as a short one.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().histograms(true).build()?;
    /// runtime.block_on(async {
    ///     let waits = mini::spawn(async {});
    ///     std::thread::sleep(std::time::Duration::from_millis(5)); // in the way of others
    ///     waits.await
    /// })?;
    /// let delays = runtime.metrics().queue_delay().expect("they are on");
    /// assert!(delays.max() >= std::time::Duration::from_millis(5));
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "insight")]
    pub fn queue_delay(&self) -> Option<Histogram> {
        self.histogram(self.shared.all_cores(), Probe::add_delays)
    }

    /// Returns the [`queue_delay`](Self::queue_delay) of polls at the worker with this index.
    ///
    /// # Examples
    ///
    /// See [`queue_delay`](Self::queue_delay).
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    #[cfg(feature = "insight")]
    #[track_caller]
    pub fn worker_queue_delay(&self, worker: usize) -> Option<Histogram> {
        self.histogram([self.core(worker)].into_iter(), Probe::add_delays)
    }

    #[cfg(feature = "insight")]
    fn histogram<'a>(
        &self,
        cores: impl Iterator<Item = &'a Core>,
        add: fn(&Probe, &mut Histogram),
    ) -> Option<Histogram> {
        let mut sum = Recorder::of(&self.shared)?.histogram()?;
        cores.filter_map(Probe::of).for_each(|probe| add(probe, &mut sum));
        Some(sum)
    }

    counted! {
        worker_poll_count, total_poll_count: u64 = |core| core.counts.polls.get(), 0,
            "The number of polls of tasks and `block_on` futures";
        worker_park_count, total_park_count: u64 = |core| core.counts.parks.get(), 0,
            "The number of times a worker had nothing to do and parked";
        worker_steal_count, total_steal_count: u64 = |core| core.counts.steals.get(), 0,
            "The number of tasks stolen from other workers' queues";
        worker_total_busy_duration, total_busy_duration: Duration = |core| core.counts.busy(), Duration::ZERO,
            "The time that a thread was at work, rather than parked or absent; spinning for a blocking job or a wake \
             is work";
        worker_local_queue_depth, total_local_queue_depth: usize = Core::queue_depth, 0,
            "The number of tasks that are ready to run. Tasks that may not leave the worker are counted at its last \
             driver check, every 64 polls or sooner, unless the worker itself calls this";
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("workers", &self.num_workers())
            .field("alive_tasks", &self.num_alive_tasks())
            .field("global_queue_depth", &self.global_queue_depth())
            .field("local_queue_depth", &self.total_local_queue_depth())
            .field("polls", &self.total_poll_count())
            .field("parks", &self.total_park_count())
            .field("steals", &self.total_steal_count())
            .field("busy", &self.total_busy_duration())
            .field("blocking_threads", &self.num_blocking_threads())
            .field("idle_blocking_threads", &self.num_idle_blocking_threads())
            .field("blocking_queue_depth", &self.blocking_queue_depth())
            .finish()
    }
}
