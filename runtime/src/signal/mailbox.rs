//! `Mailbox`: where a signal's handler leaves word for one listener.
//!
//! Called by `unix::Signal`; `quits` uses the handler's side. The handler writes one byte into a socket, which makes
//! the other end readable. The listener takes the bytes that are there, up to 512: they are one signal to it.
//!
//! A child of fork(2) has the same socket. So only the process that made the mailbox writes to the socket or reads from
//! it.
//!
//! # Why a handler may do this
//!
//! It asks for the process id and calls write(2) on a socket that never blocks: both are on the list of
//! signal-safety(7). It allocates nothing, locks nothing and cannot panic. `errno` is put back by
//! `signal-hook-registry`.
//!
//! # Why no signal is lost
//!
//! A byte that is written before the listener reads is taken by it, after the cause of its signal (a child that can be
//! reaped, say). A byte that is written later makes the socket readable again. If the socket is full, the listener has
//! bytes to read. If the kernel has no memory for one byte, that signal is lost.
//!
//! Rejected: a counter in front of the socket, so that a storm of signals writes one byte. A write that failed had to
//! be tried again for the signals that relied on it.

#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use libc::c_int;
use mini_net::Process;
use signal_hook_registry::SigId;

use super::unheard::Listening;

/// Hears one signal, from `open` until it is dropped.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Before `reader`: the handler never writes to a socket without a peer, which would raise SIGPIPE.
    _hook: Hook,
    reader: UnixStream,
    process: Process,
}

/// The handler's side of a pair of sockets.
#[derive(Debug)]
pub(super) struct Letter {
    writer: UnixStream,
    listening: Listening,
}

/// The handler, until this is dropped.
#[derive(Debug)]
struct Hook(SigId);

impl Mailbox {
    pub(super) fn open(signal: c_int) -> io::Result<Mailbox> {
        let (reader, letter) = Letter::to(signal)?;
        reader.set_nonblocking(true)?;
        let hook = Hook::install(signal, letter)?;
        Ok(Mailbox { _hook: hook, reader, process: Process::current() })
    }

    /// Panics in a child of the process that made the mailbox.
    pub(super) fn check_process(&self) {
        assert!(
            self.process.is_current(),
            "this listener was made before fork(2) and receives only the signals of the parent process: \
             make a new one in the child"
        );
    }

    /// Takes what was left so far, in a storm a part of it; `WouldBlock` if that was nothing.
    pub(super) fn take(&self) -> io::Result<()> {
        loop {
            match (&self.reader).read(&mut [0; 512]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()), // not while the handler has the other end
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl Letter {
    /// A socket to read from, and the handler's side of it.
    pub(super) fn to(signal: c_int) -> io::Result<(UnixStream, Letter)> {
        let (reader, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        Ok((reader, Letter { writer, listening: Listening::to(signal)? }))
    }

    /// Whether this is the process that listens. For handlers.
    pub(super) fn is_here(&self) -> bool {
        self.listening.is_here()
    }

    /// Announces a signal. For handlers.
    pub(super) fn leave(&self) {
        if self.is_here() {
            let byte = 1u8;
            // SAFETY: `writer` is open as long as `self` is, and the one byte to read is `byte`.
            // Test: tests/tests/signal.rs `a_signal_wakes_its_listener`.
            unsafe { libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) };
        }
    }
}

impl Hook {
    fn install(signal: c_int, letter: Letter) -> io::Result<Hook> {
        // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic; it owns what it
        // refers to, and the thread that unregisters it drops that outside of handlers. Test: tests/tests/signal.rs
        // `a_storm_of_signals_is_heard_by_all`.
        let id = unsafe { signal_hook_registry::register(signal, move || letter.leave()) }?;
        Ok(Hook(id))
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Returns when no handler is running that could still use the letter.
        signal_hook_registry::unregister(self.0);
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
