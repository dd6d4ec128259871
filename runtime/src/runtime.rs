//! The runtime as a value: built, entered, driven, shut down, looked at; one per core; inside another event loop.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

pub use crate::builder::Builder;
use crate::config::Config;
pub use crate::embed::Turn;
pub use crate::handle::{EnterGuard, Handle, RuntimeFlavor, TryCurrentError};
pub use crate::leftovers::{LeftTask, Leftovers};
pub use crate::metrics::Metrics;
pub use crate::per_core::{PerCore, worker_index};
use crate::pool::Pool;
use crate::task::JoinHandle;

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
/// Dropping it cancels every task: each future is dropped on a worker, and those who wait for it get a
/// [`JoinError`](crate::task::JoinError) that says so. Sockets and timers that outlive it return errors. It waits for
/// workers in a long poll and for blocking jobs for at most the [grace](Builder::shutdown_grace), then leaves them
/// behind and says so on stderr. Dropped inside one of its own tasks, it starts all this and waits for nothing.
pub struct Runtime {
    handle: Handle,
}

impl Runtime {
    /// A multi-threaded runtime with the default configuration.
    ///
    /// # Examples
    ///
    /// See [`Runtime`].
    ///
    /// # Errors
    ///
    /// Those of [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().build()
    }

    pub(crate) fn new_from(pool: Arc<Pool>) -> Self {
        Self { handle: Handle { pool } }
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.handle.pool
    }

    pub(crate) fn config(&self) -> &Config {
        &self.handle.pool.config
    }

    /// Runs `future` to its end on the calling thread, and other tasks meanwhile.
    ///
    /// The thread works as one of the runtime's workers until then. Several threads may call this at once. Tasks go on
    /// when it returns if the runtime is multi-threaded, and stand still until the next call if it is not. Tasks made by
    /// [`spawn_local`](crate::spawn_local) on a thread in `block_on` of a multi-threaded runtime end with the call.
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
    /// [`spawn_local`](crate::spawn_local) tasks of a `current_thread` runtime.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
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
        self.handle.spawn(future)
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
        self.handle.spawn_blocking(job)
    }

    /// A handle to spawn onto the runtime from anywhere. It does not keep the runtime running.
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
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// What the runtime does, in numbers; see [`Metrics`].
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

    /// Shuts the runtime down as dropping it does, but waits for at most `grace`, and returns what was left behind, which is
    /// also said on stderr.
    ///
    /// Called by one of its own tasks or blocking jobs it starts the end, waits for nothing, and returns nothing.
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
    pub fn shutdown_timeout(self, grace: Duration) -> Leftovers {
        let left = self.handle.pool.shutdown(grace);
        report(&left);
        left
    }

    /// Starts the shutdown, waits for nothing, and says nothing about what goes on.
    ///
    /// Unlike dropping a runtime it may be called where one must not wait. Tasks on workers that are at rest are dropped before
    /// it returns.
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
        self.handle.pool.shutdown(Duration::ZERO);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        report(&self.handle.pool.shutdown(self.handle.pool.config.shutdown_grace));
    }
}

/// Says on stderr what a shutdown left behind.
fn report(left: &Leftovers) {
    for line in left.to_string().lines() {
        say!("shutdown {line}");
    }
}

// A panic leaves neither of them in pieces: what a task or a `block_on` throws, they contain or pass on whole.
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
