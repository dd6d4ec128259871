//! The C library's random bytes and time in a test binary with `interpose!`.
//!
//! Called by `interposed`, whose functions replace those of the C library; each simulation calls `begin`. All state
//! here is thread-local, and none of it has a destructor: a thread that starts or ends may read clocks too.
//!
//! The time is that of the step in progress (`mini_context::sim::program_time`), so the scheduler, which looks at real
//! clocks between two steps, is not disturbed. Random bytes are drawn even between steps: the standard library keeps
//! the keys of its first `HashMap` on a thread, and that may be one of mini.
//!
//! # A program that waits by reading the clock
//!
//! `while start.elapsed() < limit {}` would never end, as no time passes in a step. So after [`PATIENCE`] readings of
//! the same time each one adds [`MOMENT`]. A clock that has been moved in this way stops until virtual time has caught
//! up. Each host has clocks of its own, which may be skewed.
//!
//! Rejected:
//! - The functions in this crate, for all programs that have the feature: a library would replace its user's clock.
//! - Real readings of `CLOCK_MONOTONIC` as the beginning: what is computed from them (a hash, a number of whole
//!   milliseconds) would differ in each run.

#![cfg_attr(not(all(target_os = "linux", target_pointer_width = "64")), allow(dead_code))]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use mini_context::sim::{self, Random};

/// What monotonic clocks show when a simulation begins.
///
/// Not 0, which programs take for "never". And little: where a thread waits until a certain time, in `recv_timeout`
/// say, the kernel compares that with its own clock, which shows the time since the machine was booted.
const MONOTONIC: Duration = Duration::from_secs(1);

/// What the calendar shows then, since 1970: 2000-01-01 00:00:00 UTC.
pub(super) const CALENDAR: Duration = Duration::from_secs(946_684_800);

/// So often a program may read one time.
const PATIENCE: u32 = 100_000;

/// What each further reading adds.
const MOMENT: Duration = Duration::from_micros(1);

/// Hosts of which it is kept what their clocks have shown. Those of more are what the time of the step makes them.
const HOSTS: usize = 64;

thread_local! {
    /// `None` before the first simulation on this thread.
    static RANDOM: Cell<Option<Random>> = const { Cell::new(None) };
    static READINGS: Cell<Readings> = const { Cell::new(Readings::NONE) };
    /// What the last reading on a host said.
    static SHOWN: [Cell<Duration>; HOSTS] = const { [const { Cell::new(Duration::ZERO) }; HOSTS] };
}

/// This binary has the macro's functions. A simulation reads a clock through them when it begins.
static IS_USED: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy, Debug)]
struct Readings {
    /// On this host, of this virtual time.
    of: (u32, Duration),
    count: u32,
}

/// The clock that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Monotonic,
    Calendar,
}

/// A simulation of `seed` begins on this thread.
pub(super) fn begin(seed: u64) {
    RANDOM.set(Some(Random::new(seed, 100)));
    READINGS.set(Readings::NONE);
    SHOWN.with(|shown| shown.iter().for_each(|last| last.set(Duration::ZERO)));
}

/// Fills `buf` from a stream of the seed, if this thread runs a simulation; says whether it has.
pub(super) fn fill(buf: &mut [MaybeUninit<u8>]) -> bool {
    let Some(mut random) = RANDOM.get().filter(|_| sim::is_simulated()) else { return false };
    for chunk in buf.chunks_mut(8) {
        for (to, byte) in chunk.iter_mut().zip(random.draw().to_le_bytes()) {
            to.write(byte);
        }
    }
    RANDOM.set(Some(random));
    true
}

/// What the clock shows, if this thread runs a step of a simulation: for monotonic clocks since they began, for the
/// calendar since 1970.
pub(super) fn read(kind: Kind) -> Option<Duration> {
    let (host, now) = (sim::host(), sim::program_time()?);
    let readings = READINGS.get().and(host, now);
    READINGS.set(readings);
    let shown = SHOWN.with(|shown| {
        let Some(last) = shown.get(host as usize) else {
            return now.saturating_add(MOMENT * readings.count.saturating_sub(PATIENCE));
        };
        last.set(match readings.count {
            1 => last.get().max(now),
            2..=PATIENCE => last.get(),
            _ => last.get().saturating_add(MOMENT),
        });
        last.get()
    });
    let begin = match kind {
        Kind::Monotonic => MONOTONIC,
        Kind::Calendar => CALENDAR,
    };
    Some(begin.saturating_add(shown))
}

/// A simulation ends on this thread: has it read a clock through the macro's functions?
pub(super) fn note_use() {
    if READINGS.get().count > 0 {
        IS_USED.store(true, Relaxed);
    }
}

/// Why two runs of a seed may differ in this binary, and what helps.
pub(super) fn causes() -> &'static str {
    let can_help = cfg!(all(target_os = "linux", target_pointer_width = "64"));
    if can_help && !IS_USED.load(Relaxed) {
        "use `mini::sim::interpose!()` in this test binary: the order of HashMaps and std's clocks may differ from run \
         to run; so may statics and threads"
    } else {
        "what is not simulated may differ from run to run: threads, statics, addresses, hash maps, clocks and random \
         numbers that `mini::sim::interpose!` does not reach, as those of `select!` of futures and tokio"
    }
}

impl Readings {
    const NONE: Self = Self { of: (0, Duration::ZERO), count: 0 };

    /// One more, at `now` on `host`.
    fn and(self, host: u32, now: Duration) -> Self {
        let count = if self.of == (host, now) { self.count.saturating_add(1) } else { 1 };
        Self { of: (host, now), count }
    }
}

/// Lets the standard library's clocks, the order of its hash maps, and random numbers follow the seed in this binary's
/// simulations.
///
/// Write it once, at the top level of a test file (a binary of its own, `tests/*.rs`) or of a program. It defines the
/// functions `getrandom`, `getentropy` and `clock_gettime` of the C library for that binary. On the thread of a
/// simulation the seed determines their results; on other threads they are the system's.
///
/// # Examples
///
/// ```standalone_crate
/// use std::time::{Duration, Instant, SystemTime};
///
/// mini::sim::interpose!();
///
/// # fn main() {
/// let program = || async {
///     let (start, date) = (Instant::now(), SystemTime::now());
///     mini::time::sleep(Duration::from_secs(3600)).await;
///     assert_eq!(start.elapsed(), Duration::from_secs(3600)); // which took no time
///     assert_eq!(date.elapsed().unwrap(), Duration::from_secs(3600));
///     let since_1970 = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
///     assert_eq!(since_1970.as_secs(), 946_684_800); // it is 2000-01-01 00:00:00 UTC
///     let set: std::collections::HashSet<u32> = (0..50).collect();
///     set.into_iter().collect::<Vec<_>>()
/// };
/// let order = |seed| std::thread::spawn(move || mini::sim::Sim::new(seed).run(program()).unwrap()).join().unwrap();
/// assert_eq!(order(7), order(7));
/// assert_ne!(order(7), order(8));
/// # }
/// ```
///
/// # What it buys
///
/// - `std::time::Instant` and [`mini::time::Instant`](crate::time::Instant) are one clock, so libraries that keep time
///   by the standard library's (hyper, h2, quinn, tower, tokio's types) time out in virtual time, as everything else
///   does. So do `SystemTime` and the crates on it (chrono, jiff, time). `SystemTime` begins with 2000-01-01 00:00:00
///   UTC in each simulation: certificates must be valid at that time.
/// - A `HashMap` has the same order in each run of a seed, and another one under another seed.
/// - The crate `getrandom` from 0.3 on, and so `rand` from 0.9 on, and `uuid`.
///
/// # What it does not
///
/// - The standard library draws the keys of hash maps once for a thread. Each seed of
///   [`#[mini::test(sim)]`](crate::test) has a fresh thread; a second [`Sim::run`](crate::sim::Sim::run) on one thread
///   reuses the keys of the first, and on the thread of a `#[test]` that has used a hash map before, the keys are not
///   the seed's. Run each simulation on a thread of its own, as in the example.
/// - A hash map, or a number, in a `static`: the first seed that reaches it determines it.
/// - The polling order of `futures::select!`, `tokio::select!` and, with tokio's features `macros` or `rt`, of the
///   waiters of a `tokio::sync::watch`: their random numbers begin with an address or a counter of the process.
///   `select_biased!`, `biased;` and mini's own `race!` and `mini::sync::watch` use no such numbers.
/// - Code that asks the kernel or the processor itself: `getrandom` 0.2 (`rand` 0.8), which calls by number; time(2)
///   and gettimeofday(2); `quanta` and `minstant`, which count cycles. Code that draws from addresses (`foldhash`, the
///   hasher of `hashbrown`) or from the number of the thread (`fastrand`).
/// - Threads that the program starts: their clock and random numbers are the system's.
/// - Blocking a thread for a time (`std::thread::sleep`, `recv_timeout`): it takes real time, or none.
///
/// `MINI_SIM_CHECK=1` finds such differences if they change what happens.
///
/// No time passes in a step, whatever its real duration. A program that reads the same time a hundred thousand times is
/// waiting for something: then each reading adds a microsecond, so that the wait ends. On the 64th host and later ones,
/// a clock that was moved in this way goes back when another host has read its clock, or when virtual time advances.
///
/// Outside a simulation, reading the clock costs a few nanoseconds more than without this macro. The scheduler and
/// mini's threads read the system's clock.
///
/// # Systems
///
/// On systems other than 64-bit Linux the macro expands to nothing: tests run, and `MINI_SIM_CHECK` finds differences
/// between two runs.
///
/// # Errors
///
/// The compiler or the linker reports that `getrandom` is defined twice if a binary calls this macro twice.
#[doc(hidden)]
#[macro_export]
macro_rules! __interpose {
    () => {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        const _: () = {
            use $crate::sim::interposed::{self, Clock, Flags, Int, Time, Void};

            #[unsafe(no_mangle)]
            unsafe extern "C" fn getrandom(buf: *mut Void, length: usize, flags: Flags) -> isize {
                // SAFETY: whoever calls the C library's `getrandom` promises the same of these arguments. Test:
                // tests/tests/interposed/interpose.rs `the_c_librarys_functions_say_what_the_seed_says`.
                unsafe { interposed::getrandom(buf, length, flags) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn getentropy(buf: *mut Void, length: usize) -> Int {
                // SAFETY: whoever calls the C library's `getentropy` promises the same of these arguments. Test:
                // tests/tests/interposed/interpose.rs `the_c_librarys_functions_say_what_the_seed_says`.
                unsafe { interposed::getentropy(buf, length) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn clock_gettime(clock: Clock, time: *mut Time) -> Int {
                // SAFETY: whoever calls the C library's `clock_gettime` promises the same of these arguments. Test:
                // tests/tests/interposed/interpose.rs `the_c_librarys_functions_say_what_the_seed_says`.
                unsafe { interposed::clock_gettime(clock, time) }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini_context::sim::Faults;

    /// Runs `f` as a step of a simulation.
    fn simulated<T>(seed: u64, f: impl FnOnce() -> T) -> T {
        sim::enter(Faults::default());
        begin(seed);
        sim::begin_step(0, Duration::ZERO);
        let output = f();
        sim::leave();
        output
    }

    #[test]
    fn the_clock_goes_on_for_who_waits_by_reading_it() {
        let second = Duration::from_secs(1);
        simulated(1, || {
            let start = read(Kind::Monotonic).unwrap();
            assert_eq!((start, read(Kind::Calendar)), (MONOTONIC, Some(CALENDAR)));
            while read(Kind::Monotonic).unwrap() - start < second {}
            assert_eq!(read(Kind::Calendar), Some(CALENDAR + second + MOMENT));
            sim::begin_step(0, second / 2);
            assert_eq!(read(Kind::Monotonic), Some(MONOTONIC + second + MOMENT), "it does not go back");
            sim::begin_step(0, 2 * second);
            assert_eq!(read(Kind::Monotonic), Some(MONOTONIC + 2 * second));
        });
        assert_eq!(read(Kind::Monotonic), None);
    }

    #[test]
    fn hosts_of_which_nothing_is_kept_move_no_others_clock() {
        let (second, many) = (Duration::from_secs(1), HOSTS as u32);
        simulated(1, || {
            sim::begin_step(many, 5 * second);
            assert_eq!(read(Kind::Monotonic), Some(MONOTONIC + 5 * second));
            while read(Kind::Monotonic).unwrap() < MONOTONIC + 6 * second {}
            for other in [0, many + 1, 2 * many] {
                sim::begin_step(other, second);
                assert_eq!(read(Kind::Monotonic), Some(MONOTONIC + second), "on host {other}");
            }
        });
    }
}
