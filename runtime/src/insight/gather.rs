//! Reads what a [`Dump`] tells, from any thread.
//!
//! Nothing is allocated, printed or called under a lock that a worker may want: the place for the tasks is made between
//! two parts of a list. Everything that can be derived later from the data is derived later (`insight/seen.rs`).

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use mini_kernel::blocking::{AtWork, Origin};
use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::primitives::lock;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::scheduler::{ExternalThread, current};
use mini_kernel::task::{Beside, Besides, LastWait, Sight, Source, Standing, Task, beside};

use super::seen::Seen;
use super::seen::seen;
use super::{Doing, Dump, Job, Main, Run, Worker};
use crate::recorder::records;
use crate::runtime::layers::Layers;

/// The state at the previous dump: the tasks, with the time since which they are unchanged; the progress of each core;
/// and the jobs that ran.
#[derive(Debug)]
pub(crate) struct Before {
    at: Instant,
    seen: Arc<Seen>,
    jobs: Vec<u64>,
    progress: Vec<u64>,
}

/// A run that lasts while so much time passes is told with its time.
const MOMENT: Duration = Duration::from_millis(2);

/// What this runtime does now.
pub(crate) fn dump(shared: &Shared) -> Dump {
    let begin = Instant::now();
    let before = lock(&Layers::of(shared).insight.dumped).clone(); // it stays for a dump that is made meanwhile
    let progress: Vec<u64> = shared.all_cores().map(|core| core.counts.progress()).collect();
    let core = &shared.cores[0];
    let virtual_time = core.pick.as_ref().map(|pick| pick.elapsed(core.driver().timers().clock().now()));
    let mut seen = seen(shared, before.as_ref().map(|before| &*before.seen));
    if virtual_time.is_none() {
        let_run_on(shared, begin); // in a simulation the program stands still
    }
    let externals = externals(shared);
    let mains = shared.all_cores().filter_map(Main::of).map(|main| (main.id, main.wait));
    seen.look_again_at_circles(shared.all_cores(), mains.chain(externals.iter().map(|main| (main.id, main.wait))));
    let pick = shared.cores[0].pick.as_ref();
    let hosts = pick.map(|pick| pick.hosts_of(&mut seen.tasks().iter().map(|task| task.sight.id.get())));
    let seen = Arc::new(seen);
    let look = Look { shared, begin, progress: &progress, before: before.as_deref() };
    let at = |core: &Core| look.at_worker(core, !seen.is_whole(core.index()));
    let workers = shared.cores.iter().map(at).collect();
    let guests = shared.guests().filter(|guest| guest.ownership.is_held()).map(at).collect();
    let since = before.as_ref().map(|before| begin.saturating_duration_since(before.at));
    let AtWork { gauge, running, next } = shared.blocking.at_work();
    let ids = running.iter().map(|job| job.id).collect();
    let ran = |job: &Origin| before.as_ref().is_some_and(|before| before.jobs.contains(&job.id));
    let jobs = running.into_iter().map(|origin| Job { is_unchanged: ran(&origin), origin }).collect();
    let before = Before { at: begin, seen: seen.clone(), jobs: ids, progress };
    *lock(&Layers::of(shared).insight.dumped) = Some(Arc::new(before));
    Dump {
        runtime: Layers::of(shared).id,
        flavour: if shared.is_multi_thread() { "multi_thread" } else { "current_thread" },
        up: shared.begun_at.elapsed(),
        virtual_time,
        workers,
        guests,
        externals,
        seen,
        hosts: hosts.unwrap_or_default(),
        tasks: OnceLock::new(),
        circles: OnceLock::new(),
        threads: gauge.threads,
        idle_threads: gauge.idle,
        queued_jobs: gauge.queued,
        next_job: next,
        jobs,
        new: shared.all_cores().map(Core::in_inbox).sum(),
        crowds: mini_context::crowds(),
        shortage: shortage(),
        before: since,
        has_ended: shared.is_closing(),
        warns: Layers::of(shared).settings.warns(),
        records: records(shared),
        now: timer_nanos(shared),
    }
}

/// Waits for a moment after `begin`, while another worker is at work of which nobody knows that it is stuck: so
/// that what runs on can be told from what passes.
fn let_run_on(shared: &Shared, begin: Instant) {
    let own = current::held_of(shared).map(Core::index);
    if shared.idle.up().any(|worker| Some(worker) != own && !shared.cores[worker].poll.is_away()) {
        thread::sleep(MOMENT.saturating_sub(begin.elapsed())); // real time, in which workers go on
    }
}

/// The time by which timers go.
fn timer_nanos(shared: &Shared) -> u64 {
    let clock = shared.cores[0].driver().timers().clock();
    clock.nanos(clock.now())
}

/// What the futures of external threads wait for.
fn externals(shared: &Shared) -> Vec<Main> {
    let threads = lock(&shared.externals).clone();
    threads.iter().filter_map(|thread| Main::of_external(thread)).collect()
}

/// How messages name the task of that id, if it is alive.
pub(super) fn source(shared: &Shared, id: u64) -> Option<Source> {
    sources(shared, 1, |task| task == id).pop()
}

/// How messages name the tasks of those ids, of which there are `most`, as far as they are alive.
pub(crate) fn sources(shared: &Shared, most: usize, is_one: impl Fn(u64) -> bool) -> Vec<Source> {
    let found = RefCell::new(Vec::new());
    for core in shared.all_cores() {
        core.each_task(
            |task| {
                if is_one(task.id().get()) && !task.is_finished() {
                    found.borrow_mut().push(task.source());
                }
            },
            |more| found.borrow_mut().reserve(more.min(most)),
        );
    }
    found.into_inner()
}

/// Whether the process can have no more descriptors: tries to get one.
fn shortage() -> Option<String> {
    let error = io::stderr().as_fd().try_clone_to_owned().err()?;
    mini_net::is_shortage(&error).then(|| mini_net::with_limit(&error))
}

/// What the future of a `block_on` waits for, if it does; or that it asks to run again.
pub(super) fn main_wait(sight: &Sight) -> Option<LastWait> {
    let waits =
        |wait: &LastWait| sight.standing == Standing::Waits || matches!(wait, LastWait::Yielded | LastWait::Spent);
    sight.wait.get().filter(waits)
}

impl Main {
    /// The future of the `block_on` whose thread holds `core`, if it waits or asks to run again.
    pub(super) fn of(core: &Core) -> Option<Self> {
        let (sight, holder) = core.with_main(Task::sight_with_holder)?;
        let beside = if sight.besides == Besides::Noted { beside(sight.id.get()) } else { Beside::default() };
        let has_beside = sight.besides != Besides::Nothing;
        Some(Self { id: sight.id.get(), wait: main_wait(&sight)?, holder, beside, has_beside })
    }

    fn of_external(thread: &ExternalThread) -> Option<Self> {
        let ((id, wait), slot) = (thread.wait()?, thread.wait_slot());
        let beside = if slot.has_beside() { beside(id) } else { Beside::default() };
        Some(Self { id, wait, holder: slot.holder(), has_beside: beside[0].is_some(), beside })
    }
}

impl Doing {
    pub(super) fn runs(&self, id: u64) -> bool {
        matches!(self, Self::Works(Run { task, .. }) | Self::Blocks(task) if *task == id)
    }
}

/// A look at the workers of a runtime.
struct Look<'a> {
    shared: &'a Shared,
    begin: Instant,
    /// Of each core, at the beginning.
    progress: &'a [u64],
    before: Option<&'a Before>,
}

impl Look<'_> {
    fn at_worker(&self, core: &Core, is_hidden: bool) -> Worker {
        let index = core.index();
        let is_parked = match core.is_guest() {
            true => core.unparker.is_parked(),
            false => self.shared.idle.parked().any(|parked| parked == index),
        };
        let task = core.counts.task.load(Relaxed);
        let doing = if core.poll.is_blocked.load(Relaxed) {
            Doing::Blocks(task)
        } else if !core.ownership.is_held() {
            Doing::Rests
        } else if is_parked {
            Doing::Parks
        } else {
            Doing::Works(self.run(core, task))
        };
        let main = Main::of(core).filter(|main| !doing.runs(main.id) && !matches!(doing, Doing::Rests));
        Worker { index, doing, main, is_hidden }
    }

    fn run(&self, core: &Core, task: u64) -> Run {
        let progress = core.counts.progress();
        let is_stalled = core.poll.is_stalled.load(Relaxed);
        let is_same = |earlier: &[u64]| earlier.get(core.index()) == Some(&progress);
        let since_before = self.before.filter(|before| is_same(&before.progress)).map(|before| before.at.elapsed());
        let since_begin = is_same(self.progress).then(|| self.begin.elapsed());
        let stalled = is_stalled.then(|| {
            let at = Duration::from_nanos(core.poll.stalled_at.load(Relaxed));
            self.shared.begun_at.elapsed().saturating_sub(at)
        });
        let lasts = [stalled, since_before, since_begin].into_iter().flatten().max();
        Run { task, lasts, is_stalled, computes: lasts.and_then(|_| core.owner().is_runnable()) }
    }
}
