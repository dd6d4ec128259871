//! A group's place in the tree: its tasks that are alive, the results of the others, and the progress of its end.
//!
//! Called by the handles (`Group`), by each task of the group (`member.rs`) and by those that wait (`ending.rs`).
//!
//! # Seats
//!
//! A task is entered under the group's lock before it is spawned, so that it is counted before it can end, and its
//! handle is added afterwards. The task may have ended by then: so a seat records which of the two came first, and the
//! second one frees the seat.
//!
//! # Nobody is missed
//!
//! `alive` counts the tasks of the group and of all below. It is raised under the lock that also guards the phase, so
//! after `close` the count only falls: a group that is closed and has counted down has ended. A waiter leaves its waker
//! under the lock and then reads the count; the task that lowers the count takes the wakers after that, under the lock.
//! A task that waits for its own group does not wait for itself, so wakers are called when the count has fallen to two.
//!
//! Rejected: a count of busy groups instead of one of tasks (a spawn would not touch its ancestors, but a chain of
//! locks would be held at each change). A list of the ended tasks (a server's group would grow for ever).

use std::iter;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mini_context::contain;
use mini_kernel::primitives::atomic::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use mini_kernel::primitives::{Mutex, lock};
use mini_kernel::scheduler::core::Core;
use mini_kernel::task::slab::{NONE, Slab};
use mini_time::Instant;

use super::super::{AbortHandle, CancelToken, Reason};
use super::member::{Fate, Membership};
use super::report::{FailedTask, Report, Straggler, Tally};
use crate::order::sorted;

pub(in crate::task) struct Node {
    pub(super) token: CancelToken,
    /// Where the group was made.
    pub(super) location: &'static Location<'static>,
    /// Until the drop takes it.
    parent: Option<Arc<Node>>,
    /// Its number among the children of the parent; written once, under the lock of the parent.
    key: AtomicU32,
    /// How many tasks are alive here and below.
    alive: AtomicUsize,
    /// The last handle went in a poll of the last task, which may be about to end: see
    /// [`MemberSeat`](super::member::MemberSeat).
    pub(super) is_left_to_task: AtomicBool,
    /// A task was refused, and that is told.
    has_told_refusal: AtomicBool,
    state: Mutex<State>,
    /// What became of the tasks. Locked inside of the state's lock, or alone.
    tally: Arc<Mutex<Tally>>,
}

struct State {
    name: Option<Arc<str>>,
    grace: Duration,
    phase: Phase,
    ending: Option<Ending>,
    seats: Slab<Taken>,
    children: Slab<Child>,
    /// A place is its waiter's until that removes it; its waker is taken out by the thread that wakes.
    waiters: Slab<Option<Waker>>,
}

/// A group below, and what it has counted, which outlives it until the parent has taken it over.
struct Child {
    node: Weak<Node>,
    tally: Arc<Mutex<Tally>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Tasks may come.
    Open,
    /// No task may come.
    Closed,
    /// And one that has slipped in before is aborted.
    Aborting,
}

/// A seat that is taken.
enum Taken {
    /// By a task that is about to be spawned.
    Early,
    /// By a task that had ended before its handle came.
    Ended,
    By(Sitting),
}

struct Sitting {
    handle: AbortHandle,
    /// Once it was aborted by the group.
    straggler: Option<Box<Straggler>>,
}

/// The next number of an order of beginnings and aborts. Not a time: a paused clock has one for all of them.
fn next() -> u64 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed)
}

/// What the last handle of a group leaves behind.
pub(super) struct LeftBehind {
    /// Whether the group has to be shut down, and no shutdown is in progress.
    pub(super) needs_end: bool,
    /// Tasks of the group itself that nobody has asked to end.
    pub(super) tasks: usize,
}

/// The times of a shutdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) began: Instant,
    /// Which of all beginnings and aborts it is.
    order: u64,
    /// The end of the grace; `None` for one that never ends.
    pub(super) deadline: Option<Instant>,
    /// When not to wait any longer for tasks that were aborted.
    pub(super) patience: Option<Instant>,
    /// A caller has got the report: nothing is left to see to.
    is_told: bool,
}

impl Node {
    pub(super) fn root(token: CancelToken, location: &'static Location<'static>, grace: Duration) -> Arc<Self> {
        Self::new(token, location, grace, None)
    }

    fn new(
        token: CancelToken,
        location: &'static Location<'static>,
        grace: Duration,
        parent: Option<Arc<Node>>,
    ) -> Arc<Self> {
        let state = State {
            name: None,
            grace,
            phase: Phase::Open,
            ending: None,
            seats: Slab::new(),
            children: Slab::new(),
            waiters: Slab::new(),
        };
        let (key, alive) = (AtomicU32::new(NONE), AtomicUsize::new(0));
        Arc::new(Self {
            token,
            location,
            parent,
            key,
            alive,
            is_left_to_task: AtomicBool::new(false),
            has_told_refusal: AtomicBool::new(false),
            state: Mutex::new(state),
            tally: Arc::default(),
        })
    }

    /// A group whose tasks are also this one's.
    pub(super) fn child(self: &Arc<Self>, location: &'static Location<'static>, grace: Option<Duration>) -> Arc<Self> {
        let grace = grace.unwrap_or_else(|| self.grace());
        let child = Self::new(self.token.child(), location, grace, Some(self.clone()));
        let mut state = lock(&self.state);
        let entry = Child { node: Arc::downgrade(&child), tally: child.tally.clone() };
        child.key.store(state.children.insert(entry), Relaxed); // read by the drop
        let phase = state.phase;
        drop(state);
        if phase != Phase::Open {
            child.close(phase); // the parent may not have seen it
        }
        child
    }

    pub(super) fn set_name(&self, name: Arc<str>) {
        let _before = lock(&self.state).name.replace(name);
    }

    pub(super) fn name(&self) -> Option<Arc<str>> {
        lock(&self.state).name.clone()
    }

    pub(super) fn set_grace(&self, grace: Duration) {
        lock(&self.state).grace = grace;
    }

    pub(super) fn grace(&self) -> Duration {
        lock(&self.state).grace
    }

    /// This group, then the one above it, and so on.
    pub(super) fn up(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Node>> {
        iter::successors(Some(self), |node| node.parent.as_ref())
    }

    /// How many tasks are alive here and below.
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Acquire) // pairs with the AcqRel of `leave`: what the tasks did is seen
    }

    /// What the last handle leaves behind.
    pub(super) fn left_behind(self: &Arc<Self>) -> LeftBehind {
        let state = lock(&self.state);
        let (own, has_begun) = (state.seats.len(), state.ending.is_some());
        let is_told = state.ending.is_some_and(|ending| ending.is_told);
        drop(state);
        // Groups below have had handles of their own, which have seen to them.
        let tasks = if has_begun { 0 } else { own };
        let is_seen_to = || self.up().skip(1).any(|above| lock(&above.state).ending.is_some());
        let needs_end = (tasks > 0 || has_begun && self.alive() > 0) && !is_told && !is_seen_to();
        LeftBehind { needs_end, tasks }
    }

    /// Whether a refusal is to be told: the first one. The count says nothing of that, as groups below leave theirs.
    pub(super) fn is_first_refusal(&self) -> bool {
        !self.has_told_refusal.swap(true, Relaxed)
    }

    pub(super) fn children(&self) -> usize {
        lock(&self.state).children.len()
    }
}

/// What happens to a task.
impl Node {
    /// A place for a task that is about to be spawned; `None` if the group takes none any more.
    pub(super) fn reserve(self: &Arc<Self>) -> Option<Membership> {
        let place = self.try_reserve();
        if place.is_none() {
            lock(&self.tally).refused += 1;
        }
        place
    }

    /// As [`reserve`](Self::reserve), for those that go elsewhere then.
    pub(super) fn try_reserve(self: &Arc<Self>) -> Option<Membership> {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open {
            return None;
        }
        let key = state.seats.insert(Taken::Early);
        for node in self.up() {
            node.alive.fetch_add(1, Relaxed); // published by the lock
        }
        Some(Membership { node: self.clone(), key })
    }

    /// The task has been spawned.
    pub(super) fn seat(&self, key: u32, handle: AbortHandle) {
        let mut state = lock(&self.state);
        let phase = state.phase;
        let Some(taken) = state.seats.get_mut(key) else { return };
        if let Taken::Ended = taken {
            state.seats.remove(key);
            return;
        }
        let aborts = (phase == Phase::Aborting).then(|| handle.clone());
        let straggler = aborts.as_ref().map(|_| Box::new(Straggler::of(&handle)));
        *taken = Taken::By(Sitting { handle, straggler });
        drop(state);
        if let Some(handle) = aborts {
            handle.abort();
        }
    }

    /// No task was spawned for a place, and the future has been dropped.
    pub(super) fn free_seat(&self, key: u32) {
        let mut state = lock(&self.state);
        if let Some(Taken::Ended) = state.seats.get_mut(key) {
            state.seats.remove(key);
        }
    }

    pub(super) fn fail(&self, mut task: FailedTask) {
        task.group = self.name();
        lock(&self.tally).fail(task);
    }

    /// The future of a task has been dropped.
    pub(super) fn leave(self: &Arc<Self>, key: u32, fate: Fate) {
        let mut state = lock(&self.state);
        let left = match state.seats.get_mut(key) {
            Some(early @ Taken::Early) => Some(std::mem::replace(early, Taken::Ended)),
            _ => state.seats.remove(key),
        };
        let mut tally = lock(&self.tally); // under both locks: a report finds each task in one place
        match (fate, &left) {
            (Fate::Finished, _) => tally.finished += 1,
            (Fate::Failed, _) => {}
            (Fate::Dropped, Some(Taken::By(Sitting { straggler: Some(straggler), .. }))) => {
                let mut straggler = Straggler::clone(straggler);
                straggler.group = state.name.clone();
                tally.aborted.push(straggler);
            }
            (Fate::Dropped, _) => tally.cancelled += 1,
        }
        drop(tally);
        drop(state);
        for node in self.up() {
            if node.alive.fetch_sub(1, AcqRel) <= 2 {
                node.wake_waiters();
            }
        }
        drop(left); // with its reference to the task
    }

    fn wake_waiters(&self) {
        let mut wakers = Vec::new();
        let mut state = lock(&self.state);
        if state.waiters.len() > 0 {
            wakers.extend(state.waiters.iter_mut().filter_map(|(_, waker)| waker.take()));
        }
        drop(state);
        for waker in wakers {
            contain(|| waker.wake());
        }
    }
}

/// The end.
impl Node {
    /// Begins to shut down, unless that has begun. Those of the group are asked to end.
    pub(super) fn begin_end(&self, reason: Reason, location: &'static Location<'static>) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if state.ending.is_none() {
            let deadline = now.checked_add(state.grace);
            state.ending = Some(Ending { began: now, order: next(), deadline, patience: None, is_told: false });
        }
        drop(state);
        self.token.cancel_from(reason, location);
    }

    /// The report is given to a caller.
    pub(super) fn tell_end(&self) {
        if let Some(ending) = &mut lock(&self.state).ending {
            ending.is_told = true;
        }
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        lock(&self.state).ending
    }

    /// How many of the tasks that are alive nobody should wait for: the one that asks.
    pub(super) fn exempt(self: &Arc<Self>) -> usize {
        usize::from(Membership::current().is_some_and(|place| place.is_below(self)))
    }

    /// Ready when all have ended but `exempt`. `key` is the caller's place, which it gives back by
    /// [`forget_waiter`](Self::forget_waiter).
    pub(super) fn poll_ended(&self, exempt: usize, key: &mut Option<u32>, cx: &Context<'_>) -> Poll<()> {
        if self.alive() <= exempt {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone(); // a user's code: before the lock
        let mut state = lock(&self.state);
        let place = *key.get_or_insert_with(|| state.waiters.insert(None));
        let before = state.waiters.get_mut(place).and_then(|place| place.replace(waker));
        drop(state);
        drop(before);
        if self.alive() <= exempt { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn forget_waiter(&self, key: u32) {
        let waker = lock(&self.state).waiters.remove(key);
        drop(waker); // a user's code: after the lock
    }

    /// From now on no task comes, here and below.
    pub(super) fn close_all(self: &Arc<Self>) {
        self.down(|node| node.close(Phase::Closed));
    }

    fn close(&self, phase: Phase) {
        let mut state = lock(&self.state);
        if state.phase != Phase::Aborting {
            state.phase = phase;
        }
    }

    /// Aborts all tasks here and below, except the one that asks. Those that are still there at `patience` have not
    /// been dropped in time. Where all were aborted before, the time of that stays.
    pub(super) fn abort_all(self: &Arc<Self>, patience: Option<Instant>) {
        let mine = Membership::current();
        let Ending { patience: earlier, .. } = self.ending().expect("it was begun");
        self.set_patience(earlier.or(patience));
        let mut is_first = false;
        self.down(|node| {
            let spared = mine.as_ref().filter(|mine| Arc::ptr_eq(&mine.node, node)).map(|mine| mine.key);
            is_first |= node.abort(spared);
        });
        if is_first {
            self.set_patience(patience.or(earlier));
        }
    }

    fn set_patience(&self, patience: Option<Instant>) {
        if let Some(ending) = &mut lock(&self.state).ending {
            ending.patience = patience;
        }
    }

    /// Says whether one of them was not aborted before.
    fn abort(&self, spared: Option<u32>) -> bool {
        self.close(Phase::Aborting);
        let (mut handles, mut is_first) = (Vec::new(), false);
        let mut state = lock(&self.state);
        for (key, taken) in state.seats.iter_mut() {
            if let Taken::By(sitting) = taken
                && Some(key) != spared
            {
                is_first |= sitting.straggler.is_none();
                sitting.straggler.get_or_insert_with(|| Box::new(Straggler::of(&sitting.handle)));
                handles.push(sitting.handle.clone());
            }
        }
        drop(state);
        handles.iter().for_each(AbortHandle::abort);
        is_first
    }

    /// Calls `visit` for this group and all below, parents first: a child that is made meanwhile learns the phase of
    /// its parent.
    fn down(self: &Arc<Self>, mut visit: impl FnMut(&Arc<Node>)) {
        let mut nodes = vec![self.clone()];
        while let Some(node) = nodes.pop() {
            visit(&node);
            nodes.extend(lock(&node.state).children.iter().filter_map(|(_, child)| child.node.upgrade()));
        }
    }

    /// What became of the tasks so far.
    ///
    /// Groups may be dropped meanwhile. So all that are there are held first: what the others have counted is then in
    /// their parents, or on the way there.
    pub(super) fn report(self: &Arc<Self>) -> Report {
        let ending = lock(&self.state).ending;
        let mut nodes = Vec::new();
        self.down(|node| nodes.push(node.clone()));
        let (mut tally, mut running) = (Tally::default(), Vec::new());
        nodes.iter().for_each(|node| node.tell(&mut tally, &mut running));
        let mut running: Vec<Straggler> = running.into_iter().map(Straggler::as_it_is_now).collect();
        tally.forget_aborted(ending.map(|ending| ending.order));
        Straggler::sort(&mut tally.aborted);
        Straggler::sort(&mut running);
        let took = ending.map_or(Duration::ZERO, |ending| ending.began.elapsed());
        Report { why: self.token.why(), took, tally, running }
    }

    /// Adds what this group knows, and what groups below leave to it that are being dropped.
    fn tell(&self, tally: &mut Tally, running: &mut Vec<(Straggler, AbortHandle)>) {
        let state = lock(&self.state);
        tally.add(lock(&self.tally).clone());
        for (_, child) in state.children.iter().filter(|(_, child)| child.node.strong_count() == 0) {
            tally.add(lock(&child.tally).clone());
        }
        for (_, taken) in state.seats.iter() {
            if let Taken::By(Sitting { straggler: Some(straggler), handle, .. }) = taken {
                let mut straggler = Straggler::clone(straggler);
                straggler.group = state.name.clone();
                running.push((straggler, handle.clone()));
            }
        }
    }

    /// A child is being dropped: takes over what it has counted.
    fn adopt(&self, key: u32) {
        let mut state = lock(&self.state);
        let Some(child) = state.children.remove(key) else { return };
        let mut counted = std::mem::take(&mut *lock(&child.tally));
        if state.phase != Phase::Aborting {
            counted.forget_aborted(None); // the child's own shutdown has told
        }
        lock(&self.tally).add(counted);
    }
}

impl Straggler {
    fn of(handle: &AbortHandle) -> Self {
        let task = handle.task();
        let (id, name, location) = (task.id(), task.name().cloned(), task.location());
        Self { id, name, group: None, location, last_wait: task.last_wait(), order: next(), is_running: false }
    }

    /// In the order in which they were aborted.
    fn sort(tasks: &mut Vec<Self>) {
        *tasks = sorted(std::mem::take(tasks), |task| task.order);
    }

    /// Of a task that has not ended: whether a thread is at work on it.
    fn as_it_is_now((straggler, handle): (Self, AbortHandle)) -> Self {
        let shared = handle.task().runtime();
        let id = straggler.id.get();
        let polls = |core: &Core| core.ownership.is_held() && core.counts.task.load(Relaxed) == id;
        let is_running = shared.all_cores().any(polls) || shared.blocking.runs(id);
        Self { is_running, ..straggler }
    }
}

impl Drop for Node {
    /// As the drop of a token's node: climbs, and does not recurse.
    fn drop(&mut self) {
        let mut key = self.key.load(Relaxed);
        let mut parent = self.parent.take();
        while let Some(node) = parent {
            node.adopt(key);
            parent = Arc::into_inner(node).and_then(|mut last| {
                key = last.key.load(Relaxed);
                last.parent.take()
            });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn node() -> Arc<Node> {
        Node::root(CancelToken::new(), Location::caller(), Duration::ZERO)
    }

    fn sits(node: &Node, key: u32) -> Option<u64> {
        match lock(&node.state).seats.get_mut(key) {
            Some(Taken::By(sitting)) => Some(sitting.handle.id().get()),
            _ => None,
        }
    }

    #[test]
    fn a_task_that_ends_before_its_handle_comes_leaves_no_seat_and_takes_none() {
        crate::block_on(async {
            let node = node();
            let handle = || crate::spawn(async {}).abort_handle();
            let early = node.reserve().unwrap();
            node.leave(early.key, Fate::Finished);
            let other = node.reserve().unwrap(); // while the handle of the first one is on its way
            node.seat(early.key, handle());
            assert_eq!((sits(&node, other.key), node.alive()), (None, 1));
            let late = handle();
            node.seat(other.key, late.clone());
            assert_eq!(sits(&node, other.key), Some(late.id().get()));
            node.leave(other.key, Fate::Dropped);
            assert_eq!((lock(&node.state).seats.len(), node.alive()), (0, 0));
            let report = node.report();
            assert_eq!((report.finished(), report.cancelled()), (1, 1));
        });
    }

    #[test]
    fn a_task_whose_handle_comes_while_its_group_aborts_is_aborted() {
        crate::block_on(async {
            let node = node();
            let place = node.reserve().unwrap();
            node.begin_end(Reason::Requested, Location::caller());
            node.abort_all(None);
            let task = crate::spawn(std::future::pending::<()>());
            node.seat(place.key, task.abort_handle());
            assert!(task.await.unwrap_err().is_cancelled());
            node.leave(place.key, Fate::Dropped);
            assert_eq!(node.report().aborted().len(), 1);
        });
    }

    #[test]
    fn no_waiter_and_no_child_stays_behind() {
        let top = node();
        let (mut key, waker) = (None, Waker::noop());
        let place = top.reserve().unwrap();
        assert!(top.poll_ended(0, &mut key, &Context::from_waker(waker)).is_pending());
        top.leave(place.key, Fate::Finished);
        assert!(top.poll_ended(0, &mut key, &Context::from_waker(waker)).is_ready());
        top.forget_waiter(key.unwrap());
        let below = top.child(Location::caller(), None).child(Location::caller(), None);
        assert_eq!(lock(&top.state).waiters.len(), 0);
        assert_eq!(top.children(), 1);
        drop(below);
        assert_eq!(top.children(), 0);
    }
}
