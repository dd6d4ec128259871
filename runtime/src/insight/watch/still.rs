//! A runtime that stands still, and main tasks that nothing can wake.
//!
//! A runtime stands still if every worker is parked, one of them with the future of a `block_on`, and no timer, socket
//! or blocking job is left that could wake one. Nothing can end that from inside. Another thread may, so it is told late
//! and only once, unless no waker of the main task is left: then nothing can.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Subject, Voice};
use crate::insight::WarningKind;
use crate::insight::text::Rounded;
use crate::scheduler::core::Core;
use crate::scheduler::shared::Shared;
use crate::scheduler::worker::MainTask;
use crate::task::LastWait;

/// A runtime that has stood still for so long is told of: by then its user wonders.
const STILL: Duration = Duration::from_secs(5);

/// The main tasks of a runtime.
#[derive(Default)]
pub(super) struct Mains(Vec<Main>);

struct Main {
    id: u64,
    polls: u32,
    /// How long it has run since it last waited, in nanoseconds.
    since_wait: u64,
    wait: Option<LastWait>,
    /// It waits, and nothing can wake it.
    is_lost: bool,
}

pub(super) struct Still {
    since: Instant,
    /// Of each core.
    progress: Vec<u64>,
}

impl Mains {
    pub(super) fn of(shared: &Shared) -> Self {
        let main = |core: &Core| {
            let task: Arc<MainTask> = core.main.task()?;
            let wait = core.main.get().filter(|(id, _)| *id == task.id()).map(|(_, wait)| wait);
            let (polls, since_wait) = task.polls();
            Some(Main { id: task.id(), polls, since_wait, wait, is_lost: wait.is_some() && MainTask::is_lost(&task) })
        };
        Self(shared.cores.iter().filter_map(main).collect())
    }

    /// Those that ask to run again, with the number of their polls, and take less than `short` nanoseconds each time.
    pub(super) fn asking(&self, short: u64) -> impl Iterator<Item = (u64, u32)> {
        let asks = move |main: &&Main| {
            main.wait == Some(LastWait::Yielded) && main.since_wait / u64::from(main.polls.max(1)) < short
        };
        self.0.iter().filter(asks).map(|main| (main.id, main.polls))
    }

    /// What each waits for.
    pub(super) fn waits(&self) -> impl Iterator<Item = (u64, LastWait)> {
        self.0.iter().filter_map(|main| Some((main.id, main.wait?)))
    }

    pub(super) fn wait_of(&self, id: u64) -> String {
        self.waits().find(|(main, _)| *main == id).map_or_else(String::new, |(_, wait)| told(wait))
    }

    /// Tells of those that nothing can wake, now and `before`.
    pub(super) fn tell(&self, before: &Self, voice: &mut Voice<'_>) {
        let is_same = |main: &Main| before.0.iter().any(|before| (before.id, before.polls) == (main.id, main.polls));
        for main in self.0.iter().filter(|main| main.is_lost && is_same(main)) {
            voice.say(WarningKind::Stillness, &Subject::of_main(main.wait), || {
                let wait = main.wait.map_or_else(String::new, |wait| format!("; it waits for {}", told(wait)));
                format!("nothing can wake the future of block_on{wait}")
            });
        }
    }
}

impl Still {
    /// If the runtime stands still: since when, judging by the walk `before`.
    pub(super) fn of(shared: &Shared, now: Instant, before: Option<&Self>) -> Option<Self> {
        let progress: Vec<u64> = shared.cores.iter().map(|core| core.counts.progress()).collect();
        let is_idle =
            |core: &Core| (core.unparker.is_parked() || !core.ownership.is_held()) && !core.driver().is_used();
        let waits = |core: &Core| core.unparker.is_parked() && core.main.get().is_some();
        let is_still = shared.cores.iter().all(is_idle)
            && shared.cores.iter().any(waits)
            && shared.blocking.in_flight() == 0
            && !shared.has_injected();
        let since = before.filter(|before| before.progress == progress).map_or(now, |before| before.since);
        is_still.then_some(Self { since, progress })
    }

    pub(super) fn tell(&self, voice: &mut Voice<'_>) {
        let time = self.since.elapsed();
        if time < STILL {
            return;
        }
        let wait = voice.shared.cores.iter().find_map(|core| core.main.get()).map(|(_, wait)| wait);
        let alive = voice.shared.alive();
        voice.say(WarningKind::Stillness, &Subject::of_main(wait), || {
            let wait = wait.map_or_else(String::new, |wait| format!(", which waits for {}", told(wait)));
            format!(
                "for {} nothing has run, and no timer, socket or blocking job is left: only another thread could wake the \
                 future of block_on{wait}; tasks alive: {alive}",
                Rounded(time)
            )
        });
    }
}

fn told(wait: LastWait) -> String {
    match wait {
        LastWait::Unknown => "something unknown to mini".to_owned(),
        _ => wait.to_string(),
    }
}
