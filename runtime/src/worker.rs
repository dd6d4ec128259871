//! The loop that works on a core: pick a task, run it, now and then look at the driver, park when there is nothing.
//!
//! Run by `block_on` on the calling thread, and by the keepers of a multi-threaded runtime.
//!
//! The driver is polled every 64 runs (8 if they are long; 128 by an only worker), and by the wait; a yielding task or `block_on`
//! future costs no system call.
//!
//! Rejected: polling the driver whenever the queue is empty (one `epoll_wait` per spawn and join from `block_on`).

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use mini_net::Events;

use crate::block_on::Given;
use crate::context;
use crate::core::{Core, Entry};
use crate::home::Home;
use crate::pace::Pace;
use crate::pool::Pool;
use crate::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::sync::thread::ThreadId;

mod choice;
mod keeper;
mod park;
mod turn;

pub(crate) use keeper::start_keeper;
use park::Habit;

/// Runs between two looks at the driver, where they are short and where they are long: others may want what is found.
const LOOK_AFTER: [u64; 2] = [64, 8];

/// The same for the only worker there is. A batch of 64 connections is followed by a wait anyhow.
const LOOK_AFTER_ALONE: [u64; 2] = [128, 64];

/// The work that is worth waking another worker for; a wake costs about 40 µs in all.
const WORTH_A_WAKE: Duration = Duration::from_micros(100);

/// Wakes the future given to `block_on`.
pub(crate) struct Root {
    home: Home,
    /// Its entry is in the owner's queue.
    queued: AtomicBool,
    /// Another thread woke it.
    woken: AtomicBool,
}

impl Root {
    pub(crate) fn new(core: &Core) -> Arc<Self> {
        Arc::new(Self { home: core.home(), queued: AtomicBool::new(false), woken: AtomicBool::new(false) })
    }

    /// Owner only.
    fn enqueue(&self) {
        if !self.queued.load(Relaxed) {
            self.queued.store(true, Relaxed);
            self.home.push_root();
        }
    }

    /// Owner only: takes over a wake from another thread.
    fn take_wake(&self) {
        // Acquire: pairs with the Release in `wake_by_ref`.
        if self.woken.load(Relaxed) && self.woken.swap(false, Acquire) {
            self.enqueue();
        }
    }
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.home.is_held() {
            self.enqueue();
        } else if !self.woken.swap(true, AcqRel) {
            self.home.bell.ring();
        }
    }
}

/// Why [`Worker::drive`] returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The `block_on` future is ready.
    Done,
    /// The runtime shuts down.
    Closing,
    /// Somebody in `block_on` asks for this keeper's core.
    Wanted,
}

/// A thread at work on a core. Dropping it releases the core.
pub(crate) struct Worker<'a> {
    pool: &'a Arc<Pool>,
    core: &'a Core,
    root: Option<Arc<Root>>,
    events: Events,
    since_injector: u32,
    /// How often it has looked around between two runs.
    looks: u32,
    woken_run: u8,
    owned_first: bool,
    pace: Pace,
    /// The number of the run after which the driver is looked at.
    next_look: u64,
    slack: Option<u64>,
    is_closed: bool,
    habit: Habit,
    /// For one turn of a host's loop (`turn.rs`).
    is_for_host: bool,
    context: Option<context::HeldGuard>,
}

impl<'a> Worker<'a> {
    /// Sits down at a core whose seat the caller has taken.
    ///
    /// # Errors
    ///
    /// If the core has tasks that may not leave another thread, which is named; the core is released again.
    pub(crate) fn new(pool: &'a Arc<Pool>, core: &'a Core) -> Result<Self, ThreadId> {
        Self::sit_down(pool, core, pool.config.timer_slack)
    }

    /// With the thread's timer slack, if that is to be set.
    fn sit_down(pool: &'a Arc<Pool>, core: &'a Core, slack: Option<Duration>) -> Result<Self, ThreadId> {
        let context = context::enter_held(pool, core);
        if let Some(thread) = core.pinned_elsewhere() {
            drop(context);
            core.seat.release();
            close_if_closing(pool, core);
            return Err(thread);
        }
        core.is_up.store(true, Relaxed);
        core.host.note_more(false); // a host that comes is told by its next turn, or rung for
        core.counts.sittings.add(1); // the watch looks for progress that stands still
        core.counts.rise();
        core.long_runs.set(false);
        pool.idle.rise();
        if pool.cores.len() > 1 {
            core.set_owner();
            pool.watch.start(pool);
            pool.watch.rouse();
        }
        let slack = slack.and_then(|slack| mini_net::set_timer_slack(slack.as_nanos() as u64));
        Ok(Self {
            pool,
            core,
            root: None,
            events: core.take_events(),
            since_injector: 0,
            looks: 0,
            woken_run: 0,
            owned_first: false,
            pace: Pace::new(core.counts.busy_nanos(), core.counts.runs.get()),
            next_look: core.counts.runs.get() + LOOK_AFTER[0],
            slack,
            is_closed: core.is_closed(),
            habit: Habit::default(),
            is_for_host: false,
            context: Some(context),
        })
    }

    /// Makes `root` the one whose wakes this worker looks for.
    pub(crate) fn attach(&mut self, root: Arc<Root>) {
        self.root = Some(root);
    }

    /// Works until the root, polled with `waker`, is ready, or the core must be left.
    pub(crate) fn drive(&mut self, given: &mut Given<'_>, waker: &Waker) -> Stop {
        loop {
            match self.next() {
                Some(Entry::Task(task)) => task.run(),
                Some(Entry::Root) => {
                    if let Some(root) = &self.root {
                        root.queued.store(false, Relaxed);
                        if given(Some(waker)) {
                            return Stop::Done;
                        }
                    }
                }
                None => {
                    if let Some(stop) = self.stop() {
                        return stop;
                    }
                    if !self.core.lull().is_empty() {
                        self.end_lull();
                    } else {
                        self.park();
                    }
                    continue;
                }
            }
            if self.core.counts.runs.add(1) >= self.next_look {
                if let Some(stop) = self.stop() {
                    return stop;
                }
                self.look_around();
                self.even_out();
            }
        }
    }

    /// What is done every few runs.
    fn look_around(&mut self) {
        let core = self.core;
        let begin = core.counts.busy_nanos();
        self.note_pace(begin);
        self.put_off_look();
        core.note_queue();
        core.driver().poll(&mut self.events);
        core.take_returned();
        self.share();
        self.pace.leave_out(core.counts.busy_nanos().saturating_sub(begin));
    }

    /// The worker has been up for `busy` nanoseconds in all.
    fn note_pace(&mut self, busy: u64) {
        self.pace.note(busy, self.core.counts.runs.get());
        self.core.long_runs.set(self.pace.is_long());
    }

    /// The driver is looked at now, or waited for.
    fn put_off_look(&mut self) {
        let intervals = if self.is_alone() { LOOK_AFTER_ALONE } else { LOOK_AFTER };
        self.next_look = self.core.counts.runs.get() + intervals[usize::from(self.pace.is_long())];
    }

    /// Whether the core must be left, or closed.
    fn stop(&self) -> Option<Stop> {
        // A future in `block_on` may go on after that; a keeper may not.
        if self.pool.is_closing() && (!self.is_closed || self.root.is_none()) {
            return Some(Stop::Closing);
        }
        if self.root.is_some() || !self.core.seat.is_wanted() {
            return None;
        }
        if self.core.owned_alive() > 0 {
            self.core.seat.decline();
            return None;
        }
        Some(Stop::Wanted)
    }

    /// Wakes a resting worker if the tasks that wait here take longer than the wake; says whether it did.
    fn share(&self) -> bool {
        let (pool, core) = (self.pool, self.core);
        if !pool.is_multi_thread()
            || self.is_closed
            || !pool.idle.is_someone_resting()
            || pool.idle.is_someone_searching()
        {
            return false;
        }
        if self.pace.estimate(core.backlog() + pool.injector.len()) > WORTH_A_WAKE {
            return pool.wake_one();
        }
        pool.share_early(core)
    }

    /// Lets one task go on that waits for there to be nothing else to do, unless the driver has something.
    fn end_lull(&mut self) {
        self.core.driver().poll(&mut self.events);
        if !self.core.has_owned_work() && self.core.backlog() == 0 && !self.sees_work() {
            self.core.lull().release();
        }
    }

    /// Closes the core; see [`Core::close`].
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        if self.core.close() {
            self.pool.core_closed();
        } else {
            self.core.flush(); // it was closed before this worker came, who may have queued something here
        }
    }

    /// Ends the tasks that may not leave this thread, and leaves the others to the rest of the runtime.
    fn leave(&mut self) {
        if !self.pool.is_multi_thread() {
            return;
        }
        self.core.drop_owned();
        self.core.flush();
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let (pool, core) = (self.pool, self.core);
        if pool.is_closing() {
            self.close();
        }
        self.leave();
        core.is_up.store(false, Relaxed);
        core.counts.rest();
        core.note_queue();
        core.take_returned();
        core.put_events(std::mem::replace(&mut self.events, Events::with_capacity(1)));
        if let Some(slack) = self.slack {
            mini_net::set_timer_slack(slack);
        }
        pool.idle.rest();
        if !self.is_for_host && core.host.is_watched() {
            core.driver().reactor().notify(); // see `embed.rs`
        }
        self.context = None;
        core.seat.release();
        pool.keep_served(core);
        if !pool.injector.is_empty() && pool.idle.must_wake() {
            pool.wake_one();
        }
        pool.keep_lookout();
        close_if_closing(pool, core);
    }
}

/// Called after the seat was released: an end that began meanwhile found it taken, and left the core to this thread.
fn close_if_closing(pool: &Arc<Pool>, core: &Core) {
    if pool.is_closing() && core.seat.try_take() {
        close_core(pool, core);
    }
}

/// Closes a core that nobody held, whose seat the caller has taken, and gives the seat back.
pub(crate) fn close_core(pool: &Arc<Pool>, core: &Core) {
    let context = context::enter_held(pool, core);
    if let Some(thread) = core.pinned_elsewhere() {
        core.forget_pinned(thread);
    }
    if core.close() {
        pool.core_closed();
    }
    drop(context);
    core.seat.release();
}
