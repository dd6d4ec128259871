//! The effect of a signal that no listener of this process hears.
//!
//! Called by `mailbox`, whose listeners are counted here, and by `quits`. The first listener of a signal installs one
//! handler more, which stays. It gives the signal its default effect in two cases:
//!
//! - *In the child of a fork(2)* that has not listened to the signal. The child inherits the handlers, but the
//!   listeners are its parent's: it has to end by SIGTERM, as if its parent had never listened.
//! - *The second request to end.* People press Ctrl-C again when a program takes its time, and so do supervisors. Once
//!   `signal::termination` has heard a request, the next one ends the program unless a listener waits for it.
//!
//! # In the handler
//!
//! It reads atomics and a clock, asks for the process id, changes the action, and raises the signal, unblocked: all of
//! these are on the list of signal-safety(7). The kernel drops default actions in the first process of a container
//! (pid_namespaces(7)): there the second request ends the process with the exit code that a shell gives such an end.
//!
//! Rejected:
//! - A task that waits for the second signal and calls exit(3). It would not run where a worker is stuck, which is when
//!   people press Ctrl-C again, and the parent would see an exit code instead of the signal.
//! - The count of forks (`mini_net::Process`) in place of the process id: a parent may signal its child before the
//!   child has run the handlers of pthread_atfork(3).

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::process;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use libc::{SIGINT, SIGTERM, c_int};

use crate::primitives::lock;

/// The requests to end.
const REQUESTS: [c_int; 2] = [SIGINT, SIGTERM];

/// For each signal, by its number.
static LISTENERS: [Listeners; SIGNALS] = [const { Listeners(AtomicU64::new(0)) }; SIGNALS];

/// FreeBSD has the most, 128, and they begin with 1.
const SIGNALS: usize = 129;

/// When a request was heard, in milliseconds of the monotonic clock, or [`NEVER`].
static HEARD_AT: AtomicU64 = AtomicU64::new(NEVER);

const NEVER: u64 = u64::MAX;

/// A signal that comes so soon after the first request is the same request: a wrapper passes on what the terminal has
/// sent too (npm), or signals its child and then the group (timeout(1)). People take longer to press Ctrl-C again.
const SAME: u64 = 500;

/// The signals that have the handler.
static INSTALLED: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

/// The id of the process that has listened to a signal last, in the upper half, and how many listeners it has.
#[derive(Debug)]
pub(super) struct Listeners(AtomicU64);

/// A process listens to a signal, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) listeners: &'static Listeners,
    process: u32,
}

impl Listening {
    pub(super) fn to(signal: c_int) -> io::Result<Self> {
        let listeners = usize::try_from(signal).ok().and_then(|number| LISTENERS.get(number));
        let listeners = listeners.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let process = process::id();
        listeners.add(process);
        let listening = Self { listeners, process };
        listeners.install(signal)?;
        Ok(listening)
    }

    /// Returns `true` in the process that listens, `false` in a child of it. For handlers.
    pub(super) fn is_here(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.is_here() {
            self.listeners.0.fetch_sub(1, SeqCst);
        }
    }
}

impl Listeners {
    fn add(&self, process: u32) {
        let first = u64::from(process) << 32 | 1;
        let add = |before| Some(if before >> 32 == u64::from(process) { before + 1 } else { first });
        let _always = self.0.fetch_update(SeqCst, SeqCst, add);
    }

    /// The number of listeners of this process; `None` if it never had one. For handlers.
    pub(super) fn count(&self) -> Option<u32> {
        let now = self.0.load(SeqCst);
        (now >> 32 == u64::from(process::id())).then_some(now as u32)
    }

    /// Installs the handler, unless it is there.
    fn install(&'static self, signal: c_int) -> io::Result<()> {
        let mut installed = lock(&INSTALLED);
        if !installed.contains(&signal) {
            // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
            // Test: tests/tests/signal.rs `a_second_request_ends_the_program`.
            unsafe { signal_hook_registry::register(signal, move || self.act(signal)) }?;
            installed.push(signal);
        }
        Ok(())
    }

    /// Runs in the handler.
    fn act(&self, signal: c_int) {
        match self.count() {
            None => default_effect(signal),
            // Before the first request this is zero.
            Some(0) if REQUESTS.contains(&signal) && now().saturating_sub(HEARD_AT.load(SeqCst)) >= SAME => {
                end_by(signal)
            }
            Some(_) => {}
        }
    }
}

/// A request has been heard: the next one ends the program, unless it has a listener then.
pub(super) fn note_request() {
    HEARD_AT.store(now(), SeqCst);
}

/// Ends the process as `signal` does by default. For handlers.
pub(super) fn end_by(signal: c_int) -> ! {
    default_effect(signal);
    // SAFETY: takes no pointer, and runs nothing at exit. Test: as above, like all below.
    unsafe { libc::_exit(128 + signal) };
}

/// Gives the signal the effect that it has where no program handles it. Returns, with the handler in place, if that is
/// to do nothing, or to stop the process until it is continued.
fn default_effect(signal: c_int) {
    let mut handler = MaybeUninit::uninit();
    // SAFETY: asks for the action, for which there is room.
    unsafe { libc::sigaction(signal, ptr::null(), handler.as_mut_ptr()) };
    // SAFETY: the default action refers to nothing.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut set = MaybeUninit::uninit();
    // SAFETY: initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut()) };
    // SAFETY: takes no pointer.
    unsafe { libc::raise(signal) };
    // SAFETY: filled above, as `signal` is one that has a handler.
    unsafe { libc::sigaction(signal, handler.as_ptr(), ptr::null_mut()) };
}

/// Milliseconds of the monotonic clock. For handlers too.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives for the call. Test: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
