//! `Builder`, which configures a runtime, with one method per setting.
//!
//! The type to build is a type parameter, [`Runtime`] or [`PerCore`]. So a setting that makes sense only for one of the
//! two is missing from the builder of the other.
//!
//! Rejected: a builder of its own for [`PerCore`] (ten methods twice, with their documentation).

mod hooks;
mod own;
mod per_core;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use mini_kernel::scheduler::config::{self, Config};
use mini_kernel::threads::Names;

use crate::runtime::per_core::PerCore;
use crate::runtime::settings::Settings;
use crate::runtime::{Runtime, layers};

/// Configures and builds a [`Runtime`], or a [`PerCore`]. I/O and time are always on.
///
/// A builder can build any number of runtimes with the same settings.
///
/// # Examples
///
/// ```
/// let runtime = mini::runtime::Builder::new_multi_thread()
///     .worker_threads(2)
///     .thread_name("shop")
///     .build()?;
/// assert_eq!(runtime.block_on(async { 1 + 1 }), 2);
/// # std::io::Result::Ok(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<R = Runtime> {
    config: Config,
    settings: Settings,
    workers: Option<usize>,
    pins: bool,
    builds: PhantomData<fn() -> R>,
}

impl Builder {
    /// Creates a builder of a runtime with one thread: the thread that calls [`Runtime::block_on`] runs everything.
    /// Tasks need no atomic instruction to run.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.metrics().num_workers(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn new_current_thread() -> Self {
        Self::new(false)
    }

    /// Creates a builder of a runtime whose workers share the tasks. Each is a thread of its own.
    ///
    /// [`worker_threads`](Self::worker_threads) sets the number of workers; if it is not called, the environment
    /// variable `MINI_WORKER_THREADS` does. The default is one per processor.
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    pub fn new_multi_thread() -> Self {
        Self::new(true)
    }

    /// Creates a builder of one thread per processor, each with an event loop and tasks of its own. The threads share
    /// nothing; see [`PerCore`].
    ///
    /// There are as many as a multi-threaded runtime has workers.
    ///
    /// # Examples
    ///
    /// ```
    /// let cores = mini::runtime::Builder::new_per_core().worker_threads(2).build()?;
    /// assert_eq!(cores.run(|index| async move { index * 10 })?, [0, 10]);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn new_per_core() -> Builder<PerCore> {
        Builder::new(false)
    }

    /// Starts with the clock paused; see [`mini::time::pause`](crate::time::pause). For `current_thread` only.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Duration, sleep};
    /// let runtime = mini::runtime::Builder::new_current_thread().start_paused(true).build()?;
    /// runtime.block_on(sleep(Duration::from_secs(3600))); // at once
    /// # std::io::Result::Ok(())
    /// ```
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.config.start_paused = paused;
        self
    }

    /// Lets the environment variable `MINI_TRACE` turn the [flight recorder](Self::flight_recorder) on. If the variable
    /// has the path of a file, the trace is written there when the runtime has shut down, or when the future of a
    /// `block_on` panics. The recorder has 1 MiB per worker unless this builder sets another size. Off by default;
    /// [`#[mini::main]`](crate::main) turns it on.
    ///
    /// A program that ends otherwise ([`std::process::exit`], a signal) leaves an empty file.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().heed_mini_trace(true).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn heed_mini_trace(&mut self, heeds: bool) -> &mut Self {
        self.settings.heeds_trace_variable = heeds;
        self
    }

    /// Builds the runtime. No thread is started yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::Builder;
    /// let error = Builder::new_multi_thread().worker_threads(0).build().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// assert!(error.to_string().contains("worker_threads"));
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidInput` with a text that names the setting, if a setting makes no sense: no workers, more workers than
    /// processors can be addressed, several workers or a paused clock for a flavour that has none, no blocking threads,
    /// a thread name with a NUL in it, a flight recorder of less than 1 KiB or more than 1 GiB; or if
    /// `MINI_WORKER_THREADS` decides and is no such number, or `MINI_WARN` neither 1 nor 0. Otherwise the system's
    /// error for a new epoll or kqueue descriptor; if too many files are open, with their limit. With
    /// [`heed_mini_trace`](Self::heed_mini_trace) also that of the file, and `Unsupported` if it is asked for and the
    /// feature `insight` is off.
    pub fn build(&self) -> io::Result<Runtime> {
        let (mut config, workers) = (self.config.clone(), self.workers);
        config.workers = match config.is_multi_thread {
            true => config::workers(workers)?,
            false => config::workers(workers.or(Some(1)))?,
        };
        if config.workers > 1 && !config.is_multi_thread {
            let text = format!("worker_threads({}): a current_thread runtime has one worker", config.workers);
            return Err(config::invalid(text));
        }
        config.check()?;
        layers::begin(config, self.settings.checked()?)
    }
}

impl<R> Builder<R> {
    fn new(is_multi_thread: bool) -> Self {
        let (config, settings) = (Config::new(is_multi_thread), Settings::default());
        Self { config, settings, workers: None, pins: false, builds: PhantomData }
    }

    /// Sets the number of worker threads of a multi-threaded runtime, which start on demand, or the number of cores of
    /// a [`PerCore`].
    ///
    /// # Examples
    ///
    /// See [`Builder`].
    pub fn worker_threads(&mut self, count: usize) -> &mut Self {
        self.workers = Some(count);
        self
    }

    /// Prints a [`Dump`](crate::runtime::Dump) of every runtime of the process on stderr when the process receives
    /// SIGQUIT (`kill -QUIT`, or Ctrl-\ at a terminal). The setting takes effect when this runtime is built. The
    /// program continues after the dump; without this setting the signal ends it. Off by default;
    /// [`#[mini::main]`](crate::main) turns it on.
    ///
    /// A separate thread waits for the signal. If the program listens to SIGQUIT by [`mini::signal`](crate::signal),
    /// the program receives the signal and no dump is printed. Does nothing without the features `signal` and
    /// `insight`.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().dump_on_quit(true).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn dump_on_quit(&mut self, dumps: bool) -> &mut Self {
        self.settings.dump_on_quit = dumps;
        self
    }

    /// Turns warnings on or off: lines on stderr that report likely mistakes. They report:
    ///
    /// - a poll that has lasted for 100 ms, and a timer that is 50 ms late because its worker is in one poll;
    /// - a task, or the future of a `block_on`, that waits and has no waker left; tasks that wait for each other in a
    ///   circle; a runtime in which nothing has run for five seconds while all threads of the process wait for others;
    /// - a task that asks to run again, over and over, without waiting.
    ///
    /// Each warning is reported once per line of code, while its cause lasts; a long poll again whenever its duration
    /// has doubled. One thread per process checks twenty times a second, and walks over the tasks once a second; the
    /// workers do nothing for it.
    ///
    /// Warnings are on by default in debug builds of [`#[mini::main]`](crate::main) and [`#[mini::test]`](crate::test),
    /// otherwise off. The environment overrides the builder: `MINI_WARN=1` turns warnings on, `MINI_WARN=0` off; an
    /// empty value has no effect. When the future of a `block_on` panics, a dump of the remaining tasks is printed too,
    /// once, unless a hook is set.
    ///
    /// Not every lost task is found; see [`Dump`](crate::runtime::Dump). A poll that is long only because its thread
    /// gets no CPU is not reported (Linux and Android). Does nothing without the feature `insight`; `MINI_WARN=1` then
    /// prints a line about that.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().warnings(true).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn warnings(&mut self, warns: bool) -> &mut Self {
        self.settings.warnings = warns;
        self
    }

    /// Records the activity of the workers at all times: polls, wakes, spawns, waits, events, timers, steals, blocking
    /// jobs. Each worker, and each thread in `block_on` of a multi-threaded runtime, has a ring buffer of `bytes`; all
    /// other threads share one more. [`Handle::snapshot`] writes the content, for <https://ui.perfetto.dev>; see the
    /// [chapter about traces](crate::guide::trace).
    ///
    /// An event takes 16 bytes, so 1 MiB has the last 65,535 events: a poll and the wake before it are two. `bytes` is
    /// from 1 KiB to 1 GiB, and rounded down to a power of two. Recording takes about 15 ns for each poll and wake, and
    /// 30 for a spawn; without it they cost nothing. Names of tasks and lines of spawns are recorded (of names the
    /// first 70 bytes), never what tasks work on.
    ///
    /// [`Handle::snapshot`]: crate::runtime::Handle::snapshot
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().flight_recorder(1 << 20).build()?;
    /// runtime.block_on(async { mini::spawn(async {}).await })?;
    /// let path = std::env::temp_dir().join(format!("{}.json", std::process::id()));
    /// runtime.handle().snapshot(&path)?; // whenever something was slow
    /// # std::fs::remove_file(&path)?;
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "insight")]
    pub fn flight_recorder(&mut self, bytes: usize) -> &mut Self {
        self.settings.flight_recorder = Some(bytes);
        self
    }

    /// Enables histograms of the duration of polls and of the time that tasks wait for a worker:
    /// [`Metrics::poll_time`](crate::runtime::Metrics::poll_time) and
    /// [`Metrics::queue_delay`](crate::runtime::Metrics::queue_delay). Off by default. They cost about 20 ns per poll,
    /// 15 ns per wake and spawn, and 8 KiB per worker.
    ///
    /// # Examples
    ///
    /// See [`Histogram`](crate::runtime::Histogram).
    #[cfg(feature = "insight")]
    pub fn histograms(&mut self, counts: bool) -> &mut Self {
        self.settings.histograms = counts;
        self
    }

    /// Does nothing: every runtime has timers and I/O. For programs that come from tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Does nothing, as [`enable_all`](Self::enable_all).
    ///
    /// # Examples
    ///
    /// See there.
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Does nothing, as [`enable_all`](Self::enable_all).
    ///
    /// # Examples
    ///
    /// See there.
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Sets the maximum number of threads for [`spawn_blocking`](crate::spawn_blocking); further jobs wait. 512 by
    /// default.
    ///
    /// In a [`PerCore`] this is the number per core.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().max_blocking_threads(1).build()?;
    /// let jobs = [1, 2].map(|number| runtime.spawn_blocking(move || number)); // one after the other
    /// let [first, second] = jobs.map(|job| runtime.block_on(job).unwrap());
    /// assert_eq!((first, second), (1, 2));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn max_blocking_threads(&mut self, count: usize) -> &mut Self {
        self.config.max_blocking_threads = count;
        self
    }

    /// Sets the time that a blocking thread waits for the next job before it ends. 10 s by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let runtime = mini::runtime::Builder::new_multi_thread().thread_keep_alive(Duration::from_secs(1)).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_keep_alive(&mut self, time: Duration) -> &mut Self {
        self.config.thread_keep_alive = time;
        self
    }

    /// Sets the prefix of thread names: `mini` by default. With this prefix, workers are called `mini-0` and so on, and
    /// blocking threads `mini-block-0` and so on.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_current_thread().thread_name("shop").build()?;
    /// let name = || std::thread::current().name().map(str::to_owned);
    /// assert_eq!(runtime.block_on(runtime.spawn_blocking(name))?.as_deref(), Some("shop-block-0"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        self.config.thread_name = Names::Prefix(name.into());
        self
    }

    /// Calls `name` for the whole name of each thread that the runtime starts, instead of using
    /// [`thread_name`](Self::thread_name).
    ///
    /// A NUL in a name becomes a question mark; where `name` panics, the thread is called `mini`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// let count = AtomicUsize::new(0);
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .thread_name_fn(move || format!("shop {}", count.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// let name = || std::thread::current().name().map(str::to_owned);
    /// assert_eq!(runtime.block_on(runtime.spawn_blocking(name))?.as_deref(), Some("shop 0"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_name_fn(&mut self, name: impl Fn() -> String + Send + Sync + 'static) -> &mut Self {
        self.config.thread_name = Names::Each(Arc::new(name));
        self
    }

    /// Sets the stack size of the threads that the runtime starts, in bytes. The default is that of `std::thread`.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Builder::new_multi_thread().thread_stack_size(8 << 20).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Sets the time by which the kernel may end a worker's wait late to save energy (`PR_SET_TIMERSLACK` in prctl(2);
    /// Linux only).
    ///
    /// The default is 1 ns, so timers are exact; the default of Linux is 50 µs. `None` leaves the threads unchanged. A
    /// thread in `block_on` of a `current_thread` runtime gets its own value back afterwards. The worker that waits for
    /// all events uses a kernel timer without slack, so its wait is always exact.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let slack = Some(Duration::from_micros(50)); // as is usual on Linux
    /// let runtime = mini::runtime::Builder::new_multi_thread().timer_slack(slack).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn timer_slack(&mut self, slack: Option<Duration>) -> &mut Self {
        self.config.timer_slack = slack;
        self
    }

    /// Sets the time that the drop of the runtime waits for workers in a long poll and for blocking jobs. 1 s by
    /// default.
    ///
    /// Workers and jobs that have not ended by then are left behind, and blocking jobs that have not begun are
    /// cancelled. Both are named on stderr.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let runtime = mini::runtime::Builder::new_multi_thread().shutdown_grace(Duration::ZERO).build()?;
    /// drop(runtime); // waits for nothing
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_grace(&mut self, grace: Duration) -> &mut Self {
        self.config.shutdown_grace = grace;
        self
    }
}

impl<R> Clone for Builder<R> {
    fn clone(&self) -> Self {
        let (config, settings) = (self.config.clone(), self.settings.clone());
        Self { config, settings, workers: self.workers, pins: self.pins, builds: PhantomData }
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("is_multi_thread", &self.config.is_multi_thread)
            .field("worker_threads", &self.workers)
            .field("max_blocking_threads", &self.config.max_blocking_threads)
            .field("thread_name", &self.config.thread_name)
            .field("start_paused", &self.config.start_paused)
            .finish_non_exhaustive()
    }
}
