//! The tasks of a runtime as one walk over them has seen them.
//!
//! A walk has to keep up with tasks that come and go, on behalf of a program that may have very many of them. So it
//! copies a few words of each task, in the order of the lists that it walks over, and does almost no allocations and
//! look-ups. Slower results are derived from the copy on demand: the order of the ids, the [`DumpedTask`]s, the
//! circles, all text.
//!
//! Two walks see the tasks that both of them meet in the same order, as a task keeps its place in its list. So the
//! tasks of two walks are matched by going through both copies side by side.
//!
//! Rejected: to sort by id first (three times the rest of the work where the memory of ended tasks is used again). A
//! map from ids to what was seen before (as much again, and twice the memory).

mod again;

use std::cell::RefCell;
use std::ops::Range;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use mini_context::{Holder, untaken};
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::owned::Seats;
use mini_kernel::task::{Beside, Besides, LastWait, Sight, Source, Standing, Task, beside};

use super::DumpedTask;

/// The result of a walk.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// In nanoseconds since the runtime began.
    at: u64,
    /// In the order of the cores, and for each core in the order of [`Sight::place`].
    tasks: Vec<SeenTask>,
    /// Of each core.
    parts: Vec<Part>,
    /// See [`SeenTask::more`].
    more: Vec<More>,
    /// Which tasks have locks that others wait for; one may be there more than once.
    holders: Vec<u64>,
}

/// The tasks of a core.
#[derive(Debug)]
struct Part {
    /// How many tasks there are up to the last one of this core.
    end: usize,
    /// All of them could be read.
    is_whole: bool,
}

/// A task. One cache line, so that a copy of very many takes little memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenTask {
    pub(super) sight: Sight,
    /// When the first of the walks was that have seen the task as it is: in nanoseconds since the runtime began, or
    /// `CHANGED`.
    unchanged_since: u64,
    /// How often it was polled since the walk before; `UNSEEN` if that has not seen it.
    polled_since: u32,
    /// Where [`Seen::more`] has what few tasks have; or `NOTHING`.
    more: u32,
}

const _: () = assert!(size_of::<SeenTask>() <= 64, "as many bytes are copied for each task");

/// For so many tasks there is room at least after a walk that was made before.
const ROOM: usize = 1024;

const CHANGED: u64 = u64::MAX;
const UNSEEN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX;

/// Polls are counted modulo this.
const POLLS_END: u32 = 1 << 30;

/// Properties that few tasks have, or that very many tasks share.
#[derive(Clone, Debug, Default)]
struct More {
    name: Option<Arc<str>>,
    holder: Option<Holder>,
    beside: Beside,
}

/// The tasks as they are now, with what the walk `before` knows of them.
pub(super) fn seen(shared: &Shared, before: Option<&Seen>) -> Seen {
    let at = shared.begun_at.elapsed().as_nanos() as u64;
    let mut seen = Seen { at, ..Seen::default() };
    if let Some(before) = before {
        // With room for some more: to move all of them costs as much as to look at them.
        seen.tasks.reserve(before.tasks.len() + before.tasks.len() / 8 + ROOM);
        seen.more.reserve(before.more.len() + before.more.len() / 8 + ROOM);
    }
    for core in shared.all_cores() {
        let knows_beside = shared.config.has_pick() == mini_context::sim::is_simulated();
        let walk = RefCell::new(Walk { knows_beside, ..Walk::new(&mut seen, before) });
        let is_whole = core.each_part(
            |part| {
                walk.borrow_mut().add_all(part);
                true
            },
            |more| walk.borrow_mut().go_on(more),
        );
        walk.into_inner().compare();
        seen.parts.push(Part { end: seen.tasks.len(), is_whole });
    }
    seen
}

/// How many tasks are lost now.
pub(crate) fn lost_now(shared: &Shared) -> usize {
    seen(shared, None).tasks.iter().filter(|task| task.sight.seems_lost).count()
}

/// A walk over the tasks of a core, which stops between two parts of a list.
struct Walk<'a> {
    seen: &'a mut Seen,
    /// The tasks of this core that the walk before has seen, from where this walk is; and when that was.
    known: &'a [SeenTask],
    known_at: u64,
    /// Up to which task they are compared.
    compared: usize,
    /// This thread can tell what the tasks wait for beside their waits: those of a simulation on its thread alone, and
    /// there no others.
    knows_beside: bool,
}

impl<'a> Walk<'a> {
    /// Over the tasks of the next core.
    fn new(seen: &'a mut Seen, before: Option<&'a Seen>) -> Self {
        let known = before.map_or(&[][..], |before| &before.tasks[before.range(seen.parts.len())]);
        let (known_at, compared) = (before.map_or(0, |before| before.at), seen.tasks.len());
        Self { seen, known, known_at, compared, knows_beside: true }
    }

    /// Tasks that seem lost are looked at a second time: their references are counted in two words, and a task that
    /// goes on may be seen in the middle. One that is lost never changes again.
    fn add_all(&mut self, part: &Seats<'_, Task>) {
        let begin = self.seen.tasks.len();
        part.each(|task| self.add(task));
        let sights = self.seen.tasks[begin..].iter_mut().map(|task| &mut task.sight);
        for Sight { place, polls, seems_lost, .. } in sights.filter(|sight| sight.seems_lost) {
            *seems_lost = false;
            part.with(place.seat(), |task| *seems_lost = task.seems_lost(*polls));
        }
    }

    #[inline]
    fn add(&mut self, task: &Task) {
        let mut sight = task.sight();
        if sight.standing == Standing::Ended {
            return;
        }
        let holder = if sight.wait.has_address() { task.holder(&mut sight) } else { None };
        if let Some(holder) = holder {
            self.seen.note_holder(holder);
        }
        let name = task.name();
        let has_more = name.is_some() || holder.is_some() || sight.besides == Besides::Noted;
        let more = if has_more { self.add_more(&sight, name, holder) } else { NOTHING };
        self.seen.tasks.push(SeenTask { sight, unchanged_since: CHANGED, polled_since: UNSEEN, more });
    }

    /// Tasks that are spawned together have much in common, and are met one after the other.
    fn add_more(&mut self, sight: &Sight, name: Option<&Arc<str>>, holder: Option<Holder>) -> u32 {
        let is_known = sight.besides == Besides::Noted && self.knows_beside;
        let beside = if is_known { beside(sight.id.get()) } else { Beside::default() };
        let is_same = |last: &More| last.has_name(name) && is_same_holder(last.holder, holder) && last.beside == beside;
        let more = &mut self.seen.more;
        if !more.last().is_some_and(is_same) {
            more.push(More { name: name.cloned(), holder, beside });
        }
        (more.len() - 1) as u32
    }

    /// Makes room for `more` tasks.
    fn go_on(&mut self, more: usize) {
        self.compare();
        self.seen.tasks.reserve(more);
        self.seen.more.reserve(more);
        self.seen.holders.reserve(more);
    }

    /// Looks up what the walk before knows of the tasks that were added since the last call.
    fn compare(&mut self) {
        for task in &mut self.seen.tasks[self.compared..] {
            let place = task.sight.place;
            while let [known, rest @ ..] = self.known
                && known.sight.place <= place
            {
                self.known = rest;
                if known.sight.id == task.sight.id {
                    task.compare(known, self.known_at);
                }
            }
        }
        self.compared = self.seen.tasks.len();
    }
}

impl Seen {
    /// Where the tasks of the core of that number are.
    fn range(&self, core: usize) -> Range<usize> {
        let end = |part: usize| self.parts.get(part).map_or(self.tasks.len(), |part| part.end);
        core.checked_sub(1).map_or(0, end)..end(core)
    }

    /// Tasks that wait for one lock are as a rule met one after the other: its holder is noted at the first of them, if
    /// it is not one that may have given it away.
    #[inline]
    fn note_holder(&mut self, holder: Holder) {
        let (task, is_kept) = untaken(holder.task);
        if task != 0 && is_kept && self.holders.last() != Some(&task) {
            self.holders.push(task);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether all tasks of the core of that number could be read.
    pub(super) fn is_whole(&self, core: usize) -> bool {
        self.parts.get(core).is_none_or(|part| part.is_whole)
    }

    /// The tasks in the order in which they were seen.
    pub(super) fn tasks(&self) -> &[SeenTask] {
        &self.tasks
    }

    /// The tasks by their ids.
    pub(super) fn in_order(&self) -> InOrder<'_> {
        let ids = self.tasks.iter().zip(0..).map(|(task, at)| (task.sight.id.get(), at));
        let mut order: Vec<(u64, u32)> = ids.collect();
        order.sort(); // by merging, as each list is nearly in order
        InOrder { seen: self, order }
    }

    /// How messages name a task.
    pub(super) fn source_of(&self, task: &SeenTask) -> Source {
        let Sight { id, location, .. } = task.sight;
        Source { id, location, name: self.more(task).and_then(|more| more.name.clone()) }
    }

    fn more(&self, task: &SeenTask) -> Option<&More> {
        self.more.get(task.more as usize)
    }

    /// All that is known of a task.
    pub(super) fn dumped(&self, task: &SeenTask, is_running: bool) -> DumpedTask {
        let more = self.more(task);
        let beside = more.map(|more| more.beside).filter(|beside| beside[0].is_some());
        DumpedTask {
            source: self.source_of(task),
            host: None,
            polls: task.sight.polls,
            standing: task.sight.standing,
            wait: task.sight.wait,
            holder: more.and_then(|more| more.holder),
            beside: beside.map(Box::new),
            has_beside: task.sight.besides != Besides::Nothing,
            is_running,
            is_lost: task.sight.seems_lost,
            polled_since: (task.polled_since != UNSEEN).then_some(task.polled_since),
            unchanged: (task.unchanged_since != CHANGED)
                .then(|| Duration::from_nanos(self.at.saturating_sub(task.unchanged_since))),
        }
    }
}

/// The tasks of a walk in the order of their ids.
pub(super) struct InOrder<'a> {
    seen: &'a Seen,
    /// Of each task its id, and where it is.
    order: Vec<(u64, u32)>,
}

impl<'a> InOrder<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a SeenTask> {
        self.order.iter().map(|&(_, at)| &self.seen.tasks[at as usize])
    }

    pub(super) fn find(&self, id: u64) -> Option<&'a SeenTask> {
        let found = self.order.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(&self.seen.tasks[self.order[found].1 as usize])
    }
}

impl SeenTask {
    fn waits(&self) -> Option<LastWait> {
        if self.sight.standing == Standing::Waits { self.sight.wait.get() } else { None }
    }

    /// `known` is what a walk at `at` has seen of this task.
    #[inline]
    fn compare(&mut self, known: &Self, at: u64) {
        self.polled_since = self.sight.polls.wrapping_sub(known.sight.polls) % POLLS_END;
        // A poll that the walk before has seen counts as one before it.
        let waits = |seen: &Self| seen.sight.standing == Standing::Waits;
        if self.polled_since == 0 && waits(self) && waits(known) {
            self.unchanged_since = if known.unchanged_since == CHANGED { at } else { known.unchanged_since };
        }
    }
}

impl More {
    fn has_name(&self, name: Option<&Arc<str>>) -> bool {
        self.name.as_ref() == name
    }
}

/// Compares lines by their address, which takes less time.
fn is_same_holder(one: Option<Holder>, other: Option<Holder>) -> bool {
    let words = |holder: Holder| {
        let location = holder.location.map_or(ptr::null(), ptr::from_ref::<Location<'static>>);
        (holder.task, holder.number, location)
    };
    one.map(words) == other.map(words)
}
