//! The end of a runtime: `Shared::shutdown`, and `ShutdownReport`, what it could not end or begin within its grace.
//!
//! Called when a `Runtime` is dropped or shut down; `Runtime::shutdown_timeout` returns the report.
//!
//! Tasks that may not leave their worker are only counted: their list belongs to the worker, which is busy. Rejected: a
//! lock around that list (two locked instructions per task, for a worker that is stuck when its runtime ends).

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use mini_context::rules::PATIENCE;

use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::{Deadline, thread};
use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker;
use crate::task::hide;
use crate::task::{Class, Id, Task};

/// The tasks and jobs that a shutdown left behind; see `Runtime::shutdown_timeout`.
///
/// These tasks and jobs continue in the background: a task ends when its poll does, a job when its function returns.
/// Blocking jobs that had not begun are cancelled instead. `Display` prints a line for each; cancelled jobs that were
/// spawned at one place share a line.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// let runtime = mini::runtime::Builder::new_current_thread().build()?;
/// let (quit, wait) = std::sync::mpsc::channel::<()>();
/// let (begun, has_begun) = std::sync::mpsc::channel();
/// runtime.spawn_blocking(move || {
///     begun.send(()).unwrap();
///     wait.recv()
/// });
/// has_begun.recv().unwrap();
/// let left = runtime.shutdown_timeout(Duration::from_millis(1));
/// assert_eq!(left.blocking_jobs().len(), 1);
/// assert_eq!(left.blocking_jobs()[0].file(), file!());
/// assert!(left.tasks().is_empty() && left.cancelled_jobs().is_empty());
/// assert_eq!((left.workers(), left.threads(), left.local_tasks(), left.lookups()), (0, 0, 0, 0));
/// drop(quit);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ShutdownReport {
    pub(crate) workers: usize,
    pub(crate) threads: usize,
    pub(crate) tasks: Vec<LeftTask>,
    pub(crate) local_tasks: usize,
    pub(crate) blocking: Vec<&'static Location<'static>>,
    pub(crate) cancelled: Vec<&'static Location<'static>>,
    pub(crate) lookups: usize,
}

/// A task that a shutdown left behind, as it is in a long poll, or waits behind one. Or a task that nothing can wake;
/// see `Runtime::run_until_idle`.
///
/// # Examples
///
/// ```
/// use mini::task::Builder;
/// let runtime = mini::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
/// let (quit, wait) = std::sync::mpsc::channel::<()>();
/// let (begun, has_begun) = std::sync::mpsc::channel();
/// let blocks = async move {
///     begun.send(()).unwrap();
///     let _ = wait.recv(); // better done with `spawn_blocking`
/// };
/// let task = Builder::new().name("stuck").spawn_on(blocks, runtime.handle());
/// has_begun.recv().unwrap();
/// let left = runtime.shutdown_timeout(std::time::Duration::from_millis(1));
/// let stuck = &left.tasks()[0];
/// assert_eq!((stuck.id(), stuck.name(), stuck.location().file()), (task.id(), Some("stuck"), file!()));
/// drop(quit);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftTask {
    id: Id,
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
}

impl LeftTask {
    pub(crate) fn new(task: &Task) -> Self {
        Self { id: task.id(), name: task.name().cloned(), location: task.location() }
    }

    /// Returns the id of the task, as its join handle gave it.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the name of the task, if it has one.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl ShutdownReport {
    /// Returns `true` if everything has ended, and no job was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// assert!(runtime.shutdown_timeout(std::time::Duration::from_secs(5)).is_empty());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn is_empty(&self) -> bool {
        let tasks = self.tasks.len() + self.local_tasks;
        let jobs = self.blocking.len() + self.cancelled.len();
        self.workers + self.threads + tasks + jobs + self.lookups == 0
    }

    /// Returns the number of workers in a long poll.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the number of the runtime's worker threads that have not ended: those in a long poll, and those still in
    /// `on_thread_stop`.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the tasks of a multi-threaded runtime that are not dropped yet.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn tasks(&self) -> &[LeftTask] {
        &self.tasks
    }

    /// Returns the number of further tasks that are bound to a worker in a long poll: those made by `spawn_local`, and
    /// all tasks of a `current_thread` runtime.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn local_tasks(&self) -> usize {
        self.local_tasks
    }

    /// Returns the lines that spawned the blocking jobs that have not returned.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn blocking_jobs(&self) -> &[&'static Location<'static>] {
        &self.blocking
    }

    /// Returns the lines that spawned the cancelled blocking jobs: those that no thread had begun when the grace was
    /// over. Their handles return a cancelled [`JoinError`](crate::task::JoinError).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let runtime = mini::runtime::Builder::new_multi_thread().max_blocking_threads(1).build()?;
    /// let (quit, wait) = std::sync::mpsc::channel::<()>();
    /// drop(runtime.spawn_blocking(move || wait.recv())); // takes the only thread
    /// let job = runtime.spawn_blocking(|| 7);
    /// let left = runtime.shutdown_timeout(Duration::from_millis(1));
    /// assert!(left.cancelled_jobs().iter().all(|location| location.file() == file!()));
    /// assert!(mini::block_on(job).unwrap_err().is_cancelled());
    /// drop(quit);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn cancelled_jobs(&self) -> &[&'static Location<'static>] {
        &self.cancelled
    }

    /// Returns the number of names that are still being looked up.
    ///
    /// # Examples
    ///
    /// See [`ShutdownReport`].
    pub fn lookups(&self) -> usize {
        self.lookups
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.workers > 0 {
            writeln!(f, "left {} worker(s) behind in a long poll", self.workers)?;
        }
        if self.threads > 0 {
            writeln!(f, "left {} worker thread(s) behind that have not ended", self.threads)?;
        }
        for LeftTask { id, name, location } in &self.tasks {
            let named = name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
            writeln!(f, "left task {id}{named} behind, spawned at {location}")?;
        }
        if self.local_tasks > 0 {
            writeln!(f, "left {} task(s) behind that may not leave their worker", self.local_tasks)?;
        }
        for location in &self.blocking {
            writeln!(f, "left a blocking job behind, spawned at {location}")?;
        }
        for (location, jobs) in by_place(&self.cancelled) {
            writeln!(f, "cancelled {jobs} blocking job(s) before they started, spawned at {location}")?;
        }
        if self.lookups > 0 {
            writeln!(f, "left {} name lookup(s) behind", self.lookups)?;
        }
        Ok(())
    }
}

/// The places and how often each occurs, in the order of their first occurrence. A queue may hold thousands of jobs of
/// a few places.
fn by_place(locations: &[&'static Location<'static>]) -> Vec<(&'static Location<'static>, usize)> {
    let mut places: Vec<(&Location<'_>, usize)> = Vec::new();
    for location in locations {
        match places.iter_mut().find(|(place, _)| place == location) {
            Some((_, jobs)) => *jobs += 1,
            None => places.push((location, 1)),
        }
    }
    places
}

impl Shared {
    /// Drops all tasks, on their workers or on another one, and waits for that and for blocking jobs until `grace` is
    /// over, or for [`PATIENCE`] where all workers are at rest. Then it discards the jobs that have not started.
    ///
    /// Without a grace, or called on one of its own workers, it only starts the end, and the jobs run. In a child of
    /// fork(2) it leaks everything: the tasks are the parent's, the threads that would end do not exist, and what they
    /// had locked stays locked.
    pub fn shutdown(self: &Arc<Self>, grace: Option<Duration>) -> ShutdownReport {
        let left = self.end_all(grace);
        for observer in &self.config.observers {
            observer.ended(self);
        }
        left
    }

    fn end_all(self: &Arc<Self>, grace: Option<Duration>) -> ShutdownReport {
        if !self.process.is_current() {
            std::mem::forget(self.clone());
            return ShutdownReport::default();
        }
        let deadline = Deadline::after(grace.unwrap_or_default());
        let mut are_at_rest = true;
        if !self.end.begin() {
            return ShutdownReport::default();
        }
        for core in &self.cores {
            let is_free = core.ownership.try_take();
            if is_free {
                worker::close_core(self, core);
            }
            core.ownership.retire();
            are_at_rest &= core.unparker.unpark() || is_free || !core.is_up.load(Relaxed);
        }
        for guest in self.guests() {
            if guest.ownership.try_take() {
                worker::close_core(self, guest); // it may have mail
            } else {
                guest.unparker.unpark();
            }
        }
        self.fail_waits_in_place();
        self.blocking.close();
        if current::is_working_for(self) {
            return ShutdownReport::default(); // it would wait for itself
        }
        // Workers at rest end at once, but not in no time.
        let are_awaited = are_at_rest && grace.is_some_and(|grace| grace < PATIENCE);
        let (workers, threads) = self.end.wait(if are_awaited { Deadline::after(PATIENCE) } else { deadline });
        let mut left = ShutdownReport { workers, threads, ..ShutdownReport::default() };
        if grace.is_some() {
            let _hidden = hide(); // from the jobs that it discards
            let rest = self.blocking.wait(deadline);
            (left.blocking, left.cancelled, left.lookups) = (rest.running, rest.discarded, rest.calls);
        }
        if workers > 0 {
            left.tasks = self.cores.iter().flat_map(Core::list_shared).map(|task| LeftTask::new(&task)).collect();
            left.local_tasks = self.cores.iter().map(Core::owned_left).sum();
        }
        left
    }

    /// A core has been closed by its owner. The last caller empties the injectors.
    pub(crate) fn core_closed(&self) {
        if self.end.is_last_core() {
            // Every task is cancelled by now. What is alive is in the injector, or on its way there on a thread that
            // woke it before it was cancelled, or has looked at it, and has yet to push it.
            loop {
                self.discard_injected();
                if !self.is_any_task_alive() {
                    break;
                }
                thread::yield_now();
            }
            self.monitor.stop();
            self.shut_drivers();
        }
        self.end.core_closed();
        self.fail_waits_in_place();
    }

    /// Once the runtime ends, and each core that is not closed is in `block_in_place`: fails all waits if a thread is
    /// in `block_on`, as that may be what one of these waits for. Called by all who bring that about.
    pub(crate) fn fail_waits_in_place(&self) {
        let cores = || self.cores.iter().map(|core| [core.closed(), &core.poll.is_blocked]);
        if self.end.is_over_but_for_waits(cores()) && self.guests().any(|guest| guest.ownership.is_held()) {
            self.shut_drivers();
        }
    }

    /// Drops the tasks in the injectors, which are cancelled.
    pub(super) fn discard_injected(&self) {
        while let Some(task) = self.injector(Class::Woken).pop().or_else(|| self.injector(Class::ComputeBound).pop()) {
            task.cancel();
        }
    }

    /// Fails all waits for I/O or time, once the tasks are gone: they are cancelled and must not see such errors. So it
    /// is for the last worker, however late that is. Until then the monitor, if there is one, serves those who wait
    /// here though their tasks are other runtimes'.
    fn shut_drivers(&self) {
        for core in &self.cores {
            core.driver().shutdown();
        }
    }
}
