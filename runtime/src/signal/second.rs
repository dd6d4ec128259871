//! The second request to end: it ends the program, as if nobody had ever listened.
//!
//! Called by `signal::termination`. People press Ctrl-C again when a program takes its time, and so do supervisors. So
//! once such a request has been heard, a signal of these two that no listener waits for has its default effect back.
//!
//! # In the handler
//!
//! It reads two atomics and a clock, sets the default action, and raises the signal, unblocked: all of these are on the
//! list of signal-safety(7). Where that is not the end, the exit code says what a shell says of such an end: the kernel
//! drops default actions in the first process of a container (pid_namespaces(7)).
//!
//! Rejected: a task that waits for the second signal and calls exit(3). It would not run where a worker is stuck, which
//! is when people press Ctrl-C again, and the parent would see an exit code instead of the signal.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use libc::{SIGINT, SIGQUIT, SIGTERM, c_int};

use crate::primitives::lock;

/// The requests to end.
const REQUESTS: [c_int; 2] = [SIGINT, SIGTERM];

/// How many listen to each, and to SIGQUIT (`quits.rs`).
static LISTENERS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// When one was heard, in milliseconds of the monotonic clock, or [`NEVER`].
static HEARD_AT: AtomicU64 = AtomicU64::new(NEVER);

const NEVER: u64 = u64::MAX;

/// What comes so soon after the first request is the same one: a wrapper that passes on what the terminal has sent too
/// (npm), or that signals its child and then the group (timeout(1)). People take longer to press Ctrl-C again.
const SAME: u64 = 500;

/// Whether the handlers are there.
static IS_INSTALLED: Mutex<bool> = Mutex::new(false);

/// Somebody listens to a signal, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening(Option<&'static AtomicUsize>);

impl Listening {
    pub(super) fn to(signal: c_int) -> Self {
        let count = listeners(signal);
        if let Some(count) = count {
            count.fetch_add(1, SeqCst);
        }
        Self(count)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, SeqCst);
        }
    }
}

/// How many listen to `signal`, if they are counted.
pub(super) fn listeners(signal: c_int) -> Option<&'static AtomicUsize> {
    REQUESTS.into_iter().chain([SIGQUIT]).position(|counted| counted == signal).map(|at| &LISTENERS[at])
}

/// A request has been heard: the next one ends the program, unless somebody listens then.
pub(super) fn note_request() {
    HEARD_AT.store(now(), SeqCst);
}

/// Installs the handlers, once.
pub(super) fn install() -> io::Result<()> {
    let mut is_installed = lock(&IS_INSTALLED);
    if !*is_installed {
        for (signal, listeners) in REQUESTS.into_iter().zip(&LISTENERS) {
            // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
            // Test: tests/tests/signal.rs `a_second_request_ends_the_program`.
            unsafe { signal_hook_registry::register(signal, move || end_if_unheard(signal, listeners)) }?;
        }
        *is_installed = true;
    }
    Ok(())
}

/// Runs in the handler.
fn end_if_unheard(signal: c_int, listeners: &AtomicUsize) {
    let heard_at = HEARD_AT.load(SeqCst);
    if heard_at == NEVER || listeners.load(SeqCst) > 0 || now().saturating_sub(heard_at) < SAME {
        return;
    }
    default_effect(signal);
}

/// Gives the signal the effect that it has where nobody handles it, and has it again. For handlers.
pub(super) fn default_effect(signal: c_int) -> ! {
    // SAFETY: the default action refers to nothing. Test: as above, like all below.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut set = MaybeUninit::uninit();
    // SAFETY: initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: takes no pointer.
    unsafe { libc::raise(signal) };
    // SAFETY: takes no pointer, and runs nothing at exit.
    unsafe { libc::_exit(128 + signal) };
}

/// Milliseconds of the monotonic clock. Also for the handler.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives for the call. Test: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
