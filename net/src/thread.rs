//! System calls on threads: timer slack, CPU binding, fences, CPU time and the current system call.

use std::ffi::{c_int, c_long};
use std::fmt;
use std::io;
use std::time::Duration;

use crate::sys;

/// Sets the delay by which the kernel may wake this thread's timed waits late, in nanoseconds (at least 1).
///
/// Returns the previous value, or `None` where there is no such setting (only Linux and Android have it). Source:
/// `PR_SET_TIMERSLACK` in prctl(2).
///
/// # Examples
///
/// ```
/// if let Some(before) = mini_net::set_timer_slack(1_000) {
///     assert_eq!(mini_net::set_timer_slack(before), Some(1_000));
/// }
/// ```
pub fn set_timer_slack(nanos: u64) -> Option<u64> {
    sys::set_timer_slack(nanos)
}

/// Binds the calling thread to one of the processors that it may run on: 0 is the first, 1 the second and so on. After
/// the last, the count starts again at the first.
///
/// Returns `true` if the thread was bound; only Linux and Android can do that. Source: sched_setaffinity(2).
///
/// # Examples
///
/// ```
/// std::thread::spawn(|| mini_net::pin_thread(0)).join().unwrap()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Returns the errors of sched_setaffinity(2).
pub fn pin_thread(number: usize) -> io::Result<bool> {
    sys::pin(number)
}

/// The cheap half of an asymmetric pair of fences. If one thread passes this fence and another passes [`heavy_fence`],
/// they are ordered as by two fences with [`SeqCst`](std::sync::atomic::Ordering::SeqCst). Two threads that both pass
/// this one are not ordered. It costs no instruction on Linux.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
///
/// static HERE: AtomicBool = AtomicBool::new(false);
/// static THERE: AtomicBool = AtomicBool::new(false);
/// let other = std::thread::spawn(|| {
///     THERE.store(true, Relaxed);
///     mini_net::heavy_fence().then(|| HERE.load(Relaxed)) // none if there is no such fence
/// });
/// HERE.store(true, Relaxed);
/// mini_net::light_fence();
/// let sees = THERE.load(Relaxed);
/// assert!(sees || other.join().unwrap() != Some(false)); // one at least sees the other
/// ```
#[inline]
pub fn light_fence() {
    sys::light_fence();
}

/// The expensive half of a pair of fences: makes all running threads of this process pass a fence, by one system call.
/// See [`light_fence`].
///
/// Returns `true` if it has done so. A filter of system calls may forbid it. Source: membarrier(2).
///
/// # Examples
///
/// See [`light_fence`].
#[must_use]
pub fn heavy_fence() -> bool {
    sys::heavy_fence()
}

/// A thread of this process, seen from the others.
///
/// # Examples
///
/// ```
/// let thread = mini_net::ThreadNumber::current();
/// // `None` where the system does not tell.
/// assert_ne!(thread.is_runnable(), Some(false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadNumber(i32);

impl ThreadNumber {
    /// The calling thread.
    pub fn current() -> Self {
        Self(sys::own_thread())
    }

    /// The number of the thread, to be kept in an atomic.
    pub fn to_raw(self) -> i32 {
        self.0
    }

    /// Converts back a number that [`to_raw`](Self::to_raw) returned. Any other number has no meaning.
    pub fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// Returns the CPU time of the thread up to now, or `None` if it has ended or the system does not report it (only
    /// Linux and Android do).
    pub fn cpu_time(self) -> Option<Duration> {
        sys::cpu_time(self.0)
    }

    /// Returns the system call in which the thread waits, or `None` if it runs or the system does not report it (only
    /// Linux and Android do). The calling thread is in the read(2) by which it asks.
    ///
    /// # Examples
    ///
    /// ```
    /// if let Some(call) = mini_net::ThreadNumber::current().system_call() {
    ///     assert_eq!(call.to_string(), "read(2)");
    /// }
    /// ```
    pub fn system_call(self) -> Option<SystemCall> {
        sys::system_call(self.0).map(|(number, is_fourth_zero)| SystemCall { number, is_fourth_zero })
    }

    /// Sends a signal to the thread. Returns `false` if there is no such thread or signal, or if the system is neither
    /// Linux nor Android.
    ///
    /// # Examples
    ///
    /// ```
    /// let thread = mini_net::ThreadNumber::current();
    /// assert!(thread.signal(0) || cfg!(not(target_os = "linux"))); // only asks whether there is one, see kill(2)
    /// ```
    pub fn signal(self, signal: c_int) -> bool {
        sys::signal(self.0, signal)
    }

    /// Returns `true` if the thread runs or only waits for a CPU. Returns `None` in the same cases as
    /// [`cpu_time`](Self::cpu_time).
    pub fn is_runnable(self) -> Option<bool> {
        sys::is_runnable(self.0)
    }
}

/// A system call, by its number: see [`ThreadNumber::system_call`]. Calls in which threads commonly wait are displayed
/// as a manual page, such as `futex(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    number: c_long,
    is_fourth_zero: bool,
}

impl SystemCall {
    /// Returns `true` if it is futex(2), in which threads wait for each other: for locks, channels and ends.
    ///
    /// # Examples
    ///
    /// ```
    /// let call = mini_net::ThreadNumber::current().system_call(); // the read(2) by which it asks, if that is told
    /// assert!(!call.is_some_and(mini_net::SystemCall::is_futex));
    /// ```
    pub fn is_futex(self) -> bool {
        sys::system_call_name(self.number) == Some("futex")
    }

    /// Returns `true` if it is futex(2) with a timeout, so that it ends by itself. Source: futex(2).
    ///
    /// # Examples
    ///
    /// See [`is_futex`](Self::is_futex).
    pub fn is_timed_futex(self) -> bool {
        self.is_futex() && !self.is_fourth_zero
    }

    /// Returns `true` if it is a sleep. A signal ends a sleep early, and the call reports the time left.
    ///
    /// # Examples
    ///
    /// See [`is_futex`](Self::is_futex).
    pub fn is_sleep(self) -> bool {
        matches!(sys::system_call_name(self.number), Some("clock_nanosleep" | "nanosleep"))
    }

    /// Returns `true` if the call continues after a signal whose handler has `SA_RESTART`, or if no signal ends it
    /// early. A futex(2) wait with a timeout ends. Calls that sockets share with files do not count: on a socket with a
    /// timeout they end. Source: signal(7).
    ///
    /// # Examples
    ///
    /// See [`is_futex`](Self::is_futex).
    pub fn restarts(self) -> bool {
        const RESTARTS: [&str; 9] =
            ["fdatasync", "flock", "fsync", "futex", "openat", "pread64", "pwrite64", "wait4", "waitid"];
        sys::system_call_name(self.number).is_some_and(|name| RESTARTS.contains(&name))
    }
}

impl fmt::Display for SystemCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match sys::system_call_name(self.number) {
            Some(name) => write!(f, "{name}(2)"),
            None => write!(f, "system call {}", self.number),
        }
    }
}
