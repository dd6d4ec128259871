//! Reads what a [`Dump`] tells, from any thread.
//!
//! Nothing is allocated, printed or called under a lock that a worker may want: the place for the tasks is made between
//! two parts of a list. Everything that can be derived later from the data is derived later (`insight/seen.rs`).

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::seen::Seen;
use super::{Doing, Dump, Job, Main, Run, Worker};
use crate::blocking::{AtWork, Origin};
use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::lock;
use crate::scheduler::context;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::{MainSight, MainTask};
use crate::task::{Beside, Source, beside};

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

impl Shared {
    /// What this runtime does now.
    pub(crate) fn dump(&self) -> Dump {
        let begin = Instant::now();
        let before = lock(&self.dumped).clone(); // it stays for a dump that is made meanwhile
        let progress: Vec<u64> = self.all_cores().map(|core| core.counts.progress()).collect();
        let virtual_time = self.virtual_time();
        let mut seen = self.seen(before.as_ref().map(|before| &*before.seen));
        if virtual_time.is_none() {
            self.let_run_on(begin); // in a simulation the program stands still
        }
        let externals = self.externals();
        let mains = self.all_cores().filter_map(|core| core.main.get_waiting());
        seen.look_again_at_circles(self.all_cores(), mains.chain(externals.iter().map(|main| (main.id, main.wait))));
        let hosts = self.hosts_of(seen.tasks().iter().map(|task| task.sight.id.get()));
        let seen = Arc::new(seen);
        let look = Look { shared: self, begin, progress: &progress, before: before.as_deref() };
        let at = |core: &Core| look.at_worker(core, !seen.is_whole(core.index()));
        let workers = self.cores.iter().map(at).collect();
        let guests = self.guests().filter(|guest| guest.ownership.is_held()).map(at).collect();
        let since = before.as_ref().map(|before| begin.saturating_duration_since(before.at));
        let AtWork { gauge, running, next } = self.blocking.at_work();
        let ids = running.iter().map(|job| job.id).collect();
        let ran = |job: &Origin| before.as_ref().is_some_and(|before| before.jobs.contains(&job.id));
        let jobs = running.into_iter().map(|origin| Job { is_unchanged: ran(&origin), origin }).collect();
        let before = Before { at: begin, seen: seen.clone(), jobs: ids, progress };
        *lock(&self.dumped) = Some(Arc::new(before));
        Dump {
            runtime: self.id,
            flavour: if self.is_multi_thread() { "multi_thread" } else { "current_thread" },
            up: self.begun_at.elapsed(),
            virtual_time,
            workers,
            guests,
            externals,
            seen,
            hosts,
            tasks: OnceLock::new(),
            circles: OnceLock::new(),
            threads: gauge.threads,
            idle_threads: gauge.idle,
            queued_jobs: gauge.queued,
            next_job: next,
            jobs,
            new: self.all_cores().map(Core::in_inbox).sum(),
            crowds: mini_context::crowds(),
            shortage: shortage(),
            before: since,
            has_ended: self.is_closing(),
            warns: self.warns(),
            records: self.records(),
            now: self.timer_nanos(),
        }
    }

    /// Waits for a moment after `begin`, while another worker is at work of which nobody knows that it is stuck: so
    /// that what runs on can be told from what passes.
    fn let_run_on(&self, begin: Instant) {
        let own = context::held_of(self).map(Core::index);
        if self.idle.up().any(|worker| Some(worker) != own && !self.cores[worker].run.is_away()) {
            thread::sleep(MOMENT.saturating_sub(begin.elapsed())); // real time, in which workers go on
        }
    }

    /// The time by which timers go.
    fn timer_nanos(&self) -> u64 {
        let clock = self.cores[0].driver().timers().clock();
        clock.nanos(clock.now())
    }

    /// What the futures of external threads wait for.
    fn externals(&self) -> Vec<Main> {
        let sights = lock(&self.externals).clone();
        sights.iter().filter_map(|sight| Main::of(sight)).collect()
    }

    /// How messages name the task of that id, if it is alive.
    pub(super) fn source(&self, id: u64) -> Option<Source> {
        let found = Cell::new(None);
        for core in self.all_cores() {
            core.each_task(
                |task| {
                    if task.id().get() == id && !task.is_finished() {
                        found.set(Some(task.source()));
                    }
                },
                |_| {},
            );
        }
        found.take()
    }
}

/// Whether the process can have no more descriptors: tries to get one.
fn shortage() -> Option<String> {
    let error = io::stderr().as_fd().try_clone_to_owned().err()?;
    mini_net::is_shortage(&error).then(|| mini_net::with_limit(&error))
}

impl Main {
    fn of(sight: &MainSight) -> Option<Self> {
        let (id, wait) = sight.get_waiting()?;
        let beside = if sight.wait.has_beside() { beside(id) } else { Beside::default() };
        let has_beside = beside[0].is_some() || sight.task().is_some_and(|task| MainTask::wakers(&task) > 1);
        Some(Self { id, wait, holder: sight.wait.holder(), beside, has_beside })
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
        let doing = if core.run.is_blocked.load(Relaxed) {
            Doing::Blocks(task)
        } else if !core.ownership.is_held() {
            Doing::Rests
        } else if is_parked {
            Doing::Parks
        } else {
            Doing::Works(self.run(core, task))
        };
        let main = Main::of(&core.main).filter(|main| !doing.runs(main.id) && !matches!(doing, Doing::Rests));
        Worker { index, doing, main, is_hidden }
    }

    fn run(&self, core: &Core, task: u64) -> Run {
        let progress = core.counts.progress();
        let is_stalled = core.run.is_stalled.load(Relaxed);
        let is_same = |earlier: &[u64]| earlier.get(core.index()) == Some(&progress);
        let since_before = self.before.filter(|before| is_same(&before.progress)).map(|before| before.at.elapsed());
        let since_begin = is_same(self.progress).then(|| self.begin.elapsed());
        let stalled = is_stalled.then(|| {
            let at = Duration::from_nanos(core.run.stalled_at.load(Relaxed));
            self.shared.begun_at.elapsed().saturating_sub(at)
        });
        let lasts = [stalled, since_before, since_begin].into_iter().flatten().max();
        Run { task, lasts, is_stalled, computes: lasts.and_then(|_| core.owner().is_runnable()) }
    }
}
