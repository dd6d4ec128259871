//! The information and settings of a thread on Linux and Android.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence, fence};
use std::time::Duration;

/// Sets how late the kernel may wake this thread's waits, in nanoseconds; returns what was set before.
///
/// Source: PR_SET_TIMERSLACK in prctl(2).
pub(crate) fn set_timer_slack(nanos: u64) -> Option<u64> {
    if cfg!(miri) {
        return None; // Miri has no such system call
    }
    // SAFETY: takes no pointer, and changes nothing; `timer_slack_is_set_and_told` runs it.
    let before = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    // Zero would mean "back to the default" (prctl(2)), which nobody asked for.
    let wanted = libc::c_ulong::try_from(nanos).unwrap_or(libc::c_ulong::MAX).max(1);
    // SAFETY: takes no pointer, and touches the calling thread's slack alone; the same test runs it.
    let done = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, wanted) };
    (before >= 0 && done == 0).then_some(before as u64)
}

/// `true` if fences of two kinds are not needed or not available: Miri has no such system call, and Android's filter of
/// system calls may kill a process that tries it.
const ALIKE: bool = cfg!(any(miri, target_os = "android"));

/// See [`light_fence`](crate::light_fence).
#[inline]
pub(crate) fn light_fence() {
    if ALIKE { fence(SeqCst) } else { compiler_fence(SeqCst) }
}

/// See [`heavy_fence`](crate::heavy_fence). Source: membarrier(2), Linux 4.14.
pub(crate) fn heavy_fence() -> bool {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    if ALIKE {
        fence(SeqCst);
        return true;
    }
    let command = |command: libc::c_int| {
        // SAFETY: takes three numbers and no pointer. Test: `fences_of_both_kinds_order_two_threads`.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    };
    if !IS_REGISTERED.load(Relaxed) {
        IS_REGISTERED.store(command(REGISTER_PRIVATE_EXPEDITED), Relaxed);
    }
    command(PRIVATE_EXPEDITED)
}

/// The calling thread, for the functions below. Source: gettid(2).
pub(crate) fn own_thread() -> i32 {
    // SAFETY: takes no pointer, and cannot fail; `a_thread_that_computes_shows_it` runs it.
    unsafe { libc::gettid() }
}

/// How long `thread` of this process has run on a CPU, if there is such a thread.
///
/// Up to date even while it runs, unlike the value in /proc. The clock's number is made as pthread_getcpuclockid(3)
/// makes it: the complement of the thread's number, and in the three lowest bits "of one thread" (4) and "as scheduled"
/// (2).
pub(crate) fn cpu_time(thread: i32) -> Option<Duration> {
    let clock = !thread << 3 | 6;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` has room for a timespec. A number that is no clock is an error.
    // Test: `a_thread_that_computes_shows_it`.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled, as the call succeeded. Test: as above.
    let time = unsafe { time.assume_init() };
    Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns `true` if `thread` of this process would run if it had a CPU. Source: `state` in proc_pid_stat(5); a thread
/// that is stopped by a tracer counts as running.
pub(crate) fn is_runnable(thread: i32) -> Option<bool> {
    let mut stat = [0; 64];
    let length = File::open(format!("/proc/self/task/{thread}/stat")).ok()?.read(&mut stat).ok()?;
    // "number (name) state ...", where the name has 15 bytes at most, which may be anything. No `)` follows.
    let name_end = stat[..length].iter().rposition(|&byte| byte == b')')?;
    Some(matches!(stat.get(name_end + 2)?, b'R' | b't' | b'T'))
}

/// Sends `signal` to `thread` of this process, if there is such a thread. Source: tgkill(2).
pub(crate) fn signal(thread: i32, signal: c_int) -> bool {
    // SAFETY: takes three numbers and no pointer. Test: `a_signal_comes_to_the_thread`.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) == 0 }
}

/// The system call in which `thread` of this process waits, by its number, and whether its fourth argument is zero:
/// that of futex(2) is its timeout. `None` if it runs. Source: `syscall` in proc_pid_syscall(5).
pub(crate) fn system_call(thread: i32) -> Option<(c_long, bool)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?; // else it is "running"
    (number >= 0).then(|| (number, words.nth(3) == Some("0x0"))) // -1 for a page fault
}

/// What the calls are called in which threads wait: those by which programs block that hold a worker up.
pub(crate) fn system_call_name(number: c_long) -> Option<&'static str> {
    const NAMES: &[(c_long, &str)] = &[
        #[cfg(not(any(target_arch = "x86", target_arch = "s390x")))] // accept4 alone has a number there
        (libc::SYS_accept, "accept"),
        (libc::SYS_accept4, "accept4"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_epoll_pwait, "epoll_pwait"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_pread64, "pread64"),
        (libc::SYS_pselect6, "pselect6"),
        (libc::SYS_pwrite64, "pwrite64"),
        (libc::SYS_read, "read"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendmsg, "sendmsg"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_wait4, "wait4"),
        (libc::SYS_waitid, "waitid"),
        (libc::SYS_write, "write"),
    ];
    #[cfg(target_arch = "x86_64")]
    const OLDER: &[(c_long, &str)] = &[
        (libc::SYS_epoll_wait, "epoll_wait"),
        (libc::SYS_open, "open"),
        (libc::SYS_poll, "poll"),
        (libc::SYS_select, "select"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const OLDER: &[(c_long, &str)] = &[];
    let mut names = NAMES.iter().chain(OLDER);
    names.find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// A set of processors, a bit each, with room for as many as Linux can be built for.
type Processors = [libc::c_ulong; 8192 / WORD];

const WORD: usize = libc::c_ulong::BITS as usize;

/// Binds the calling thread to one of the processors it may run on: the first, second and so on, round and round.
/// Returns `true` if it has done so. Source: sched_getaffinity(2), sched_setaffinity(2).
pub(crate) fn pin(number: usize) -> io::Result<bool> {
    let mut set: Processors = [0; 8192 / WORD];
    // SAFETY: `set` has as many bytes as the call is told; 0 is the calling thread. Test: `a_thread_is_pinned`.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let allowed: Vec<usize> = (0..set.len() * WORD).filter(|at| set[at / WORD] >> (at % WORD) & 1 == 1).collect();
    let Some(at) = number.checked_rem(allowed.len()).map(|at| allowed[at]) else { return Ok(false) };
    let mut set: Processors = [0; 8192 / WORD];
    set[at / WORD] = 1 << (at % WORD);
    // SAFETY: as above; the set is only read. Test: as above.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), set.as_ptr().cast()) } {
        0 => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn fences_of_both_kinds_order_two_threads() {
        for _ in 0..1000 {
            let (here, there) = (&AtomicBool::new(false), &AtomicBool::new(false));
            let (sees_there, sees_here) = thread::scope(|scope| {
                let other = scope.spawn(|| {
                    there.store(true, Relaxed);
                    heavy_fence().then(|| here.load(Relaxed))
                });
                here.store(true, Relaxed);
                light_fence();
                (there.load(Relaxed), other.join().unwrap())
            });
            assert!(sees_there || sees_here != Some(false));
        }
    }

    #[test]
    fn timer_slack_is_set_and_told() {
        let before = set_timer_slack(1_000).unwrap();
        assert_eq!(set_timer_slack(before), Some(1_000));
    }

    #[test]
    fn a_thread_that_computes_shows_it() {
        let own = own_thread();
        assert_eq!(is_runnable(own), Some(true));
        let before = cpu_time(own).unwrap();
        while cpu_time(own).unwrap() - before < Duration::from_millis(2) {}
    }

    #[test]
    fn a_thread_that_waits_shows_it() {
        let (say, hear) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            say.send(own_thread()).unwrap();
            ended.recv()
        });
        let number = hear.recv().unwrap();
        while is_runnable(number) != Some(false) {
            thread::yield_now();
        }
        drop(end);
        other.join().unwrap().unwrap_err();
    }

    #[test]
    fn the_call_in_which_a_thread_waits_is_named() {
        let (send, receive) = mpsc::channel();
        let waits = thread::spawn(move || {
            send.send(own_thread()).unwrap();
            thread::park();
        });
        let number = receive.recv().unwrap();
        while system_call(number).and_then(|(call, _)| system_call_name(call)) != Some("futex") {
            thread::yield_now();
        }
        waits.thread().unpark();
        waits.join().unwrap();
        assert_eq!(system_call(-1), None);
        assert_eq!(system_call_name(-1), None);
    }

    #[test]
    fn a_thread_is_pinned() {
        thread::spawn(|| {
            assert!(pin(usize::MAX).unwrap(), "there is always one to run on");
            assert_eq!(thread::available_parallelism().unwrap().get(), 1);
            assert!(pin(5).unwrap(), "which is then the first, the second and so on");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_signal_comes_to_the_thread() {
        assert!(signal(own_thread(), 0), "it asks whether there is one");
        assert!(!signal(1 << 25, 0));
    }

    #[test]
    fn nothing_is_known_of_a_thread_that_is_not_there() {
        assert_eq!((cpu_time(1 << 25), is_runnable(1 << 25)), (None, None), "numbers end at 2^22 (PID_MAX_LIMIT)");
    }
}
