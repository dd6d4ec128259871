//! The poll that a worker is in, as the watcher has last seen it.
//!
//! A poll that two checks see has lasted at least since the first check. If the thread has computed for less than half
//! of that time, and could run, it waits for a CPU: that is not the fault of the task.

use std::time::{Duration, Instant};

use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::scheduler::core::Core;

use super::{Voice, Words};
use crate::insight::WarningKind;
use crate::insight::stack::Stack;

/// A poll that takes longer is told: people notice the delay of what waits for it (Nielsen, Usability Engineering,
/// 1993, chapter 5).
const LONG: Duration = Duration::from_millis(100);

/// In a simulation nothing waits for the poll. People keep to their thought for a second (the same chapter).
const LONG_IN_SIMULATION: Duration = Duration::from_secs(1);

/// A timer that is later is told: half of what a poll may take.
const LATE: Duration = LONG.checked_div(2).unwrap();

#[derive(Default)]
pub(super) struct LastRun(Option<Run>);

#[derive(Clone, Copy)]
struct Run {
    progress: u64,
    /// The first look that saw it, and the CPU time that the thread had used then.
    since: Instant,
    cpu_time: Option<Duration>,
    /// What was told of it.
    told: Told,
    /// How long it had lasted when it was last asked whether that is news.
    asked: Duration,
}

#[derive(Clone, Copy, Default)]
struct Told {
    long: bool,
    late: bool,
}

impl LastRun {
    pub(super) fn look(&mut self, core: &Core, voice: &mut Voice<'_>) {
        let now = Instant::now();
        let progress = core.counts.progress();
        let is_up = core.ownership.is_held() && !core.unparker.is_parked() && !core.poll.is_blocked.load(Relaxed);
        let before = self.0.filter(|before| is_up && before.progress == progress);
        let Some(mut run) = before else {
            self.0 = is_up.then(|| Run {
                progress,
                since: Instant::now(),
                cpu_time: core.owner().cpu_time(),
                told: Told::default(),
                asked: Duration::ZERO,
            });
            return;
        };
        let lasts = now - run.since;
        if lasts < LATE || !run.is_at_work(core, lasts) {
            return;
        }
        let late = late(core).filter(|_| !run.told.late);
        let long = if voice.shared.config.has_pick() { LONG_IN_SIMULATION } else { LONG };
        let is_long = lasts >= long.max(run.asked * 5 / 4) && !run.told.long;
        if !is_long && late.is_none() {
            return; // to find the task takes a walk
        }
        let is_told = News { core, progress, lasts, is_long, late }.tell(voice);
        run.told = Told { long: run.told.long || is_told, late: run.told.late || late.is_some() };
        run.asked = if is_long { lasts } else { run.asked };
        self.0 = Some(run);
    }
}

/// What is to be told of a run.
struct News<'a> {
    core: &'a Core,
    progress: u64,
    lasts: Duration,
    is_long: bool,
    /// How late a timer is.
    late: Option<Duration>,
}

impl News<'_> {
    fn is_same_run(&self) -> bool {
        self.progress == self.core.counts.progress()
    }

    /// Says whether the length of the run was told.
    fn tell(&self, voice: &mut Voice<'_>) -> bool {
        let Self { core, lasts, .. } = *self;
        let subject = voice.find(core.counts.task.load(Relaxed));
        if !self.is_same_run() {
            return false; // it may be another task by now
        }
        let does = match (core.owner().is_runnable(), core.owner().system_call()) {
            (Some(true), _) => ", and computes".to_owned(),
            (Some(false), Some(call)) => format!(", and waits in {call}"),
            (Some(false), None) => ", and waits in a system call".to_owned(),
            (None, _) => String::new(),
        };
        let (name, worker, lasts) = (&subject.name, core.index(), lasts.as_millis());
        let config = &voice.shared.config;
        let mut is_told = false;
        if self.is_long {
            is_told = voice.say_longer(WarningKind::LongPoll, &subject, self.lasts, || {
                let until = match config.seed() {
                    Some(seed) => {
                        let thread = config.thread_name.of(format_args!(""));
                        format!("until it returns, the simulation of seed {seed} on thread {thread} makes no progress")
                    }
                    None if core.is_guest() => "until it returns, its thread runs no other task".to_owned(),
                    None => format!("until it returns, worker {worker} runs no other task"),
                };
                let text = format!("{name} has been in one poll for {lasts} ms{does}; {until}");
                let stack = Stack::of(core.owner()).filter(|_| self.is_same_run());
                Words { text, stack }
            });
        }
        if let Some(late) = self.late.map(|late| late.as_millis()) {
            voice.say(WarningKind::LateTimer, &subject, || {
                format!("{late} ms late so far: worker {worker} has been in one poll of {name} for {lasts} ms{does}")
            });
        }
        is_told
    }
}

impl Run {
    fn is_at_work(&self, core: &Core, lasts: Duration) -> bool {
        let used = self.cpu_time.zip(core.owner().cpu_time()).map(|(before, now)| now.saturating_sub(before));
        used.is_none_or(|used| used >= lasts / 2) || core.owner().is_runnable() != Some(true)
    }
}

/// How late the first timer of the core is, if that is too late. Under a clock that was paused no timer is.
fn late(core: &Core) -> Option<Duration> {
    let timers = core.driver().timers();
    if !timers.clock().is_system() {
        return None;
    }
    let late = timers.clock().now().saturating_duration_since(timers.next_deadline()?);
    (late >= LATE).then_some(late)
}
