//! The time that a worker goes by: nanoseconds since its clock was made, read after runs.
//!
//! This is the one seam through which the scheduler reads time. All its decisions compare what [`Meter::lap`] has said;
//! a simulation replaces it by a counter of steps, as models do here, and runtimes whose clock has been paused: what a
//! test does with time must not depend on how long its runs take.
//!
//! The cycle counter tells how long a run took, the clock what time it is: the worker [sets](Meter::set) the meter by
//! the clock at each look, and learns from two such moments how many nanoseconds a cycle takes. Until then, and where
//! there is no steady counter, the clock is read each time.
//!
//! A reading takes 8 to 12 ns, as long as a short run. So after eight short laps in a row readings are left out, as
//! many as it takes to spend a twentieth of the time on them. The time between two readings is charged to the lap that
//! ends with the second, which on average is right, as with the samples by which kernels account for CPU time. A run
//! that is known to be long is always measured. What may go unnoticed are seven runs that nobody could know to be long,
//! once: the next lap reads the time, and all others until eight in a row are short again, and sixty-four more.
//!
//! Rejected: charging each lap with the mean of those before (ten instructions for each, and a wrong guess is charged
//! to another lap all the same).
//! Rejected: the rate from the processor's description (CPUID leaf 0x15, which most virtual machines leave empty). One
//! rate for the whole process (a cell that all workers share, for a division every 10 ms).

use std::mem;
use std::sync::LazyLock;

use mini_time::Clock;

use crate::scheduler::cycles;
use crate::scheduler::rules::{READ_COST, READ_INTERVAL, WAKE_COST};
use crate::sync::HAS_TIME;

/// The cycle counter can be used.
static ARE_STEADY: LazyLock<bool> = LazyLock::new(cycles::are_steady);

/// Nanoseconds between two moments that give a new rate: 10 ms, in which the two readings of a moment lie 100 ns apart
/// at most.
const CALIBRATION: u64 = 10_000_000;

/// Nanoseconds after which a first, less exact rate is taken.
const FIRST_CALIBRATION: u64 = 100_000;

/// Cycles between two readings of which one shows that the thread was preempted: some microseconds, at any rate there
/// is.
const PREEMPTED: u64 = 20_000;

/// Nanoseconds of a lap that the clock is asked about, which costs nothing beside it.
const DOUBTFUL: u64 = 1_000_000;

/// After a long lap that was not measured, all are measured until so many more were short.
const SURPRISE: i32 = 8 * READ_INTERVAL as i32;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug)]
struct Moment {
    cycles: u64,
    nanos: u64,
}

#[derive(Debug)]
pub(crate) struct Meter {
    clock: Clock,
    now: u64,
    /// When it was set by the clock.
    set: Moment,
    /// When the rate was found.
    calibrated: Moment,
    /// Nanoseconds per cycle, times 2^32; zero as long as it is not known.
    rate: u64,
    /// Each lap is a step of one nanosecond.
    counts_steps: bool,
    /// How many laps more do not read the time, and how many have not since the last reading.
    unread: u32,
    skipped: u32,
    /// How many laps in a row were short; negative as long as they make up for a long one that was not measured.
    short_laps: i32,
}

impl Meter {
    /// With the rate that another meter has found, or zero.
    pub(crate) fn new(clock: Clock, rate: u64) -> Self {
        let moment = Moment { cycles: cycles::read(), nanos: clock.system_nanos() };
        let counts_steps = !HAS_TIME || !clock.is_system();
        Self {
            clock,
            now: moment.nanos,
            set: moment,
            calibrated: moment,
            rate,
            counts_steps,
            unread: 0,
            skipped: 0,
            short_laps: 0,
        }
    }

    /// Nanoseconds per cycle, times 2^32; zero as long as it is not known.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// The time as of the last lap.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// A run is over: returns the nanoseconds since the last reading, or `None` if the time was not read, as the runs
    /// before were short.
    #[inline]
    pub(crate) fn lap(&mut self) -> Option<u64> {
        if self.unread > 0 {
            self.unread -= 1;
            self.skipped += 1;
            return None;
        }
        Some(self.measure())
    }

    /// How many laps more will not read the time.
    #[inline]
    pub(crate) fn unread(&self) -> u32 {
        self.unread
    }

    /// Whether the last lap has read the time.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.skipped == 0
    }

    /// What went on since the last lap is no part of the next one, which reads the time. Returns how long that was,
    /// with the laps before that have not read it.
    pub(crate) fn leave_out(&mut self) -> u64 {
        let took = self.measure();
        self.unread = 0;
        took
    }

    fn measure(&mut self) -> u64 {
        if self.counts_steps {
            self.now += 1;
            return 1;
        }
        let mut took = self.read().saturating_sub(self.now);
        if took >= DOUBTFUL {
            // The counter may have gone on while the system slept, or differ from processor to processor.
            took = self.clock.system_nanos().saturating_sub(self.now);
            self.rebase(self.now.saturating_add(took));
        }
        self.now += took;
        let laps = mem::take(&mut self.skipped) + 1;
        let mean = u32::try_from(took).unwrap_or(u32::MAX) / laps;
        let interval = (20 * READ_COST).checked_div(mean).unwrap_or(READ_INTERVAL).clamp(1, READ_INTERVAL);
        self.short_laps = match interval {
            1 if laps > 1 && took >= WAKE_COST => -SURPRISE,
            1 => self.short_laps.min(0),
            _ => self.short_laps.saturating_add(laps as i32),
        };
        if self.short_laps >= READ_INTERVAL as i32 {
            self.unread = interval - 1;
        }
        took
    }

    /// The time by the clock, whatever the laps count.
    pub(crate) fn system_now(&self) -> u64 {
        if self.counts_steps { self.clock.system_nanos() } else { self.now }
    }

    pub(crate) fn counts_steps(&self) -> bool {
        self.counts_steps
    }

    /// It is `nanos` by the clock now.
    fn rebase(&mut self, nanos: u64) {
        self.set = Moment { cycles: cycles::read(), nanos };
    }

    #[inline]
    fn read(&self) -> u64 {
        if self.rate == 0 {
            return self.clock.system_nanos();
        }
        let cycles = cycles::read().saturating_sub(self.set.cycles);
        self.set.nanos + ((u128::from(cycles) * u128::from(self.rate)) >> 32) as u64
    }

    /// Sets it by the clock.
    pub(crate) fn set(&mut self) {
        self.counts_steps = !HAS_TIME || !self.clock.is_system();
        (self.unread, self.skipped) = (0, 0);
        if self.counts_steps {
            return;
        }
        let before = cycles::read();
        let moment = Moment { nanos: self.clock.system_nanos(), cycles: cycles::read() };
        let since = moment.nanos.saturating_sub(self.calibrated.nanos);
        // Not where the thread was preempted between the two readings.
        let is_exact = moment.cycles.wrapping_sub(before) < PREEMPTED;
        if is_exact && (since >= CALIBRATION || self.rate == 0 && since >= FIRST_CALIBRATION) {
            let cycles = moment.cycles.saturating_sub(self.calibrated.cycles);
            self.rate = if *ARE_STEADY { rate(since, cycles) } else { 0 };
            self.calibrated = moment;
        }
        self.set = moment;
        self.now = moment.nanos;
    }
}

/// Nanoseconds per cycle, times 2^32; zero if it is out of the question.
fn rate(nanos: u64, cycles: u64) -> u64 {
    let rate = (u128::from(nanos) << 32).checked_div(u128::from(cycles));
    rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(0)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_as_the_clock_does() {
        let clock = Clock::real();
        let mut meter = Meter::new(clock.clone(), 0);
        let mut laps = 0;
        while meter.now() < 2 * CALIBRATION {
            let before = clock.system_nanos();
            meter.leave_out();
            let after = clock.system_nanos();
            // A thousandth of what the rate was taken from, and what the two readings lie apart.
            assert!(meter.now() + CALIBRATION / 100 >= before, "{} is behind {before}", meter.now());
            assert!(meter.now() <= after + CALIBRATION / 100, "{} is ahead of {after}", meter.now());
            laps += 1;
            if laps % 10_000 == 0 {
                meter.set();
            }
        }
    }

    #[test]
    fn laps_add_up_to_the_time_whether_it_is_read_or_not() {
        let mut meter = Meter::new(Clock::real(), 0);
        let (begin, mut sum, mut unread) = (meter.now(), 0, 0);
        for _ in 0..100_000 {
            match meter.lap() {
                Some(took) => sum += took,
                None => unread += 1,
            }
        }
        assert_eq!(sum, meter.now() - begin);
        assert!(unread > 25_000, "{unread}");
    }

    #[test]
    fn a_long_run_among_short_ones_is_followed_by_readings() {
        let mut meter = Meter::new(Clock::real(), 0);
        while meter.lap().is_some() {}
        let clock = Clock::real();
        while clock.system_nanos() < 100_000 {}
        while meter.lap().is_none() {}
        assert!((1..SURPRISE).all(|_| meter.lap().is_some()));
    }

    #[test]
    fn a_rate_is_nanoseconds_by_cycles() {
        assert_eq!(rate(1_000, 2_000), 1 << 31);
        assert_eq!(rate(1_000, 0), 0);
        assert_eq!(rate(u64::MAX, 1), 0);
    }
}
