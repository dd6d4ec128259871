//! The state that the cores of one runtime share: the injectors, the set of parked workers, the blocking threads, the
//! monitor, the end.
//!
//! A `Handle` is an `Arc` of it. Tasks count it too (see `core_refs.rs`), so it lives until the last waker is gone; its
//! system resources (threads, tasks, waiters) end with [`Shared::shutdown`].

use std::io;
use std::sync::{Arc, Weak};
use std::task::Wake;
use std::time::{Duration, Instant};

use mini_time::Clock;

use crate::blocking::Blocking;
use crate::primitives::Mutex;
use crate::primitives::atomic::AtomicBool;
use crate::scheduler::ExternalThread;
use crate::scheduler::config::Config;
use crate::scheduler::core::Core;
use crate::scheduler::current::{self, Role};
use crate::scheduler::driver::ReactorHandle;
use crate::scheduler::end::End;
use crate::scheduler::extension::Extension;
use crate::scheduler::fifo::Fifo;
use crate::scheduler::guests::Guests;
use crate::scheduler::idle::ParkedSet;
use crate::scheduler::local_queue::LocalQueue;
use crate::scheduler::monitor::Monitor;
use crate::scheduler::observe::{Observe, ObserveCore};
use crate::scheduler::poller::PollerRole;
use crate::scheduler::until_idle::UntilIdle;
use crate::scheduler::worker;
use crate::task::{self, Class, JoinHandle, Origin, Queued, Start};

mod spawn;

pub struct Shared {
    pub cores: Box<[Core]>,
    pub config: Config,
    pub begun_at: Instant,
    /// By class: woken tasks for any worker; compute-bound tasks that the queue of a worker had no room for.
    injectors: [Fifo<Queued>; 2],
    pub idle: ParkedSet,
    pub(crate) monitor: Monitor,
    pub blocking: Arc<Blocking<Queued>>,
    pub process: mini_net::Process,
    resolver: mini_net::Blocking,
    /// In an allocation of its own: the last thing that a thread does is to say that it no longer keeps this runtime.
    pub(super) end: Arc<End>,
    pub(super) until_idle: UntilIdle,
    /// The layers above.
    pub extension: Box<dyn Extension>,
    /// The cores of threads in `block_on` of a multi-threaded runtime.
    guests: Guests,
    /// The last attempt to start a worker thread has failed.
    pub(super) lacks_threads: AtomicBool,
    /// Threads in `block_on` that poll their futures themselves.
    pub externals: Mutex<Vec<Arc<ExternalThread>>>,
}

/// Called when a socket is registered and there was none: if no worker comes to it soon, a parked worker must wait for
/// its events.
struct OnUse(Weak<Shared>);

impl Wake for OnUse {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade()
            && shared.lacks_worker()
        {
            shared.wake_one();
        }
    }
}

impl Shared {
    pub fn new(config: Config, extension: Box<dyn Extension>) -> io::Result<Arc<Self>> {
        let usual = || if config.is_multi_thread { Clock::real() } else { Clock::pausable(config.start_paused) };
        let clock = config.pick.as_ref().map_or_else(usual, |(clock, _)| clock.clone());
        let post = ReactorHandle::new()?;
        task::tell_table();
        let shared = Arc::new_cyclic(|weak| {
            // In other flavours no shared task is ever queued.
            let queue = || if config.is_multi_thread { LocalQueue::new() } else { LocalQueue::without_room() };
            let new_core = |index| {
                let queues = [queue(), queue()];
                let mut core = Core::new(weak.as_ptr(), index, false, queues, clock.clone(), post.clone());
                core.observers = observers_of(&config.observers, index, false);
                core.pick = config.pick.as_ref().map(|(_, pick)| pick.clone());
                core
            };
            let cores: Box<[Core]> = (0..config.workers).map(new_core).collect();
            let blocking = Blocking::new(&config, cores[0].unparker.clone(), Queued::serve);
            post.reactor.call_when_used(Arc::new(OnUse(weak.clone())).into());
            Self {
                injectors: [Fifo::new(), Fifo::new()],
                idle: ParkedSet::new(config.workers),
                monitor: Monitor::default(),
                resolver: resolver(&blocking),
                blocking,
                process: mini_net::Process::current(),
                end: Arc::new(End::new(config.workers)),
                until_idle: UntilIdle::default(),
                extension,
                guests: Guests::default(),
                lacks_threads: AtomicBool::new(false),
                externals: Mutex::default(),
                cores,
                config,
                begun_at: Instant::now(),
            }
        });
        if shared.is_multi_thread() {
            let index = shared.external_core().index();
            let _is_first = shared.cores[index].ownership.wants_thread();
            shared.idle.unpark(index); // it is on its way up: a task that comes meanwhile needs no second one
            worker::start_thread(&shared, index)?;
        }
        Ok(shared)
    }

    pub fn is_multi_thread(&self) -> bool {
        self.config.is_multi_thread
    }

    /// Whether the runtime shuts down.
    pub fn is_closing(&self) -> bool {
        self.end.is_closing()
    }

    pub(crate) fn resolver(&self) -> &mini_net::Blocking {
        &self.resolver
    }

    /// The core for what comes from threads that hold none, or a guest. The first one whose thread is started.
    fn external_core(&self) -> &Core {
        &self.cores[self.cores.len() - 1]
    }

    /// A core for a thread in `block_on` of a multi-threaded runtime, which holds it from now on.
    pub(crate) fn take_guest(&self) -> &Core {
        self.guests.take(|number| {
            let driver = self.cores[0].driver();
            let queues = [LocalQueue::without_room(), LocalQueue::without_room()];
            let (shared, index) = (self.cores[0].shared_address(), self.cores.len() + number);
            let mut core = Core::new(shared, index, true, queues, driver.timers().clock().clone(), driver.handle());
            core.observers = observers_of(&self.config.observers, index, true);
            core
        })
    }

    /// The cores of threads that are or were in `block_on` of a multi-threaded runtime.
    pub fn guests(&self) -> impl Iterator<Item = &Core> {
        self.guests.iter()
    }

    /// All cores, those of workers first, by their index.
    pub fn all_cores(&self) -> impl Iterator<Item = &Core> {
        self.cores.iter().chain(self.guests())
    }

    /// Enters the runtime on this thread without holding a core. Timers that the thread registers are served by the
    /// worker that is always there.
    #[track_caller]
    pub fn enter(self: &Arc<Self>) -> current::Guard {
        self.enter_as(Role::Visitor)
    }

    /// Enters the runtime on this thread in a role, without holding a core.
    #[track_caller]
    pub(crate) fn enter_as(self: &Arc<Self>, role: Role) -> current::Guard {
        self.process.check("Runtime::enter");
        current::enter_as(self, self.external_core(), role)
    }

    // Spawning.

    /// Spawns a future that may run on any thread that the flavour has.
    pub fn spawn<F>(self: &Arc<Self>, future: F, origin: impl Origin) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (core, start) = self.place();
        let (task, handle) = task::new(future, core.schedule(), start, origin);
        self.start(task, core, start);
        handle
    }

    /// Runs `job` on a blocking thread.
    #[track_caller]
    pub fn spawn_blocking<F, T>(self: &Arc<Self>, job: F, origin: impl Origin) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if let Some(pick) = &self.cores[0].pick {
            return self.spawn_job(job, pick.job_delay(), origin);
        }
        let mut job = Some(job);
        // Polled once, by a blocking thread.
        let future = std::future::poll_fn(move |_| {
            mini_context::end_poll(); // a job may block, where a task may not, and no task waits for its end
            std::task::Poll::Ready((job.take().expect("polled once"))())
        });
        let (task, handle) = task::new(future, self.cores[0].schedule(), Start::Shared, origin);
        if !self.config.observers.is_empty() && !self.blocking.is_closed() {
            for observer in &self.config.observers {
                observer.spawned(&task);
            }
        }
        self.blocking.push_job(task.into_queued());
        handle
    }

    /// A blocking job as a task, which takes virtual time.
    #[track_caller]
    fn spawn_job<F, T>(self: &Arc<Self>, job: F, delay: Duration, origin: impl Origin) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let location = origin.location();
        let job = async move {
            mini_time::sleep_of(location, delay).await; // in dumps at the line that wants the job done
            mini_context::swap_budget(mini_context::ENDLESS); // a job has none
            job() // in a task: it may not block, as nobody else would run
        };
        self.spawn(job, origin)
    }

    /// The tasks of a class for any worker.
    pub fn injector(&self, class: Class) -> &Fifo<Queued> {
        &self.injectors[class as usize]
    }

    /// Whether tasks wait for any worker.
    pub fn has_injected(&self) -> bool {
        self.injectors.iter().any(|injector| !injector.is_empty())
    }

    pub(crate) fn poller(&self) -> &PollerRole {
        self.cores[0].driver().poller()
    }

    pub(super) fn is_any_task_alive(&self) -> bool {
        self.cores.iter().any(|core| core.shared_alive() > 0)
    }
}

fn observers_of(observers: &[Arc<dyn Observe>], core: usize, is_guest: bool) -> Vec<Box<dyn ObserveCore>> {
    observers.iter().filter_map(|observer| observer.clone().of_core(core, is_guest)).collect()
}

/// The threads on which `net` resolves names.
fn resolver(blocking: &Arc<Blocking<Queued>>) -> mini_net::Blocking {
    let blocking = blocking.clone();
    Arc::new(move |job| blocking.push_call(job))
}

#[cfg(all(test, loom))]
mod models;
