//! `Leftovers`: what a shutdown could not end within its grace, as a value and as lines for stderr.
//!
//! Filled by `Pool::shutdown`, returned by `Runtime::shutdown_timeout`.
//!
//! Tasks that may not leave their worker are only counted: their list is the worker's own, and it is busy. Rejected: a lock
//! around that list (two locked instructions per task, for a worker that is stuck when its runtime ends).

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::task::{Id, Task};

/// What a shutdown had to leave behind; see [`Runtime::shutdown_timeout`](crate::runtime::Runtime::shutdown_timeout).
///
/// It goes on by itself: a task ends when its poll does, a job when its function returns. Displayed, it has a line for each.
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
/// assert!(left.tasks().is_empty());
/// assert_eq!((left.workers(), left.threads(), left.local_tasks(), left.lookups()), (0, 0, 0, 0));
/// drop(quit);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    pub(crate) workers: usize,
    pub(crate) threads: usize,
    pub(crate) tasks: Vec<LeftTask>,
    pub(crate) local_tasks: usize,
    pub(crate) blocking: Vec<&'static Location<'static>>,
    pub(crate) lookups: usize,
}

/// A task that a shutdown left behind: it is in a long poll, or waits behind one.
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
        Self { id: task.id(), name: task.name(), location: task.location() }
    }

    /// Its id, as its join handle told.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn id(&self) -> Id {
        self.id
    }

    /// Its name, if it has one.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it was spawned.
    ///
    /// # Examples
    ///
    /// See [`LeftTask`].
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl Leftovers {
    /// Whether all has ended.
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
        self.workers + self.threads + tasks + self.blocking.len() + self.lookups == 0
    }

    /// How many workers are in a long poll, threads in `block_on` included.
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// How many threads that the runtime has started for its workers have not ended: those in a long poll, and those that
    /// are still in [`on_thread_stop`](crate::runtime::Builder::on_thread_stop).
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The tasks of a multi-threaded runtime that are not dropped yet.
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn tasks(&self) -> &[LeftTask] {
        &self.tasks
    }

    /// How many tasks there are beside these that may not leave a worker in a long poll: those made by
    /// [`spawn_local`](crate::spawn_local), and all of a `current_thread` runtime.
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn local_tasks(&self) -> usize {
        self.local_tasks
    }

    /// Where the blocking jobs were spawned that have not returned.
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn blocking_jobs(&self) -> &[&'static Location<'static>] {
        &self.blocking
    }

    /// How many names are still being looked up. A connection to a Unix listener whose queue is full counts too: it waits on
    /// the same threads, for a tenth of a second at most when the runtime has shut down.
    ///
    /// # Examples
    ///
    /// See [`Leftovers`].
    pub fn lookups(&self) -> usize {
        self.lookups
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.workers > 0 {
            writeln!(f, "left {} worker(s) behind that are in a long poll", self.workers)?;
        }
        if self.threads > 0 {
            writeln!(f, "left {} worker thread(s) behind that have not ended", self.threads)?;
        }
        for LeftTask { id, name, location } in &self.tasks {
            let named = name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
            writeln!(f, "left task {id}{named} behind that was spawned at {location}")?;
        }
        if self.local_tasks > 0 {
            writeln!(f, "left {} task(s) behind that may not leave their worker", self.local_tasks)?;
        }
        for location in &self.blocking {
            writeln!(f, "left a blocking job behind that was spawned at {location}")?;
        }
        if self.lookups > 0 {
            writeln!(f, "left {} lookup(s) of names, or connects to Unix sockets, behind", self.lookups)?;
        }
        Ok(())
    }
}
