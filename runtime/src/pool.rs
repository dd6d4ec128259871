//! What the cores of one runtime share: the injector, the idle counters, the blocking threads, the keepers, the end.
//!
//! A [`Handle`](crate::runtime::Handle) is an `Arc` of it. Tasks count it too (see `core.rs`), so it lives until the last
//! waker is gone; what it holds of the system (threads, tasks, waiters) ends with [`Pool::shutdown`].

use std::io;
use std::sync::{Arc, Weak};
use std::task::Wake;
use std::time::{Duration, Instant};

use mini_time::Clock;

use crate::blocking::Blocking;
use crate::config::Config;
use crate::context;
use crate::core::Core;
use crate::driver::Post;
use crate::fifo::Fifo;
use crate::idle::Idle;
use crate::leftovers::{LeftTask, Leftovers};
use crate::lookout::Lookout;
use crate::queue::Ring;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use crate::sync::{Condvar, Deadline, Mutex, lock, thread};
use crate::task::{self, JoinError, JoinHandle, Origin, Queued, Start};
use crate::unwind::contain;
use crate::watch::Watch;
use crate::worker;

mod way;

pub(crate) struct Pool {
    pub(crate) cores: Box<[Core]>,
    pub(crate) config: Config,
    pub(crate) injector: Fifo<Queued>,
    pub(crate) idle: Idle,
    pub(crate) watch: Watch,
    pub(crate) blocking: Arc<Blocking>,
    resolver: mini_net::Blocking,
    closing: AtomicBool,
    open_cores: AtomicUsize,
    /// Cores that are not closed yet and threads that have not ended.
    ending: Mutex<Ending>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Ending {
    open_cores: usize,
    keepers: usize,
    /// There is a watch.
    is_watched: bool,
}

/// Told when a socket is registered and there was none: if all workers rest, one must wait for its events.
struct OnUse(Weak<Pool>);

impl Wake for OnUse {
    fn wake(self: Arc<Self>) {
        if let Some(pool) = self.0.upgrade()
            && pool.idle.must_wake()
        {
            pool.wake_one();
        }
    }
}

impl Pool {
    pub(crate) fn new(config: Config) -> io::Result<Arc<Self>> {
        let clock = if config.is_multi_thread { Clock::real() } else { Clock::pausable(config.start_paused) };
        let base = Instant::now();
        let post = Post::new()?;
        Ok(Arc::new_cyclic(|weak| {
            // In other flavours no shared task is ever queued.
            let ring = || if config.is_multi_thread { Ring::new() } else { Ring::without_room() };
            let new_core = |index| Core::new(weak.as_ptr(), index, ring(), clock.clone(), base, post.clone());
            let cores: Box<[Core]> = (0..config.workers).map(new_core).collect();
            let blocking = Blocking::new(&config, cores[0].bell.clone());
            post.reactor.call_when_used(Arc::new(OnUse(weak.clone())).into());
            Self {
                injector: Fifo::new(),
                idle: Idle::new(config.workers),
                watch: Watch::default(),
                resolver: resolver(&blocking),
                blocking,
                closing: AtomicBool::new(false),
                open_cores: AtomicUsize::new(config.workers),
                ending: Mutex::new(Ending { open_cores: config.workers, ..Ending::default() }),
                ended: Condvar::new(),
                cores,
                config,
            }
        }))
    }

    pub(crate) fn is_multi_thread(&self) -> bool {
        self.config.is_multi_thread
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    pub(crate) fn resolver(&self) -> &mini_net::Blocking {
        &self.resolver
    }

    /// The core for what comes from threads that hold none: the last one, since `block_on` takes the first.
    fn guest_core(&self) -> &Core {
        &self.cores[self.cores.len() - 1]
    }

    /// Enters the runtime on this thread without holding a core. What the thread registers is served by the driver of
    /// a core that some thread works on, now and until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> context::Guard {
        let core = self.cores.iter().find(|core| core.seat.is_held()).unwrap_or(self.guest_core());
        let guard = context::enter(self, core);
        // The owner may have left meanwhile; it looks for visitors after it has given up the seat.
        self.keep_served(core);
        guard
    }

    // Spawning.

    /// Spawns a future that may run on any thread that the flavour has.
    pub(crate) fn spawn<F>(self: &Arc<Self>, future: F, origin: impl Origin) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (core, way) = self.place();
        let (task, handle) = task::new(future, core.home(), way.start(), origin);
        self.start(task, core, way);
        handle
    }

    /// Runs `job` on a blocking thread.
    pub(crate) fn spawn_blocking<F, T>(self: &Arc<Self>, job: F, origin: impl Origin) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut job = Some(job);
        // Polled once, by a blocking thread.
        let future = std::future::poll_fn(move |_| std::task::Poll::Ready((job.take().expect("polled once"))()));
        let (task, handle) = task::new(future, self.cores[0].home(), Start::Shared, origin);
        let location = task.location();
        self.blocking.push_task(self, task.into_queued(), location);
        handle
    }

    // Waking workers.

    /// Leaves tasks for any worker, and brings one up if all rest.
    pub(crate) fn inject(&self, tasks: impl IntoIterator<Item = Queued>) {
        self.injector.extend(tasks);
        if self.idle.must_wake() {
            self.wake_one();
        } else if self.watch.alert().is_on() && self.injector.len() > 1 {
            self.call_for_help();
        }
    }

    /// Brings up one resting worker: one that is parked, else one whose core nobody holds. Says whether there was one.
    pub(crate) fn wake_one(&self) -> bool {
        if self.ring_one() {
            return true;
        }
        // The core of a current_thread runtime is for who calls `block_on` or `turn`.
        if self.is_closing() || !self.is_multi_thread() {
            return false;
        }
        // The last core first: `block_on` takes the first.
        let Some(core) = self.cores.iter().rev().find(|core| core.seat.wants_keeper()) else { return false };
        worker::start_keeper(&core.home().arc(), core.index());
        true
    }

    /// Brings up one worker that is parked, the lookout last; says whether there was one.
    pub(crate) fn ring_one(&self) -> bool {
        let lookout = self.lookout().holder();
        let others = self.cores.iter().filter(|core| Some(core.index()) != lookout);
        others.chain(lookout.map(|index| &self.cores[index])).any(|core| core.bell.ring())
    }

    pub(crate) fn lookout(&self) -> &Lookout {
        self.cores[0].driver().lookout()
    }

    /// Called by who has left a core, or could not come to it: if nobody is left to look out, somebody is called. An only core has
    /// nobody else; its host would be called each time it leaves.
    pub(crate) fn keep_lookout(&self) {
        if self.is_multi_thread() && self.cores[0].driver().lacks_lookout() && self.idle.must_wake() {
            self.ring_one();
        }
    }

    /// Called by the owner of `core` after a task was queued there: on alert, or if its runs are long, a resting worker is brought
    /// up if more than one task waits. A single one is left to the owner, who will come to it soon, and if not, to the watch.
    ///
    /// While the owner waits in the driver, which wakes tasks, it is itself one of those who rest; it does this when it is up.
    #[inline]
    pub(crate) fn share_early(&self, core: &Core) -> bool {
        let is_wanted = core.long_runs.are_known() || self.watch.alert().is_on();
        is_wanted && core.backlog() > 1 && core.is_up.load(Relaxed) && self.call_from(core)
    }

    /// Once a run if these are long, and a few times between two looks of the watch on alert.
    #[cold]
    fn call_from(&self, core: &Core) -> bool {
        if core.long_runs.take_call(core.counts.runs.get()) {
            return self.is_help_free() && self.wake_one();
        }
        self.watch.alert().is_on() && self.call_for_help()
    }

    /// Brings up a resting worker, unless that has been done a few times just now; says whether it did.
    #[cold]
    pub(crate) fn call_for_help(&self) -> bool {
        let is_called = self.is_help_free() && self.watch.alert().may_call() && self.wake_one();
        if is_called {
            self.watch.alert().note_call();
        }
        is_called
    }

    /// Whether somebody rests, and nobody is about to find the work by itself.
    fn is_help_free(&self) -> bool {
        // Pairs with that in `Idle::rest`: on alert a worker that goes to rest sees what has been queued, or is seen here. Else one
        // that is missed leaves it to the next call, or the watch.
        fence(SeqCst);
        self.idle.is_someone_resting() && !self.idle.is_someone_searching()
    }

    /// Starts a keeper for a core that nobody works on, if something can happen there that must be seen.
    pub(crate) fn keep_served(self: &Arc<Self>, core: &Core) {
        let is_needed = || core.has_visitors() || core.driver().is_used() || self.is_any_task_alive();
        if self.is_multi_thread() && !self.is_closing() && is_needed() && core.seat.wants_keeper() {
            worker::start_keeper(self, core.index());
        }
    }

    /// Tries again to start the keepers that could not be started, where they are still needed.
    pub(crate) fn start_missing_keepers(self: &Arc<Self>) {
        self.cores.iter().filter(|core| core.seat.lacks_keeper()).for_each(|core| self.keep_served(core));
    }

    fn is_any_task_alive(&self) -> bool {
        self.cores.iter().any(|core| core.shared_alive() > 0)
    }

    /// A panic that no join handle will see.
    pub(crate) fn report_panic(&self, error: &JoinError) {
        match &self.config.on_task_panic {
            Some(hook) => drop(contain(|| hook(error))),
            None => say!("{error}, and nobody awaits it"),
        }
    }

    // The end.

    /// Drops all tasks, each on its worker, and waits for that and for blocking jobs until `grace` is over.
    ///
    /// Called on one of its own workers it only starts the end.
    pub(crate) fn shutdown(self: &Arc<Self>, grace: Duration) -> Leftovers {
        let deadline = Deadline::after(grace);
        if self.closing.swap(true, SeqCst) {
            return Leftovers::default();
        }
        for core in &self.cores {
            if core.seat.try_take() {
                worker::close_core(self, core);
            }
            core.seat.retire();
            core.bell.ring();
        }
        let running = self.blocking.close();
        if context::is_working_for(self) {
            return Leftovers::default(); // it would wait for itself
        }
        let (workers, threads) = self.wait_for_workers(deadline);
        self.watch.stop();
        self.shut_drivers();
        let mut left = Leftovers { workers, threads, ..Leftovers::default() };
        if running {
            (left.blocking, left.lookups) = self.blocking.wait(deadline);
        }
        if workers > 0 {
            left.tasks = self.cores.iter().flat_map(Core::list_shared).map(|task| LeftTask::new(&task)).collect();
            left.local_tasks = self.cores.iter().map(Core::owned_left).sum();
        }
        left
    }

    /// Waits until all cores are closed and all threads gone; returns how many cores were not closed, and how many of their threads
    /// have not ended. (The watch ends when it is told to.)
    fn wait_for_workers(&self, mut deadline: Deadline) -> (usize, usize) {
        let mut ending = lock(&self.ending);
        while (ending.open_cores > 0 || ending.keepers > 0 || ending.is_watched) && !deadline.is_over() {
            ending = deadline.wait(&self.ended, &self.ending, ending);
        }
        (ending.open_cores, ending.keepers)
    }

    pub(crate) fn keeper_started(&self) {
        lock(&self.ending).keepers += 1;
    }

    pub(crate) fn keeper_ended(&self) {
        lock(&self.ending).keepers -= 1;
        self.ended.notify_all();
    }

    pub(crate) fn note_watch(&self, is_there: bool) {
        lock(&self.ending).is_watched = is_there;
        self.ended.notify_all();
    }

    /// A core has been closed by its owner. The last one to say so empties the injector.
    pub(crate) fn core_closed(&self) {
        if self.open_cores.fetch_sub(1, SeqCst) == 1 {
            // Every task is cancelled by now. What is alive is in the injector, or on its way there on a thread that
            // woke it before it was cancelled and has yet to push it.
            loop {
                while let Some(task) = self.injector.pop() {
                    task.discard();
                }
                if !self.is_any_task_alive() {
                    break;
                }
                thread::yield_now();
            }
            self.watch.stop();
            self.shut_drivers();
        }
        lock(&self.ending).open_cores -= 1;
        self.ended.notify_all();
    }

    /// Fails what waits for I/O or time. Not before the tasks are gone: they are to be cancelled, not to see this.
    fn shut_drivers(&self) {
        for core in &self.cores {
            core.driver().shutdown();
        }
    }
}

/// Where `net` resolves names, and waits for room in the queue of a Unix listener.
fn resolver(blocking: &Arc<Blocking>) -> mini_net::Blocking {
    let blocking = blocking.clone();
    Arc::new(move |job| blocking.push_call(job))
}

#[cfg(all(test, loom))]
mod models;
