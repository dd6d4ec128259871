//! The loop that works on a core: choose a task, run it, look around when it is time, park when there is nothing.
//!
//! Run by `block_on` on the calling thread, and by the worker threads of a multi-threaded runtime.
//!
//! After each run the worker reads the time (`meter.rs`) and compares it with three moments:
//!
//! - the first deadline of its timers, which then fire,
//! - the next time to ask whether the tasks that wait are worth another worker (`wake.rs`),
//! - the next look, in which it polls the reactor, takes from the injector and compares its queue with that of another worker.
//!
//! The inbox is looked at before each run, as that takes one load. All that is known of the next run, its last duration, is used before
//! it begins: if it is going to be long, others are told.
//!
//! Rejected: polling the driver whenever the queue is empty (one `epoll_wait` per spawn and join from `block_on`). Reading the time
//! after 1, 2, 4, ... runs (short runs between long ones put it off).

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use mini_net::Events;

use crate::scheduler::MainFuture;
use crate::scheduler::context;
use crate::scheduler::core::{Core, Entry};
use crate::scheduler::meter::Meter;
use crate::scheduler::monitor;
use crate::scheduler::rules::{AGAIN_AFTER, AGAIN_AT_LEAST, LOOK_RUNS, LOOK_TIME, TICK, WAKE_COST};
use crate::scheduler::shared::Shared;
use crate::scheduler::wake::Queueing;
use crate::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::sync::thread::ThreadId;
use crate::task::schedule::Schedule;
use crate::task::{Class, Queued, Ran};
use crate::threads;

mod next;
mod park;
mod thread;
mod turn;

use next::{Debt, Quota, Turn};
use park::ParkStats;
pub(crate) use thread::start_thread;

/// Wakes the future given to `block_on`, the main task of a worker.
pub(crate) struct MainTask {
    schedule: Schedule,
    /// Its entry is in one of the owner's queues.
    queued: AtomicBool,
    /// The owner polls it.
    running: AtomicBool,
    /// Another thread woke it.
    woken: AtomicBool,
}

impl MainTask {
    pub(crate) fn new(core: &Core) -> Arc<Self> {
        let [queued, running, woken] = [(); 3].map(|()| AtomicBool::new(false));
        Arc::new(Self { schedule: core.schedule(), queued, running, woken })
    }

    /// Owner only.
    fn enqueue(&self) {
        if !self.queued.load(Relaxed) {
            self.queued.store(true, Relaxed);
            // While it is polled it asks to run once more: whoever polls it sees to that.
            if !self.running.load(Relaxed) {
                self.schedule.push_entry(Entry::Main, Class::Woken);
            }
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

impl Wake for MainTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.schedule.is_held() {
            self.enqueue();
        } else if !self.woken.swap(true, AcqRel) {
            self.schedule.unparker.unpark();
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
    /// Somebody in `block_on` asks for this worker thread's core.
    Wanted,
}

/// A thread at work on a core. Dropping it releases the core.
pub(crate) struct Worker<'a> {
    shared: &'a Arc<Shared>,
    core: &'a Core,
    main: Option<Arc<MainTask>>,
    /// Nanoseconds that the main task has run since it last waited.
    main_ran: u64,
    events: Events,
    meter: Meter,
    /// When it looked around, and with which run it does so again at the latest.
    looked: u64,
    look_at_run: u64,
    /// After which time without a wait a task that asks to run once more is of the class *again*.
    again_after: u32,
    /// When to ask again whether the tasks that wait are worth another worker.
    ask_at: u64,
    /// When to compare the queue with that of another worker, and with the how many-th.
    compare_at: u64,
    compared: usize,
    queueing: Queueing,
    /// Why what runs has its turn.
    turn: Turn,
    debt: Debt,
    /// Of each class, whether an owned task came first the last time.
    owned_first: [bool; 2],
    /// Of each class, what is taken from the injector.
    quotas: [Quota; 2],
    /// Another worker has woken this one, maybe for work, and it has found none yet.
    was_woken: bool,
    slack: Option<u64>,
    is_closed: bool,
    /// It runs tasks that other workers may run too.
    has_shared: bool,
    park_stats: ParkStats,
    /// For one turn of an embedder's loop (`turn.rs`).
    is_for_embedder: bool,
    context: Option<context::HeldGuard>,
}

impl<'a> Worker<'a> {
    /// Sits down at a core whose ownership the caller has taken.
    ///
    /// # Errors
    ///
    /// If the core has tasks that may not leave another thread, which is named; the core is released again.
    pub(crate) fn new(shared: &'a Arc<Shared>, core: &'a Core) -> Result<Self, ThreadId> {
        Self::sit_down(shared, core, shared.config.timer_slack)
    }

    /// With the thread's timer slack, if that is to be set.
    fn sit_down(shared: &'a Arc<Shared>, core: &'a Core, slack: Option<Duration>) -> Result<Self, ThreadId> {
        let context = context::enter_held(shared, core);
        if let Some(thread) = core.pinned_elsewhere() {
            drop(context);
            core.ownership.release();
            close_if_closing(shared, core);
            return Err(thread);
        }
        core.is_up.store(true, Relaxed);
        core.embedder.note_more(false); // an embedder that comes is told by its next turn, or rung for
        core.counts.sittings.add(1); // the monitor looks for progress that stands still
        shared.idle.unpark(core.index());
        if shared.cores.len() > 1 {
            core.set_owner();
            monitor::thread::start(shared);
            shared.monitor.rouse();
        }
        let slack = slack.and_then(|slack| mini_net::set_timer_slack(slack.as_nanos() as u64));
        let mut worker = Self {
            shared,
            core,
            main: None,
            main_ran: 0,
            events: core.take_events(),
            meter: Meter::new(core.driver().timers().clock().clone(), core.cycle_rate.load(Relaxed)),
            looked: 0,
            look_at_run: 0,
            again_after: AGAIN_AFTER,
            ask_at: 0,
            compare_at: 0,
            compared: core.index(),
            queueing: Queueing::default(),
            turn: Turn::Woken,
            debt: Debt::resume(core.owed.load(Relaxed)),
            owned_first: [false; 2],
            quotas: Default::default(),
            was_woken: true,
            slack,
            is_closed: core.is_closed(),
            has_shared: shared.is_multi_thread() && !core.is_closed(),
            park_stats: ParkStats::default(),
            is_for_embedder: false,
            context: Some(context),
        };
        worker.put_off_look();
        core.counts.unpark(worker.meter.system_now());
        Ok(worker)
    }

    /// Makes `main` the one whose wakes this worker looks for.
    pub(crate) fn attach(&mut self, main: Arc<MainTask>) {
        self.main = Some(main);
    }

    /// Works until the main task, polled with `waker`, is ready, or the core must be left.
    pub(crate) fn drive(&mut self, main: &mut MainFuture<'_>, waker: &Waker) -> Stop {
        loop {
            match self.next() {
                Some(entry) => {
                    if self.run(entry, main, waker) {
                        return Stop::Done;
                    }
                    if self.meter.is_fresh()
                        && let Some(stop) = self.glance()
                    {
                        return stop;
                    }
                }
                None => {
                    if let Some(stop) = self.stop() {
                        return stop;
                    }
                    if self.core.idle_queue().is_empty() {
                        self.park();
                    } else {
                        self.release_idle();
                    }
                }
            }
        }
    }

    /// Goes no further in a child that a task has forked: what happens here is for the parent.
    #[inline]
    fn check_process(&self) {
        if !self.shared.process.is_current() {
            self.refuse_process();
        }
    }

    #[cold]
    fn refuse_process(&self) {
        if self.main.is_none() && !self.is_for_embedder {
            // Nobody would hear of a panic, and as the only thread of its process it would end that as if all was well.
            threads::end_child();
        }
        self.shared.process.check("returning from a task");
    }

    /// Runs an entry of a queue; says whether the main task is ready.
    #[inline]
    fn run(&mut self, entry: Entry, main: &mut MainFuture<'_>, waker: &Waker) -> bool {
        let is_ready = match entry {
            Entry::Task(task) => {
                self.run_task(task);
                false
            }
            Entry::Main => self.run_main(main, waker),
        };
        self.core.counts.runs.add(1);
        is_ready
    }

    #[inline]
    fn run_task(&mut self, task: Queued) {
        let expected = task.last_run();
        let is_long = expected >= WAKE_COST;
        if is_long {
            // What was not measured before is none of its time.
            let before = self.meter.leave_out();
            self.debt.note(Turn::Woken, before);
            self.begin_long_run(expected);
            self.meter.leave_out();
        }
        let again_after = self.again_after();
        let (meter, mut took) = (&mut self.meter, None);
        let ran = task.run(again_after, || {
            took = meter.lap();
            took
        });
        if is_long {
            self.end_long_run();
        }
        if let Some(took) = took {
            self.debt.note(self.turn_of(matches!(ran, Ran::Asks(_, Class::Again))), took);
        }
        match ran {
            Ran::Through => {}
            Ran::Asks(task, class) if task.is_shared() => self.core.push_shared(task, class),
            Ran::Asks(task, class) => self.core.push_entry(Entry::Task(task), class),
        }
    }

    fn run_main(&mut self, future: &mut MainFuture<'_>, waker: &Waker) -> bool {
        let Some(main) = &self.main else { return false };
        main.queued.store(false, Relaxed);
        main.running.store(true, Relaxed);
        let is_ready = future(Some(waker));
        main.running.store(false, Relaxed);
        let took = self.meter.lap().unwrap_or(0);
        self.main_ran = if main.queued.load(Relaxed) { self.main_ran.saturating_add(took) } else { 0 };
        let class = if self.main_ran >= self.again_after().into() { Class::Again } else { Class::Woken };
        if !is_ready && main.queued.load(Relaxed) {
            self.core.push_entry(Entry::Main, class);
        }
        self.debt.note(self.turn_of(class == Class::Again), took);
        is_ready
    }

    /// After which time what runs now is of the class *again*: what is so already stays so until it waits, however few wait now.
    #[inline]
    fn again_after(&self) -> u32 {
        if self.turn == Turn::Woken { self.again_after } else { 0 }
    }

    /// As what a run counts: one after which its task is of the class *again* was a run of that class, and nothing is owed for it. The
    /// system may have stopped it, and the task, alone in its class, would be paid for that.
    #[inline]
    fn turn_of(&self, is_again: bool) -> Turn {
        if is_again && self.turn == Turn::Woken { Turn::Spare } else { self.turn }
    }

    /// A run begins that is going to take longer than a wake, by what it took the last time: others are told.
    fn begin_long_run(&self, expected: u64) {
        let (shared, core) = (self.shared, self.core);
        if !self.has_shared {
            return;
        }
        let is_stuck = expected >= LOOK_TIME;
        if is_stuck {
            core.is_in_long_run.store(true, Relaxed);
            shared.monitor.note_stuck();
        }
        let waits = core.shared_len() > 0 || !shared.injector.is_empty();
        let has_woken = waits && shared.idle.is_someone_parked() && shared.wake_for_work();
        core.wakes_early.store(!has_woken, Relaxed);
        if is_stuck && shared.idle.is_someone_parked() {
            shared.hand_over(core, self.meter.now().saturating_add(expected));
        }
    }

    fn end_long_run(&self) {
        self.core.wakes_early.store(false, Relaxed);
        self.core.is_in_long_run.store(false, Relaxed);
    }

    /// What is done after a run that was measured, which is nothing but four comparisons as a rule. Says whether the core must be left.
    #[inline]
    fn glance(&mut self) -> Option<Stop> {
        let now = self.meter.now();
        if self.core.driver().timers().may_be_due(now) {
            self.core.driver().fire();
            self.meter.leave_out();
        }
        if now >= self.ask_at {
            self.ask(now);
        }
        let runs = self.core.counts.runs.get() + u64::from(self.meter.unread());
        if now < self.look_at() && runs < self.look_at_run {
            return None;
        }
        let stop = self.stop();
        if stop.is_none() {
            self.look();
        }
        stop
    }

    /// Asks whether the tasks that wait are worth another worker.
    fn ask(&mut self, now: u64) {
        self.ask_at = now.saturating_add(WAKE_COST);
        let (shared, core) = (self.shared, self.core);
        if !self.has_shared || !shared.idle.is_someone_parked() {
            return self.queueing.end();
        }
        if self.queueing.has_lasted(core.shared_len() + shared.injector.len(), now, core.counts.runs.get()) {
            shared.wake_for_work();
            self.meter.leave_out();
        }
    }

    /// Looks at all that has come from elsewhere since the last look.
    fn look(&mut self) {
        self.check_process();
        let core = self.core;
        core.note_queue();
        core.driver().poll(&mut self.events);
        core.take_remote_frees();
        if self.has_shared {
            self.look_at_others();
        }
        self.put_off_look(); // at the end: a look is no part of the next run
    }

    /// Looks at what waits for any worker, at those that are stuck, and at times at another one's queue.
    fn look_at_others(&mut self) {
        let core = self.core;
        if self.shared.monitor.has_stuck() {
            for other in self.others().filter(|other| other.is_stuck()) {
                other.driver().fire();
                if core.woken_len() == 0 {
                    other.steal_for(core);
                }
            }
        }
        self.set_quotas();
        if self.meter.now() >= self.compare_at {
            self.compare_at = self.meter.now() + TICK.as_nanos() as u64;
            self.compare();
        }
    }

    /// The driver is looked at now, or waited for.
    fn put_off_look(&mut self) {
        self.meter.set();
        self.core.cycle_rate.store(self.meter.rate(), Relaxed);
        let now = self.meter.now();
        self.looked = now;
        self.look_at_run = self.core.counts.runs.get() + u64::from(LOOK_RUNS);
        // Together those that wait delay others by the time between two looks, each by its part of that.
        let part = LOOK_TIME / (self.woken_len() as u64 + 1);
        self.again_after = (part as u32).clamp(AGAIN_AT_LEAST, AGAIN_AFTER);
        // The meter may have been ahead of the clock.
        self.ask_at = self.ask_at.min(now.saturating_add(WAKE_COST));
        self.compare_at = self.compare_at.min(now.saturating_add(TICK.as_nanos() as u64));
    }

    /// Takes from another worker half of what that one has more. Tasks that ask to run again and again would stay where they are, and run
    /// the less often the more they are there. Of an odd number the odd one changes sides each time, and has its turn on both.
    fn compare(&mut self) {
        let core = self.core;
        let last = self.compared;
        let Some(other) = self
            .others()
            .map(Core::index)
            .find(|&other| other > last)
            .or_else(|| self.others().map(Core::index).next())
        else {
            return;
        };
        self.compared = other;
        let other = &self.shared.cores[other];
        for class in [Class::Woken, Class::Again] {
            let more = how_many_more(other.len_of(class), other.noted(class), core.len_of(class));
            if more > 0 {
                other.steal_half(core, class, more.div_ceil(2) as u32);
            }
        }
    }

    /// When to look around: the sooner if what waits here is of the class *again*.
    fn look_at(&self) -> u64 {
        let core = self.core;
        let has_again = || core.owned_len(Class::Again) + core.again_len() > 0;
        let time = if self.woken_len() == 0 && has_again() { WAKE_COST } else { LOOK_TIME };
        self.looked.saturating_add(time)
    }

    /// Woken tasks that wait for this worker.
    fn woken_len(&self) -> usize {
        self.core.owned_len(Class::Woken) + self.core.woken_len()
    }

    /// Whether the core must be left, or closed.
    fn stop(&self) -> Option<Stop> {
        // A future in `block_on` may go on after that; a worker thread may not.
        if self.shared.is_closing() && (!self.is_closed || self.main.is_none()) {
            return Some(Stop::Closing);
        }
        if self.main.is_some() || !self.core.ownership.is_wanted() {
            return None;
        }
        if self.core.owned_alive() > 0 {
            self.core.ownership.decline();
            return None;
        }
        Some(Stop::Wanted)
    }

    /// Lets one task go on that waits for there to be nothing else to do, unless the driver has something.
    fn release_idle(&mut self) {
        self.core.driver().poll(&mut self.events);
        if !self.core.has_owned_work() && self.core.shared_len() == 0 && !self.sees_work() {
            self.core.idle_queue().release();
        }
    }

    /// Closes the core; see [`Core::close`].
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.has_shared = false; // on a closed core no shared task must come to lie in the queues
        if self.core.close() {
            self.shared.core_closed();
        } else {
            self.core.flush(); // it was closed before this worker came, who may have queued something here
        }
    }

    /// Ends the tasks that may not leave this thread, and leaves the others to the rest of the runtime.
    fn leave(&mut self) {
        if !self.shared.is_multi_thread() {
            return;
        }
        self.core.drop_owned();
        self.core.flush();
    }
}

/// How many tasks more another worker has than this one, which runs none just now and has `own`.
///
/// The other runs one beside those that `wait`, or has put that back just now: so it has no more than it has `noted` lately. Its only
/// one is left to it.
fn how_many_more(wait: usize, noted: usize, own: usize) -> usize {
    let theirs = (wait + 1).min(noted);
    if theirs > 1 { theirs.saturating_sub(own) } else { 0 }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let (shared, core) = (self.shared, self.core);
        if !shared.process.is_current() {
            return; // to change anything here is for the parent
        }
        if shared.is_closing() {
            self.close();
        }
        self.leave();
        core.owed.store(self.debt.nanos(), Relaxed);
        core.is_up.store(false, Relaxed);
        self.meter.leave_out();
        core.counts.park(self.meter.system_now());
        core.note_queue();
        core.take_remote_frees();
        core.put_events(std::mem::replace(&mut self.events, Events::with_capacity(1)));
        if let Some(slack) = self.slack {
            mini_net::set_timer_slack(slack);
        }
        shared.idle.park(core.index());
        if !self.is_for_embedder && core.embedder.is_watched() {
            core.driver().reactor().notify(); // see `embed.rs`
        }
        self.context = None;
        core.ownership.release();
        shared.keep_served(core);
        if !(shared.injector.is_empty() && shared.again.is_empty()) && shared.idle.must_wake() {
            shared.wake_one();
        }
        shared.keep_poller();
        close_if_closing(shared, core);
    }
}

/// Why a thread that has entered a runtime may not touch what only the holder of its core touches.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The runtime has threads of its own for its tasks.
    Shared,
    /// This thread runs what may block: it never drives the runtime.
    Blocking,
    /// Another thread works on the core.
    Taken,
    /// The core has tasks that may not leave this other thread.
    Pinned(ThreadId),
}

/// Holds the core of a `current_thread` runtime while `f` runs, on a thread that has entered it, if nobody works there. What `f`
/// leaves to do is done when somebody comes.
pub(crate) fn with_free_core<T>(shared: &Arc<Shared>, f: impl FnOnce(&Core) -> T) -> Result<T, Refusal> {
    if shared.is_multi_thread() {
        return Err(Refusal::Shared);
    }
    if context::is_working_for(shared) {
        return Err(Refusal::Blocking);
    }
    let core = &shared.cores[0];
    // A guest has found another thread there, who may have left since: that is chance.
    if context::with_host(|_| ()).is_some() || !core.ownership.try_take() {
        return Err(Refusal::Taken);
    }
    let context = context::enter_held(shared, core);
    let done = match core.pinned_elsewhere() {
        Some(thread) => Err(Refusal::Pinned(thread)),
        None => Ok(f(core)),
    };
    core.note_queue();
    core.embedder.note_more(core.has_owned_work());
    drop(context);
    core.ownership.release();
    core.unparker.unpark(); // a embedder that waits between two turns
    close_if_closing(shared, core);
    done
}

/// Called after the ownership was released: an end that began meanwhile found it taken, and left the core to this thread.
fn close_if_closing(shared: &Arc<Shared>, core: &Core) {
    if shared.is_closing() && core.ownership.try_take() {
        close_core(shared, core);
    }
}

/// Closes a core that nobody held, whose ownership the caller has taken, and gives the ownership back.
pub(crate) fn close_core(shared: &Arc<Shared>, core: &Core) {
    let context = context::enter_held(shared, core);
    if let Some(thread) = core.pinned_elsewhere() {
        core.forget_pinned(thread);
    }
    if core.close() {
        shared.core_closed();
    }
    drop(context);
    core.ownership.release();
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::how_many_more;

    #[test]
    fn nobody_is_robbed_of_the_only_task() {
        for own in 0..3 {
            assert_eq!(how_many_more(0, 1, own), 0, "it runs");
            assert_eq!(how_many_more(1, 1, own), 0, "it waits for the next run");
            assert_eq!(how_many_more(1, 0, own), 0, "its worker was parked at its last look");
        }
    }

    #[test]
    fn an_odd_one_changes_sides() {
        assert_eq!(how_many_more(1, 2, 1), 1);
        assert_eq!(how_many_more(1, 2, 0), 2);
        assert_eq!(how_many_more(9, 10, 10), 0);
        assert_eq!(how_many_more(899, 900, 1), 899);
    }
}
