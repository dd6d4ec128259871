//! `Quits`: requests for a dump (SIGQUIT), for a thread that waits for them.
//!
//! The handler writes a byte into a socket, and the thread reads it. A request is the thread's unless the program
//! listens to the signal by itself, which the handler looks up when it runs. While there is no such thread, because it
//! could not be started, the signal ends the process. So it does in the child of a fork(2) that has no thread of its
//! own ([`unheard`](super::unheard)).
//!
//! # In the handler
//!
//! It reads atomics, calls getpid(2) and write(2) on a socket that never blocks, or ends the process as
//! [`unheard`](super::unheard) does: all on the list of signal-safety(7).
//!
//! Rejected: a whole [`Mailbox`](super::mailbox) (it cannot be told that nobody takes its letters).

#![allow(unsafe_code)]

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use libc::SIGQUIT;

use super::mailbox::Letter;
use super::unheard::{end_by, quit_listeners};

/// The receiving end for the handler's bytes.
#[derive(Debug)]
pub(crate) struct Quits {
    reader: UnixStream,
    desk: Arc<Desk>,
}

/// The handler's side.
#[derive(Debug)]
struct Desk {
    /// `true` while the thread waits.
    is_open: AtomicBool,
    letter: Letter,
}

impl Quits {
    /// Installs the handler, for as long as the process runs.
    pub(crate) fn listen() -> io::Result<Self> {
        let (reader, letter) = Letter::to(SIGQUIT)?;
        let desk = Arc::new(Desk { is_open: AtomicBool::new(false), letter });
        let theirs = desk.clone();
        // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
        // Test: tests/tests/dumps/dump.rs `sigquit_prints_every_runtime_and_the_program_goes_on`.
        unsafe { signal_hook_registry::register(SIGQUIT, move || theirs.request()) }?;
        Ok(Self { reader, desk })
    }

    /// Calls `answer` for each request, on the thread that calls, until it panics.
    pub(crate) fn serve(&self, mut answer: impl FnMut()) {
        /// The thread that waits is gone.
        struct Gone<'a>(&'a Desk);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                self.0.is_open.store(false, SeqCst);
            }
        }
        leave_to_others();
        let _gone = Gone(&self.desk);
        self.desk.is_open.store(true, SeqCst);
        let mut requests = [0; 64]; // those that came meanwhile are one
        while (&self.reader).read(&mut requests).is_ok_and(|count| count > 0) {
            answer();
        }
    }
}

impl Desk {
    /// Runs in the handler.
    fn request(&self) {
        // In a child this is the parent's handler, beside which the child may have one. A second listener is the
        // program.
        if !self.letter.is_here() || quit_listeners() > 1 {
            return;
        }
        if !self.is_open.load(SeqCst) {
            end_by(SIGQUIT);
        }
        self.letter.leave(); // if the socket is full, requests enough are waiting
    }
}

/// The calling thread takes no SIGQUIT: a program that blocks the signal in its own threads, to wait for it by
/// sigwait(3), gets it.
fn leave_to_others() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: initialises the set. Test: as above, like all here.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(set.as_mut_ptr(), SIGQUIT) };
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
}
