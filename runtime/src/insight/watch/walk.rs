//! A walk over the tasks of a runtime, and what it and the walk before both saw.
//!
//! A walk keeps only the tasks that look wrong. Those that two walks see alike are reported: a task that nothing can
//! wake never runs again, and neither do tasks that wait only for each other.

use std::collections::HashMap;
use std::panic::Location;
use std::ptr;
use std::time::Instant;

use mini_context::rules::MOVE_COST;

use super::still::{Mains, STILL, Still};
use super::{Subject, Voice};
use crate::insight::circles::{Circle, circles};
use crate::insight::seen::Seen;
use crate::insight::text::Rounded;
use crate::insight::{DumpedTask, WarningKind};
use crate::scheduler::shared::Shared;
use crate::task::{Besides, LastWait, SeenWait, Sight, Source, Standing};

/// A task that asks to run again so often in the time between two walks, and that [`WALKS`] walks see asking.
const POLLS: u32 = 10_000;
const WALKS: u32 = 3;

/// A run that is shorter in the mean does not compute anything: a debug build, in which the warning is on by default,
/// takes 0.8 to 1.5 µs to yield on a processor of 3 GHz.
const SHORT: u64 = 4 * MOVE_COST;

/// A task that has run for longer since it last waited is said to have run for so many nanoseconds.
const MOST_COUNTED: u64 = u32::MAX as u64;

/// Polls are counted modulo this.
const POLLS_END: u32 = 1 << 30;

#[derive(Default)]
pub(super) struct Walk {
    lost: Polls,
    /// Of these, what is told of them.
    told: Vec<Lost>,
    /// In the order of their ids.
    busy: Vec<Busy>,
    /// In the order of the ids in them.
    circles: Vec<SeenCircle>,
    mains: Mains,
    still: Still,
}

/// Tasks, and how often each was polled, in the order of their ids.
#[derive(Default, PartialEq, Eq)]
struct Polls(Vec<(u64, u32)>);

/// A task that waits, and that nobody can wake.
struct Lost {
    source: Source,
    polls: u32,
    wait: SeenWait,
}

/// A task that asks to run again.
#[derive(Clone, Copy)]
struct Busy {
    task: u64,
    /// Where it was spawned; `None` for a main task.
    location: Option<&'static Location<'static>>,
    polls: u32,
    /// For how long it has run since it last waited, in nanoseconds.
    ran: u64,
    /// In how many walks it did, how often it was polled from the first to this, and when the first was.
    walks: u32,
    polled: u32,
    since: Instant,
    /// When the last one was.
    at: Instant,
}

struct SeenCircle {
    circle: Circle,
    /// The first of them, if it is no main task.
    first: Option<Source>,
    polls: Polls,
    text: String,
    /// None of them has a waker anywhere else, nor waits for a lock, whose guard may have gone to another task.
    is_certain: bool,
    /// When the first walk was that has seen it.
    since: Instant,
}

impl Walk {
    pub(super) fn new(shared: &Shared, now: Instant, before: &Self) -> Self {
        let seen = shared.seen(None);
        let mains = Mains::of(shared);
        let still = Still::of(shared, now, &mains, &before.still);
        // The body of a program that others serve: `pending().await`, at the end of `main`.
        let keeps_up = |sight: &Sight| sight.wait.get() == Some(LastWait::Unknown) && mains.join(sight.id.get());
        // One that is kept may be there to be aborted, as a future that holds something until then.
        let is_told = |sight: &Sight| sight.seems_lost && !sight.is_kept && (!keeps_up(sight) || still.is_all(shared));
        let sights = || seen.tasks().iter().map(|task| &task.sight);
        let told = seen.tasks().iter().filter(|task| is_told(&task.sight));
        let mut told: Vec<Lost> = told
            .map(|task| Lost { source: seen.source_of(task), polls: task.sight.polls, wait: task.sight.wait })
            .collect();
        told.sort_unstable_by_key(|task| task.source.id.get());
        let lost = Polls(told.iter().map(|lost| (lost.source.id.get(), lost.polls)).collect());
        let asking = sights().filter(|sight| asks(sight)).map(Asking::of);
        let mains_asking = mains.asking().map(|(task, ran)| Asking { task, location: None, ran });
        let mut busy: Vec<Busy> =
            asking.chain(mains_asking).map(|asking| Busy::new(asking, now, &before.busy)).collect();
        busy.sort_unstable_by_key(|busy| busy.task);
        // One that is known to wait for something else too may be woken by that.
        let alone = sights().filter(|sight| sight.standing == Standing::Waits && sight.besides != Besides::Noted);
        let waits = alone.filter_map(|sight| Some((sight.id.get(), sight.wait.get()?)));
        let circles = circles(waits.chain(mains.alone()));
        let circles =
            if circles.is_empty() { Vec::new() } else { SeenCircle::all(circles, &seen, &mains, before, now) };
        Self { lost, told, busy, circles, mains, still }
    }

    /// Tells what this walk and the one before have seen.
    pub(super) fn tell(&self, before: &Self, voice: &mut Voice<'_>) {
        self.tell_lost(before, voice);
        self.circles.iter().filter(|circle| circle.is_told(before)).for_each(|circle| circle.tell(voice));
        self.busy.iter().filter(|busy| busy.walks >= WALKS).for_each(|busy| busy.tell(voice));
        self.mains.tell(&before.mains, &self.still, voice);
        self.still.tell(voice);
    }

    /// Of the tasks that were spawned at one line, the first is told.
    fn tell_lost(&self, before: &Self, voice: &mut Voice<'_>) {
        let is_same = |lost: &&Lost| before.lost.of(lost.source.id.get()) == Some(lost.polls);
        let mut lines: HashMap<*const Location<'_>, (&Lost, usize)> = HashMap::new();
        for lost in self.told.iter().filter(is_same) {
            lines.entry(ptr::from_ref(lost.source.location)).or_insert((lost, 0)).1 += 1;
        }
        for (lost, count) in lines.into_values() {
            let others = count - 1;
            voice.say(WarningKind::LostTask, &(&lost.source).into(), || {
                let mut text = format!("{} waits, and no waker for it is left", lost.source);
                match lost.wait.get() {
                    Some(LastWait::Known(wait)) => text += &format!("; its last wait: {wait}"),
                    _ => text += "; its last wait was for something unknown to mini",
                }
                if others > 0 {
                    text += &format!("; and {others} more that were spawned there");
                }
                text
            });
        }
    }

    /// The same circle, if this walk has seen it.
    fn find(&self, circle: &Circle, polls: &Polls) -> Option<&SeenCircle> {
        let at = self.circles.binary_search_by(|before| before.circle.cmp(circle)).ok()?;
        Some(&self.circles[at]).filter(|before| before.polls == *polls)
    }
}

/// A task that asks to run again, as a walk has seen it.
struct Asking {
    /// Its id, and how often it was polled.
    task: (u64, u32),
    location: Option<&'static Location<'static>>,
    ran: u64,
}

impl Asking {
    fn of(sight: &Sight) -> Self {
        let task = (sight.id.get(), sight.polls);
        Self { task, location: Some(sight.location), ran: sight.since_wait.into() }
    }
}

/// Whether the task asks to run again.
fn asks(sight: &Sight) -> bool {
    sight.standing == Standing::Ready && sight.wait.get() == Some(LastWait::Yielded)
}

impl Polls {
    fn of(&self, task: u64) -> Option<u32> {
        let at = self.0.binary_search_by_key(&task, |(id, _)| *id).ok()?;
        Some(self.0[at].1)
    }
}

impl Busy {
    /// `before` are those that the walk before has seen, in order.
    fn new(asking: Asking, now: Instant, before: &[Self]) -> Self {
        let Asking { task: (task, polls), location, ran } = asking;
        let first = Self { task, location, polls, ran, walks: 1, polled: 0, since: now, at: now };
        let Ok(at) = before.binary_search_by_key(&task, |before| before.task) else { return first };
        let before = &before[at];
        let more = polls.wrapping_sub(before.polls) % POLLS_END;
        // Where it is no longer counted, a task has run for no longer than time has passed.
        let passed = now.saturating_duration_since(before.at).as_nanos() as u64;
        let since = if ran == MOST_COUNTED { Some(passed) } else { ran.checked_sub(before.ran) };
        let is_short = since.is_some_and(|ran| ran < SHORT * u64::from(more));
        if more < POLLS || !is_short {
            return first;
        }
        Self { polls, ran, walks: before.walks + 1, polled: before.polled.saturating_add(more), at: now, ..*before }
    }

    fn tell(&self, voice: &mut Voice<'_>) {
        if voice.has_said(WarningKind::BusyLoop, self.location) {
            return;
        }
        let subject = voice.find(self.task);
        voice.say(WarningKind::BusyLoop, &subject, || {
            let time = Rounded(self.since.elapsed());
            format!("{} has asked to run again {} times in {time}, and waits for nothing", subject.name, self.polled)
        });
    }
}

impl SeenCircle {
    fn all(circles: Vec<Circle>, seen: &Seen, mains: &Mains, before: &Walk, now: Instant) -> Vec<Self> {
        let tasks = seen.in_order();
        let task = |id| tasks.find(id).map(|task| seen.dumped(task, false));
        let known = |circle: Self| Self {
            since: before.find(&circle.circle, &circle.polls).map_or(now, |before| before.since),
            ..circle
        };
        let mut circles: Vec<Self> =
            circles.into_iter().map(|circle| known(Self::new(circle, task, mains, now))).collect();
        circles.sort_unstable_by(|one, other| one.circle.cmp(&other.circle));
        circles
    }

    fn new(circle: Circle, task: impl Fn(u64) -> Option<DumpedTask>, mains: &Mains, now: Instant) -> Self {
        let joins_alone = |&id: &u64| match task(id) {
            Some(task) => !task.has_beside && task.waits().is_some_and(|wait| wait.joins().is_some()),
            None => mains.joins_alone(id),
        };
        let is_certain = circle.iter().all(joins_alone);
        let polls_of = |id| task(id).map(|task| task.polls()).or_else(|| mains.polls_of(id));
        let mut polls: Vec<(u64, u32)> = circle.iter().filter_map(|&id| Some((id, polls_of(id)?))).collect();
        polls.sort_unstable();
        let told = |&id: &u64| match task(id) {
            Some(task) => {
                let wait = task.waits_for().unwrap_or_default();
                format!("{} waits for {wait}{}", task.source, task.since())
            }
            None => format!("the future of block_on waits for {}", mains.wait_of(id)),
        };
        let text = circle.iter().map(told).collect::<Vec<_>>().join("; ");
        let first = task(circle[0]).map(|task| task.source);
        Self { circle, first, polls: Polls(polls), text, is_certain, since: now }
    }

    /// `true` if the circle has lasted since the walk `before`, or for long if it is not certain. A waker elsewhere may
    /// be left over, or wake one of the tasks; a lock that one of them took may be another task's now.
    fn is_told(&self, before: &Walk) -> bool {
        let has_lasted = || self.is_certain || self.since.elapsed() >= STILL;
        before.find(&self.circle, &self.polls).is_some() && has_lasted()
    }

    fn tell(&self, voice: &mut Voice<'_>) {
        let subject = match &self.first {
            Some(source) => Subject::from(source),
            None => voice.find(self.circle[0]),
        };
        voice.say(WarningKind::Deadlock, &subject, || {
            let why = match self.is_certain {
                true => "most likely, as each of these waits for the next",
                false => {
                    "possible, as each of these waits for the next, or for a lock that it took, and for nothing else \
                     that is known"
                }
            };
            format!("{why}: {}", self.text)
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::time::Duration;

    /// In how many walks a task is seen to be busy that has been polled so often and has run for so long at each, a
    /// second apart.
    fn walks(seen: &[(u32, u64)]) -> u32 {
        let begin = Instant::now();
        let mut before = Vec::new();
        for (second, &(polls, ran)) in (0..).zip(seen) {
            let asking = Asking { task: (7, polls), location: None, ran };
            before = vec![Busy::new(asking, begin + Duration::from_secs(second), &before)];
        }
        before[0].walks
    }

    #[test]
    fn a_task_that_asks_again_and_again_is_busy_however_long_it_has_run() {
        const SECOND: u64 = 1_000_000_000;
        let seen = |from: u64| [0, 1, 2].map(|at| (at as u32 * 700_000, ((from + at) * SECOND).min(MOST_COUNTED)));
        for from in [0, 3, 4, 5, 100] {
            assert_eq!(walks(&seen(from)), 3, "from {from} s on");
        }
        let computes = [0, 1, 2].map(|at| (at * 20_000, MOST_COUNTED));
        assert_eq!(walks(&computes), 1, "runs of 50 µs");
        assert_eq!(walks(&[(0, MOST_COUNTED), (700_000, 5)]), 1, "it has waited");
        assert_eq!(walks(&[(0, 0), (9_999, 5)]), 1, "it asks now and then");
    }
}
