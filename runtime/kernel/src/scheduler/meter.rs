//! The time that a worker goes by: nanoseconds since its clock was made, read after polls.
//!
//! This is the one seam through which the scheduler reads time: all its decisions compare what [`Meter::lap`] returned.
//! A simulation replaces time by a counter of steps. So do models, and runtimes whose clock has been paused: what a
//! test does with time must not depend on how long its polls take.
//!
//! A reading takes 20 to 30 ns, longer than a short poll. So after [`READ_INTERVAL`] short laps in a row, as many
//! readings are left out as it takes for the rest to cost a twentieth of the time. The time between two readings is
//! charged to the lap that ends with the second, which on average is right, as with the samples by which kernels
//! account for CPU time. A poll that is known to be long is always measured. Only fifteen polls that were not known to
//! be long may go unnoticed, once: the next lap reads the time, and so do all later ones until as many in a row are
//! short again, and [`SURPRISE`] more.
//!
//! Rejected:
//! - The processor's cycle counter, which takes 12 ns (an instruction for each architecture; a rate that must be
//!   measured again and again; a counter that jumps back if the machine is suspended or moved; a twentieth of the time
//!   stays a twentieth).
//! - Charging each lap with the mean of those before (ten instructions for each, and a wrong guess is charged to
//!   another lap all the same).

use std::mem;

use mini_context::rules::{OVERHEAD, READ_COST, READ_INTERVAL, SURPRISE, WAKE_COST};
use mini_time::Clock;

use crate::primitives::HAS_TIME;
use crate::primitives::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct Meter<'a> {
    clock: Clock,
    now: u64,
    /// Each lap is a step of one nanosecond.
    counts_steps: bool,
    /// How many more laps do not read the time, and how many have not read it since the last reading.
    unread: u32,
    skipped: u32,
    /// How many laps in a row were short; negative as long as they make up for a long one that was not measured.
    short_laps: i32,
    /// Set by what is no part of a lap; a recorder clears it.
    left_out: &'a AtomicBool,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(clock: Clock, left_out: &'a AtomicBool) -> Self {
        left_out.store(true, Relaxed);
        let (now, counts_steps) = (clock.system_nanos(), counts_steps(&clock));
        Self { clock, now, counts_steps, unread: 0, skipped: 0, short_laps: 0, left_out }
    }

    /// The time as of the last lap.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// A poll is over: returns the nanoseconds since the last reading, or `None` if the time was not read, as the polls
    /// before were short.
    #[inline]
    pub(crate) fn lap(&mut self) -> Option<u64> {
        if self.skip() { None } else { Some(self.measure()) }
    }

    /// Returns `true` if the lap that is over does not read the time.
    #[inline]
    fn skip(&mut self) -> bool {
        let skips = self.unread > 0;
        if skips {
            self.unread -= 1;
            self.skipped += 1;
        }
        skips
    }

    /// Returns the number of further laps that will not read the time.
    #[inline]
    pub(crate) fn unread(&self) -> u32 {
        self.unread
    }

    /// Returns `true` if the last lap has read the time.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.skipped == 0
    }

    /// Leaves the time since the last lap out of the next lap, which reads the time. Returns that time, together with
    /// the laps before that have not read it.
    pub(crate) fn leave_out(&mut self) -> u64 {
        let took = self.measure();
        self.unread = 0;
        self.left_out.store(true, Relaxed);
        took
    }

    /// A call of its own: most polls are short, and go without.
    #[inline(never)]
    fn measure(&mut self) -> u64 {
        if self.counts_steps {
            self.now += 1;
            return 1;
        }
        let took = self.clock.system_nanos().saturating_sub(self.now);
        self.account(took);
        took
    }

    /// Notes a reading, `took` nanoseconds after the last one, and decides how many laps follow without one.
    #[inline]
    fn account(&mut self, took: u64) {
        self.now += took;
        let laps = mem::take(&mut self.skipped) + 1;
        let mean = u32::try_from(took).unwrap_or(u32::MAX) / laps;
        let interval = (OVERHEAD * READ_COST).checked_div(mean).unwrap_or(READ_INTERVAL).clamp(1, READ_INTERVAL);
        self.short_laps = match interval {
            1 if laps > 1 && took >= WAKE_COST => -(SURPRISE as i32),
            1 => self.short_laps.min(0),
            _ => self.short_laps.saturating_add(laps as i32),
        };
        if self.short_laps >= READ_INTERVAL as i32 {
            self.unread = interval - 1;
        }
    }

    /// The time by the clock, whatever the laps count.
    pub(crate) fn system_now(&self) -> u64 {
        if self.counts_steps { self.clock.system_nanos() } else { self.now }
    }

    pub(crate) fn counts_steps(&self) -> bool {
        self.counts_steps
    }

    /// Begins anew: what went on until now is no part of the next lap, which reads the time.
    pub(crate) fn set(&mut self) {
        self.counts_steps = counts_steps(&self.clock);
        (self.unread, self.skipped) = (0, 0);
        self.left_out.store(true, Relaxed);
        if !self.counts_steps {
            self.now = self.clock.system_nanos();
        }
    }
}

fn counts_steps(clock: &Clock) -> bool {
    !HAS_TIME || !clock.is_system()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A meter whose readings the test makes up, and the nanoseconds since the last one.
    struct Laps<'a>(Meter<'a>, u64);

    impl<'a> Laps<'a> {
        fn new(left_out: &'a AtomicBool) -> Self {
            Self(Meter::new(Clock::real(), left_out), 0)
        }

        fn lap(&mut self, nanos: u64) -> Option<u64> {
            self.1 += nanos;
            if self.0.skip() {
                return None;
            }
            self.0.account(self.1);
            Some(mem::take(&mut self.1))
        }

        /// Makes short laps, and returns the number of them that read the time.
        fn readings(&mut self, laps: u32) -> u32 {
            (0..laps).map(|_| u32::from(self.lap(30).is_some())).sum()
        }
    }

    #[test]
    fn laps_add_up_to_the_time_whether_it_is_read_or_not() {
        let left_out = AtomicBool::new(false);
        let mut laps = Laps::new(&left_out);
        let (begin, mut sum, mut unread) = (laps.0.now(), 0, 0);
        for _ in 0..READ_INTERVAL * 100 {
            match laps.lap(30) {
                Some(took) => sum += took,
                None => unread += 1,
            }
        }
        assert_eq!(sum, laps.0.now() - begin);
        assert_eq!(unread, (READ_INTERVAL - 1) * 99, "short polls in a row come first");
    }

    #[test]
    fn each_lap_reads_the_time_where_polls_are_long() {
        let left_out = AtomicBool::new(false);
        let mut laps = Laps::new(&left_out);
        assert!((0..1000).all(|_| laps.lap((OVERHEAD * READ_COST).into()).is_some()));
    }

    #[test]
    fn what_is_left_out_is_told() {
        let left_out = AtomicBool::new(false);
        let was_told = || left_out.swap(false, Relaxed);
        let mut meter = Meter::new(Clock::real(), &left_out);
        assert!(was_told(), "nothing was polled before");
        for _ in 0..100 {
            meter.lap();
            assert!(!was_told(), "a poll follows a poll");
        }
        meter.leave_out();
        assert!(was_told());
        meter.set();
        assert!(was_told());
    }

    #[test]
    fn a_long_poll_among_short_ones_is_followed_by_readings() {
        let left_out = AtomicBool::new(false);
        let mut laps = Laps::new(&left_out);
        assert_eq!(laps.readings(READ_INTERVAL + 1), READ_INTERVAL);
        laps.lap(WAKE_COST);
        assert_eq!(laps.readings(READ_INTERVAL - 3), 0, "it has not been noticed yet");
        let each = 1 + SURPRISE + READ_INTERVAL;
        assert_eq!(laps.readings(each), each);
        assert_eq!(laps.readings(READ_INTERVAL), 1);
    }
}
