//! The choice of the next task: [`Worker::next`] is the one function that chooses.
//!
//! Woken tasks first, then compute-bound ones; of each class the owned and the shared ones in turn, first in, first
//! out. While woken tasks never end, compute-bound ones have their share of the time. A worker without woken tasks
//! takes some from the injector. A worker without any task fires the late timers of other workers, and takes tasks from
//! one of them.
//!
//! Rejected: polling next the task that was woken last, though others wait (a connection of HTTP/2 ran after each of
//! its streams, with a write for each: six times as many, and 0.64 of the requests per second).

use mini_context::rules::{
    CHECK_POLLS, HEAD_START, INJECTED_SHARE, LOCAL_QUEUE, LONGEST_POLL, MOST_OWED, STEAL_BATCH, WAKE_COST, WOKEN_SHARE,
};

use super::Worker;
use crate::primitives::atomic::Ordering::Relaxed;
use crate::scheduler::core::Core;
use crate::scheduler::driver::Delivered;
use crate::scheduler::idle::Workers;
use crate::task::{Class, Queued};

/// Why the entry that is polled has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is a woken task.
    Woken,
    /// It is compute-bound, and no woken task waits.
    Spare,
    /// It is compute-bound, and that class has its share now.
    Share,
}

/// The part of the polls that are taken from an injector, in 64ths; they are spread evenly.
#[derive(Debug, Default)]
pub(super) struct Quota {
    part: u32,
    sum: u32,
}

impl Quota {
    fn set(&mut self, there: usize, here: usize) {
        self.part = part_of_injector(there, here);
    }

    /// Whether the next task is taken from the injector.
    #[inline]
    fn is_due(&mut self) -> bool {
        if self.part == 0 {
            return false;
        }
        self.sum += self.part;
        let is_due = self.sum >= CHECK_POLLS;
        if is_due {
            self.sum -= CHECK_POLLS;
        }
        is_due
    }
}

/// The part of the polls, in 64ths, for an injector with `there` tasks: the part that they are of all waiting tasks,
/// rounded up, so that the last one there does not wait for longer and longer. It has a limit, so that the tasks here
/// go on, however many come.
fn part_of_injector(there: usize, here: usize) -> u32 {
    let part = (CHECK_POLLS as usize * there).div_ceil((there + here).max(1));
    (part as u32).min(INJECTED_SHARE)
}

/// The time that is owed to compute-bound tasks: by how much the time of woken tasks exceeds their share.
#[derive(Debug, Default)]
pub(super) struct Debt(i64);

impl Debt {
    /// Whether it is the turn of compute-bound tasks.
    #[inline]
    fn is_due(&self) -> bool {
        self.0 >= HEAD_START
    }

    /// Nothing is owed: no compute-bound task waits, or no task at all.
    fn forgive(&mut self) {
        self.0 = 0;
    }

    /// As it was when the last worker left the core.
    pub(super) fn resume(nanos: i64) -> Self {
        Self(nanos)
    }

    pub(super) fn nanos(&self) -> i64 {
        self.0
    }

    /// A poll has taken `took` nanoseconds. However long it was, it is made up for within bounds.
    #[inline]
    pub(super) fn note(&mut self, why: Why, took: u64) {
        let took = took.min(LONGEST_POLL) as i64;
        self.0 = match why {
            Why::Woken => (self.0 + took).min(MOST_OWED),
            // Spare time pays what is owed, and costs nothing.
            Why::Spare => self.0.min((self.0 - WOKEN_SHARE * took).max(0)),
            Why::Share => self.0 - WOKEN_SHARE * took,
        };
    }
}

impl<'a> Worker<'a> {
    /// Chooses the next task.
    pub(super) fn next(&mut self) -> Option<Queued> {
        self.collect();
        if let Some(pick) = &self.core.pick {
            return pick.next(self);
        }
        if self.debt.is_due() {
            if let Some(entry) = self.choose(Class::ComputeBound, Why::Share) {
                self.compute_bound_polls += 1;
                return Some(entry);
            }
            self.debt.forgive();
        }
        if let Some(entry) = self.choose(Class::Woken, Why::Woken) {
            return Some(entry);
        }
        if let Some(entry) = self.choose(Class::ComputeBound, Why::Spare) {
            self.compute_bound_polls += 1;
            return Some(entry);
        }
        self.queueing.end();
        self.debt.forgive(); // nothing waits here
        if self.has_shared { self.steal() } else { None }
    }

    /// Queues what other threads have woken.
    #[inline(always)]
    pub fn collect(&self) {
        if self.core.has_mail() {
            self.core.read_inbox();
        }
    }

    /// Takes an entry of a class from this worker's queues, or from the injector.
    #[inline(always)]
    fn choose(&mut self, class: Class, why: Why) -> Option<Queued> {
        self.why = why;
        if !self.has_shared {
            return self.core.pop_entry(class);
        }
        match self.pop_any(class) {
            None if !self.shared.injector(class).is_empty() => self.take_injected(class),
            entry => entry,
        }
    }

    /// Takes an entry of a class, owned and shared ones in turn.
    fn pop_any(&mut self, class: Class) -> Option<Queued> {
        let core = self.core;
        if self.quotas[class as usize].is_due()
            && let Some(task) = self.shared.injector(class).pop()
        {
            return Some(task);
        }
        let shared = || core.pop_shared(class);
        let owned_first = &mut self.owned_first[class as usize];
        *owned_first = !*owned_first;
        match *owned_first {
            true => core.pop_entry(class).or_else(shared),
            false => shared().or_else(|| core.pop_entry(class)),
        }
    }

    /// Sets which part of the polls of each class is taken from its injector until the next driver check: the part that
    /// the tasks there are of all waiting tasks, here and there.
    pub(super) fn set_quotas(&mut self) {
        for class in Class::ALL {
            let here = self.core.owned_len(class) + self.core.len_of(class);
            self.quotas[class as usize].set(self.shared.injector(class).len(), here);
        }
    }

    /// Takes one task from the injector of a class, and a share of the others into the queue, which is empty.
    fn take_injected(&mut self, class: Class) -> Option<Queued> {
        let (shared, core) = (self.shared, self.core);
        let keep = |task| core.push_shared(task, class);
        let task =
            shared.injector(class).take_share(shared.cores.len(), STEAL_BATCH.min(LOCAL_QUEUE) as usize, keep)?;
        self.wake_next();
        Some(task)
    }

    /// This worker has nothing: fires what is late elsewhere, and takes half of what another worker has.
    fn steal(&mut self) -> Option<Queued> {
        let (shared, core) = (self.shared, self.core);
        let has_fired = self.steal_timers() > 0;
        if self.others().any(Core::is_worth_stealing) && shared.idle.start_search() {
            self.others().map(|other| other.steal_for(core)).find(|&found| found > 0);
            shared.idle.finish_search();
        } else if !has_fired {
            return None;
        }
        for (class, why) in [(Class::Woken, Why::Woken), (Class::ComputeBound, Why::Spare)] {
            if let Some(entry) = self.choose(class, why) {
                self.compute_bound_polls += u64::from(class == Class::ComputeBound);
                self.wake_next();
                return Some(entry);
            }
        }
        None
    }

    /// Fires the timers of other workers that are late by what a wake costs, and returns how many: their owners are in
    /// polls, maybe in some that nobody knows to be long yet.
    fn steal_timers(&mut self) -> usize {
        let late = self.meter.now().saturating_sub(WAKE_COST);
        let is_late = |other: &&Core| other.driver().timers().may_be_due(late);
        if !self.others().any(|other| is_late(&other)) {
            return 0;
        }
        self.poll_time += self.meter.leave_out(); // the last polls may not have been measured
        let timers = self.others().filter(is_late).map(|other| other.driver().fire()).sum();
        self.note_delivered(Delivered { events: 0, timers });
        self.meter.leave_out();
        timers
    }

    /// A worker that was woken and has found more than it polls next wakes another one, once.
    fn wake_next(&mut self) {
        if std::mem::take(&mut self.was_woken) && self.core.shared_len() > 0 {
            self.shared.wake_for_work();
        }
    }

    /// The other workers that are up, or in `block_in_place`, where they count as parked.
    pub(super) fn others(&self) -> Others<'a> {
        let idle = &self.shared.idle;
        let blocked = self.shared.monitor.has_stuck().then(|| idle.parked());
        Others { cores: &self.shared.cores, own: self.core.index(), up: idle.up(), blocked }
    }
}

/// See [`Worker::others`].
pub(super) struct Others<'a> {
    cores: &'a [Core],
    own: usize,
    up: Workers<'a>,
    /// Those that are parked, if some may be in `block_in_place`.
    blocked: Option<Workers<'a>>,
}

impl<'a> Iterator for Others<'a> {
    type Item = &'a Core;

    fn next(&mut self) -> Option<&'a Core> {
        let &mut Others { cores, own, .. } = self;
        let is_blocked = |other: usize| other != own && cores[other].poll.is_blocked.load(Relaxed);
        let up = self.up.find(|&other| other != own);
        let other = up.or_else(|| self.blocked.as_mut()?.find(|&other| is_blocked(other)))?;
        Some(&cores[other])
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use super::*;
    use crate::scheduler::bare;
    use crate::scheduler::config::Config;

    const MS: u64 = 1_000_000;

    /// How many timers were fired.
    #[derive(Default)]
    struct Fired(AtomicUsize);

    impl Wake for Fired {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn who_has_nothing_to_run_fires_what_is_late_at_a_worker_that_is_up() {
        let shared = &bare::begin(Config { workers: 3, ..Config::new(true) });
        while !shared.cores[2].unparker.is_parked() {} // the one that is there from the beginning
        shared.monitor.stop(); // it would see that nobody works on the other core
        let other = &shared.cores[0];
        assert!(shared.cores[1].ownership.try_take());
        let mut worker = Worker::new(shared, &shared.cores[1]).unwrap();
        let fired = Arc::new(Fired::default());
        let waker = Waker::from(fired.clone());
        let sleeps_there = |time| {
            let _there = mini_time::enter(other.driver().timers());
            let mut nap = Box::pin(mini_time::sleep(time));
            nap.as_mut().poll(&mut Context::from_waker(&waker)).is_pending().then_some(nap)
        };
        let fires = |worker: &mut Worker<'_>| {
            worker.meter.set();
            assert!(worker.next().is_none());
            fired.0.load(Relaxed)
        };
        let long = sleeps_there(Duration::from_secs(3600));
        shared.idle.unpark(other.index());
        assert_eq!((long.is_some(), fires(&mut worker)), (true, 0), "it is not due");
        shared.idle.park(other.index());
        let short = std::iter::repeat_with(|| sleeps_there(Duration::from_millis(1))).find(Option::is_some);
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(2) {} // where there are several workers no clock is paused
        assert_eq!(fires(&mut worker), 0, "who is parked wakes for it");
        shared.idle.unpark(other.index());
        assert_eq!(fires(&mut worker), 1);
        shared.idle.park(other.index());
        drop((short, long));
        shared.shutdown(None);
    }

    #[test]
    fn compute_bound_tasks_have_their_share_when_woken_tasks_never_end() {
        let (mut debt, mut compute_bound, mut woken) = (Debt::default(), 0, 0);
        for _ in 0..10_000 {
            let (why, took, sum) =
                if debt.is_due() { (Why::Share, 70_000, &mut compute_bound) } else { (Why::Woken, 10_000, &mut woken) };
            *sum += took;
            debt.note(why, took);
        }
        let share = compute_bound as f64 / (compute_bound + woken) as f64;
        assert!((0.24..0.26).contains(&share), "{share}");
    }

    #[test]
    fn a_batch_of_woken_tasks_is_not_interrupted() {
        let mut debt = Debt::default();
        for _ in 0..100 {
            debt.note(Why::Woken, MS / 2);
            assert!(!debt.is_due());
            debt.note(Why::Spare, 5 * MS);
        }
    }

    #[test]
    fn one_long_poll_of_woken_tasks_is_not_made_up_for_as_a_whole() {
        let mut debt = Debt::default();
        debt.note(Why::Woken, 60_000 * MS);
        debt.note(Why::Share, MS);
        assert!(debt.is_due());
        debt.note(Why::Share, MS);
        assert!(!debt.is_due());
    }

    #[test]
    fn what_waits_here_has_a_quarter_of_the_polls_however_much_comes() {
        let due = |there, here| {
            let mut quota = Quota::default();
            quota.set(there, here);
            (0..64).filter(|_| quota.is_due()).count()
        };
        assert_eq!(due(1_000_000, 1), 48);
        assert_eq!(due(300, 100), 48);
        assert_eq!(due(100, 300), 16);
        assert_eq!(due(1, 1_000), 1);
        assert_eq!(due(0, 7), 0);
    }

    #[test]
    fn spare_time_pays_and_is_not_paid_for() {
        let mut debt = Debt::default();
        debt.note(Why::Spare, 100 * MS);
        debt.note(Why::Woken, MS);
        assert!(debt.is_due());
        debt.note(Why::Share, 50 * MS);
        debt.note(Why::Spare, 50 * MS);
        debt.note(Why::Woken, 149 * MS);
        assert!(!debt.is_due(), "one long turn is followed by three times as long for others");
        debt.note(Why::Woken, 2 * MS);
        assert!(debt.is_due());
    }
}
