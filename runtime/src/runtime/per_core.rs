//! `PerCore`: one `current_thread` runtime per core, each on a thread of its own, run and shut down as one.
//!
//! Built by [`Builder::new_per_core`](crate::runtime::Builder::new_per_core). The threads live as long as the call of
//! [`PerCore::run`]: each makes its main future, drives it and the tasks that it spawns, and drops its runtime. So
//! nothing ever has to be `Send`.
//!
//! The hard part is the end. A core whose main future has ended keeps running its tasks, as other cores may talk to
//! them. When the last main future has ended, or one has panicked ([`Ending`]), all cores stop.
//!
//! Rejected:
//! - A pool with several cores that do not steal (the flavour is decided per `Shared`; everything there would ask
//!   twice).
//! - The calling thread as the first core (its affinity, and its locals that the tasks have touched, would have to be
//!   restored).
//! - Threads that outlive `run` (main futures could not borrow, and local tasks would need a way home to be dropped).

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::task::{Poll, Waker};
use std::thread;

use mini_context::contain;
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::scheduler::config::Config;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::refuse_inside_worker;

use crate::runtime::layers;
use crate::runtime::settings::Settings;
use crate::runtime::{Handle, Runtime};

/// One event loop per core, each with tasks, timers and sockets of its own, that share nothing.
///
/// For servers that spread their connections over the cores and keep each where it is: no task is ever moved, woken by
/// another core or locked against one. With [`TcpListener::bind_reuse_port`](crate::net::TcpListener::bind_reuse_port)
/// on each core the kernel spreads the connections.
///
/// # Examples
///
/// Two cores, each with a listener on the same port:
///
/// ```
/// use mini::net::{TcpListener, TcpSocket};
/// use mini::runtime::Builder;
///
/// // Keeps a free port without listening on it.
/// let port = TcpSocket::new_v4()?;
/// port.set_reuseport(true)?;
/// port.bind("127.0.0.1:0".parse().unwrap())?;
/// let addr = port.local_addr()?;
///
/// let cores = Builder::new_per_core().worker_threads(2).build()?;
/// let listened = cores.run(|_index| async move {
///     let listener = TcpListener::bind_reuse_port(addr).await?;
///     // Here a server accepts, and serves each connection in a task of `spawn_local`.
///     listener.local_addr()
/// })?;
/// for here in listened {
///     assert_eq!(here?, addr);
/// }
/// # std::io::Result::Ok(())
/// ```
pub struct PerCore {
    runtimes: Vec<Runtime>,
    pins: bool,
}

impl PerCore {
    /// Creates one core per processor, with the default configuration; see
    /// [`Builder::new_per_core`](crate::runtime::Builder::new_per_core).
    ///
    /// # Examples
    ///
    /// ```
    /// let cores = mini::runtime::PerCore::new()?;
    /// let indices = cores.run(|index| async move { index })?;
    /// assert_eq!(indices[0], 0);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Builder::build`](crate::runtime::Builder::build).
    pub fn new() -> io::Result<Self> {
        crate::runtime::Builder::new_per_core().build()
    }

    pub(crate) fn new_from(config: &Config, settings: &Settings, count: usize, pins: bool) -> io::Result<Self> {
        let build = |index| {
            let mut config = config.clone();
            config.first_worker = index;
            config.thread_name = config.thread_name.of_part(format_args!("-{index}"));
            layers::begin(config, settings.clone())
        };
        Ok(Self { runtimes: (0..count).map(build).collect::<io::Result<_>>()?, pins })
    }

    /// Returns the number of cores.
    ///
    /// # Examples
    ///
    /// ```
    /// let cores = mini::runtime::Builder::new_per_core().worker_threads(3).build()?;
    /// assert_eq!(cores.num_workers(), 3);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_workers(&self) -> usize {
        self.runtimes.len()
    }

    /// Returns the handle of one core, to spawn there from anywhere, or to read its metrics.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::runtime::{Builder, worker_index};
    ///
    /// let cores = Builder::new_per_core().worker_threads(2).build()?;
    /// let second = cores.handle(1).clone();
    /// let found = cores.run(|_| second.spawn(async { worker_index() }))?;
    /// assert!(found.into_iter().all(|index| index.unwrap() == Some(1)));
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no core with this index.
    #[track_caller]
    pub fn handle(&self, index: usize) -> &Handle {
        match self.runtimes.get(index) {
            Some(runtime) => runtime.handle(),
            None => panic!("PerCore::handle({index}): there are {} cores", self.runtimes.len()),
        }
    }

    /// Runs `main` on each core, with the core's index, and returns the outputs of the futures, in the order of the
    /// cores.
    ///
    /// Each future is made, polled and dropped on the thread of its core, so neither the future nor the tasks that it
    /// spawns with [`spawn_local`](crate::spawn_local) need be `Send`. It may borrow data that outlive the call. A core
    /// whose future has ended keeps running its tasks until the futures of all cores have ended. Then each core drops
    /// the remaining tasks, as dropping a [`Runtime`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    ///
    /// let words = ["one", "two"];
    /// let cores = mini::runtime::Builder::new_per_core().worker_threads(2).build()?;
    /// let lengths = cores.run(|index| {
    ///     let word = Rc::new(words[index]);
    ///     async move { word.len() }
    /// })?;
    /// assert_eq!(lengths, [3, 3]);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a thread cannot be started, or not be bound to a processor, with its number. Futures that run on other cores
    /// by then are dropped.
    ///
    /// # Panics
    ///
    /// If one of the futures or `main` panics: the futures of the other cores are dropped, all cores are shut down, and
    /// the first panic is resumed here. If it is called inside a task or `block_on`.
    #[track_caller]
    pub fn run<F, R>(self, main: F) -> io::Result<Vec<R::Output>>
    where
        F: Fn(usize) -> R + Send + Sync,
        R: Future,
        R::Output: Send,
    {
        refuse_inside_worker("PerCore::run");
        let ending = Ending::new(self.runtimes.len());
        let (pins, main) = (self.pins, &main);
        let outputs: Option<Vec<_>> = thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.runtimes.len());
            for (index, runtime) in self.runtimes.into_iter().enumerate() {
                let (config, ending) = (runtime.config().clone(), &ending);
                let mut builder = thread::Builder::new().name(config.thread_name.of(format_args!("")));
                if let Some(size) = config.stack_size {
                    builder = builder.stack_size(size);
                }
                let body = move || config.hooks.around(|| work(index, runtime, pins, ending, main));
                match builder.spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        ending.fail(about(error, "start the thread", index));
                        break;
                    }
                }
            }
            let outputs =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|payload| resume_unwind(payload)));
            outputs.collect::<Vec<_>>().into_iter().collect()
        });
        match ending.into_failure() {
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic(payload)) => resume_unwind(payload),
            None => Ok(outputs.expect("without a failure each core has an output")),
        }
    }
}

/// The body of the thread of a core. The runtime ends here, on the thread that its tasks may not leave.
fn work<F, R>(index: usize, runtime: Runtime, pins: bool, ending: &Ending, main: &F) -> Option<R::Output>
where
    F: Fn(usize) -> R,
    R: Future,
{
    if pins && let Err(error) = mini_net::pin_thread(index) {
        ending.fail(about(error, "bind to a processor", index));
        return None;
    }
    let run = || runtime.block_on(ending.follow(index, async { Box::pin(main(index)).await }));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(output) => output,
        Err(payload) => {
            ending.fail(Failure::Panic(payload));
            None
        }
    }
}

fn about(error: io::Error, what: &str, index: usize) -> Failure {
    Failure::Error(io::Error::new(error.kind(), format!("failed to {what} of core {index}: {error}")))
}

/// Why all cores end early.
enum Failure {
    Error(io::Error),
    Panic(Box<dyn Any + Send>),
}

/// When the cores of one run leave: all at once.
struct Ending {
    is_over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Cores whose main future has not ended.
    left: usize,
    failure: Option<Failure>,
    /// One per core.
    waiting: Vec<Option<Waker>>,
}

impl Ending {
    fn new(cores: usize) -> Self {
        let state = State { left: cores, failure: None, waiting: vec![None; cores] };
        Self { is_over: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Drives `future` to its end and waits for those of the other cores; `None` if all end early.
    async fn follow<F: Future>(&self, index: usize, future: F) -> Option<F::Output> {
        let mut future = pin!(Some(future));
        let (mut output, mut known) = (None, None::<Waker>);
        poll_fn(|cx| {
            // The waker stays the same as long as this thread holds the core.
            if !known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                known = Some(cx.waker().clone());
                let mine = known.clone();
                let displaced = std::mem::replace(&mut lock(&self.state).waiting[index], mine);
                drop(displaced);
            }
            // Acquire: pairs with the Release in `finish`, which wakes the waker left above if it is not seen here.
            if self.is_over.load(Acquire) {
                return Poll::Ready(output.take());
            }
            if let Some(running) = future.as_mut().as_pin_mut()
                && let Poll::Ready(value) = running.poll(cx)
            {
                output = Some(value);
                future.set(None);
                self.main_ended();
                if self.is_over.load(Acquire) {
                    return Poll::Ready(output.take());
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Notes that the main future of one core has ended.
    fn main_ended(&self) {
        let mut state = lock(&self.state);
        state.left -= 1;
        if state.left == 0 {
            drop(state);
            self.finish();
        }
    }

    /// Ends all cores, unless that has been done.
    fn fail(&self, failure: Failure) {
        let mut state = lock(&self.state);
        if state.failure.is_some() {
            drop(state);
            contain(|| drop(failure)); // the panic hook has printed it
            return;
        }
        state.failure = Some(failure);
        drop(state);
        self.finish();
    }

    /// Lets all cores go.
    fn finish(&self) {
        // Release: pairs with the Acquire in `follow`.
        self.is_over.store(true, Release);
        let waiting: Vec<Waker> = lock(&self.state).waiting.iter_mut().filter_map(Option::take).collect();
        for waker in waiting {
            waker.wake();
        }
    }

    fn into_failure(self) -> Option<Failure> {
        self.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).failure
    }
}

/// Returns the index of the worker that the calling thread works as.
///
/// Workers are counted from 0 in their runtime; those of a [`PerCore`] are its cores. The thread that runs a
/// `current_thread` runtime is its worker. `None` on other threads: blocking ones, and those in `block_on` of a
/// `multi_thread` runtime.
///
/// # Examples
///
/// ```
/// use mini::runtime::worker_index;
/// assert_eq!(mini::block_on(async { worker_index() }), Some(0));
/// assert_eq!(worker_index(), None);
/// ```
pub fn worker_index() -> Option<usize> {
    let index = |core: &Core| (!core.is_guest()).then(|| core.shared().config.first_worker + core.index());
    mini_kernel::scheduler::current::with_held(index).flatten()
}

impl fmt::Debug for PerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCore").field("workers", &self.runtimes.len()).field("pins", &self.pins).finish()
    }
}
