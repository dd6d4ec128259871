//! Whether the tasks that wait for a worker are worth waking another one for, by what the watch sees of it at its looks.
//!
//! Waking a worker takes 40 µs in all, so a backlog that is gone by then is better left alone ([`is_long`]). But tasks that yield, or
//! wake one another, are never gone, though few wait at any moment: they may keep one worker busy for good while another rests.
//! So a backlog of any length is worth a wake where it has lasted ([`Backlog::has_lasted`]).
//!
//! Rejected: waking another worker for such tasks however short their runs are. Three tasks that yield after 60 ns each ran half as
//! often on two workers as on one, since queues and counters of tasks that move go from one processor to the other.

/// After how many looks in a row that find tasks waiting they have lasted.
const LOOKS: u32 = 3;

/// How many runs there are at most between two looks, a millisecond apart, where runs are long enough to be shared: half a microsecond.
const MOST_RUNS: u64 = 2_000;

/// What the looks have seen of the tasks that wait for one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    /// How often the worker had gone to rest.
    parks: u64,
    /// How many looks in a row have found tasks waiting since then.
    looks: u32,
}

impl Backlog {
    /// Says, after a look that has found `waiting` tasks in the ring of a worker which has gone to rest `parks` times, and has run
    /// `runs` times since the look before, whether they are to be shared now.
    pub(super) fn has_lasted(&mut self, waiting: usize, parks: u64, runs: u64) -> bool {
        let goes_on = waiting > 0 && parks == self.parks && runs <= MOST_RUNS;
        self.looks = if goes_on { self.looks + 1 } else { 0 };
        self.parks = parks;
        if self.looks < LOOKS {
            return false;
        }
        self.looks = 0;
        true
    }
}

/// Whether a backlog takes longer than a fifth of a tick, at a pace of `runs` per tick.
pub(super) fn is_long(backlog: usize, runs: u64) -> bool {
    backlog as u64 > runs / 5
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// How many of ten looks find that it has lasted.
    fn shares(look: impl Fn(u64) -> (usize, u64, u64)) -> usize {
        let mut backlog = Backlog::default();
        (0..10).map(look).filter(|&(waiting, parks, runs)| backlog.has_lasted(waiting, parks, runs)).count()
    }

    #[test]
    fn what_waits_at_each_look_is_shared_now_and_then() {
        assert_eq!(shares(|_| (1, 0, 100)), 3);
        assert_eq!(shares(|_| (1, 7, MOST_RUNS)), 3);
    }

    #[test]
    fn what_is_done_at_times_is_not() {
        assert_eq!(shares(|_| (0, 0, 100)), 0);
        assert_eq!(shares(|nth| (nth as usize % 3, 0, 100)), 0);
        assert_eq!(shares(|nth| (1, nth / 2, 100)), 0, "it has rested");
    }

    #[test]
    fn short_runs_are_not() {
        assert_eq!(shares(|_| (100, 0, MOST_RUNS + 1)), 0);
    }
}
