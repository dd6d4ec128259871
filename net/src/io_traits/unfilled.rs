//! Reading a socket into what hyper or tokio wants filled, without initialising it first.
//!
//! Called by `hyper` and `tokio`. Zeroing what they lend costs more than the read where a buffer is large and a message
//! small.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::task::{Context, Poll, ready};

use crate::ready::Interest;
use crate::source::{Source, Wait};

/// A buffer, some of which may be filled and some of which may not be initialised.
pub(super) trait Unfilled {
    /// What is not filled.
    ///
    /// # Safety
    ///
    /// Nothing but initialised bytes may be written there.
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>];

    /// Counts the first `n` bytes of `room` as filled.
    ///
    /// # Safety
    ///
    /// They must be initialised.
    unsafe fn fill(&mut self, n: usize);
}

/// Reads what has arrived; nothing is filled at the end of the stream.
pub(super) fn poll_recv(
    source: &Source,
    cx: &mut Context<'_>,
    wait: &Wait,
    mut buf: impl Unfilled,
) -> Poll<io::Result<()>> {
    let received = ready!(source.poll_io(cx, wait, Interest::READABLE, None, |source| {
        // SAFETY: `recv_into` hands it to the kernel, which writes initialised bytes alone.
        // Test: examples/ecosystem/tests/hyper_io.rs `what_is_read_follows_what_was_there`.
        source.recv_into(unsafe { buf.room() })
    }))?;
    // SAFETY: so many bytes of the same room the kernel has just written; there were no other calls since.
    // Test: examples/ecosystem/tests/hyper_io.rs `what_is_read_follows_what_was_there`.
    unsafe { buf.fill(received) };
    Poll::Ready(Ok(()))
}

#[cfg(feature = "hyper")]
impl Unfilled for hyper::rt::ReadBufCursor<'_> {
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller's promise is the one that is asked for here.
        unsafe { self.as_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller's promise is the one that is asked for here.
        unsafe { self.advance(n) }
    }
}

#[cfg(feature = "tokio-io")]
impl Unfilled for &mut tokio::io::ReadBuf<'_> {
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller's promise is the one that is asked for here.
        unsafe { self.unfilled_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller's promise is the one that is asked for here.
        unsafe { self.assume_init(n) };
        self.advance(n);
    }
}
