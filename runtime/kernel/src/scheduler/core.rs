//! One core of a runtime: the queues, registries and driver that one thread at a time works on.
//!
//! A `current_thread` runtime has one core, a `multi_thread` runtime has one per worker. The thread that holds a core
//! (see `ownership.rs`) is its *owner*. Called by wakers and spawns, through a task's `Schedule`, and by the worker's
//! loop.
//!
//! What only the owner touches sits in `Local`. Owned tasks are queued there with plain stores. Other threads
//! post to the inbox and call the unparker.
//!
//! Rejected: a lock around `Local` (two locked instructions per wake of an owned task, for a lock that is never
//! contended).

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use mini_context::rules::LOCAL_QUEUE;
use mini_net::{Events, ThreadNumber};
use mini_time::Clock;

use crate::primitives::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::primitives::thread::{self, ThreadId};
use crate::primitives::{Mutex, lock};
use crate::scheduler::core_refs::CoreRefs;
use crate::scheduler::counts::Counts;
use crate::scheduler::current;
use crate::scheduler::driver::{Driver, ReactorHandle};
use crate::scheduler::embedder::Embedder;
use crate::scheduler::fifo::Fifo;
use crate::scheduler::idle_queue::IdleQueue;
use crate::scheduler::local_queue::{LocalQueue, Next};
use crate::scheduler::observe::ObserveCore;
use crate::scheduler::ownership::Ownership;
use crate::scheduler::pick::Pick;
use crate::scheduler::shared::Shared;
use crate::scheduler::spin::Spins;
use crate::scheduler::unparker::Unparker;
use crate::task::cache::{RemoteFrees, TaskCache};
use crate::task::owned::OwnedTasks;
use crate::task::schedule::Schedule;
use crate::task::{Class, JoinHandle, Queued, Task};

mod close;
mod inbox;
mod queues;
mod spawn;
mod walk;

pub struct Core {
    shared: *const Shared,
    index: usize,
    /// See `guests.rs`.
    is_guest: bool,
    core_refs: CoreRefs,
    pub ownership: Ownership,
    pub unparker: Arc<Unparker>,
    driver: Driver,
    local: UnsafeCell<Local>,
    inbox: Fifo<Task>,
    /// By class, as in [`Local`].
    queues: [LocalQueue; 2],
    next: Next,
    remote_frees: RemoteFrees,
    /// The owner works, or is about to.
    pub(crate) is_up: AtomicBool,
    /// The owned tasks. Changed by the owner.
    owned_tasks: OwnedTasks<Task>,
    /// The shared tasks that were spawned here.
    shared_tasks: Mutex<OwnedTasks<Task>>,
    /// How many have ever been spawned here. Written under that lock.
    shared_begun: AtomicU64,
    pub counts: Counts,
    /// If something else than the worker's rule chooses the next task.
    pub pick: Option<Arc<dyn Pick>>,
    /// Is told what the owner does, if the user asks for that.
    pub observers: Vec<Box<dyn ObserveCore>>,
    /// Entries in the owner's queue, as of its last driver check.
    queued: AtomicUsize,
    /// Shared tasks of each class here, as of the same check, when the owner polled none.
    noted: [AtomicUsize; 2],
    /// The owner, as a `ThreadNumber`.
    owner: AtomicI32,
    pub poll: PollState,
    /// The future of the `block_on` whose thread holds this core.
    pub(crate) main: Mutex<Option<JoinHandle<()>>>,
    /// The owner has done something other than poll tasks since it was last asked. Owner only.
    pub(crate) left_out: AtomicBool,
    /// The owner's.
    pub(crate) spins_for_job: Spins,
    pub(crate) spins_for_wake: Spins,
    idle_queue: Arc<IdleQueue>,
    closed: AtomicBool,
    /// Shared tasks are queued here: the core is a worker's, and is not closed.
    takes_shared: AtomicBool,
    pub embedder: Embedder,
}

/// What the owner's current poll means to other threads.
#[derive(Debug, Default)]
pub struct PollState {
    /// The poll has lasted since the monitor's last check. Written by the monitor.
    pub is_stalled: AtomicBool,
    /// The poll is expected to last longer than the time between two driver checks. Written by the owner.
    pub(crate) is_in_long_poll: AtomicBool,
    /// The poll is expected to last longer than it takes to wake another worker, and the owner has woken none in it.
    /// Written by the owner.
    pub(crate) wakes_early: AtomicBool,
    /// The owner is in `block_in_place`.
    pub is_blocked: AtomicBool,
    /// Since when the poll is seen to be stalled, in nanoseconds since the runtime began. Written by the monitor.
    pub stalled_at: AtomicU64,
}

impl PollState {
    /// Whether the owner polls no task, or one for an unknown time.
    pub fn is_away(&self) -> bool {
        self.is_stalled.load(Relaxed) || self.is_blocked.load(Relaxed)
    }

    fn is_stuck(&self) -> bool {
        self.is_away() || self.is_in_long_poll.load(Relaxed)
    }
}

// SAFETY: `local` is reached through `Core::local` only, by the thread that holds the core, as is the cell in
// `core_refs` (schedule.rs), and `owned_tasks` through the method of that name, or before the core is shared, but for
// visits, which are any thread's; `shared` is a plain address. Everything else is `Sync` by itself.
// Test: tests/tests/runtimes/runtimes.rs `two_threads_take_turns_in_block_on`.
#[allow(unsafe_code)]
unsafe impl Send for Core {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Core {}

/// What only the owner touches.
struct Local {
    /// By class.
    queues: [VecDeque<Queued>; 2],
    blocks: TaskCache,
    kept: Kept,
    /// The thread that some tasks of this core may not leave, while there are such tasks.
    pinned_to: Option<ThreadId>,
    /// The thread whose number is the owner's.
    numbered: Option<ThreadId>,
}

/// What a worker leaves for the next worker of the core.
pub(crate) struct Kept {
    /// The buffer for [`Driver`] calls.
    pub(crate) events: Events,
    /// The time that compute-bound tasks are owed, in nanoseconds.
    pub(crate) owed: i64,
}

impl Local {
    /// Takes out of the queues the tasks that will not end here, among them all that may not leave the thread.
    fn forget(&mut self, is_meant: fn(&Queued) -> bool) {
        for queue in &mut self.queues {
            queue.retain(|entry| !is_meant(entry));
        }
        self.pinned_to = None;
    }

    /// Entries in the queues.
    fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

impl Core {
    /// A core of `shared`, whose address is known before it is filled.
    pub(crate) fn new(
        shared: *const Shared,
        index: usize,
        is_guest: bool,
        queues: [LocalQueue; 2],
        clock: Clock,
        handle: ReactorHandle,
    ) -> Self {
        let (driver, unparker) = Driver::new(clock.clone(), handle);
        let local = Local {
            queues: Default::default(),
            blocks: TaskCache::new(),
            kept: Kept { events: Events::new(), owed: 0 },
            pinned_to: None,
            numbered: None,
        };
        Self {
            shared,
            index,
            is_guest,
            core_refs: CoreRefs::new(),
            ownership: Ownership::default(),
            unparker,
            driver,
            local: UnsafeCell::new(local),
            inbox: Fifo::new(),
            queues,
            next: Next::new(),
            remote_frees: RemoteFrees::default(),
            is_up: AtomicBool::default(),
            owned_tasks: OwnedTasks::default(),
            shared_tasks: Mutex::default(),
            shared_begun: AtomicU64::default(),
            counts: Counts::new(clock),
            pick: None,
            observers: Vec::new(),
            queued: AtomicUsize::default(),
            noted: Default::default(),
            owner: AtomicI32::default(),
            poll: PollState::default(),
            main: Mutex::default(),
            left_out: AtomicBool::new(false),
            spins_for_job: Spins::default(),
            spins_for_wake: Spins::default(),
            idle_queue: Arc::default(),
            closed: AtomicBool::default(),
            takes_shared: AtomicBool::new(!is_guest),
            embedder: Embedder::default(),
        }
    }

    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it is that of a thread in `block_on`, not that of a worker.
    pub fn is_guest(&self) -> bool {
        self.is_guest
    }

    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Another thread than the owner has woken a task.
    pub(super) fn note_intruder(&self, task: u64) {
        if let Some(pick) = &self.pick {
            pick.note_intruder(task);
        }
    }

    /// The futures that wait for the owner to have nothing else to do.
    pub fn idle_queue(&self) -> &Arc<IdleQueue> {
        &self.idle_queue
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        ptr::eq(current::held(), self)
    }

    /// Says that the calling thread is the owner now. The system call is for another thread than the last one only: an
    /// embedder comes once in each turn of its loop.
    pub(crate) fn set_owner(&self) {
        let thread = Some(thread::current().id());
        if self.local(|local| std::mem::replace(&mut local.numbered, thread)) != thread {
            self.owner.store(ThreadNumber::current().to_raw(), Relaxed);
        }
    }

    /// The thread that holds this core, or did so last.
    pub fn owner(&self) -> ThreadNumber {
        ThreadNumber::from_raw(self.owner.load(Relaxed))
    }

    /// Whether the core was closed, so that wakes must go elsewhere.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether it was closed, or is about to be.
    pub(crate) fn closed(&self) -> &AtomicBool {
        &self.closed
    }

    /// Whether the owner may queue shared tasks here.
    #[inline]
    pub(crate) fn takes_shared(&self) -> bool {
        self.takes_shared.load(Relaxed)
    }

    /// The address of its shared, for [`Schedule`].
    pub(crate) fn shared_address(&self) -> *const Shared {
        self.shared
    }

    /// For [`Schedule`], which asks `is_held` first, or is told the answer.
    pub(crate) fn core_refs(&self) -> &CoreRefs {
        &self.core_refs
    }

    pub(crate) fn belongs_to(&self, shared: &Shared) -> bool {
        ptr::eq(self.shared, shared)
    }

    /// Calls `f` with the owner's part. `f` is short and runs no user code, so it cannot call this again.
    #[allow(unsafe_code)]
    fn local<T>(&self, f: impl FnOnce(&mut Local) -> T) -> T {
        debug_assert!(self.is_held(), "only the thread that holds a core touches its local part");
        // SAFETY: callers hold the core, one thread at a time does (ownership.rs), and `f` does not re-enter.
        // Test: tests/tests/runtimes/runtimes.rs `two_threads_take_turns_in_block_on`.
        f(unsafe { &mut *self.local.get() })
    }

    /// The list of owned tasks. Owner only.
    #[inline]
    fn owned_tasks(&self) -> &OwnedTasks<Task> {
        debug_assert!(self.is_held(), "only the thread that holds a core changes the list of its tasks");
        &self.owned_tasks
    }

    /// A reference to this core for a new task.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::new(self)
    }

    // The owner's queues.

    /// Queues an owned task that was woken.
    #[inline]
    pub(crate) fn push_owned(&self, task: Queued) {
        self.tell_wake(&task);
        self.push_entry(task, Class::Woken);
    }

    /// The owner is about to queue a task that it has woken, here or where any worker finds it.
    #[inline]
    pub(crate) fn tell_wake(&self, task: &Queued) {
        for observer in &self.observers {
            observer.woken(task.id().get());
        }
    }

    /// Queues an entry at the back of its class.
    pub fn push_entry(&self, entry: Queued, class: Class) {
        self.local(|local| local.queues[class as usize].push_back(entry));
    }

    pub(crate) fn pop_entry(&self, class: Class) -> Option<Queued> {
        self.local(|local| local.queues[class as usize].pop_front())
    }

    /// Gives back the memory that a crowd of tasks has left in the owner's queues. Owner only.
    pub(crate) fn shrink_queues(&self) {
        self.local(|local| {
            for queue in &mut local.queues {
                if queue.is_empty() && queue.capacity() > LOCAL_QUEUE as usize {
                    *queue = VecDeque::new();
                }
            }
        });
    }

    /// Calls `f` with the future of the `block_on` whose thread holds this core. Any thread; `f` is short.
    pub fn with_main<T>(&self, f: impl FnOnce(&Task) -> T) -> Option<T> {
        lock(&self.main).as_ref().map(|main| f(main.task()))
    }

    /// Takes that future out of the queues. Owner only.
    pub(crate) fn take_main(&self) -> Option<Queued> {
        self.local(|local| {
            let mut queues = local.queues.iter_mut();
            queues.find_map(|queue| queue.remove(queue.iter().position(Queued::is_main)?))
        })
    }

    /// Whether the owner has done something other than poll tasks since the last call. Owner only.
    pub(crate) fn take_left_out(&self) -> bool {
        let was_left_out = self.left_out.load(Relaxed);
        self.left_out.store(false, Relaxed);
        was_left_out
    }

    /// Calls `f` with the owner's queue of a class. Owner only.
    pub fn entries<T>(&self, class: Class, f: impl FnOnce(&mut VecDeque<Queued>) -> T) -> T {
        self.local(|local| f(&mut local.queues[class as usize]))
    }

    /// Entries of a class in the owner's queue. Owner only.
    pub fn owned_len(&self, class: Class) -> usize {
        self.local(|local| local.queues[class as usize].len())
    }

    /// Whether the owner's queues hold anything. Owner only.
    pub(crate) fn has_owned_work(&self) -> bool {
        self.local(|local| local.queued() > 0)
    }

    // Ends.

    /// Gives back the runtime's reference of a task that completes.
    pub(crate) fn unregister(&self, task: &Queued) -> Task {
        if task.is_shared() {
            return lock(&self.shared_tasks).remove(task.seat());
        }
        let task = self.owned_tasks().remove(task.seat());
        self.counts.ended.add(1);
        if self.owned_tasks().pinned() == 0 {
            self.local(|local| local.pinned_to = None);
        }
        task
    }

    // What others are told.

    /// Entries that wait to be polled here.
    pub fn queue_depth(&self) -> usize {
        let owned = if self.is_held() { self.local(|local| local.queued()) } else { self.queued.load(Relaxed) };
        owned + self.shared_len() + self.inbox.len()
    }

    /// Lets others know how many entries are in the owner's queue, and how many shared tasks it has. Owner only,
    /// between two polls.
    pub(crate) fn note_queue(&self) {
        self.queued.store(self.local(|local| local.queued()), Relaxed);
        for class in Class::ALL {
            self.noted[class as usize].store(self.len_of(class), Relaxed);
        }
    }

    /// The shared tasks of a class that were here at the owner's last driver check.
    pub(crate) fn noted(&self, class: Class) -> usize {
        self.noted[class as usize].load(Relaxed)
    }

    /// Whether the owner does not serve its queues, timers and events for a while, so that other threads must.
    pub(crate) fn is_stuck(&self) -> bool {
        self.poll.is_stuck()
    }

    /// Tasks that belong here and are alive, owned or shared.
    pub fn alive(&self) -> usize {
        self.shared_alive() + self.owned_left()
    }

    /// Owned tasks that are alive. None on a closed core: they are dropped, or about to be.
    pub(crate) fn owned_left(&self) -> usize {
        self.counts.owned_alive() as usize
    }

    /// The shared tasks that belong here and are alive.
    pub(crate) fn list_shared(&self) -> Vec<Task> {
        lock(&self.shared_tasks).list()
    }

    /// How many shared tasks belong here and are alive.
    pub(crate) fn shared_alive(&self) -> usize {
        lock(&self.shared_tasks).len()
    }

    /// Owned tasks that are alive. Owner only.
    pub(crate) fn owned_alive(&self) -> usize {
        self.owned_tasks().len()
    }

    /// How many tasks have ever begun here, owned or shared.
    pub(crate) fn begun(&self) -> u64 {
        let _registry = lock(&self.shared_tasks);
        self.counts.owned_begun() + self.shared_begun.load(Relaxed)
    }

    /// The thread that this core's tasks may not leave, unless it is the calling one. Owner only.
    pub(crate) fn pinned_elsewhere(&self) -> Option<ThreadId> {
        self.local(|local| local.pinned_to).filter(|&id| id != thread::current().id())
    }

    /// Calls `f` with the memory kept for tasks. Owner only.
    pub(crate) fn with_blocks<T>(&self, f: impl FnOnce(&mut TaskCache, &RemoteFrees) -> T) -> T {
        self.local(|local| f(&mut local.blocks, &self.remote_frees))
    }

    /// Whether a worker is here to reuse the memory of tasks that ended elsewhere.
    pub(crate) fn wants_blocks(&self) -> bool {
        self.is_up.load(Relaxed)
    }

    pub(crate) fn remote_frees(&self) -> &RemoteFrees {
        &self.remote_frees
    }

    /// Takes in the memory that was sent home, up to the limit of the cache. Owner only.
    pub(crate) fn take_remote_frees(&self) {
        if !self.remote_frees.is_empty() {
            self.with_blocks(|blocks, returned| returned.sort_into(blocks));
        }
    }

    /// What the last worker has left. Owner only; given back by [`put_kept`](Self::put_kept).
    pub(crate) fn take_kept(&self) -> Kept {
        let nothing = Kept { events: Events::with_capacity(1), owed: 0 };
        self.local(|local| std::mem::replace(&mut local.kept, nothing))
    }

    pub(crate) fn put_kept(&self, kept: Kept) {
        self.local(|local| local.kept = kept);
    }

    #[allow(unsafe_code)]
    pub fn shared(&self) -> &Shared {
        // SAFETY: a core is a part of its shared, so as long as it can be called the scheduler is alive.
        // Test: tests/tests/runtimes/runtimes.rs `a_waker_may_outlive_its_runtime`.
        unsafe { &*self.shared }
    }
}

/// The task of an entry from a local queue or next slot, which hold nothing else.
#[allow(unsafe_code)]
fn from_raw(raw: NonNull<()>) -> Queued {
    // SAFETY: `push_back` and `queue_woken` (core/queues.rs) put only `Queued::into_raw` there, and each entry comes
    // out once (local_queue.rs).
    // Test: local_queue.rs, model `no_entry_is_lost_or_doubled`.
    unsafe { Queued::from_raw(raw) }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::Location;
    use std::time::Duration;

    use super::*;
    use crate::scheduler::config::Config;
    use crate::scheduler::{bare, block_on};

    #[test]
    fn a_crowd_leaves_no_memory_in_the_queues() {
        let shared = bare::begin(Config::new(false));
        block_on(&shared, async {
            for _ in 0..20 * LOCAL_QUEUE {
                drop(shared.spawn(async {}, Location::caller()));
            }
            for _ in 0..2 {
                mini_time::sleep(Duration::from_millis(1)).await; // the second time nothing else runs
            }
        });
        let core = &shared.cores[0];
        assert!(core.ownership.try_take());
        let held = current::enter_held(&shared, core);
        let room: usize = core.local(|local| local.queues.iter().map(VecDeque::capacity).sum());
        assert!(room <= 2 * LOCAL_QUEUE as usize, "{room}");
        drop(held);
        core.ownership.release();
        shared.shutdown(None);
    }
}
