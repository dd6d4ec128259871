//! One core of a runtime: the queues, registries and driver that one thread at a time works on.
//!
//! A `current_thread` runtime has one core, a `multi_thread` runtime has one per worker. The thread that holds a core
//! (see `seat.rs`) is its *owner*. Called by wakers and spawns, through a task's `Home`, and by the worker's loop.
//!
//! What only the owner touches sits in `Local`. Owned tasks are queued there with plain stores. Other threads
//! post to the inbox and ring the bell.
//!
//! Rejected: a lock around `Local` (two locked instructions per wake of an owned task, for a lock that is never contended).

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use mini_net::{Events, ThreadNumber};
use mini_time::Clock;

use crate::bell::Bell;
use crate::blocks::{Blocks, Returned};
use crate::context;
use crate::counts::Counts;
use crate::driver::{Driver, Post};
use crate::embed::Host;
use crate::fifo::Fifo;
use crate::home::Home;
use crate::lull::Lull;
use crate::pace::LongRuns;
use crate::pool::Pool;
use crate::queue::{Next, Ring};
use crate::registry::Registry;
use crate::seat::Seat;
use crate::spin::Spins;
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Mutex, lock};
use crate::task::{Queued, Task};
use crate::tenants::Tenants;

mod close;
mod inbox;
mod ring;

pub(crate) struct Core {
    pool: *const Pool,
    index: usize,
    tenants: Tenants,
    pub(crate) seat: Seat,
    pub(crate) bell: Arc<Bell>,
    driver: Driver,
    local: UnsafeCell<Local>,
    inbox: Fifo<Task>,
    ring: Ring,
    next: Next,
    returned: Returned,
    /// The owner works, or is about to.
    pub(crate) is_up: AtomicBool,
    /// The shared tasks that were spawned here.
    shared: Mutex<Registry>,
    pub(crate) counts: Counts,
    /// Entries in the owner's queue, as of its last look at the driver.
    queued: AtomicUsize,
    /// Shared tasks here, as of the same look, when the owner ran none.
    noted_backlog: AtomicUsize,
    /// The owner, as a `ThreadNumber`.
    owner: AtomicI32,
    /// Set while one poll blocks this core, by the watch or the owner: others may then take the task in `next` too.
    pub(crate) is_stalled: AtomicBool,
    /// The owner is in `block_in_place`.
    pub(crate) is_blocked: AtomicBool,
    /// For the owner.
    pub(crate) long_runs: LongRuns,
    /// The owner's.
    pub(crate) spins_for_job: Spins,
    pub(crate) spins_for_wake: Spins,
    lull: Arc<Lull>,
    closed: AtomicBool,
    pub(crate) host: Host,
    /// Threads inside the runtime that hold no core and use this driver.
    pub(crate) visitors: AtomicUsize,
}

// SAFETY: `local` is reached through `Core::local` only, by the thread that holds the core, as is the cell in `tenants`
// (home.rs); `pool` is a plain address.
// Everything else is `Sync` by itself. Test: tests/tests/runtimes.rs `two_threads_take_turns_in_block_on`.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

/// What the owner of a core has in its queue.
pub(crate) enum Entry {
    /// An owned task.
    Task(Queued),
    /// The future given to `block_on`.
    Root,
}

/// What only the owner touches.
struct Local {
    queue: VecDeque<Entry>,
    tasks: Registry,
    blocks: Blocks,
    events: Events,
    /// The thread that spawned the tasks that may not leave it, while there are any.
    pinned_to: Option<ThreadId>,
}

impl Local {
    /// Takes the tasks out of the queue that are not going to end here, among them all that may not leave the thread.
    fn forget(&mut self, is_meant: fn(&Entry) -> bool) {
        self.queue.retain(|entry| !is_meant(entry));
        self.pinned_to = None;
    }
}

impl Core {
    /// A core of `pool`, whose address is known before it is filled. Busy times count from `base`.
    pub(crate) fn new(pool: *const Pool, index: usize, ring: Ring, clock: Clock, base: Instant, post: Post) -> Self {
        let (driver, bell) = Driver::new(clock, post);
        let local = Local {
            queue: VecDeque::new(),
            tasks: Registry::default(),
            blocks: Blocks::new(),
            events: Events::new(),
            pinned_to: None,
        };
        Self {
            pool,
            index,
            tenants: Tenants::new(),
            seat: Seat::default(),
            bell,
            driver,
            local: UnsafeCell::new(local),
            inbox: Fifo::new(),
            ring,
            next: Next::new(),
            returned: Returned::new(),
            is_up: AtomicBool::new(false),
            shared: Mutex::default(),
            counts: Counts::new(base),
            queued: AtomicUsize::new(0),
            noted_backlog: AtomicUsize::new(0),
            owner: AtomicI32::new(0),
            is_stalled: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            long_runs: LongRuns::default(),
            spins_for_job: Spins::default(),
            spins_for_wake: Spins::default(),
            lull: Arc::default(),
            closed: AtomicBool::new(false),
            host: Host::new(),
            visitors: AtomicUsize::new(0),
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Who waits for the owner to have nothing else to do.
    pub(crate) fn lull(&self) -> &Arc<Lull> {
        &self.lull
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        ptr::eq(context::held(), self)
    }

    /// Says that the calling thread is the owner now.
    pub(crate) fn set_owner(&self) {
        self.owner.store(ThreadNumber::current().to_raw(), Relaxed);
    }

    /// The thread that holds this core, or did so last.
    pub(crate) fn owner(&self) -> ThreadNumber {
        ThreadNumber::from_raw(self.owner.load(Relaxed))
    }

    /// Whether it was closed, so that wakes must go elsewhere.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// The address of its pool, for [`Home`].
    pub(crate) fn pool_address(&self) -> *const Pool {
        self.pool
    }

    /// For [`Home`], which asks `is_held` first, or is told.
    pub(crate) fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    pub(crate) fn belongs_to(&self, pool: &Pool) -> bool {
        ptr::eq(self.pool, pool)
    }

    /// Whether a thread that holds no core may register something here. The locks of the seat order this.
    pub(crate) fn has_visitors(&self) -> bool {
        self.visitors.load(SeqCst) > 0
    }

    /// The owner's part. `f` is short, and runs no user code, so that it cannot come back here.
    fn local<T>(&self, f: impl FnOnce(&mut Local) -> T) -> T {
        debug_assert!(self.is_held(), "only the thread that holds a core touches its local part");
        // SAFETY: callers hold the core, one thread at a time does (seat.rs), and `f` does not re-enter.
        // Test: tests/tests/runtimes.rs `two_threads_take_turns_in_block_on`.
        f(unsafe { &mut *self.local.get() })
    }

    // Spawning.

    /// A reference to this core for a new task.
    pub(crate) fn home(&self) -> Home {
        Home::new(self)
    }

    /// Registers and queues a task that this thread, the owner, has spawned. Cancels it if the core is closed.
    pub(crate) fn spawn_owned(&self, task: Task, pinned: bool) {
        let entry = task.queued();
        let refused = self.local(|local| {
            local.tasks.insert(task, pinned)?;
            if pinned {
                local.pinned_to = Some(thread::current().id());
            }
            local.queue.push_back(Entry::Task(entry));
            self.counts.spawned.add(1);
            Ok(())
        });
        if let Err(task) = refused.map_err(Task::into_queued) {
            task.discard();
        }
    }

    /// Registers and queues a shared task that this thread, the owner, has spawned.
    pub(crate) fn spawn_shared(&self, task: Task) {
        if let Some(entry) = self.register_shared(task) {
            self.push_back(entry);
            self.pool().share_early(self);
        }
    }

    /// Registers a shared task; `None` if the core is closed and the task was cancelled.
    pub(crate) fn register_shared(&self, task: Task) -> Option<Queued> {
        let entry = task.queued();
        let inserted = lock(&self.shared).insert(task, false);
        match inserted {
            Ok(()) => Some(entry),
            Err(task) => {
                task.into_queued().discard();
                None
            }
        }
    }

    // The owner's queue.

    pub(crate) fn push_owned(&self, task: Queued) {
        self.local(|local| local.queue.push_back(Entry::Task(task)));
    }

    pub(crate) fn push_root(&self) {
        self.local(|local| local.queue.push_back(Entry::Root));
    }

    pub(crate) fn pop_owned(&self) -> Option<Entry> {
        self.local(|local| local.queue.pop_front())
    }

    /// Whether the owner's queue holds anything. Owner only.
    pub(crate) fn has_owned_work(&self) -> bool {
        self.local(|local| !local.queue.is_empty())
    }

    // Ends.

    /// Gives back the runtime's reference of a task that completes.
    pub(crate) fn unregister(&self, task: &Queued) -> Task {
        if task.is_shared() {
            return lock(&self.shared).remove(task);
        }
        self.local(|local| {
            let task = local.tasks.remove(task);
            self.counts.ended.add(1);
            if local.tasks.pinned() == 0 {
                local.pinned_to = None;
            }
            task
        })
    }

    // What others are told.

    /// Entries that wait to be run here.
    pub(crate) fn queue_depth(&self) -> usize {
        let owned = if self.is_held() { self.local(|local| local.queue.len()) } else { self.queued.load(Relaxed) };
        owned + self.backlog() + self.inbox.len()
    }

    /// Lets others know how many entries are in the owner's queue, and how many shared tasks it has. Owner only, who runs nothing.
    pub(crate) fn note_queue(&self) {
        self.queued.store(self.local(|local| local.queue.len()), Relaxed);
        self.noted_backlog.store(self.backlog(), Relaxed);
    }

    /// The shared tasks that were here at the owner's last look.
    pub(crate) fn noted_backlog(&self) -> usize {
        self.noted_backlog.load(Relaxed)
    }

    /// Tasks that belong here and are alive, owned or shared.
    pub(crate) fn alive(&self) -> usize {
        self.shared_alive() + self.owned_left()
    }

    /// Owned tasks that are alive. None on a closed core: they are dropped, or about to be.
    pub(crate) fn owned_left(&self) -> usize {
        self.counts.owned_alive() as usize
    }

    /// The shared tasks that belong here and are alive.
    pub(crate) fn list_shared(&self) -> Vec<Task> {
        lock(&self.shared).list()
    }

    /// How many these are.
    pub(crate) fn shared_alive(&self) -> usize {
        lock(&self.shared).len()
    }

    /// Owned tasks that are alive. Owner only.
    pub(crate) fn owned_alive(&self) -> usize {
        self.local(|local| local.tasks.len())
    }

    /// The thread that this core's tasks may not leave, unless it is the calling one. Owner only.
    pub(crate) fn pinned_elsewhere(&self) -> Option<ThreadId> {
        self.local(|local| local.pinned_to).filter(|&id| id != thread::current().id())
    }

    /// Calls `f` with the memory kept for tasks. Owner only.
    pub(crate) fn with_blocks<T>(&self, f: impl FnOnce(&mut Blocks, &Returned) -> T) -> T {
        self.local(|local| f(&mut local.blocks, &self.returned))
    }

    /// Whether somebody is here to reuse the memory of tasks that ended elsewhere.
    pub(crate) fn wants_blocks(&self) -> bool {
        self.is_up.load(Relaxed)
    }

    pub(crate) fn returned(&self) -> &Returned {
        &self.returned
    }

    /// Takes in what was sent home, up to what is kept. Owner only.
    pub(crate) fn take_returned(&self) {
        if !self.returned.is_empty() {
            self.with_blocks(|blocks, returned| returned.sort_into(blocks));
        }
    }

    /// The buffer for [`Driver`] calls. Owner only; given back by [`put_events`](Self::put_events).
    pub(crate) fn take_events(&self) -> Events {
        self.local(|local| std::mem::replace(&mut local.events, Events::with_capacity(1)))
    }

    pub(crate) fn put_events(&self, events: Events) {
        self.local(|local| local.events = events);
    }

    pub(crate) fn pool(&self) -> &Pool {
        // SAFETY: a core is a part of its pool, so as long as it can be called the pool is alive.
        // Test: tests/tests/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { &*self.pool }
    }
}

/// An entry of a ring or slot of a core, which hold nothing else.
fn from_raw(raw: NonNull<()>) -> Queued {
    // SAFETY: `push_back` and `queue_woken` (core/ring.rs) put only `Queued::into_raw` there, and each entry comes out once
    // (queue.rs).
    // Test: queue.rs, model `no_entry_is_lost_or_doubled`.
    unsafe { Queued::from_raw(raw) }
}
