//! `Handle`: refers to a runtime, from inside or outside of it.

use std::fmt;
use std::future::Future;
#[cfg(feature = "insight")]
use std::io;
use std::marker::PhantomData;
use std::panic::Location;
#[cfg(feature = "insight")]
use std::path::Path;
use std::sync::Arc;

use mini_kernel::scheduler::shared::Shared;
use mini_kernel::scheduler::{block_on, current};

use super::Id;
#[cfg(feature = "insight")]
use crate::insight::{self, Dump, Warning};
use crate::runtime::layers::Layers;
use crate::runtime::metrics::Metrics;
use crate::task::JoinHandle;
use crate::task::large::boxed;
use crate::task::{spawn_blocking_on, spawn_on};

/// Refers to a runtime: to spawn onto it, to enter it, to block on it. Cheap to clone.
///
/// A handle does not keep the runtime running. On one that was shut down, new tasks are cancelled at once; if the
/// runtime was dropped by a future that it runs, they are when that future has ended.
///
/// # Examples
///
/// See [`Runtime::handle`](crate::runtime::Runtime::handle) and [`Handle::current`].
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Returns a snapshot of the runtime: its workers, its tasks and where each waits, which tasks wait for each other,
    /// and which tasks nothing can wake. Any thread may call this, even while every worker is stuck. A program with
    /// [`#[mini::main]`](crate::main) prints it on SIGQUIT.
    ///
    /// A dump takes some milliseconds for 100,000 tasks, and at least two while a worker is at work and not known to be
    /// stuck. It copies a few words of each task; interpreting them takes longer, and happens when the dump is printed
    /// or queried. Tasks that start or end during the dump may be missing. No task is polled. A worker whose task ends
    /// may have to wait until the calling thread has read 64 of its tasks: some microseconds, if the calling thread
    /// gets a CPU.
    ///
    /// # Panics
    ///
    /// In the child of a fork(2), for a runtime of its parent.
    ///
    /// # Examples
    ///
    /// See [`Dump`](crate::runtime::Dump).
    #[cfg(feature = "insight")]
    pub fn dump(&self) -> Dump {
        self.shared.process.check("Handle::dump");
        insight::dump(&self.shared)
    }

    /// Writes the content of the flight recorder to a file, for <https://ui.perfetto.dev>: the recent activity of each
    /// worker and each task; see the [chapter about traces](crate::guide::trace). Any thread may call this, even while
    /// every worker is stuck; recording continues. The format is JSON: an array in Chrome's trace event format.
    ///
    /// Blocks for as long as it takes to sort and write the events: up to two seconds for a million. Meanwhile it takes
    /// about 18 times the memory of the events, which have 16 bytes each: for a ring of 32 MiB that is full, 576 MiB.
    /// In a task use [`spawn_blocking`](crate::spawn_blocking).
    ///
    /// # Errors
    ///
    /// `Unsupported` if the recorder is off: see
    /// [`Builder::flight_recorder`](crate::runtime::Builder::flight_recorder). Otherwise those of [`std::fs::write`],
    /// with the path.
    ///
    /// # Panics
    ///
    /// In the child of a fork(2), for a runtime of its parent.
    ///
    /// # Examples
    ///
    /// See [`Builder::flight_recorder`](crate::runtime::Builder::flight_recorder).
    #[cfg(feature = "insight")]
    pub fn snapshot(&self, path: impl AsRef<Path>) -> io::Result<()> {
        crate::recorder::write(path.as_ref(), &self.trace()?)
    }

    /// Returns the bytes that [`snapshot`](Self::snapshot) writes, for a program that sends them elsewhere. Their size
    /// is about twelve times that of the events; making them takes the time and memory of a snapshot.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the recorder is off.
    ///
    /// # Panics
    ///
    /// In the child of a fork(2), for a runtime of its parent.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().flight_recorder(64 << 10).build()?;
    /// runtime.block_on(async { mini::spawn(async {}).await })?;
    /// let trace = runtime.handle().trace()?;
    /// assert!(!trace.is_empty());
    ///
    /// let error = mini::runtime::Runtime::new()?.handle().trace().unwrap_err();
    /// assert!(error.to_string().contains("flight_recorder"));
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "insight")]
    pub fn trace(&self) -> io::Result<Vec<u8>> {
        self.shared.process.check("Handle::trace");
        crate::recorder::take(&self.shared)
    }

    /// Returns the last 64 warnings of the runtime, the oldest first. Returns none if its
    /// [warnings](crate::runtime::Builder::warnings) are off. In a simulation it returns only those of long polls,
    /// which take real time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (warned, hears) = std::sync::mpsc::channel();
    /// let runtime = mini::runtime::Builder::new_current_thread().on_warning(move |_| drop(warned.send(()))).build()?;
    /// runtime.block_on(async {
    ///     mini::spawn(std::future::pending::<()>()); // drops the waker that it is given
    ///     mini::task::yield_now().await;
    ///     mini::spawn_blocking(move || hears.recv()).await.unwrap().unwrap();
    /// });
    /// let warnings = runtime.handle().warnings();
    /// assert_eq!(warnings[0].kind(), mini::runtime::WarningKind::LostTask);
    /// assert!(warnings[0].at() >= Duration::from_secs(1)); // seen by two walks, a second apart
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "insight")]
    pub fn warnings(&self) -> Vec<Warning> {
        Layers::of(&self.shared).insight.warned.get()
    }

    /// Returns a handle of the runtime that this thread is inside.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let handle = mini::runtime::Handle::current();
    ///     let thread = std::thread::spawn(move || {
    ///         drop(handle.spawn(async { println!("in the runtime again") }));
    ///     });
    ///     mini::spawn_blocking(|| thread.join().unwrap()).await.unwrap();
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub fn current() -> Self {
        Self { shared: current::shared("Handle::current") }
    }

    /// Returns a handle of the runtime that this thread is inside.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::Handle;
    /// assert!(Handle::try_current().is_err());
    /// mini::block_on(async { assert!(Handle::try_current().is_ok()) });
    /// ```
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        current::with_shared(|shared| Self { shared: shared.clone() }).ok_or(TryCurrentError(()))
    }

    /// Spawns a task; see [`mini::spawn`](crate::spawn).
    ///
    /// # Examples
    ///
    /// See [`Handle::current`].
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        boxed!(Box::pin, future: F => spawn_on(&self.shared, future, Location::caller()))
    }

    /// Runs `job` on a thread where it may block; see [`mini::spawn_blocking`](crate::spawn_blocking).
    ///
    /// # Examples
    ///
    /// See [`Runtime::spawn_blocking`](crate::runtime::Runtime::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        boxed!(Box::new, job: F => spawn_blocking_on(&self.shared, job, Location::caller()))
    }

    /// Runs `future` to its end on the calling thread; see [`Runtime::block_on`](crate::runtime::Runtime::block_on).
    ///
    /// # Examples
    ///
    /// See [`Runtime::handle`](crate::runtime::Runtime::handle).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Runtime::block_on`](crate::runtime::Runtime::block_on).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        boxed!(Box::pin, future: F => block_on(&self.shared, future))
    }

    /// Enters the runtime; see [`Runtime::enter`](crate::runtime::Runtime::enter).
    ///
    /// # Examples
    ///
    /// See [`Runtime::enter`](crate::runtime::Runtime::enter).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Runtime::enter`](crate::runtime::Runtime::enter).
    #[track_caller]
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard { _guard: self.shared.enter(), _handle: PhantomData }
    }

    /// Returns counts of the runtime's activity; see [`Metrics`].
    ///
    /// # Examples
    ///
    /// See [`Runtime::metrics`](crate::runtime::Runtime::metrics).
    pub fn metrics(&self) -> Metrics {
        Metrics::new(self.shared.clone())
    }

    /// Returns the id of the runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::{Handle, Runtime};
    /// let [one, other] = [Runtime::new()?, Runtime::new()?];
    /// assert_ne!(one.handle().id(), other.handle().id());
    /// assert_eq!(one.block_on(async { Handle::current().id() }), one.handle().id());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn id(&self) -> Id {
        Layers::of(&self.shared).id
    }

    /// Returns the kind of the runtime. A core of a [`PerCore`](crate::runtime::PerCore) is a `current_thread` runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::{Handle, RuntimeFlavor};
    /// mini::block_on(async {
    ///     assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
    /// });
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        if self.shared.is_multi_thread() { RuntimeFlavor::MultiThread } else { RuntimeFlavor::CurrentThread }
    }
}

/// A kind of runtime; see [`Handle::runtime_flavor`].
///
/// # Examples
///
/// See [`Handle::runtime_flavor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// One thread runs all tasks.
    CurrentThread,
    /// Several threads share the tasks.
    MultiThread,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flavour = if self.shared.is_multi_thread() { "multi_thread" } else { "current_thread" };
        f.debug_struct("Handle").field("flavor", &flavour).field("workers", &self.shared.cores.len()).finish()
    }
}

/// The error of a thread that is not inside a runtime; see [`Handle::try_current`].
///
/// # Examples
///
/// See [`Handle::try_current`].
#[derive(Debug)]
pub struct TryCurrentError(());

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this thread is not inside a mini runtime")
    }
}

impl std::error::Error for TryCurrentError {}

/// While it lives, this thread is inside a runtime; see [`Runtime::enter`](crate::runtime::Runtime::enter). Guards are
/// dropped in reverse order.
///
/// # Examples
///
/// See [`Runtime::enter`](crate::runtime::Runtime::enter).
#[must_use = "the runtime is left as soon as the guard is dropped"]
pub struct EnterGuard<'a> {
    _guard: current::Guard,
    _handle: PhantomData<&'a Handle>,
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}
