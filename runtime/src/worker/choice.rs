//! What a worker runs next: [`Worker::next`] is the one function that chooses.
//!
//! Owned tasks, and the `block_on` future among them, run first in, first out, and so do shared ones. A multi-threaded worker
//! alternates between its owned queue and its ring (three shared tasks in a row that woke each other alone may come first), takes
//! from the injector every 16th time, or more often if much waits there, and from other workers' rings when it has nothing left. Where
//! it always has something, now and then a look at another's ring evens out what they have.
//!
//! Rejected: the task that was woken last runs next, though others wait (a connection of HTTP/2 ran after each of its streams,
//! with a write for each: six times as many, and 0.64 of the requests per second).

use super::Worker;
use crate::core::{Core, Entry};
use crate::task::Queued;

/// Runs between two looks into the injector.
///
/// So a task from another thread waits for this many runs where all workers are busy: 3 ms if each takes 200 µs. (One that rests
/// is called for it at once.) A clock read at each run would cost more than a short task does, and `look_around` comes later
/// still.
const INJECTOR_INTERVAL: u32 = 16;

/// The least runs between two looks, where so many tasks wait in there that the worker would come to them too seldom: it takes one of
/// them for as many of its own as make the same part of those. (With 1,000 that yield, and 900 from another thread, the last of these
/// ran after 13,000 others when it always were [`INJECTOR_INTERVAL`].)
const CROWD_INTERVAL: u32 = 2;

/// How many tasks a worker takes from the injector at once, beside the one it runs.
const INJECTOR_SHARE: usize = 64;

/// What part of its own tasks another worker may have more than this one: they differ all the time, as tasks come and go.
const UNEVEN: usize = 4;

/// How many looks around there are to one at another worker's ring: about 1,024 runs, which are longer than a batch of events lasts.
const LOOKS_TO_EVEN_OUT: u32 = 16;

/// How many tasks may run in a row because they were woken while no shared task waited: owned ones may wait.
const WOKEN_LIMIT: u8 = 3;

impl Worker<'_> {
    /// Chooses what runs next.
    pub(super) fn next(&mut self) -> Option<Entry> {
        if let Some(root) = &self.root {
            root.take_wake();
        }
        if self.core.has_mail() {
            self.core.read_inbox();
        }
        // On a closed core no shared task must come to lie in the ring.
        if !self.pool.is_multi_thread() || self.is_closed {
            return self.core.pop_owned();
        }
        self.since_injector += 1;
        if self.since_injector >= INJECTOR_INTERVAL || self.is_crowd() {
            self.since_injector = 0;
            if let Some(task) = self.pool.injector.pop() {
                return Some(Entry::Task(task));
            }
        }
        if let Some(task) = self.next_woken() {
            return Some(Entry::Task(task));
        }
        let core = self.core;
        let shared = || core.pop_front().map(Entry::Task);
        self.owned_first = !self.owned_first;
        let next = match self.owned_first {
            true => core.pop_owned().or_else(shared),
            false => shared().or_else(|| core.pop_owned()),
        };
        next.or_else(|| self.find_work().map(Entry::Task))
    }

    /// Whether it is time to take a task from the injector, as many as there are.
    fn is_crowd(&self) -> bool {
        let since = self.since_injector as usize;
        self.since_injector >= CROWD_INTERVAL && since.saturating_mul(self.pool.injector.len()) > self.core.ring_len()
    }

    /// The task that was woken while no other waited, unless that has gone on for too long and others wait by now.
    fn next_woken(&mut self) -> Option<Queued> {
        let Some(task) = self.core.pop_next() else {
            self.woken_run = 0;
            return None;
        };
        if self.woken_run < WOKEN_LIMIT {
            self.woken_run += 1;
            return Some(task);
        }
        if self.core.ring_len() == 0 && !self.core.has_owned_work() {
            return Some(task);
        }
        self.woken_run = 0;
        self.core.push_back(task);
        None
    }

    /// This worker has nothing: take a share of the injector, or half of another worker's ring.
    fn find_work(&mut self) -> Option<Queued> {
        // The ring is empty, so there is room for a share, and it does not overflow into the injector.
        let keep = |task| self.core.push_back(task);
        if let Some(task) = self.pool.injector.take_share(self.pool.cores.len(), INJECTOR_SHARE, keep) {
            return Some(task);
        }
        if !self.pool.cores.iter().any(|core| self.can_steal_from(core)) || !self.pool.idle.start_search() {
            return None;
        }
        let found = self.pool.cores.iter().any(|core| self.can_steal_from(core) && core.steal_for(self.core));
        self.pool.idle.finish_search();
        self.core.pop_front().filter(|_| found)
    }

    /// Takes from a worker that has more tasks, half of what it has more. Those who yield, or wake one another, would stay where they have
    /// come to lie, and run the less often the more they are there. One worker at a time is looked at, at one of so many looks around
    /// that a batch of events is gone by then. Of an odd number the odd one changes sides at each such look, and has its turn on both.
    pub(super) fn even_out(&mut self) {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS_TO_EVEN_OUT) || self.is_closed {
            return;
        }
        let (core, cores) = (self.core, &self.pool.cores);
        let other = &cores[(self.looks / LOOKS_TO_EVEN_OUT) as usize % cores.len()];
        if other.index() == core.index() {
            return;
        }
        let more = how_many_more(other.ring_len(), other.noted_backlog(), core.backlog());
        other.give_some(core, more.div_ceil(2));
    }

    pub(super) fn can_steal_from(&self, core: &Core) -> bool {
        core.index() != self.core.index() && core.is_worth_stealing()
    }
}

/// How many tasks more another worker has than this one, who runs none just now and has `own`; zero if that is not many.
///
/// The other runs one beside those in its `ring`, or has put that back just now: so it has no more than it has `noted` lately. Its only
/// one is left to it.
fn how_many_more(ring: usize, noted: usize, own: usize) -> usize {
    let theirs = (ring + 1).min(noted);
    let more = theirs.saturating_sub(own);
    if theirs > 1 && more > own / UNEVEN { more } else { 0 }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::how_many_more;

    #[test]
    fn nobody_is_robbed_of_the_only_task() {
        for own in 0..3 {
            assert_eq!(how_many_more(0, 1, own), 0, "it runs");
            assert_eq!(how_many_more(1, 1, own), 0, "it waits for the next run");
            assert_eq!(how_many_more(1, 0, own), 0, "its worker rested at its last look");
        }
    }

    #[test]
    fn an_odd_one_changes_sides_and_few_more_stay() {
        assert_eq!(how_many_more(1, 2, 1), 1);
        assert_eq!(how_many_more(1, 2, 0), 2);
        assert_eq!(how_many_more(9, 10, 8), 0);
        assert_eq!(how_many_more(10, 11, 8), 3);
        assert_eq!(how_many_more(899, 900, 1), 899);
    }
}
