//! Tasks with names.
//!
//! `Builder`: spawns tasks with a name, which panics, errors and debug output show with the task's id. `origin.rs`
//! describes how a task keeps it.
//!
//! Rejected: `io::Result` as the output of the spawning methods, as in tokio: they cannot fail.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use mini_kernel::scheduler::current;

use super::JoinHandle;
use super::large::boxed;
use super::spawn::spawn_local_from;
use super::spawn::{spawn_blocking_on, spawn_on};
use crate::runtime::Handle;

/// Starts tasks under a name.
///
/// A name costs as much as an `Arc<str>`; tasks without a name pay nothing. Tasks may share a name, and a builder may
/// start any number of tasks.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::task::Builder::new().name("accept").spawn(async { panic!("no sockets left") });
///     let error = task.await.unwrap_err();
///     assert_eq!(error.name(), Some("accept"));
///     assert!(error.to_string().contains("\"accept\" spawned at "));
/// });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it spawns"]
pub struct Builder {
    name: Option<Arc<str>>,
}

impl Builder {
    /// Creates a builder of tasks without a name.
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the tasks.
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.name = Some(Arc::from(name.as_ref()));
        self
    }

    /// Starts a task on the current runtime; see [`mini::spawn`](crate::spawn).
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (shared, origin) = (current::shared("task::Builder::spawn"), (Location::caller(), self.name));
        boxed!(Box::pin, future: F => spawn_on(&shared, future, origin))
    }

    /// Starts a task on the runtime of `handle`.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let task = mini::task::Builder::new().name("seven").spawn_on(async { 7 }, runtime.handle());
    /// assert_eq!(task.name().as_deref(), Some("seven"));
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let origin = (Location::caller(), self.name);
        boxed!(Box::pin, future: F => spawn_on(&handle.shared, future, origin))
    }

    /// Starts a task that never leaves this thread; see [`mini::spawn_local`](crate::spawn_local).
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let text = std::rc::Rc::new("not `Send`");
    ///     let task = mini::task::Builder::new().name("local").spawn_local(async move { text.len() });
    ///     assert_eq!(task.await.unwrap(), 10);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`mini::spawn_local`](crate::spawn_local), at the caller's line.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let origin = (Location::caller(), self.name);
        boxed!(Box::pin, future: F => spawn_local_from(future, origin, "task::Builder::spawn_local"))
    }

    /// Runs `job` on a thread where it may block; see [`mini::spawn_blocking`](crate::spawn_blocking).
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let job = mini::task::Builder::new().name("read").spawn_blocking(|| std::fs::read("Cargo.toml"));
    ///     assert_eq!(job.name().as_deref(), Some("read"));
    ///     assert!(job.await.unwrap().is_ok());
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a runtime, at the caller's line.
    #[track_caller]
    pub fn spawn_blocking<F, T>(self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = current::shared("task::Builder::spawn_blocking");
        boxed!(Box::new, job: F => spawn_blocking_on(&shared, job, (Location::caller(), self.name)))
    }

    /// Runs `job` on a thread of the runtime of `handle` where it may block.
    ///
    /// # Examples
    ///
    /// See [`spawn_on`](Self::spawn_on).
    #[track_caller]
    pub fn spawn_blocking_on<F, T>(self, job: F, handle: &Handle) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        boxed!(Box::new, job: F => spawn_blocking_on(&handle.shared, job, (Location::caller(), self.name)))
    }
}

/// Returns the name of the calling task, or `None` outside a task, and in a task without a name.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::task::Builder::new().name("clock").spawn(async { mini::task::try_name() });
///     assert_eq!(task.await.unwrap().as_deref(), Some("clock"));
///     assert_eq!(mini::task::try_name(), None);
/// });
/// ```
pub fn try_name() -> Option<Arc<str>> {
    current::task_name()
}
