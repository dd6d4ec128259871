//! A runtime that stands still, and main tasks that nothing can wake.
//!
//! A runtime stands still if every worker is parked, one of them with the future of a `block_on`, and no timer, socket
//! or blocking job is left that could wake a worker. Nothing inside can end that state. Another thread may, unless all
//! threads of the process wait for each other. Under a paused clock a recurring timer hides that state: so it is also
//! reported if time advances and the main task makes no progress.

use std::time::{Duration, Instant};

use mini_context::Reason;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::{Besides, LastWait, Task};
use mini_net::{SystemCall, ThreadNumber};

use super::super::seen::seen;
use super::{Subject, Voice};
use crate::insight::Main as Waiting;
use crate::insight::WarningKind;
use crate::insight::gather::main_wait;
use crate::insight::text::Rounded;
use crate::runtime::layers::Layers;

/// What has stood still for so long is told: by then its user wonders.
pub(super) const STILL: Duration = Duration::from_secs(5);

/// The main tasks of a runtime.
#[derive(Default)]
pub(super) struct Mains(Vec<Main>);

struct Main {
    id: u64,
    polls: u32,
    /// How long it has run since it last waited, in nanoseconds.
    since_wait: u64,
    wait: Option<LastWait>,
    besides: Besides,
    /// It waits, and nothing can wake it.
    is_lost: bool,
}

/// The time since which the runtime makes no progress.
#[derive(Default)]
pub(super) struct Still {
    /// Each worker is parked, and none is to wake.
    parked: Option<(Instant, Vec<u64>)>,
    /// The clock is paused and jumps from timer to timer, and the main task is not polled: its polls, and the time that
    /// the clock showed.
    jumps: Option<(Instant, u32, mini_time::Instant)>,
}

impl Mains {
    pub(super) fn of(shared: &Shared) -> Self {
        let main = |core: &Core| {
            let (sight, _) = core.with_main(Task::sight_with_holder)?;
            Some(Main {
                id: sight.id.get(),
                polls: sight.polls,
                since_wait: sight.since_wait.into(),
                wait: main_wait(&sight),
                besides: sight.besides,
                is_lost: sight.seems_lost,
            })
        };
        Self(shared.all_cores().filter_map(main).collect())
    }

    /// Those that ask to run again, with the number of their polls, and for how long each has run since it last waited.
    pub(super) fn asking(&self) -> impl Iterator<Item = ((u64, u32), u64)> {
        let asks = |main: &&Main| main.wait == Some(LastWait::Yielded);
        self.0.iter().filter(asks).map(|main| ((main.id, main.polls), main.since_wait))
    }

    /// What each waits for that is not known to wait for anything else.
    pub(super) fn alone(&self) -> impl Iterator<Item = (u64, LastWait)> {
        self.0.iter().filter(|main| main.besides != Besides::Noted).filter_map(|main| Some((main.id, main.wait?)))
    }

    /// `true` if that main task joins a task, and cannot wait for anything else.
    pub(super) fn joins_alone(&self, id: u64) -> bool {
        let joins = |main: &Main| main.wait.and_then(LastWait::joins).is_some();
        self.0.iter().any(|main| main.id == id && main.besides == Besides::Nothing && joins(main))
    }

    pub(super) fn polls_of(&self, id: u64) -> Option<u32> {
        self.0.iter().find(|main| main.id == id).map(|main| main.polls)
    }

    pub(super) fn wait_of(&self, id: u64) -> String {
        self.alone().find(|(main, _)| *main == id).map_or_else(String::new, |(_, wait)| told(wait))
    }

    /// Whether one waits for that task to end.
    pub(super) fn join(&self, task: u64) -> bool {
        self.0.iter().any(|main| main.wait.and_then(LastWait::joins) == Some(task))
    }

    /// Tells of those that nothing can wake, now and `before`. One that waits for nothing of mini's may be there to
    /// keep up a program that has other things to do.
    pub(super) fn tell(&self, before: &Self, still: &Still, voice: &mut Voice<'_>) {
        let is_same = |main: &Main| before.0.iter().any(|before| (before.id, before.polls) == (main.id, main.polls));
        let shared = voice.shared;
        let is_told = |main: &&Main| main.wait != Some(LastWait::Unknown) || still.is_all(shared);
        let lost = self.0.iter().filter(|main| main.is_lost && is_same(main));
        for main in lost.filter(is_told) {
            voice.say(WarningKind::Stillness, &Subject::of_main(main.wait), || {
                let wait = main.wait.map_or_else(String::new, |wait| format!("; it waits for {}", told(wait)));
                format!("nothing can wake the future of block_on{wait}")
            });
        }
    }
}

impl Still {
    pub(super) fn of(shared: &Shared, now: Instant, mains: &Mains, before: &Self) -> Self {
        let progress: Vec<u64> = shared.all_cores().map(|core| core.counts.progress()).collect();
        let since = before.parked.as_ref().filter(|(_, before)| *before == progress).map_or(now, |(since, _)| *since);
        let parked = is_parked(shared).then_some((since, progress));
        Self { parked, jumps: jumps(shared, now, mains, before.jumps) }
    }

    /// Every worker has been parked for long, with nothing to wake for, and so is every other thread of the process.
    pub(super) fn is_all(&self, shared: &Shared) -> bool {
        self.parked.as_ref().is_some_and(|(since, _)| since.elapsed() >= STILL) && threads_wait(shared)
    }

    pub(super) fn tell(&self, voice: &mut Voice<'_>) {
        let shared = voice.shared;
        if let Some((since, _)) = self.parked
            && self.is_all(shared)
        {
            tell(
                voice,
                &format!(
                    "for {} no task has run, no timer, socket or blocking job is left, and every thread of the process \
                     waits",
                    Rounded(since.elapsed())
                ),
            );
        }
        let clock = shared.cores[0].driver().timers().clock();
        if let Some((since, _, at)) = self.jumps
            && since.elapsed() >= STILL
        {
            let virtually = clock.now().saturating_duration_since(at);
            tell(
                voice,
                &format!(
                    "timers have fired for {} of the paused clock, and none has woken the future of block_on",
                    Rounded(virtually)
                ),
            );
        }
    }
}

/// Says that the future of a `block_on` stands still, for what it waits, and for what some of the tasks do.
fn tell(voice: &mut Voice<'_>, why: &str) {
    /// So many tasks are told.
    const TASKS: usize = 4;
    let shared = voice.shared;
    let wait = shared.all_cores().find_map(Waiting::of).map(|main| main.wait);
    voice.say(WarningKind::Stillness, &Subject::of_main(wait), || {
        let mut text = format!("{why}; the future of block_on waits for {}", wait.map_or_else(String::new, told));
        let seen = seen(shared, None);
        let tasks = seen.in_order();
        let waiting: Vec<_> = tasks.iter().filter_map(|task| Some((task, task.sight.wait.get()?))).collect();
        for (task, wait) in waiting.iter().take(TASKS) {
            text += &format!("; {} for {}", seen.source_of(task), told(*wait));
        }
        let more = waiting.len().saturating_sub(TASKS);
        if more > 0 {
            text += &format!("; and {more} more tasks");
        }
        text
    });
}

/// Whether every worker is parked, one of them with the future of a `block_on`, and nothing is left that could wake
/// one.
fn is_parked(shared: &Shared) -> bool {
    let is_idle =
        |core: &Core| (core.unparker.is_parked() || !core.ownership.is_held()) && !core.driver().is_to_be_heard_of();
    let waits = |core: &Core| core.unparker.is_parked() && Waiting::of(core).is_some();
    shared.all_cores().all(is_idle)
        && shared.all_cores().any(waits)
        && shared.blocking.in_flight() == 0
        && !shared.has_injected()
}

/// If the clock is paused, and goes on while the main task does not.
fn jumps(
    shared: &Shared,
    now: Instant,
    mains: &Mains,
    before: Option<(Instant, u32, mini_time::Instant)>,
) -> Option<(Instant, u32, mini_time::Instant)> {
    let clock = shared.cores[0].driver().timers().clock();
    let main = mains.0.first()?;
    let comes_by_itself = match main.wait? {
        LastWait::Known(wait) => wait.is_timed() || matches!(wait.reason(), Reason::Timer(_) | Reason::Limit(_)),
        LastWait::Yielded | LastWait::Spent => true,
        LastWait::Unknown => false,
    };
    if !clock.is_paused() || comes_by_itself {
        return None;
    }
    let goes_on = |at: mini_time::Instant| clock.now().saturating_duration_since(at) >= STILL;
    match before {
        Some((since, polls, at)) if polls == main.polls && goes_on(at) => Some((since, polls, at)),
        _ => Some((now, main.polls, clock.now())),
    }
}

/// Whether every other thread of the process waits for a third one, or for a lock of it: in futex(2), without a timeout
/// but for those that wait for a blocking job. What computes, sleeps or waits for the system may wake a task later.
/// False where the system does not tell.
fn threads_wait(shared: &Shared) -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    // A thread that has held a core before may compute since.
    let held = shared.all_cores().filter(|core| core.ownership.is_held());
    let workers: Vec<i32> = held.map(|core| core.owner().to_raw()).collect();
    let own = ThreadNumber::current().to_raw();
    let mut idle = shared.blocking.gauge().idle;
    let mut is_ours = || idle.checked_sub(1).map(|rest| idle = rest).is_some();
    let of_harness = Layers::of(shared).settings.in_test_harness.then(|| std::process::id() as i32);
    let mut waits = |number, call: SystemCall| {
        call.is_futex() && (!call.is_timed_futex() || of_harness == Some(number) || is_ours())
    };
    threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok()).all(|number: i32| {
        let name = || std::fs::read(format!("/proc/self/task/{number}/comm")).unwrap_or_default();
        let is_of_mini = || matches!(&name()[..], b"mini-dump\n" | b"mini-orphan\n");
        let call = || ThreadNumber::from_raw(number).system_call();
        number == own || workers.contains(&number) || call().is_some_and(|call| waits(number, call)) || is_of_mini()
    })
}

fn told(wait: LastWait) -> String {
    match wait {
        LastWait::Unknown => "something unknown to mini".to_owned(),
        _ => wait.to_string(),
    }
}
