//! The runtime as a value: built, entered, driven, shut down, looked at; one per core; inside another event loop.

mod builder;
mod embed;
mod handle;
mod id;
pub(crate) mod layers;
#[doc(hidden)]
pub mod main;
mod metrics;
#[cfg(all(test, shuttle))]
mod models;
mod per_core;
mod phases;
pub(crate) mod settings;
mod task_hooks;
mod turns;

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mini_kernel::scheduler::config::Config;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::scheduler::until_idle::Asking;

#[cfg(feature = "insight")]
pub use crate::insight::{Dump, DumpedTask, Warning, WarningKind};
#[cfg(feature = "insight")]
pub use crate::recorder::Histogram;
use crate::task::JoinHandle;
use crate::task::large::boxed;
pub use builder::Builder;
pub use embed::Turn;
pub use handle::{EnterGuard, Handle, RuntimeFlavor, TryCurrentError};
pub use id::Id;
pub use metrics::Metrics;
pub use mini_kernel::scheduler::shutdown::{LeftTask, ShutdownReport};
pub use per_core::{PerCore, worker_index};
pub use phases::Phases;
pub use task_hooks::TaskMeta;

/// Runs tasks, timers and sockets. Dropping it drops all its tasks.
///
/// # Examples
///
/// ```
/// let runtime = mini::runtime::Runtime::new()?;
/// let answer = runtime.block_on(async {
///     let task = mini::spawn(async { 6 * 7 });
///     task.await.unwrap()
/// });
/// assert_eq!(answer, 42);
/// # std::io::Result::Ok(())
/// ```
///
/// # Shutdown
///
/// Dropping a runtime cancels every task: each future is dropped on a worker, and its join handle returns a cancelled
/// [`JoinError`](crate::task::JoinError). Once the tasks are gone, waits for the runtime's sockets fail; a worker that
/// is left behind in a long poll delays that, as its task must not see such an error. Timers that outlive the runtime
/// panic when they are polled, except in another runtime, where they continue. The drop waits for workers in a long
/// poll and for blocking jobs, for at most the [grace](Builder::shutdown_grace); then it leaves them behind and names
/// them on stderr. Inside one of the runtime's own tasks or blocking jobs, the drop starts all this and does not wait.
///
/// Blocking jobs that were spawned before the shutdown began run within the grace, even jobs that still wait for a
/// thread. Jobs that have not begun when the grace is over are cancelled, and named on stderr. With a grace of zero,
/// all jobs that have not begun are cancelled. A shutdown that waits for nothing
/// ([`shutdown_background`](Self::shutdown_background), or a drop inside one of the runtime's own tasks or jobs)
/// cancels no job: they run in the background as long as the process lives. Jobs that are spawned after the shutdown
/// began are cancelled at once. An operation on a file is such a job once it was polled, even if the task that awaited
/// it is dropped.
///
/// # Fork
///
/// A child of fork(2) has the memory of a runtime but none of its threads, and shares its epoll instance: events that
/// the child waited for there would be missing in the parent. So a runtime that was made before the fork does not work
/// in the child. `block_on`, `spawn`, `spawn_blocking`, `enter` and `turn` panic, and waits for the runtime's sockets
/// fail. If a task or `block_on` has forked, tasks that it spawns in the child never run. Dropping the runtime in the
/// child does nothing: its tasks are leaked, as their destructors would act for the parent, and their sockets stay open
/// until the child ends or runs another program. A child that returns from a task in which it was forked panics in
/// `block_on`, and is aborted on a thread of the runtime.
///
/// A new runtime works in a child, even inside the task that has forked it. To use a socket of the parent's runtime in
/// the new one, make one from a duplicate of its descriptor, with `as_fd` and `from_std`; the parent is not affected.
/// Listeners to signals ([`mini::signal`](crate::signal)) from before the fork hear what is sent to the parent, and are
/// refused in the child. Sleeps and other timers that have waited in the parent's runtime never end in the child.
///
/// A lock that another thread held at the moment of the fork stays locked in the child, such as that of an allocator or
/// a mutex of the program (see fork(2)). Fork while the threads of a runtime are idle, or before the runtime is built.
/// A process made by clone(2) itself, and not by the C library's fork, is mistaken for its parent.
pub struct Runtime {
    handle: Handle,
}

impl Runtime {
    /// Creates a multi-threaded runtime with the default configuration.
    ///
    /// # Examples
    ///
    /// See [`Runtime`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().build()
    }

    pub(crate) fn new_from(shared: Arc<Shared>) -> Self {
        Self { handle: Handle { shared } }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    pub(crate) fn config(&self) -> &Config {
        &self.handle.shared.config
    }

    /// Runs `future` to its end on the calling thread. Several threads may call this at once.
    ///
    /// The tasks of a multi-threaded runtime run on its worker threads, during the call and after it. The calling
    /// thread runs `future` and the tasks that [`spawn_local`](crate::spawn_local) makes there, which end with the
    /// call. So no other task can delay `future`.
    ///
    /// A `current_thread` runtime has no other thread: the calling one runs its tasks too, and they pause until the
    /// next call. While one of them blocks or computes, `future` waits. Do not hold a lock of `std` that tasks take. If
    /// another thread runs the tasks already, this one only polls `future`, until it can take over.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let text = String::from("borrowed"); // the future need not be `'static`, nor `Send`
    /// assert_eq!(runtime.block_on(async { text.len() }), 8);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// Inside a task or another `block_on`; if `future` panics; on another thread than that of
    /// [`spawn_local`](crate::spawn_local) tasks of a `current_thread` runtime; in a child of [fork(2)](Runtime#fork).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        boxed!(Box::pin, future: F => self.handle.block_on(future))
    }

    /// Works until no task is alive and no blocking job is running or queued.
    ///
    /// Tasks that are spawned during the call count too. A future in another thread's `block_on` is not a task and is
    /// not waited for.
    ///
    /// The call also ends when all remaining tasks are *lost*: they wait, and no waker of theirs exists any more, so
    /// nothing can ever wake them. These tasks are returned. A task that waits for something that may still come, even
    /// from another thread, is waited for. So is a task that another task awaits, or that has an abort handle. (Tasks
    /// of [`spawn_local`](crate::spawn_local) are checked on one thread only; if several threads are left with such
    /// tasks, they are waited for.)
    ///
    /// # Examples
    ///
    /// A program that ends when all of its tasks have:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = mini::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async {
    ///     for ms in 1..4 {
    ///         mini::spawn(async move {
    ///             mini::time::sleep(Duration::from_millis(ms)).await;
    ///             println!("{ms} ms are over");
    ///         });
    ///     }
    /// });
    /// assert!(runtime.run_until_idle().is_empty());
    ///
    /// // Nobody can wake this one.
    /// let never = runtime.spawn(std::future::pending::<()>());
    /// let lost = runtime.run_until_idle();
    /// assert_eq!((lost.len(), lost[0].id()), (1, never.id()));
    /// println!("spawned at {}, and lost", lost[0].location());
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`block_on`](Self::block_on).
    #[track_caller]
    pub fn run_until_idle(&self) -> Vec<LeftTask> {
        let asking = Asking::new(&self.handle.shared);
        self.block_on(poll_fn(|cx| asking.poll(cx.waker()).map_or(Poll::Pending, Poll::Ready)))
    }

    /// Spawns a task; see [`mini::spawn`](crate::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let task = runtime.spawn(async { 6 * 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 42);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        boxed!(Box::pin, future: F => self.handle.spawn(future))
    }

    /// Runs `job` on a thread where it may block; see [`mini::spawn_blocking`](crate::spawn_blocking).
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let job = runtime.spawn_blocking(|| std::fs::read("Cargo.toml"));
    /// assert!(runtime.block_on(job).unwrap().is_ok());
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        boxed!(Box::new, job: F => self.handle.spawn_blocking(job))
    }

    /// Returns a handle to spawn onto the runtime from anywhere. It does not keep the runtime running.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// let thread = std::thread::spawn(move || handle.block_on(async { 7 }));
    /// assert_eq!(thread.join().unwrap(), 7);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Enters the runtime: until the guard is dropped, `mini::spawn` and the like on this thread mean this runtime, and
    /// sockets and timers that are awaited here (with any executor) are served by it.
    ///
    /// A `current_thread` runtime serves them only while some thread is in [`block_on`](Self::block_on).
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let _guard = runtime.enter();
    /// let task = mini::spawn(async { 1 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// In a child of [fork(2)](Runtime#fork).
    #[track_caller]
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Returns counts of the runtime's activity; see [`Metrics`].
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().build()?;
    /// let metrics = runtime.metrics();
    /// drop(runtime.spawn(std::future::pending::<()>()));
    /// assert_eq!(metrics.num_alive_tasks(), 1);
    /// drop(runtime);
    /// assert_eq!(metrics.num_alive_tasks(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.handle.metrics()
    }

    /// Shuts the runtime down as a drop does, but waits for at most `grace`. Returns the tasks and jobs that were left
    /// behind or cancelled; they are also named on stderr. Idle worker threads always get up to 200 ms to end, whatever
    /// the grace.
    ///
    /// If one of the runtime's own tasks or blocking jobs calls this, it starts the shutdown, waits for nothing, and
    /// returns nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let (quit, wait) = std::sync::mpsc::channel::<()>();
    /// runtime.spawn_blocking(move || wait.recv());
    /// let left = runtime.shutdown_timeout(Duration::from_millis(10)); // does not wait for the job
    /// print!("{left}");
    /// drop(quit);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_timeout(self, grace: Duration) -> ShutdownReport {
        let left = self.handle.shared.shutdown(Some(grace));
        report(&left);
        left
    }

    /// Starts the shutdown, waits for nothing, and reports nothing.
    ///
    /// Unlike a drop, it may be called where waiting is not allowed. Tasks of workers that have no thread, as all of a
    /// `current_thread` runtime, are dropped before it returns, others by the workers soon after. Blocking jobs that
    /// were spawned before run in the background, also those that have not begun; to cancel these, call
    /// [`shutdown_timeout`](Self::shutdown_timeout) with [`Duration::ZERO`].
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// // A job that goes on for longer than the call.
    /// let task = runtime.spawn_blocking(|| std::thread::sleep(std::time::Duration::from_millis(20)));
    /// runtime.shutdown_background();
    /// # drop(task);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_background(self) {
        self.handle.shared.shutdown(None);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        report(&self.handle.shared.shutdown(Some(self.handle.shared.config.shutdown_grace)));
    }
}

/// Says on stderr what a shutdown left behind.
fn report(left: &ShutdownReport) {
    for line in left.to_string().lines() {
        say!("shutdown {line}");
    }
}

// A panic leaves neither of them half changed: they contain the panic of a task or a `block_on`, or pass it on.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runtime").field(&self.handle).finish()
    }
}

const _: () = {
    const fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Runtime>();
    assert_send_sync::<Handle>();
};
