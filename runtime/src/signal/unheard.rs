//! The end of the process by a request to end that no listener of this process hears.
//!
//! Called by `mailbox` and `quits`, whose listeners are counted here. The first listener for SIGINT, SIGTERM or SIGQUIT
//! installs one handler more, which stays. It ends the process, as the signal does by default, in two cases:
//!
//! - *In the child of a fork(2)* that has never listened to the signal. The child inherits the handlers, but the
//!   listeners are its parent's: SIGTERM has to end it, as if its parent had never listened. So it does only where the
//!   signal had its default effect when the parent began to listen.
//! - *The second request to end.* People press Ctrl-C again when a program takes its time, and so do supervisors. Once
//!   `signal::termination` has heard a request, the next one ends the program unless a listener waits for it.
//!
//! # In the handler
//!
//! It reads atomics and a clock, asks for the process id, sets the default action, and raises the signal, unblocked:
//! all of these are on the list of signal-safety(7). The kernel drops default actions in the first process of a
//! container (pid_namespaces(7)): there the process ends with the exit code that a shell gives such an end.
//!
//! Rejected:
//! - A task that waits for the second signal and calls exit(3). It would not run where a worker is stuck, which is when
//!   people press Ctrl-C again, and the parent would see an exit code instead of the signal.
//! - The count of forks (`mini_net::Process`) in place of the process id: a parent may signal its child before the
//!   child has run the handlers of pthread_atfork(3).
//! - The default effect of every signal in a child. One that stops the process, or does nothing, has to give the
//!   handler back: of two threads that do so at once, one gives back the default. And a child would end by what its
//!   parent survives, as SIGPIPE.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::process;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use libc::{SIGINT, SIGQUIT, SIGTERM, c_int};
use mini_kernel::primitives::lock;

/// The requests to end, of which a second one counts.
const REQUESTS: [c_int; 2] = [SIGINT, SIGTERM];

static LISTENERS: [Listeners; 3] = [Listeners::new(SIGINT), Listeners::new(SIGTERM), Listeners::new(SIGQUIT)];

/// When a request was heard, in milliseconds of the monotonic clock, or [`NEVER`].
static HEARD_AT: AtomicU64 = AtomicU64::new(NEVER);

const NEVER: u64 = u64::MAX;

/// A signal that comes so soon after the first request is the same request: a wrapper passes on what the terminal has
/// sent too (npm), or signals its child and then the group (timeout(1)). People take longer to press Ctrl-C again.
const SAME: u64 = 500;

/// The listeners for one signal.
#[derive(Debug)]
struct Listeners {
    signal: c_int,
    /// The id of the process that has listened last, in the upper half, and how many listeners it has.
    count: AtomicU64,
    /// The signal had its default effect before.
    was_default: AtomicBool,
    is_installed: Mutex<bool>,
}

/// A process listens to a signal, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    /// If they are counted.
    listeners: Option<&'static Listeners>,
    process: u32,
}

impl Listening {
    pub(super) fn to(signal: c_int) -> io::Result<Self> {
        let listeners = LISTENERS.iter().find(|listeners| listeners.signal == signal);
        let listening = Self { listeners, process: process::id() };
        if let Some(listeners) = listeners {
            listeners.add(listening.process);
            listeners.install()?;
        }
        Ok(listening)
    }

    /// Returns `true` in the process that listens, `false` in a child of it. For handlers.
    pub(super) fn is_here(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.filter(|_| self.is_here()) {
            listeners.count.fetch_sub(1, SeqCst);
        }
    }
}

impl Listeners {
    const fn new(signal: c_int) -> Self {
        let (count, was_default) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { signal, count, was_default, is_installed: Mutex::new(false) }
    }

    fn add(&self, process: u32) {
        let first = u64::from(process) << 32 | 1;
        let add = |before| Some(if before >> 32 == u64::from(process) { before + 1 } else { first });
        let _always = self.count.fetch_update(SeqCst, SeqCst, add);
    }

    /// The number of listeners of this process; `None` if it never had one. For handlers.
    fn count(&self) -> Option<u32> {
        let now = self.count.load(SeqCst);
        (now >> 32 == u64::from(process::id())).then_some(now as u32)
    }

    /// Installs the handler, unless it is there.
    fn install(&'static self) -> io::Result<()> {
        let mut is_installed = lock(&self.is_installed);
        if !*is_installed {
            self.was_default.store(is_default(self.signal), SeqCst);
            // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
            // Test: tests/tests/signal.rs `a_second_request_ends_the_program`.
            unsafe { signal_hook_registry::register(self.signal, move || self.act()) }?;
            *is_installed = true;
        }
        Ok(())
    }

    /// Runs in the handler.
    fn act(&self) {
        let ends = match self.count() {
            None => self.was_default.load(SeqCst),
            // Before the first request this is zero.
            Some(0) => REQUESTS.contains(&self.signal) && now().saturating_sub(HEARD_AT.load(SeqCst)) >= SAME,
            Some(_) => false,
        };
        if ends {
            end_by(self.signal);
        }
    }
}

/// The number of listeners that this process has for SIGQUIT. For handlers.
#[cfg(feature = "insight")]
pub(super) fn quit_listeners() -> u32 {
    LISTENERS[2].count().unwrap_or(0)
}

/// A request has been heard: the next one ends the program, unless it has a listener then.
pub(super) fn note_request() {
    HEARD_AT.store(now(), SeqCst);
}

fn is_default(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the action, for which there is room. Test: tests/tests/processes/fork.rs.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: filled by the call, which has succeeded.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_DFL
}

/// Ends the process as `signal` does by default. For handlers.
pub(super) fn end_by(signal: c_int) -> ! {
    // SAFETY: the default action refers to nothing. Test: tests/tests/signal.rs `a_second_request_ends_the_program`,
    // like all below.
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
    // SAFETY: takes no pointer, and runs nothing at exit.
    unsafe { libc::_exit(128 + signal) };
}

/// Milliseconds of the monotonic clock. For handlers too.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives for the call. Test: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
