//! `Quits`: requests for a dump (SIGQUIT), for a thread that waits for them.
//!
//! The handler writes a byte into a socket, and the thread reads it. A request is the thread's unless the program listens
//! to the signal by itself, which the handler looks up when it runs. While there is no such thread, because it could not
//! be started or in the child of a fork(2), the signal has its default effect and ends the process.
//!
//! # In the handler
//!
//! It reads atomics, calls getpid(2) and write(2) on a socket that never blocks, or ends the process as
//! [`second`](super::second) does: all on the list of signal-safety(7).
//!
//! Rejected: a [`Mailbox`](super::mailbox) (it cannot be told that nobody takes its letters).

#![allow(unsafe_code)]

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use libc::SIGQUIT;

use super::second::{default_effect, listeners};

/// The process whose thread waits, or 0.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Where the handler's bytes arrive.
#[derive(Debug)]
pub(crate) struct Quits(UnixStream);

impl Quits {
    /// Installs the handler, for as long as the process runs.
    pub(crate) fn listen() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        let process = process::id();
        // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic.
        // Test: tests/tests/dump.rs `sigquit_prints_every_runtime_and_the_program_goes_on`.
        unsafe { signal_hook_registry::register(SIGQUIT, move || request(&writer, process)) }?;
        Ok(Self(reader))
    }

    /// Calls `answer` for each request, on the thread that calls, until it panics.
    pub(crate) fn serve(&self, mut answer: impl FnMut()) {
        /// The thread that waits is gone.
        struct Gone;
        impl Drop for Gone {
            fn drop(&mut self) {
                WAITING.store(0, SeqCst);
            }
        }
        leave_to_others();
        let _gone = Gone;
        WAITING.store(process::id(), SeqCst);
        let mut requests = [0; 64]; // those that came meanwhile are one
        while (&self.0).read(&mut requests).is_ok_and(|count| count > 0) {
            answer();
        }
    }
}

/// Runs in the handler that `owner` has installed.
fn request(writer: &UnixStream, owner: u32) {
    if listeners(SIGQUIT).is_some_and(|count| count.load(SeqCst) > 0) {
        return;
    }
    if WAITING.load(SeqCst) != process::id() {
        default_effect(SIGQUIT);
    } else if owner != process::id() {
        return; // a child has a handler of its own, and its parent's besides
    }
    let byte = 1_u8;
    // SAFETY: `writer` is open as long as the handler is installed, and the one byte to read is `byte`. If the socket is
    // full, requests enough are waiting. Test: as above.
    unsafe { libc::write(writer.as_raw_fd(), (&raw const byte).cast(), 1) };
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
