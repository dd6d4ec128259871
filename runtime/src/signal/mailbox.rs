//! `Mailbox`: where a signal's handler leaves word for one listener.
//!
//! Called by `unix::Signal`. A counter holds the number of signals that have not been taken. The handler that counts
//! the first writes one byte into a socket, which makes the other end readable. The listener that reads the byte sets
//! the counter back. A byte without a signal in the counter is not the handler's, and announces nothing.
//!
//! A child of fork(2) has the same socket, and a counter of its own. So only the process that made the mailbox writes
//! to the socket or reads from it.
//!
//! # Why a handler may do this
//!
//! It asks for the process id, counts in an atomic and calls write(2) on a socket that never blocks: all are on the
//! list of signal-safety(7).
//! It allocates nothing, locks nothing and cannot panic. `errno` is put back by `signal-hook-registry`.
//!
//! # Why no signal is lost
//!
//! A handler that finds zero writes, so the listener wakes. A handler that finds more comes, in the order in which the
//! counter changes, before the swap that sets it back; that swap acquires what the handler has released. The `take`
//! with that swap has not returned yet, so it reports this signal too, and its caller sees the cause of the signal (a
//! child that can be reaped, say). A plain store instead could still be on its way when the caller looks for the child,
//! and then undo what a handler has counted since.
//!
//! A write fails if the kernel has no memory for one byte. Then that signal is lost, but no other signal that arrived
//! during the attempt and relied on the write: the handler that could not write tries again as long as another handler
//! has counted since its last attempt.

#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};

use libc::c_int;
use signal_hook_registry::SigId;

use super::unheard::Listening;

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
    /// Above zero while there is a byte in the socket, or one is being written or taken.
    signals: AtomicUsize,
    writer: UnixStream,
    listening: Listening,
}

/// The handler, until this is dropped.
#[derive(Debug)]
struct Hook(SigId);

impl Mailbox {
    pub(super) fn open(signal: c_int) -> io::Result<Mailbox> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let letter = Arc::new(Letter { signals: AtomicUsize::new(0), writer, listening: Listening::to(signal)? });
        let hook = Hook::install(signal, letter.clone())?;
        Ok(Mailbox { _hook: hook, letter, reader })
    }

    /// Panics in a child of the process that made the mailbox.
    pub(super) fn check_process(&self) {
        assert!(
            self.letter.listening.is_here(),
            "this listener was made before fork(2) and receives only the signals of the parent process: \
             make a new one in the child"
        );
    }

    /// Takes all signals so far; `WouldBlock` if there were none.
    pub(super) fn take(&self) -> io::Result<()> {
        self.check_process();
        loop {
            match (&self.reader).read(&mut [0]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()), // not while `letter` holds the other end
                // AcqRel: pairs with those in `Letter::count`, see above.
                Ok(_) if self.letter.signals.swap(0, AcqRel) > 0 => return Ok(()),
                Ok(_) => {}
            }
        }
    }
}

impl Letter {
    /// Runs in the handler.
    fn leave(&self) {
        if !self.listening.is_here() {
            return;
        }
        let byte = 1u8;
        self.count(|| {
            // SAFETY: `writer` is open as long as `self` is, and the one byte to read is `byte`.
            // Test: tests/tests/signal.rs `a_signal_wakes_its_listener`.
            unsafe { libc::write(self.writer.as_raw_fd(), (&raw const byte).cast(), 1) == 1 }
        });
    }

    /// Counts a signal, and lets `write` announce it if no other handler does. Runs in the handler.
    fn count(&self, write: impl Fn() -> bool) {
        // AcqRel, here and below: pairs with the swap in `Mailbox::take`.
        if self.signals.fetch_add(1, AcqRel) > 0 {
            return;
        }
        let mut tried_for = 1;
        while !write() {
            match self.signals.compare_exchange(tried_for, 0, AcqRel, Acquire) {
                Ok(_) => return,
                Err(signals) => tried_for = signals,
            }
        }
    }
}

impl Hook {
    fn install(signal: c_int, letter: Arc<Letter>) -> io::Result<Hook> {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;

    use super::*;

    fn letter() -> Letter {
        let listening = Listening::to(libc::SIGWINCH).unwrap();
        Letter { signals: AtomicUsize::new(0), writer: UnixStream::pair().unwrap().0, listening }
    }

    #[test]
    fn a_byte_that_no_handler_has_written_announces_nothing() {
        let mailbox = Mailbox::open(libc::SIGWINCH).unwrap();
        let blocks = || mailbox.take().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        (&mailbox.letter.writer).write_all(&[1]).unwrap();
        assert!(blocks());
        mailbox.letter.leave();
        (&mailbox.letter.writer).write_all(&[1]).unwrap();
        mailbox.take().unwrap();
        assert!(blocks());
        mailbox.letter.leave();
        mailbox.take().unwrap();
    }

    #[test]
    fn a_signal_that_came_during_a_failed_write_is_announced() {
        let (letter, writes) = (letter(), Cell::new(0));
        let write_the_second = || {
            writes.set(writes.get() + 1);
            if writes.get() == 1 {
                letter.count(|| panic!("the first one is at it"));
            }
            writes.get() == 2
        };
        letter.count(write_the_second);
        assert_eq!(writes.get(), 2);
        letter.count(|| panic!("there is a byte already"));
    }

    #[test]
    fn after_a_failed_write_the_next_signal_is_announced() {
        let (letter, writes) = (letter(), Cell::new(0));
        for _ in 0..2 {
            letter.count(|| {
                writes.set(writes.get() + 1);
                false
            });
        }
        assert_eq!(writes.get(), 2);
    }
}
