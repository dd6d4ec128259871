//! Reading a socket into a buffer of hyper or tokio, without initialising it first.
//!
//! Called by `hyper` and `tokio`. If a buffer is large and the message small, zeroing costs more than the read.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::task::{Context, Poll, ready};

use crate::ready::Interest;
use crate::source::{Source, Wait};

/// A buffer that may be filled in part, and initialised in part.
pub(super) trait Unfilled {
    /// The part that is not filled.
    ///
    /// # Safety
    ///
    /// Nothing but initialised bytes may be written there.
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>];

    /// Counts the first `n` bytes of `room` as filled.
    ///
    /// # Safety
    ///
    /// Those bytes must be initialised.
    unsafe fn fill(&mut self, n: usize);
}

/// Reads what has arrived; nothing is filled at the end of the stream.
pub(super) fn poll_recv(
    source: &Source,
    cx: &mut Context<'_>,
    wait: &Wait,
    mut buf: impl Unfilled,
) -> Poll<io::Result<()>> {
    // SAFETY: nothing is written. Test: examples/ecosystem/tests/tokio_io.rs `a_read_of_nothing_waits_for_nothing`.
    if unsafe { buf.room() }.is_empty() {
        return Poll::Ready(Ok(()));
    }
    let received = ready!(source.poll_io(cx, wait, Interest::READABLE, None, |source| {
        // SAFETY: `recv_into` gives the room to the kernel, which writes only initialised bytes.
        // Test: examples/ecosystem/tests/hyper_io.rs `what_is_read_follows_what_was_there`.
        source.recv_into(unsafe { buf.room() })
    }))?;
    // SAFETY: the kernel has just written this many bytes of the same room; there were no other calls since.
    // Test: examples/ecosystem/tests/hyper_io.rs `what_is_read_follows_what_was_there`.
    unsafe { buf.fill(received) };
    Poll::Ready(Ok(()))
}

#[cfg(feature = "hyper")]
impl Unfilled for hyper::rt::ReadBufCursor<'_> {
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller makes the same promise.
        unsafe { self.as_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.advance(n) }
    }
}

#[cfg(feature = "tokio-io")]
impl Unfilled for &mut tokio::io::ReadBuf<'_> {
    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller makes the same promise.
        unsafe { self.unfilled_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.assume_init(n) };
        self.advance(n);
    }
}
