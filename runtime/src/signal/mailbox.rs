//! `Mailbox`: where a signal's handler leaves word for one listener.
//!
//! Called by `unix::Signal`. A flag says whether there is word that has not been taken; who sets it writes one byte into a
//! socket, which makes the other end readable, and who reads that byte lowers the flag.
//!
//! # Why a handler may do this
//!
//! It swaps an atomic and calls write(2) on a socket that never blocks: both are on the list of signal-safety(7). It
//! allocates nothing, locks nothing and cannot panic. `errno` is put back by `signal-hook-registry`.
//!
//! # Why no signal is lost
//!
//! A handler that finds the flag lowered writes, so the listener wakes. One that finds it raised comes, in the order in
//! which the flag changes, before the swap that lowers it; that swap acquires what the handler has released. The `take` it
//! belongs to has not returned yet, so this signal is part of what it reports, and its taker sees whatever caused the signal
//! (a child that can be reaped, say). A plain store could still be on its way when its taker looks for the child, and then
//! undo the flag of a handler that has run since.

#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Relaxed};

use libc::c_int;
use signal_hook_registry::SigId;

/// Hears one signal, from `open` until it is dropped.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Before `reader`: the handler never writes to a socket without a peer, which would raise SIGPIPE.
    _hook: Hook,
    letter: Arc<Letter>,
    reader: UnixStream,
}

/// The handler's side.
#[derive(Debug)]
struct Letter {
    /// Raised while there is a byte in the socket, or one is being written or taken.
    raised: AtomicBool,
    writer: UnixStream,
}

/// The handler, until this is dropped.
#[derive(Debug)]
struct Hook(SigId);

impl Mailbox {
    pub(super) fn open(signal: c_int) -> io::Result<Mailbox> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let letter = Arc::new(Letter { raised: AtomicBool::new(false), writer });
        let hook = Hook::install(signal, letter.clone())?;
        Ok(Mailbox { _hook: hook, letter, reader })
    }

    /// Takes the word of all signals so far; `WouldBlock` if there were none.
    pub(super) fn take(&self) -> io::Result<()> {
        match (&self.reader).read(&mut [0])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()), // not while `letter` holds the other end
            _ => {
                // AcqRel: pairs with the swap in `Letter::leave`, see above.
                self.letter.raised.swap(false, AcqRel);
                Ok(())
            }
        }
    }
}

impl Letter {
    /// Runs in the handler.
    fn leave(&self) {
        // AcqRel: pairs with the swap in `Mailbox::take`.
        if self.raised.swap(true, AcqRel) {
            return;
        }
        let byte = 1u8;
        // SAFETY: `writer` is open as long as `self` is, and the one byte to read is `byte`.
        // Test: tests/tests/signal.rs `a_signal_wakes_its_listener`.
        let written = unsafe { libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) };
        if written != 1 {
            // No memory for a byte: this signal is lost, the next one tries again.
            self.raised.store(false, Relaxed);
        }
    }
}

impl Hook {
    fn install(signal: c_int, letter: Arc<Letter>) -> io::Result<Hook> {
        // SAFETY: the closure does what a handler may, as the module doc shows, and does not panic; what it refers to is
        // its own, and dropped outside of handlers by whoever unregisters it.
        // Test: tests/tests/signal.rs `a_storm_of_signals_is_heard_by_all`.
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
