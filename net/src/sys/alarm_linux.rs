//! `Alarm`: the deadline of a wait as a timer in the epoll set, left as it is from one wait to the next.
//!
//! Called by the epoll backend. A timeout of epoll_pwait2(2) is a timer that each wait starts, and that an event has to
//! cancel. If it is the next timer of its CPU, both write to a clock device, which in a virtual machine is an exit to
//! the hypervisor, and the waiter runs only after the second one. An alarm that expires no later than the deadline
//! needs neither: it may expire too early, once, and is then armed for the deadline. With a deadline in 1 ms a wait
//! that an event ends took 24 µs of CPU with a timeout and 13 with an alarm, on a virtual machine (without deadline 17,
//! as the CPU slept longer); waits that the deadline ends took as much.
//!
//! A waiter claims the alarm until its wait ends. Until then, other threads wait by timeout, and claim the alarm in a
//! later wait.
//!
//! The registration is level-triggered: a thread that only looks may take the event, but not from the waiter. A thread
//! that sees an expiration and has the claim, or gets it as no thread waits, clears the expiration, so that the epoll
//! set is not left readable.
//!
//! Rejected: one alarm for several waiters, armed for the first deadline (each would have to be woken for the others);
//! edge-triggered, as the notifier (a look would take the event away from the waiter, and had to notify it);
//! times from now on in place of absolute ones (a thread that loses its CPU on the way would arm the alarm too late for
//! the waits to come).

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::sync::{Mutex, MutexGuard, TryLockError};

pub(crate) struct Alarm(Mutex<Option<Timer>>);

struct Timer {
    /// Of timerfd_create(2).
    file: File,
    /// The time that it was last armed for, by [`now`], unless cleared since.
    expires_at: Option<u64>,
}

/// The right to arm the alarm. The waiter keeps it for as long as it waits.
pub(crate) struct Claim<'a>(MutexGuard<'a, Option<Timer>>);

impl Alarm {
    /// Made at once, so that a process has as many descriptors after its first timer as before. `register` adds it to
    /// the epoll set. If the kernel, a sandbox or a limit refuses either, there is none.
    pub(crate) fn new(register: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> Alarm {
        let made = timer().and_then(|file| register(file.as_fd()).map(|()| Timer { file, expires_at: None }));
        Alarm(Mutex::new(made.ok()))
    }

    /// `None` if another thread waits with it.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        match self.0.try_lock() {
            Ok(timer) => Some(Claim(timer)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Claim(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Clears an expiration; `false` if another thread waits for it.
    pub(crate) fn clear(&self) -> bool {
        let claim = self.claim();
        claim.map(|mut claim| claim.clear()).is_some()
    }
}

impl Claim<'_> {
    /// Sets the alarm to expire at `deadline` or before, by [`now`]. Returns whether it does.
    pub(crate) fn arm(&mut self, now: u64, deadline: u64) -> bool {
        let Some(Timer { file, expires_at }) = &mut *self.0 else { return false };
        if expires_at.is_some_and(|at| now < at && at <= deadline) {
            return true;
        }
        let is_armed = set(file, deadline).is_ok();
        match is_armed {
            true => *expires_at = Some(deadline),
            false => self.clear(), // or what it was armed for before would be reported again and again
        }
        is_armed
    }

    /// Clears an expiration, so that the epoll set does not report it again.
    pub(crate) fn clear(&mut self) {
        if let Some(Timer { file, expires_at }) = &mut *self.0 {
            let _ = file.read(&mut [0; 8]); // fails if another thread has done so, or armed it again
            *expires_at = None;
        }
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock of the alarm and of [`std::time::Instant`].
pub(crate) fn now() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is good for a write of this type; `an_early_expiration_does_not_end_a_wait` runs it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) };
    // SAFETY: the call has written it: it fails for a bad clock or pointer only. The same test runs it.
    let time = unsafe { time.assume_init() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timer() -> io::Result<File> {
    if cfg!(miri) {
        return Err(io::ErrorKind::Unsupported.into()); // Miri has no such system call
    }
    // SAFETY: takes no pointer; every test that turns a reactor runs it.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this fd, so nobody else owns it; `a_dropped_reactor_closes_its_fds` checks that
    // it is closed once.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Makes `timer` expire once, at `deadline`, which is not zero: that would disarm it. Clears an earlier expiration.
fn set(timer: &File, deadline: u64) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let at = libc::timespec { tv_sec: (deadline / 1_000_000_000) as _, tv_nsec: (deadline % 1_000_000_000) as _ };
    let times = libc::itimerspec { it_interval: never, it_value: at };
    let (fd, absolute) = (timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
    // SAFETY: `times` outlives the call, which only reads it, and a null pointer asks for no old value;
    // `a_turn_waits_at_least_its_timeout` runs it.
    match unsafe { libc::timerfd_settime(fd, absolute, &raw const times, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
impl Alarm {
    pub(crate) fn expires_at(&self) -> Option<u64> {
        self.0.lock().unwrap().as_ref().and_then(|timer| timer.expires_at)
    }

    pub(crate) fn take(&self) {
        *self.0.lock().unwrap() = None;
    }
}
