//! `Alarm`: the deadline of a wait as a timer in the epoll set, left as it is from one wait to the next.
//!
//! Called by the epoll backend. A timeout of epoll_pwait2(2) is a timer that each wait starts, and that an event has
//! to cancel. If it is the next timer of its CPU, both write to a clock device, which in a virtual machine is an exit
//! to the hypervisor, and the waiter runs only after the second one. An alarm that rings no later than the deadline
//! needs neither: it may ring too early, once, and is then armed for the deadline. With a deadline in 1 ms a wait that
//! an event ends took 24 µs of CPU with a timeout and 13 with an alarm, on a virtual machine (without deadline 17, as
//! the CPU slept longer); waits that the deadline ends took as much.
//!
//! Who waits claims the alarm until the wait ends. Others wait by timeout meanwhile.
//!
//! The registration is level-triggered: a thread that only looks may take the event, but not from the waiter. Who sees
//! it and can claim the alarm, as nobody waits, silences it.
//!
//! Rejected: one alarm for several waiters, armed for the first deadline (each would have to be woken for the others);
//! edge-triggered, as the bell (a look would take the event away from the waiter, and had to ring the bell for it).

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub(crate) struct Alarm(Mutex<Option<Timer>>);

struct Timer {
    /// Of timerfd_create(2).
    file: File,
    /// Until when it is known to be silent.
    rings_at: Option<Instant>,
}

/// The right to arm the alarm. The waiter keeps it for as long as it waits.
pub(crate) struct Claim<'a>(MutexGuard<'a, Option<Timer>>);

impl Alarm {
    /// Made at once, so that a process has as many descriptors after its first timer as before. `register` adds it to
    /// the epoll set. If the kernel, a sandbox or a limit refuses either, there is none.
    pub(crate) fn new(register: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> Alarm {
        let made = timer().and_then(|file| register(file.as_fd()).map(|()| Timer { file, rings_at: None }));
        Alarm(Mutex::new(made.ok()))
    }

    /// `None` if another thread waits with it.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        self.0.try_lock().ok().map(Claim)
    }

    /// Takes back a ring, so that the epoll set does not report it again; `false` if another thread waits for it.
    pub(crate) fn silence(&self) -> bool {
        let claim = self.claim();
        claim.map(|mut claim| claim.silence()).is_some()
    }
}

impl Claim<'_> {
    /// From now on the alarm rings at `deadline` or before. Says whether it does.
    pub(crate) fn arm(&mut self, now: Instant, deadline: Instant) -> bool {
        let Some(Timer { file, rings_at }) = &mut *self.0 else { return false };
        if rings_at.is_some_and(|at| now < at && at <= deadline) {
            return true;
        }
        let is_armed = set(file, deadline - now).is_ok();
        *rings_at = is_armed.then_some(deadline);
        is_armed
    }

    fn silence(&mut self) {
        if let Some(Timer { file, rings_at }) = &mut *self.0 {
            let _ = file.read(&mut [0; 8]); // fails if another thread has done so, or armed it again
            *rings_at = None;
        }
    }
}

fn timer() -> io::Result<File> {
    // SAFETY: takes no pointer; every test that turns a reactor runs it.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this fd, so nobody else owns it; `a_dropped_reactor_closes_its_fds` checks that
    // it is closed once.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Makes `timer` ring once, after `wait`, which is not zero: that would disarm it. Takes back an earlier ring.
fn set(timer: &File, wait: Duration) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let after = libc::timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos() as _ };
    let times = libc::itimerspec { it_interval: never, it_value: after };
    // SAFETY: `times` outlives the call, which only reads it, and a null pointer asks for no old value;
    // `a_turn_waits_at_least_its_timeout` runs it.
    match unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const times, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
impl Alarm {
    pub(crate) fn rings_at(&self) -> Option<Instant> {
        self.0.lock().unwrap().as_ref().and_then(|timer| timer.rings_at)
    }

    pub(crate) fn take(&self) {
        *self.0.lock().unwrap() = None;
    }
}
