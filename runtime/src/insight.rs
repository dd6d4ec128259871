//! `Dump`: a snapshot of a runtime: its workers, its tasks and where each waits.
//!
//! `insight/gather.rs` reads, the tasks by `insight/seen.rs`; `insight/circles.rs` finds the tasks that wait for each
//! other, `insight/text.rs` and `insight/json.rs` print, `insight/on_quit.rs` does so when the process gets SIGQUIT,
//! `insight/on_panic.rs` at a panic. Any thread may make a dump, while every worker is stuck too: it asks no worker for
//! anything and polls no task.
//!
//! No time is recorded while the program runs. A task that has not changed since the previous dump has waited at least
//! since then: so the second of two dumps shows what hangs.
//!
//! Rejected: a time in each header (8 bytes a task, and a store for each wait). To poll each task with a waker that
//! traces, as others do: a user's code would run once more than it should, on a thread where it should not, and not at
//! all while its worker is stuck.

mod circles;
mod gather;
mod json;
mod line;
mod on_panic;
#[cfg(feature = "signal")]
mod on_quit;
#[cfg(any(all(feature = "backtrace", target_os = "linux", target_arch = "x86_64"), loom))]
#[cfg_attr(loom, allow(dead_code))]
mod sample;
mod seen;
#[cfg_attr(not(all(feature = "backtrace", target_os = "linux", target_arch = "x86_64")), path = "insight/no_stack.rs")]
mod stack;
mod text;
mod warning;
mod watch;
mod watcher;

use std::collections::HashMap;
use std::io;
use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mini_context::{Holder, Reason, SyncKind};
use mini_kernel::blocking::Origin;
use mini_kernel::primitives::Mutex;
use mini_kernel::scheduler::observe::Observe;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::{Beside, LastWait, SeenWait, Sight, Source, Standing};

use crate::recorder::Recorder;
use crate::runtime::Id;
use crate::runtime::layers::Layers;
use crate::runtime::settings::{self, Settings};
use crate::task;
use circles::{Circle, circles, possible_circles};
use gather::Before;
pub(crate) use gather::{dump, sources};
pub(crate) use on_panic::{InTask, dump_on_panic};
pub(crate) use seen::lost_now;
use seen::{Seen, SeenTask};
use warning::LastWarnings;
pub use warning::{Warning, WarningKind};

/// What a runtime keeps for who looks at it: the last dump, and the last warnings.
#[derive(Default)]
pub(crate) struct Kept {
    dumped: Mutex<Option<Arc<Before>>>,
    pub(crate) warned: LastWarnings,
}

/// The recorder, if the settings ask for it.
pub(crate) fn recorder(settings: &Settings) -> Option<Arc<dyn Observe>> {
    Some(Arc::new(Recorder::of_settings(settings)?))
}

/// Looks at a runtime from now on, as its builder and the environment ask for it.
pub(crate) fn begin(shared: &Arc<Shared>) -> io::Result<()> {
    let settings = &Layers::of(shared).settings;
    #[cfg(feature = "signal")]
    {
        if !settings.is_internal {
            on_quit::note(Arc::downgrade(shared));
        }
        if settings.dump_on_quit {
            on_quit::start();
        }
    }
    if settings.warns() || shared.config.has_pick() && settings::warns(true)? {
        watcher::watch(shared);
    }
    Ok(())
}

impl Settings {
    /// Whether the program is warned, in whatever way.
    fn warns(&self) -> bool {
        self.warnings || self.on_warning.is_some()
    }

    /// Whether the warnings go to stderr.
    fn says_warnings(&self) -> bool {
        self.warnings && self.on_warning.is_none()
    }
}

/// A snapshot of what a runtime is doing, returned by [`Handle::dump`](crate::runtime::Handle::dump).
///
/// Its `Display` is for people. It has a line for each worker; then, for each task, what it waits for and where; and
/// last the tasks that cannot end by themselves. Tasks that were spawned at one line and wait at one line are shown as
/// one group. Many tasks whose names differ only in numbers, such as `conn 17`, are one group, `conn *`.
/// [`to_json`](Self::to_json) is for programs.
///
/// - *CIRCLE*: tasks that join each other. That is a deadlock, unless one of them waits for something else too, as a
///   [`race!`](crate::race) does, or a [`scope!`](crate::scope) with a child that sleeps. If the second of two dumps
///   shows that none of them has made progress since the first, it most likely is.
/// - *MAYBE A CIRCLE*, of locks: each task joins the next, or waits for a [`Mutex`](crate::sync::Mutex), or the right
///   to fill a [`OnceCell`](crate::sync::OnceCell), that the next one took. That is a deadlock, unless the future that
///   took the lock has moved to another task since: a program may poll a future in one task, and spawn it as another.
/// - *MAYBE A CIRCLE*, of other things: each task waits only for something that the next task has used last. It may be
///   the only sender of a channel, a receiver or an owned guard, which the next task may have given away since. Or it
///   may be an [`RwLock`](crate::sync::RwLock) or a [`Semaphore`](crate::sync::Semaphore), of which another task may
///   have the rest. Two idle tasks that answer each other look like this, too.
/// - *LOST*: the task waits, and no waker is left that could wake it: it never runs again, unless it is aborted. Not
///   every lost task is found: a waker that is leaked, or kept by a collection of futures inside the task, counts as a
///   waker that is left. So does an [`AbortHandle`](crate::task::AbortHandle), unless it is that of a
///   [`Group`](crate::task::Group) or of a task made by a [`task::Builder`](crate::task::Builder).
///
/// The line of a wait is the line of the call that made the future: for a [`oneshot`](crate::sync::oneshot) receiver
/// the call of `channel()`, for a join the spawn. Send SIGQUIT twice: the second dump shows which tasks have made no
/// progress since the first, and how often the others were polled. If a task waits for several futures, the dump shows
/// the one that was polled last, and up to three others that the same poll has left waiting.
///
/// For a channel the dump shows the other end. If a task waits to receive from an [`mpsc`](crate::sync::mpsc) channel,
/// the dump shows how many senders are left, where the last one was made, and, if only one is left, which task has sent
/// last. If a task waits to send, the dump shows the receiver. A channel that grows by thousands of messages has a line
/// of its own.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let lock = std::sync::Arc::new(mini::sync::Mutex::new(0));
///     let held = lock.clone().lock_owned().await;
///     mini::spawn(async move { *lock.lock().await += 1 });
///     mini::task::yield_now().await;
///
///     let dump = mini::runtime::Handle::current().dump();
///     let task = &dump.tasks()[0];
///     assert!(task.waits_for().unwrap().ends_with(", last taken by the main task"));
///     println!("{dump}");
///     drop(held);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Dump {
    runtime: Id,
    flavour: &'static str,
    up: Duration,
    /// If this is a simulation: the time since it began.
    virtual_time: Option<Duration>,
    workers: Vec<Worker>,
    /// The threads in `block_on` of a multi-threaded runtime, as workers of their own.
    guests: Vec<Worker>,
    /// What the futures of external threads wait for.
    externals: Vec<Main>,
    /// From which the tasks and the circles are worked out when somebody asks for them.
    seen: Arc<Seen>,
    /// Of a simulation, the hosts of the tasks by their ids.
    hosts: HashMap<u64, Arc<str>>,
    tasks: OnceLock<Vec<DumpedTask>>,
    circles: OnceLock<Vec<Circle>>,
    /// Threads for blocking jobs, idle ones among them, jobs in the queue, the first of these, and those that run.
    threads: usize,
    idle_threads: usize,
    queued_jobs: usize,
    next_job: Option<Origin>,
    jobs: Vec<Job>,
    /// New tasks that no worker has registered.
    new: usize,
    /// The runtime shuts down, or has.
    has_ended: bool,
    /// There are warnings; there is a trace.
    warns: bool,
    records: bool,
    /// Channels of this process with very many messages.
    crowds: Vec<Holder>,
    /// Why the process can open no file or socket, if so.
    shortage: Option<String>,
    /// How long ago the dump before was made.
    before: Option<Duration>,
    /// In nanoseconds of the clock of its timers.
    now: u64,
}

/// A blocking job that runs.
#[derive(Clone, Copy, Debug)]
struct Job {
    origin: Origin,
    /// The dump before has it too.
    is_unchanged: bool,
}

/// A worker in a [`Dump`].
#[derive(Clone, Debug)]
struct Worker {
    index: usize,
    doing: Doing,
    /// Its main task, the future of a `block_on`, waits for this.
    main: Option<Main>,
    /// The tasks that only it may touch could not be read.
    is_hidden: bool,
}

/// The future of a `block_on` that waits.
#[derive(Clone, Copy, Debug)]
struct Main {
    id: u64,
    wait: LastWait,
    /// If that is a lock or a channel: the task that has it, or the other end.
    holder: Option<Holder>,
    /// What it waits for beside that.
    beside: Beside,
    /// There is something, which may be known or not.
    has_beside: bool,
}

/// The activity of a worker.
#[derive(Clone, Debug)]
enum Doing {
    /// Without a thread.
    Rests,
    Parks,
    /// Between two runs, or in one.
    Works(Run),
    /// In `block_in_place`, in the task of that id.
    Blocks(u64),
}

/// The task that a worker polls.
#[derive(Clone, Debug)]
struct Run {
    task: u64,
    /// It is known to have lasted this long.
    lasts: Option<Duration>,
    /// The monitor has seen it last too long.
    is_stalled: bool,
    /// The thread computes; it does not wait in the kernel. Where the system tells.
    computes: Option<bool>,
}

/// The known state of the lock or channel for which a task waits.
#[derive(Clone, Copy)]
struct Held {
    kind: SyncKind,
    /// Whether the wait tells a task that has it.
    has_task: bool,
    holder: Holder,
}

impl Held {
    fn of(wait: LastWait, holder: Holder) -> Option<Self> {
        match wait {
            LastWait::Known(wait) => match wait.reason() {
                Reason::Sync(kind, task) => Some(Self { kind, has_task: task != 0, holder }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A task in a [`Dump`].
///
/// # Examples
///
/// See [`Dump`].
#[derive(Clone, Debug)]
pub struct DumpedTask {
    source: Source,
    host: Option<Arc<str>>,
    /// Modulo 2^30.
    polls: u32,
    standing: Standing,
    /// What its last poll was pending for; none before that.
    wait: SeenWait,
    /// If that is a lock or a channel: the task that has it, or the other end.
    holder: Option<Holder>,
    /// What it waits for beside that.
    beside: Option<Box<Beside>>,
    /// It waits for something beside that, which may be known or not.
    has_beside: bool,
    is_running: bool,
    is_lost: bool,
    /// How often it was polled since the dump before, if it is in that.
    polled_since: Option<u32>,
    /// It was not polled since an earlier dump, which was made this long ago.
    unchanged: Option<Duration>,
}

impl Dump {
    /// Returns the tasks that were alive, in the order of their ids.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn tasks(&self) -> &[DumpedTask] {
        self.tasks.get_or_init(|| {
            let runs = |id| self.workers.iter().any(|worker| worker.doing.runs(id));
            let is_running = |sight: &Sight| sight.standing == Standing::Ready && runs(sight.id.get());
            let dumped = |task: &SeenTask| DumpedTask {
                host: self.hosts.get(&task.sight.id.get()).cloned(),
                ..self.seen.dumped(task, is_running(&task.sight))
            };
            self.seen.in_order().iter().map(dumped).collect()
        })
    }

    /// Returns the circles of joins and locks, see [`Dump`], by the ids of their tasks. The future of a `block_on` has
    /// no id, so it is left out.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::oneshot;
    ///
    /// mini::block_on(async {
    ///     let (send, receive) = oneshot::channel();
    ///     let first = mini::spawn(async move {
    ///         let second: mini::task::JoinHandle<()> = receive.await.unwrap();
    ///         second.await.unwrap()
    ///     });
    ///     let id = first.id();
    ///     let second = mini::spawn(async move { first.await.unwrap() });
    ///     send.send(second).unwrap(); // each joins the other
    ///     mini::task::yield_now().await;
    ///     mini::task::yield_now().await;
    ///
    ///     let dump = mini::runtime::Handle::current().dump();
    ///     assert!(dump.circles()[0].contains(&id));
    /// });
    /// ```
    pub fn circles(&self) -> Vec<Vec<task::Id>> {
        let ids = |circle: &Circle| circle.iter().filter_map(|&id| self.task(id)).map(DumpedTask::id).collect();
        self.all_circles().iter().map(ids).collect()
    }

    /// Returns the dump as JSON (RFC 8259): an object with `runtime`, `flavour`, `up_seconds`, `has_ended`, `workers`,
    /// `tasks`, `circles` (of joins, and of locks if it has `over_locks`), `possible_circles` (of others) and
    /// `blocking`. Fields may be added.
    ///
    /// # Examples
    ///
    /// ```
    /// let runtime = mini::runtime::Runtime::new()?;
    /// assert!(runtime.handle().dump().to_json().contains(r#""tasks":[]"#));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn to_json(&self) -> String {
        json::of(self)
    }

    /// Returns the dump as JSON, for a runtime with very many tasks. It is like [`to_json`](Self::to_json), but has
    /// `groups` in place of `tasks`.
    ///
    /// The tasks of a group have the same name (with `*` for numbers that differ), line of spawn, state and wait. The
    /// JSON has the `most` largest groups; `groups_left_out` is the number of the others.
    ///
    /// A group has the `count` of its tasks; the number of times they were `polled` since the previous dump, which was
    /// made `since_seconds` ago; the number `unchanged` of tasks that wait and were not polled since, and
    /// `unchanged_seconds`, the longest such wait; and the `ids` of a few tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     for _ in 0..10 {
    ///         mini::spawn(mini::time::sleep(std::time::Duration::from_secs(60)));
    ///     }
    ///     mini::task::yield_now().await;
    ///     let json = mini::runtime::Handle::current().dump().groups_to_json(100);
    ///     assert!(json.contains(r#""groups":[{"count":10,"#));
    /// });
    /// ```
    pub fn groups_to_json(&self, most: usize) -> String {
        json::of_groups(self, most)
    }

    /// With those of main tasks in them.
    fn all_circles(&self) -> &[Circle] {
        self.circles.get_or_init(|| {
            let tasks = self.tasks().iter().filter_map(|task| Some((task.id().get(), task.waits()?)));
            circles(tasks.chain(self.mains().map(|main| (main.id, main.wait))))
        })
    }

    /// With those of main tasks in them. See [`possible_circles`].
    fn possible_circles(&self) -> Vec<Circle> {
        let is_certain = |beside: &Beside| beside[0].is_none();
        let tasks = self.tasks().iter().filter(|task| is_certain(&task.beside()));
        let mains = self.mains().filter(|main| is_certain(&main.beside)).map(|main| (main.id, main.wait));
        possible_circles(tasks.filter_map(|task| Some((task.id().get(), task.waits()?))).chain(mains))
    }

    /// Returns `true` if a task may wait for something other than a task.
    #[cfg(feature = "sim")]
    pub(crate) fn may_wait_for_threads(&self) -> bool {
        let is_open = |wait: LastWait| match wait {
            LastWait::Unknown => true,
            LastWait::Known(wait) => matches!(
                wait.reason(),
                Reason::Sync(SyncKind::Receive, _) | Reason::Sync(_, 0) | Reason::SyncAt(..) | Reason::Cancel
            ),
            LastWait::Yielded | LastWait::Spent => false,
        };
        let tasks = self.tasks().iter().filter(|task| !task.is_lost).filter_map(DumpedTask::waits);
        self.all_circles().is_empty() && self.mains().map(|main| main.wait).chain(tasks).any(is_open)
    }

    fn mains(&self) -> impl Iterator<Item = &Main> {
        self.workers.iter().chain(&self.guests).filter_map(|worker| worker.main.as_ref()).chain(&self.externals)
    }

    fn task(&self, id: u64) -> Option<&DumpedTask> {
        let tasks = self.tasks();
        let at = tasks.binary_search_by_key(&id, |task| task.id().get()).ok()?;
        Some(&tasks[at])
    }
}

impl DumpedTask {
    /// Returns the id of the task, as its join handle gave it.
    ///
    /// # Examples
    ///
    /// See [`Dump::circles`].
    pub fn id(&self) -> task::Id {
        self.source.id
    }

    /// Returns the name of the task, if it has one.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn name(&self) -> Option<&str> {
        self.source.name.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn location(&self) -> &'static Location<'static> {
        self.source.location
    }

    /// Returns the name of the task's host, in a simulation with hosts, if the dump was made on the thread of the
    /// simulation.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "sim")]
    /// let failure = mini::sim::Sim::new(1).run(async {
    ///     mini::sim::current().host("db", || std::future::pending::<std::io::Result<()>>());
    ///     std::future::pending::<()>().await
    /// });
    /// # #[cfg(feature = "sim")]
    /// assert_eq!(failure.unwrap_err().dump().unwrap().tasks()[0].host(), Some("db"));
    /// ```
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Returns the number of polls of the task, modulo 2^30.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn polls(&self) -> u32 {
        self.polls
    }

    /// Describes what the task waits for, with the line: the same text as in the [`Debug`](std::fmt::Debug) of its
    /// handle. Returns `None` if it runs, or is ready to run.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn waits_for(&self) -> Option<String> {
        self.waits().map(|wait| wait.to_string())
    }

    /// Returns `true` if no waker is left that could wake the task; see [`Dump`].
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     mini::spawn(std::future::pending::<()>()); // drops the waker that it is given
    ///     mini::task::yield_now().await;
    ///     let dump = mini::runtime::Handle::current().dump();
    ///     assert!(dump.tasks()[0].is_lost());
    /// });
    /// ```
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the minimum time that the task has waited without a poll: the time since the first [`Dump`] that saw it
    /// in this state. Returns `None` if it was polled since the previous dump, or if there was none.
    ///
    /// # Examples
    ///
    /// See [`Dump`].
    pub fn unchanged_for(&self) -> Option<Duration> {
        self.unchanged
    }

    /// What is known of the lock or channel for which it waits.
    fn held(&self) -> Option<Held> {
        Held::of(self.waits()?, self.holder?)
    }

    /// What it waits for beside that.
    fn beside(&self) -> Beside {
        self.beside.as_deref().copied().filter(|_| self.standing == Standing::Waits).unwrap_or_default()
    }

    fn waits(&self) -> Option<LastWait> {
        if self.standing == Standing::Waits { self.wait.get() } else { None }
    }
}
