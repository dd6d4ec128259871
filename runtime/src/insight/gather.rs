//! Reads what a [`Dump`] tells, from any thread.
//!
//! Nothing is allocated, printed or called under a lock that a worker may want: the place for the tasks is made between
//! two parts of a list.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::circles::circles;
use super::{Doing, Dump, DumpedTask, Job, Main, Run, Worker};
use crate::blocking::{AtWork, Origin};
use crate::primitives::atomic::Ordering::Relaxed;
use crate::primitives::lock;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::MainSight;
use crate::task::{Beside, LastWait, Sight, Standing, beside};

/// What the dumps before have seen: of each task the polls, and since when they are so many; of each core the progress;
/// and which jobs ran.
#[derive(Debug)]
pub(crate) struct Before {
    at: Instant,
    polls: HashMap<u64, (u32, Instant)>,
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
        let progress: Vec<u64> = self.cores.iter().map(|core| core.counts.progress()).collect();
        let mut tasks = Vec::new();
        let hidden: Vec<bool> = self.cores.iter().map(|core| !read(core, &mut tasks)).collect();
        if self.idle.up().next().is_some() {
            thread::sleep(MOMENT.saturating_sub(begin.elapsed())); // so that what runs on can be told from what passes
        }
        tasks.sort_unstable_by_key(|task: &Sight| task.source.id.get());
        let lost = self.lost(&tasks);
        let look = Look { shared: self, begin, progress: &progress, before: before.as_deref() };
        let workers: Vec<Worker> =
            self.cores.iter().zip(hidden).map(|(core, is_hidden)| look.at_worker(core, is_hidden)).collect();
        let since = before.as_ref().map(|before| begin - before.at);
        let tasks: Vec<DumpedTask> = tasks.into_iter().map(|sight| look.at_task(sight, &workers, &lost)).collect();
        let externals = self.externals();
        let mains = workers.iter().filter_map(|worker| worker.main.as_ref()).chain(&externals);
        let mains = mains.map(|main| (main.id, main.wait));
        let circles = circles(&tasks, mains);
        let AtWork { gauge, running, next } = self.blocking.at_work();
        let ids = running.iter().map(|job| job.id).collect();
        let ran = |job: &Origin| before.as_ref().is_some_and(|before| before.jobs.contains(&job.id));
        let jobs = running.into_iter().map(|origin| Job { is_unchanged: ran(&origin), origin }).collect();
        let polls = polls_of(&tasks, begin);
        *lock(&self.dumped) = Some(Arc::new(Before { at: begin, polls, jobs: ids, progress }));
        Dump {
            runtime: self.id,
            flavour: if self.is_multi_thread() { "multi_thread" } else { "current_thread" },
            up: self.begun_at.elapsed(),
            workers,
            externals,
            tasks,
            circles,
            threads: gauge.threads,
            idle_threads: gauge.idle,
            queued_jobs: gauge.queued,
            next_job: next,
            jobs,
            new: self.cores.iter().map(Core::in_inbox).sum(),
            crowds: mini_context::crowds(),
            shortage: shortage(),
            before: since,
            has_ended: self.is_closing(),
            warns: self.warns(),
            records: self.records(),
            now: {
                let clock = self.cores[0].driver().timers().clock();
                clock.nanos(clock.now())
            },
        }
    }

    /// What the futures of external threads wait for.
    fn externals(&self) -> Vec<Main> {
        let sights = lock(&self.externals).clone();
        sights.iter().filter_map(|sight| Main::of(sight)).collect()
    }

    /// The ids of those `tasks` that wait and of which nobody has a waker, in order. They are looked at a second time:
    /// their references are counted in two words, and a task that goes on may be seen in the middle. One that is lost
    /// never changes again.
    pub(super) fn lost(&self, tasks: &[Sight]) -> Vec<u64> {
        let is_lost = |sight: &Sight| {
            sight.standing == Standing::Waits
                && sight.polls > 0
                && sight.others == 0
                && !matches!(sight.wait, Some(LastWait::Yielded | LastWait::Spent))
        };
        let first: HashMap<u64, u32> =
            tasks.iter().filter(|sight| is_lost(sight)).map(|sight| (sight.source.id.get(), sight.polls)).collect();
        if first.is_empty() {
            return Vec::new();
        }
        let lost: Vec<u64> = self
            .sights()
            .iter()
            .filter(|sight| is_lost(sight) && first.get(&sight.source.id.get()) == Some(&sight.polls))
            .map(|sight| sight.source.id.get())
            .collect();
        lost
    }

    /// How many tasks are lost now.
    pub(crate) fn lost_now(&self) -> usize {
        self.lost(&self.sights()).len()
    }

    /// The tasks as they are now, in the order of their ids.
    pub(super) fn sights(&self) -> Vec<Sight> {
        let mut sights = Vec::new();
        for core in &self.cores {
            read(core, &mut sights);
        }
        sights.sort_unstable_by_key(|sight| sight.source.id.get());
        sights
    }

    /// The task of that id, if it is alive.
    pub(super) fn sight(&self, id: u64) -> Option<Sight> {
        let found = Cell::new(None);
        for core in &self.cores {
            core.each_task(
                |task| {
                    if task.id().get() == id {
                        found.set(Some(task.sight()));
                    }
                },
                |_| {},
            );
        }
        found.take().filter(|sight| sight.standing != Standing::Ended)
    }
}

/// Whether the process can have no more descriptors: tries to get one.
fn shortage() -> Option<String> {
    let error = io::stderr().as_fd().try_clone_to_owned().err()?;
    mini_net::is_shortage(&error)
        .then(|| mini_net::failed("open another one", mini_net::Object::Nothing)(error).to_string())
}

impl Main {
    fn of(sight: &MainSight) -> Option<Self> {
        let (id, wait) = sight.get()?;
        let beside = if sight.wait.has_beside() { beside(id) } else { Beside::default() };
        Some(Self { id, wait, holder: sight.wait.holder(), beside })
    }
}

impl Doing {
    fn runs(&self, id: u64) -> bool {
        matches!(self, Self::Works(Run { task, .. }) | Self::Blocks(task) if *task == id)
    }
}

/// Adds the tasks of `core`; says whether it could see all.
fn read(core: &Core, tasks: &mut Vec<Sight>) -> bool {
    let tasks = std::cell::RefCell::new(tasks);
    core.each_task(
        |task| {
            let sight = task.sight();
            if sight.standing != Standing::Ended {
                tasks.borrow_mut().push(sight);
            }
        },
        |more| tasks.borrow_mut().reserve(more),
    )
}

/// A look at the workers of a runtime.
struct Look<'a> {
    shared: &'a Shared,
    begin: Instant,
    /// Of each core, at the beginning.
    progress: &'a [u64],
    before: Option<&'a Before>,
}

/// Of each task the number of its polls, and since when it is known not to have changed.
fn polls_of(tasks: &[DumpedTask], begin: Instant) -> HashMap<u64, (u32, Instant)> {
    let since_when = |task: &DumpedTask| task.unchanged.map_or(begin, |unchanged| begin - unchanged);
    tasks.iter().map(|task| (task.id().get(), (task.polls(), since_when(task)))).collect()
}

impl Look<'_> {
    fn at_task(&self, sight: Sight, workers: &[Worker], lost: &[u64]) -> DumpedTask {
        let id = sight.source.id.get();
        let was = self.before.and_then(|before| before.polls.get(&id));
        let is_same = |(polls, _): &&(u32, Instant)| sight.standing == Standing::Waits && *polls == sight.polls;
        DumpedTask {
            beside: sight.has_beside.then(|| Box::new(beside(id))),
            is_running: sight.standing == Standing::Ready && workers.iter().any(|worker| worker.doing.runs(id)),
            polled_since: was.map(|(was, _)| sight.polls.wrapping_sub(*was) & ((1 << 30) - 1)),
            is_lost: lost.binary_search(&id).is_ok(),
            unchanged: was.filter(is_same).map(|(_, at)| self.begin - *at),
            sight,
        }
    }

    fn at_worker(&self, core: &Core, is_hidden: bool) -> Worker {
        let index = core.index();
        let is_parked = self.shared.idle.parked().any(|parked| parked == index);
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
        let is_same = |earlier: &[u64]| earlier[core.index()] == progress;
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
