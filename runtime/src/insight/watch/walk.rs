//! A walk over the tasks of a runtime, and what it and the walk before both saw.
//!
//! A walk keeps only the tasks that look wrong. Those that two walks see alike are reported: a task that nothing can
//! wake never runs again, and neither do tasks that wait only for each other.

use std::collections::HashMap;
use std::panic::Location;
use std::ptr;
use std::time::Instant;

use mini_context::rules::MOVE_COST;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::{Besides, LastWait, SeenWait, Sight, Source, Standing};

use super::super::seen::seen;
use super::Voice;
use super::still::{Mains, STILL, Still};
use crate::insight::circles::{Circle, circles};
use crate::insight::seen::Seen;
use crate::insight::text::Rounded;
use crate::insight::{DumpedTask, WarningKind};
use crate::order::sorted;

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
    lost: ById<Lost>,
    busy: ById<Busy>,
    /// By the first task of each.
    circles: ById<SeenCircle>,
    mains: Mains,
    still: Still,
}

/// Values by the ids of tasks, in their order.
struct ById<T>(Vec<(u64, T)>);

/// A task that waits, and that nobody can wake.
struct Lost {
    source: Source,
    polls: u32,
    wait: SeenWait,
}

/// A task that asks to run again.
struct Busy {
    /// `None` for a main task.
    source: Option<Source>,
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
    ids: Circle,
    /// The first of them, if it is no main task.
    first: Option<Source>,
    /// How often each was polled.
    polls: Vec<Option<u32>>,
    text: String,
    /// None of them has a waker anywhere else, nor waits for a lock, whose guard may have gone to another task.
    is_certain: bool,
    /// When the first walk was that has seen it.
    since: Instant,
}

impl<T> ById<T> {
    fn new(values: Vec<(u64, T)>) -> Self {
        Self(sorted(values, |(id, _)| *id))
    }

    fn get(&self, id: u64) -> Option<&T> {
        let at = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.0[at].1)
    }
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl Walk {
    pub(super) fn new(shared: &Shared, now: Instant, before: &Self) -> Self {
        let seen = seen(shared, None);
        let mains = Mains::of(shared);
        let still = Still::of(shared, now, &mains, &before.still);
        // The body of a program that others serve: `pending().await`, at the end of `main`.
        let keeps_up = |sight: &Sight| sight.wait.get() == Some(LastWait::Unknown) && mains.join(sight.id.get());
        // One that is kept may be there to be aborted, as a future that holds something until then.
        let is_told = |sight: &Sight| sight.seems_lost && !sight.is_kept && (!keeps_up(sight) || still.is_all(shared));
        let sights = || seen.tasks().iter().map(|task| &task.sight);
        let lost = seen.tasks().iter().filter(|task| is_told(&task.sight)).map(|task| {
            let Sight { id, polls, wait, .. } = task.sight;
            (id.get(), Lost { source: seen.source_of(task), polls, wait })
        });
        let lost = ById::new(lost.collect());
        let asking = seen.tasks().iter().filter(|task| asks(&task.sight)).map(|task| {
            let Sight { id, polls, since_wait, .. } = task.sight;
            (Some(seen.source_of(task)), (id.get(), polls), since_wait.into())
        });
        let mains_asking = mains.asking().map(|(task, ran)| (None, task, ran));
        let busy = asking.chain(mains_asking);
        let busy = busy.map(|(source, (id, polls), ran)| {
            let new = Busy { source, polls, ran, walks: 1, polled: 0, since: now, at: now };
            (id, new.after(before.busy.get(id)))
        });
        let busy = ById::new(busy.collect());
        // One that is known to wait for something else too may be woken by that.
        let alone = sights().filter(|sight| sight.standing == Standing::Waits && sight.besides != Besides::Noted);
        let waits = alone.filter_map(|sight| Some((sight.id.get(), sight.wait.get()?)));
        let circles = circles(waits.chain(mains.alone()));
        let circles =
            if circles.is_empty() { ById::default() } else { SeenCircle::all(circles, &seen, &mains, before, now) };
        Self { lost, busy, circles, mains, still }
    }

    /// Tells what this walk and the one before have seen.
    pub(super) fn tell(&self, before: &Self, voice: &mut Voice<'_>) {
        self.tell_lost(before, voice);
        let circles = self.circles.0.iter().filter(|(first, circle)| circle.is_told(before.circles.get(*first)));
        circles.for_each(|(first, circle)| circle.tell(*first, voice));
        let busy = self.busy.0.iter().filter(|(_, busy)| busy.walks >= WALKS);
        busy.for_each(|(task, busy)| busy.tell(*task, voice));
        self.mains.tell(&before.mains, &self.still, voice);
        self.still.tell(voice);
    }

    /// Of the tasks that were spawned at one line, the first is told.
    fn tell_lost(&self, before: &Self, voice: &mut Voice<'_>) {
        let is_same = |(id, lost): &&(u64, Lost)| before.lost.get(*id).is_some_and(|before| before.polls == lost.polls);
        let mut lines: HashMap<*const Location<'_>, (&Lost, usize)> = HashMap::new();
        for (_, lost) in self.lost.0.iter().filter(is_same) {
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
}

/// Whether the task asks to run again.
fn asks(sight: &Sight) -> bool {
    sight.standing == Standing::Ready && sight.wait.get() == Some(LastWait::Yielded)
}

impl Busy {
    /// With what the walk before has seen of it.
    fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let more = self.polls.wrapping_sub(before.polls) % POLLS_END;
        // Where it is no longer counted, a task has run for no longer than time has passed.
        let passed = self.at.saturating_duration_since(before.at).as_nanos() as u64;
        let since = if self.ran == MOST_COUNTED { Some(passed) } else { self.ran.checked_sub(before.ran) };
        let is_short = since.is_some_and(|ran| ran < SHORT * u64::from(more));
        if more < POLLS || !is_short {
            return self;
        }
        Self { walks: before.walks + 1, polled: before.polled.saturating_add(more), since: before.since, ..self }
    }

    fn tell(&self, task: u64, voice: &mut Voice<'_>) {
        let subject = voice.subject(self.source.as_ref(), task);
        voice.say(WarningKind::BusyLoop, &subject, || {
            let time = Rounded(self.since.elapsed());
            format!("{} has asked to run again {} times in {time}, and waits for nothing", subject.name, self.polled)
        });
    }
}

impl SeenCircle {
    fn all(circles: Vec<Circle>, seen: &Seen, mains: &Mains, before: &Walk, now: Instant) -> ById<Self> {
        let tasks = seen.in_order();
        let task = |id| tasks.find(id).map(|task| seen.dumped(task, false));
        let known = |circle: Circle| {
            let new = Self::new(circle, task, mains, now);
            let since =
                before.circles.get(new.ids[0]).filter(|before| new.is_same(before)).map_or(now, |same| same.since);
            (new.ids[0], Self { since, ..new })
        };
        ById::new(circles.into_iter().map(known).collect())
    }

    fn new(circle: Circle, task: impl Fn(u64) -> Option<DumpedTask>, mains: &Mains, now: Instant) -> Self {
        let joins_alone = |&id: &u64| match task(id) {
            Some(task) => !task.has_beside && task.waits().is_some_and(|wait| wait.joins().is_some()),
            None => mains.joins_alone(id),
        };
        let is_certain = circle.iter().all(joins_alone);
        let polls_of = |&id: &u64| task(id).map(|task| task.polls()).or_else(|| mains.polls_of(id));
        let polls = circle.iter().map(polls_of).collect();
        let told = |&id: &u64| match task(id) {
            Some(task) => {
                let wait = task.waits_for().unwrap_or_default();
                format!("{} waits for {wait}{}", task.source, task.since())
            }
            None => format!("the future of block_on waits for {}", mains.wait_of(id)),
        };
        let text = circle.iter().map(told).collect::<Vec<_>>().join("; ");
        let first = task(circle[0]).map(|task| task.source);
        Self { ids: circle, first, polls, text, is_certain, since: now }
    }

    /// Whether it is the same circle, and none of its tasks was polled meanwhile.
    fn is_same(&self, before: &Self) -> bool {
        self.ids == before.ids && self.polls == before.polls
    }

    /// `true` if the circle has lasted since the walk `before`, or for long if it is not certain. A waker elsewhere may
    /// be left over, or wake one of the tasks; a lock that one of them took may be another task's now.
    fn is_told(&self, before: Option<&Self>) -> bool {
        let has_lasted = || self.is_certain || self.since.elapsed() >= STILL;
        before.is_some_and(|before| self.is_same(before)) && has_lasted()
    }

    fn tell(&self, first: u64, voice: &mut Voice<'_>) {
        let subject = voice.subject(self.first.as_ref(), first);
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
        let mut before = None;
        for (second, &(polls, ran)) in (0..).zip(seen) {
            let at = begin + Duration::from_secs(second);
            let busy = Busy { source: None, polls, ran, walks: 1, polled: 0, since: at, at };
            before = Some(busy.after(before.as_ref()));
        }
        before.map_or(0, |busy| busy.walks)
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
