//! How a runtime is configured: the one place that knows defaults and checks what the user asked for.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::pool::Pool;
use crate::runtime::Runtime;
use crate::task::JoinError;

/// Called with a panic that no join handle will see.
type PanicHook = Arc<dyn Fn(&JoinError) + Send + Sync>;

/// What a runtime was built with.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) is_multi_thread: bool,
    pub(crate) workers: usize,
    pub(crate) max_blocking_threads: usize,
    pub(crate) thread_keep_alive: Duration,
    pub(crate) thread_name: String,
    pub(crate) stack_size: Option<usize>,
    pub(crate) timer_slack: Option<Duration>,
    pub(crate) shutdown_grace: Duration,
    pub(crate) start_paused: bool,
    pub(crate) on_task_panic: Option<PanicHook>,
}

/// Configures and builds a [`Runtime`]. I/O and time are always on.
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
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    config: Config,
}

impl Builder {
    /// One thread, the one that calls [`Runtime::block_on`], runs everything. Tasks cost no atomic instruction to run.
    pub fn new_current_thread() -> Self {
        Self::new(false, 1)
    }

    /// Several workers share the tasks. The thread that calls [`Runtime::block_on`] works as one of them.
    ///
    /// There are as many workers as the machine has processors, unless
    /// [`worker_threads`](Self::worker_threads) says otherwise.
    pub fn new_multi_thread() -> Self {
        Self::new(true, thread::available_parallelism().map_or(1, usize::from))
    }

    fn new(is_multi_thread: bool, workers: usize) -> Self {
        let config = Config {
            is_multi_thread,
            workers,
            max_blocking_threads: 512,
            thread_keep_alive: Duration::from_secs(10),
            thread_name: "mini".to_owned(),
            stack_size: None,
            timer_slack: Some(Duration::from_nanos(1)),
            shutdown_grace: Duration::from_secs(1),
            start_paused: false,
            on_task_panic: None,
        };
        Self { config }
    }

    /// How many workers a multi-threaded runtime has, the thread in `block_on` included. Threads start when needed.
    pub fn worker_threads(mut self, count: usize) -> Self {
        self.config.workers = count;
        self
    }

    /// How many threads [`spawn_blocking`](crate::spawn_blocking) may use at once; more jobs wait. 512 by default.
    pub fn max_blocking_threads(mut self, count: usize) -> Self {
        self.config.max_blocking_threads = count;
        self
    }

    /// How long a blocking thread waits for the next job before it ends. 10 s by default.
    pub fn thread_keep_alive(mut self, time: Duration) -> Self {
        self.config.thread_keep_alive = time;
        self
    }

    /// What thread names begin with; a dash and a number follow. `mini` by default.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.config.thread_name = name.into();
        self
    }

    /// The stack size of the threads that the runtime starts, in bytes. The default is that of `std::thread`.
    pub fn thread_stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// How late the kernel may end a worker's wait to save energy (`PR_SET_TIMERSLACK` in prctl(2); Linux only).
    ///
    /// 1 ns by default, where Linux has 50 µs: timers are exact. `None` leaves the threads as they are. The thread
    /// in `block_on` gets its own value back afterwards.
    pub fn timer_slack(mut self, slack: Option<Duration>) -> Self {
        self.config.timer_slack = slack;
        self
    }

    /// How long dropping the runtime waits for workers in a long poll and for blocking jobs. 1 s by default.
    ///
    /// What has not ended by then is left behind, and said so on stderr.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.shutdown_grace = grace;
        self
    }

    /// Starts with the clock paused; see [`mini::time::pause`](crate::time::pause). For `current_thread` only.
    pub fn start_paused(mut self, paused: bool) -> Self {
        self.config.start_paused = paused;
        self
    }

    /// What to do about the panic of a task whose handle was dropped. By default it is printed to stderr, with the
    /// task's id and where it was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let runtime = mini::runtime::Builder::new_current_thread()
    ///     .on_task_panic(move |error| sender.send(error.to_string()).unwrap())
    ///     .build()?;
    /// runtime.block_on(async {
    ///     drop(mini::spawn(async { panic!("unseen") }));
    ///     mini::task::yield_now().await;
    /// });
    /// assert!(receiver.recv().unwrap().ends_with("panicked: unseen"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_task_panic(mut self, hook: impl Fn(&JoinError) + Send + Sync + 'static) -> Self {
        self.config.on_task_panic = Some(Arc::new(hook));
        self
    }

    /// Builds the runtime. No thread is started yet.
    ///
    /// # Errors
    ///
    /// `InvalidInput` with a text that names the setting, if one makes no sense: no workers, more workers than
    /// processors can be addressed, several workers or a paused clock where the flavour has none, no blocking threads,
    /// a thread name with a NUL in it. Otherwise what the system says about a new epoll or kqueue descriptor.
    pub fn build(self) -> io::Result<Runtime> {
        self.config.check().map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        Ok(Runtime::new_from(Pool::new(self.config)?))
    }
}

/// More workers than this are a mistake, not a machine.
const MAX_WORKERS: usize = 1 << 15;

impl Config {
    fn check(&self) -> Result<(), String> {
        let flavour = if self.is_multi_thread { "multi_thread" } else { "current_thread" };
        if self.workers == 0 {
            return Err("worker_threads(0): a runtime needs at least one worker".to_owned());
        }
        if self.workers > MAX_WORKERS {
            return Err(format!("worker_threads({}): at most {MAX_WORKERS} are possible", self.workers));
        }
        if self.workers > 1 && !self.is_multi_thread {
            return Err(format!("worker_threads({}): a {flavour} runtime has one worker", self.workers));
        }
        if self.max_blocking_threads == 0 {
            return Err("max_blocking_threads(0): at least one is needed, to resolve names".to_owned());
        }
        if self.start_paused && self.is_multi_thread {
            return Err(format!("start_paused(true): the clock of a {flavour} runtime cannot be paused"));
        }
        if self.thread_name.as_bytes().contains(&0) {
            return Err(format!("thread_name({:?}): a name must not contain NUL", self.thread_name));
        }
        Ok(())
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("is_multi_thread", &self.config.is_multi_thread)
            .field("worker_threads", &self.config.workers)
            .field("max_blocking_threads", &self.config.max_blocking_threads)
            .field("thread_name", &self.config.thread_name)
            .field("start_paused", &self.config.start_paused)
            .finish_non_exhaustive()
    }
}
