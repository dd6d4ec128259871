//! The second request to end: it ends the program, as if nobody had ever listened.
//!
//! Called by `signal::termination`. People press Ctrl-C again when a program takes its time, and so do supervisors. So
//! once such a request has been heard, a signal of these two that no listener waits for has its default effect back.
//!
//! # In the handler
//!
//! It reads two atomics, sets the default action and raises the signal, which comes when the handler returns:
//! sigaction(2) and raise(3) are on the list of signal-safety(7). Nobody can go on listening then; that is the point.
//!
//! Rejected: a task that waits for the second signal and calls exit(3). It would not run where a worker is stuck, which
//! is when people press Ctrl-C again, and the parent would see an exit code instead of the signal.

#![allow(unsafe_code)]

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use libc::{SIGINT, SIGTERM, c_int};

use crate::sync::lock;

/// The requests to end.
const REQUESTS: [c_int; 2] = [SIGINT, SIGTERM];

/// How many listen to each.
static LISTENERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether one has been heard.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the handlers are there.
static IS_INSTALLED: Mutex<bool> = Mutex::new(false);

/// Somebody listens to a signal, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening(Option<&'static AtomicUsize>);

impl Listening {
    pub(super) fn to(signal: c_int) -> Self {
        let count = REQUESTS.iter().position(|&request| request == signal).map(|at| &LISTENERS[at]);
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

/// A request has been heard: the next one ends the program, unless somebody listens then.
pub(super) fn note_request() {
    IS_ENDING.store(true, SeqCst);
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
    if IS_ENDING.load(SeqCst) && listeners.load(SeqCst) == 0 {
        // SAFETY: the default action refers to nothing. Test: as above.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: takes no pointer. Test: as above.
        unsafe { libc::raise(signal) };
    }
}
