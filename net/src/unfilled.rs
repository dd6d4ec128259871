//! Memory to read into that need not be initialised, as hyper and tokio lend it.
//!
//! Used by every read that may be one of their traits: of sockets and pipes here, of files and children in `mini`. If
//! the room is large and the message small, zeroing the room first costs more than the read. A loop that reads into one
//! large buffer would zero the rest of it at each turn.
//!
//! Rejected: `initialize_unfilled` of tokio's buffer, of a part at a time too. A buffer that is made anew for each read
//! forgets what was initialised.
#![allow(unsafe_code)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsFd;

use crate::source::{Channel, Left, Source};
use crate::sys::socket;

/// A buffer that may be filled in part, and initialised in part. Filled bytes are no longer in its room.
///
/// Public for `mini`, which reads files and the outputs of child processes.
pub trait Unfilled {
    /// The length of the room.
    fn remaining(&self) -> usize;

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

    /// Fills in `bytes`, which may not be more than there is room for.
    fn put(&mut self, bytes: &[u8]);
}

/// Reads from a pipe, a terminal or the like into `buf`; returns the number of bytes.
///
/// # Errors
///
/// Returns the errors of read(2).
pub fn read_into(file: impl AsFd, buf: &mut impl Unfilled) -> io::Result<usize> {
    // SAFETY: the kernel initialises as many bytes as it returns, and no code reads the others.
    // Test: examples/ecosystem/tests/tokio_io.rs `pipes_and_children_carry_bytes`.
    unsafe { fill_by(buf, |room| Ok((socket::read(file.as_fd(), room)?, ()))) }.map(|(read, ())| read)
}

/// Reads from a socket that may be a blocking one into `buf`, without waiting.
pub(crate) fn recv_now_into(file: impl AsFd, buf: &mut impl Unfilled) -> io::Result<usize> {
    // SAFETY: as in `read_into`. Test: tests/tests/processes/stdio.rs `sockets_are_streams_too`.
    unsafe { fill_by(buf, |room| Ok((socket::recv(file.as_fd(), room, socket::NOW)?, ()))) }.map(|(read, ())| read)
}

/// Reads from a socket or a pipe into `buf`.
pub(crate) fn read_source_into<T: Channel>(source: &Source<T>, buf: &mut impl Unfilled) -> io::Result<(usize, Left)> {
    // SAFETY: as in `read_into`, by the calls of `Channel`.
    // Test: examples/ecosystem/tests/hyper_io.rs `what_is_read_follows_what_was_there`.
    unsafe { fill_by(buf, |room| T::read(source, room)) }
}

/// Lets `call` fill the front of the room.
///
/// # Safety
///
/// `call` initialises as many bytes as it returns, and writes none that are not initialised.
unsafe fn fill_by<R>(
    buf: &mut impl Unfilled,
    call: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, R)>,
) -> io::Result<(usize, R)> {
    // SAFETY: the caller vouches for what `call` writes.
    let (read, more) = call(unsafe { buf.room() })?;
    // SAFETY: `call` has just initialised this many bytes of the same room.
    unsafe { buf.fill(read) };
    Ok((read, more))
}

/// Reserves room for a read to the end, if `buf` has none: twice as much each time, and a page at first.
pub fn make_room(buf: &mut Vec<u8>) {
    if buf.len() == buf.capacity() {
        buf.reserve(4096);
    }
}

/// It becomes the rest of itself.
impl Unfilled for &mut [u8] {
    fn remaining(&self) -> usize {
        self.len()
    }

    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        socket::for_kernel(self)
    }

    unsafe fn fill(&mut self, n: usize) {
        *self = &mut mem::take(self)[n..];
    }

    fn put(&mut self, bytes: &[u8]) {
        let (filled, rest) = mem::take(self).split_at_mut(bytes.len());
        filled.copy_from_slice(bytes);
        *self = rest;
    }
}

/// Its room is what has been reserved.
impl Unfilled for Vec<u8> {
    fn remaining(&self) -> usize {
        self.capacity() - self.len()
    }

    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        self.spare_capacity_mut()
    }

    unsafe fn fill(&mut self, n: usize) {
        let len = self.len() + n;
        // SAFETY: the caller says that the first `n` bytes of the room, which follow the length, are initialised.
        unsafe { self.set_len(len) };
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(feature = "hyper")]
impl Unfilled for hyper::rt::ReadBufCursor<'_> {
    fn remaining(&self) -> usize {
        self.remaining()
    }

    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller makes the same promise.
        unsafe { self.as_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.advance(n) }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }
}

#[cfg(feature = "tokio-io")]
impl Unfilled for &mut tokio::io::ReadBuf<'_> {
    fn remaining(&self) -> usize {
        (**self).remaining()
    }

    unsafe fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the caller makes the same promise.
        unsafe { self.unfilled_mut() }
    }

    unsafe fn fill(&mut self, n: usize) {
        // SAFETY: the caller makes the same promise.
        unsafe { self.assume_init(n) };
        self.advance(n);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.put_slice(bytes);
    }
}
