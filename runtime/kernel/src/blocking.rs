//! The threads that run what blocks: `spawn_blocking` jobs, name resolution.
//!
//! Called by `Shared::spawn_blocking` and, through a closure, by `net`. Threads start on demand up to a bound, wait ten
//! seconds (a builder knob) for more work, and end. A push calls one waiting thread, or none if as many threads as
//! there are jobs have been called already. It prefers the thread that spins (`spin.rs`), as that costs no system call,
//! and then the thread that has waited for the shortest time, whose stack is still in the cache. So surplus threads end
//! even if jobs never cease.
//!
//! If a thread cannot be started, its job is left to the threads that exist. If there are none, it is discarded with
//! all jobs that wait, and the error says why.
//!
//! A shutdown refuses new jobs and discards lookups that have not started, as their results cannot be used. The threads
//! keep running until the queue is empty. The shutdown waits for them for a bounded time; then the jobs that have not
//! started are discarded and named, and a thread that is still busy is left behind and named. If it does not wait, all
//! jobs run.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use mini_context::contain;
use mini_context::rules::SPIN_FOR_JOB;

use crate::primitives::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::primitives::{Condvar, Deadline, Mutex, MutexGuard, lock};
use crate::say::Throttle;
use crate::scheduler::config::Config;
use crate::scheduler::spin::{self, Spins};
use crate::scheduler::unparker::Unparker;
use crate::task::error;
use crate::threads::{self, Hooks, Names};

/// What the threads do: a task that is polled once.
pub trait Job: Send + 'static {
    /// Ends it as cancelled.
    fn discard(self);

    /// Ends a job that comes after the end.
    fn refuse(self);

    /// Its number and where it was spawned.
    fn origin(&self) -> Origin;
}

/// The origin of a job, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The id of its task.
    pub id: u64,
    pub location: &'static Location<'static>,
}

pub struct Blocking<J> {
    state: Mutex<State<J>>,
    /// Runs a job, and contains its panics.
    run: fn(J),
    /// A thread has ended.
    ended: Condvar,
    /// Jobs queued or running.
    in_flight: AtomicUsize,
    /// Jobs that were ever queued.
    begun: AtomicUsize,
    limits: Limits,
    /// Called after each job: a paused clock waits for the last one.
    unparker: Arc<Unparker>,
    /// For threads that the system refuses.
    refused: Throttle,
    calls_at_once: bool,
    process: mini_net::Process,
}

struct Limits {
    threads: usize,
    keep_alive: Duration,
    stack_size: Option<usize>,
    name: Names,
    hooks: Hooks,
}

struct State<J> {
    queue: VecDeque<Work<J>>,
    /// Threads that wait and are not called, the one that has waited for the shortest time last.
    waiting: Vec<Arc<IdleThread>>,
    /// The thread that spins and is not called.
    spinning: Option<Arc<IdleThread>>,
    /// Threads that are called and have not come to look yet.
    called: usize,
    /// Threads that are being started. Not those in `on_thread_start`, which may wait for a job.
    starting: usize,
    spins: Spins,
    threads: usize,
    /// Threads that take no more jobs and are about to end.
    leaving: usize,
    started: usize,
    closed: bool,
    running: Vec<Origin>,
    /// Closures of mini's own that run.
    calls: usize,
}

/// The place where one thread waits.
#[derive(Default)]
struct IdleThread {
    /// There may be a job for the thread. Changes under the lock of the state; a thread that spins reads it without the
    /// lock.
    is_called: AtomicBool,
    /// The thread is called, or the scheduler is closed.
    changed: Condvar,
}

/// The numbers of threads and jobs, for `Metrics`.
pub struct Gauge {
    pub threads: usize,
    /// Threads that wait and are not called.
    pub idle: usize,
    /// Jobs that no thread has begun.
    pub queued: usize,
}

/// What a dump tells.
pub struct AtWork {
    pub gauge: Gauge,
    pub running: Vec<Origin>,
    /// What begins next, if that is a job.
    pub next: Option<Origin>,
}

enum Work<J> {
    Job(J),
    /// A closure of mini's own.
    Call(Box<dyn FnOnce() + Send>),
}

/// The jobs that are left when the wait for them is over.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rest {
    /// Where the jobs that have not returned were spawned.
    pub(crate) running: Vec<&'static Location<'static>>,
    /// Where the jobs that were discarded were spawned.
    pub(crate) discarded: Vec<&'static Location<'static>>,
    /// How many closures of mini's own have not returned.
    pub(crate) calls: usize,
}

/// What a push leaves to do outside the lock.
enum Hire {
    Nobody,
    Wake(Arc<IdleThread>),
    Start(usize),
}

impl<J: Job> Blocking<J> {
    /// `run` runs a job, and contains its panics.
    pub(crate) fn new(config: &Config, unparker: Arc<Unparker>, run: fn(J)) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new()),
            run,
            ended: Condvar::new(),
            in_flight: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            limits: Limits {
                threads: config.max_blocking_threads,
                keep_alive: config.thread_keep_alive,
                stack_size: config.stack_size,
                name: config.thread_name.of_part(format_args!("-block")),
                hooks: config.hooks.clone(),
            },
            unparker,
            refused: Throttle::new(),
            calls_at_once: config.has_pick(),
            process: mini_net::Process::current(),
        })
    }

    /// How many threads and jobs there are.
    pub fn gauge(&self) -> Gauge {
        let state = lock(&self.state);
        Gauge { threads: state.threads, idle: state.idle(), queued: state.queue.len() }
    }

    /// The same, and which jobs run.
    pub fn at_work(&self) -> AtWork {
        let mut running = Vec::with_capacity(self.in_flight()); // not under the lock
        let state = lock(&self.state);
        running.extend(state.running.iter().take(running.capacity()));
        let next = match state.queue.front() {
            Some(Work::Job(job)) => Some(job.origin()),
            Some(Work::Call(_)) | None => None,
        };
        let gauge = Gauge { threads: state.threads, idle: state.idle(), queued: state.queue.len() };
        AtWork { gauge, running, next }
    }

    /// Whether a thread is at work on the job of that id.
    pub fn runs(&self, id: u64) -> bool {
        lock(&self.state).running.iter().any(|job| job.id == id)
    }

    /// Jobs queued or running.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(SeqCst)
    }

    /// How many jobs there ever were.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(SeqCst) as u64
    }

    /// Queues a job.
    pub(crate) fn push_job(self: &Arc<Self>, job: J) {
        self.push(Work::Job(job));
    }

    /// Queues a closure of mini's own; it is dropped without a call if the scheduler is closed.
    pub(crate) fn push_call(self: &Arc<Self>, call: Box<dyn FnOnce() + Send>) {
        self.push(Work::Call(call));
    }

    fn push(self: &Arc<Self>, job: Work<J>) {
        self.process.check("spawn_blocking");
        let job = match job {
            Work::Call(call) if self.calls_at_once => return call(), // the calling thread is the only one
            job => job,
        };
        self.in_flight.fetch_add(1, SeqCst);
        // After it: a job that counts as begun is in flight, or over (`until_idle.rs`).
        self.begun.fetch_add(1, SeqCst);
        let mut state = lock(&self.state);
        if state.closed {
            drop(state);
            match job {
                Work::Job(job) => job.refuse(),
                Work::Call(call) => drop(contain(|| drop(call))),
            }
            return self.job_ended();
        }
        state.queue.push_back(job);
        let hire = state.hire(self.limits.threads);
        drop(state);
        match hire {
            Hire::Nobody => {}
            Hire::Wake(place) => place.changed.notify_one(),
            Hire::Start(number) => self.start_thread(number),
        }
    }

    fn start_thread(self: &Arc<Self>, number: usize) {
        let name = self.limits.name.of(format_args!("-{number}"));
        let blocking = self.clone();
        let body = Box::new(move || {
            lock(&blocking.state).starting -= 1;
            blocking.limits.hooks.around(|| blocking.work());
            lock(&blocking.state).leaving -= 1;
            blocking.ended.notify_all();
        });
        let Err(error) = threads::start(name, self.limits.stack_size, body) else { return };
        let mut state = lock(&self.state);
        state.threads -= 1;
        state.starting -= 1;
        // Without any thread, these would never run.
        let stranded = if state.threads == 0 { std::mem::take(&mut state.queue) } else { VecDeque::new() };
        drop(state);
        self.ended.notify_all(); // a shutdown has counted it
        self.refused.line(format_args!("could not start a blocking thread: {error}"));
        for job in stranded {
            error::because(&error, || self.discard(job));
        }
    }

    /// The body of a blocking thread.
    fn work(&self) {
        let place = Arc::default();
        while let Some(job) = self.next_job(&place) {
            match job {
                Work::Job(job) => {
                    let origin = job.origin();
                    (self.run)(job);
                    lock(&self.state).stopped_running(origin);
                }
                Work::Call(call) => {
                    // The caller sees its own panic as a closure that was dropped; the message has been printed.
                    contain(call);
                    lock(&self.state).calls -= 1;
                }
            }
            self.job_ended();
        }
    }

    /// Waits for a job; `None` tells the thread to end, and it is counted as leaving.
    fn next_job(&self, place: &Arc<IdleThread>) -> Option<Work<J>> {
        if !self.process.is_current() {
            threads::end_child();
        }
        let mut state = lock(&self.state);
        let mut is_too_long = false;
        loop {
            state.called -= usize::from(place.is_called.load(Relaxed));
            place.is_called.store(false, Relaxed);
            if let Some(job) = state.queue.pop_front() {
                match &job {
                    Work::Job(job) => state.running.push(job.origin()),
                    Work::Call(_) => state.calls += 1,
                }
                return Some(job);
            }
            if state.closed || is_too_long {
                state.leave();
                return None;
            }
            state = self.spin(state, place);
            (state, is_too_long) = self.wait_for_call(state, place);
        }
    }

    /// Spins for a call, if no other thread does and spinning has paid lately.
    fn spin<'a>(&'a self, mut state: MutexGuard<'a, State<J>>, place: &Arc<IdleThread>) -> MutexGuard<'a, State<J>> {
        if state.spinning.is_some() || !state.spins.are_due() {
            return state;
        }
        state.spinning = Some(place.clone());
        drop(state);
        let has_paid = spin::until(SPIN_FOR_JOB, || place.is_called.load(Relaxed));
        let mut state = lock(&self.state);
        let _ = state.spinning.take_if(|other| Arc::ptr_eq(other, place)); // not another one, if this has been called
        state.spins.note(has_paid);
        state
    }

    /// Waits for a call, if there has been none; says whether the wait has taken too long.
    fn wait_for_call<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<J>>,
        place: &Arc<IdleThread>,
    ) -> (MutexGuard<'a, State<J>>, bool) {
        if place.is_called.load(Relaxed) {
            return (state, false);
        }
        state.waiting.push(place.clone());
        let mut deadline = Deadline::after(self.limits.keep_alive);
        while !place.is_called.load(Relaxed) {
            let is_too_long = deadline.is_over();
            if is_too_long || state.closed {
                state.waiting.retain(|other| !Arc::ptr_eq(other, place));
                return (state, is_too_long);
            }
            state = deadline.wait(&place.changed, &self.state, state);
        }
        (state, false)
    }

    /// Whether it refuses jobs.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    fn job_ended(&self) {
        if self.in_flight.fetch_sub(1, SeqCst) == 1 {
            self.unparker.unpark();
        }
    }

    fn discard(&self, job: Work<J>) {
        match job {
            Work::Job(job) => job.discard(),
            Work::Call(call) => drop(contain(|| drop(call))),
        }
        self.job_ended();
    }

    /// Takes no more jobs, and discards closures of mini's own that have not started. The threads do the jobs that are
    /// queued.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let queue = std::mem::take(&mut state.queue);
        let (jobs, calls): (VecDeque<_>, VecDeque<_>) = queue.into_iter().partition(|job| matches!(job, Work::Job(_)));
        state.queue = jobs;
        state.waiting.iter().for_each(|place| place.changed.notify_one());
        drop(state);
        for call in calls {
            self.discard(call);
        }
    }

    /// Waits until all threads of the closed pool have ended. When `deadline` is over it discards the jobs that have
    /// not started.
    pub(crate) fn wait(&self, mut deadline: Deadline) -> Rest {
        let mut state = lock(&self.state);
        while state.threads + state.leaving > 0 && !deadline.is_over() {
            state = deadline.wait(&self.ended, &self.state, state);
        }
        let queue = std::mem::take(&mut state.queue);
        let running = state.running.iter().map(|job| job.location).collect();
        let mut rest = Rest { running, calls: state.calls, ..Rest::default() };
        drop(state);
        for job in queue {
            if let Work::Job(job) = &job {
                rest.discarded.push(job.origin().location);
            }
            self.discard(job);
        }
        rest
    }
}

impl<J> State<J> {
    fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            waiting: Vec::new(),
            spinning: None,
            called: 0,
            starting: 0,
            spins: Spins::default(),
            threads: 0,
            leaving: 0,
            started: 0,
            closed: false,
            running: Vec::new(),
            calls: 0,
        }
    }

    /// Chooses a thread for the job that was just queued.
    fn hire(&mut self, limit: usize) -> Hire {
        // Another thread may have taken the job that a thread was called or started for.
        if self.queue.len() <= self.called {
            return Hire::Nobody;
        }
        if let Some(place) = self.spinning.take() {
            self.call(&place);
            return Hire::Nobody;
        }
        if let Some(place) = self.waiting.pop() {
            self.call(&place);
            return Hire::Wake(place);
        }
        if self.threads < limit && self.queue.len() > self.called + self.starting {
            self.threads += 1;
            self.starting += 1;
            self.started += 1;
            return Hire::Start(self.started - 1);
        }
        Hire::Nobody
    }

    fn call(&mut self, place: &IdleThread) {
        place.is_called.store(true, Relaxed);
        self.called += 1;
    }

    fn idle(&self) -> usize {
        self.waiting.len() + usize::from(self.spinning.is_some())
    }

    /// A thread leaves.
    fn leave(&mut self) {
        self.threads -= 1;
        self.leaving += 1;
    }

    fn stopped_running(&mut self, job: Origin) {
        if let Some(at) = self.running.iter().position(|other| other.id == job.id) {
            self.running.swap_remove(at);
        }
    }
}

impl<J> fmt::Debug for Blocking<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("in_flight", &self.in_flight.load(Relaxed))
            .field("threads", &self.limits.threads)
            .field("name", &self.limits.name)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::task::Queued;

    #[test]
    fn a_call_that_does_not_return_is_counted_as_left() {
        let unparker = Unparker::new(mini_net::Reactor::new().unwrap());
        let blocking = Blocking::new(&Config::new(false), unparker, Queued::serve);
        let (begun, has_begun) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        blocking.push_call(Box::new(move || {
            begun.send(()).unwrap();
            let _ = may_go.recv();
        }));
        has_begun.recv().unwrap();
        blocking.close();
        assert_eq!(blocking.wait(Deadline::after(Duration::ZERO)), Rest { calls: 1, ..Rest::default() });
        drop(go);
        assert_eq!(blocking.wait(Deadline::NEVER), Rest::default());
    }
}
