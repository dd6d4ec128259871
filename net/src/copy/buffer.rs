//! `Buffer`: bytes that were read and have yet to be written.
//!
//! Called by `flow`, which reads into it when it is empty, and decides when it grows.

use std::fmt;
use std::io;

/// The initial size: small, because many connections only wait. A read that fills it shows that there is more.
const FIRST: usize = 8 << 10;

/// The largest size.
const LARGEST: usize = 64 << 10;

pub(super) struct Buffer {
    /// Allocated at the first read, and again when it has grown.
    bytes: Box<[u8]>,
    size: usize,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer { bytes: Box::default(), size: FIRST, start: 0, end: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Makes the buffer larger from the next read on.
    pub(super) fn grow(&mut self) {
        self.size = LARGEST.min(self.size * 2);
    }

    /// All of the buffer, for a read. Call only while it is empty.
    pub(super) fn room(&mut self) -> &mut [u8] {
        debug_assert!(self.is_empty(), "what is in it would be lost");
        if self.bytes.len() < self.size {
            self.bytes = vec![0; self.size].into_boxed_slice();
        }
        &mut self.bytes
    }

    /// Records a read; true if it has filled the buffer.
    ///
    /// # Panics
    ///
    /// Panics if `length` is larger than the buffer.
    pub(super) fn filled(&mut self, length: usize) -> bool {
        assert!(length <= self.bytes.len(), "the reader claims to have read more than there was room for");
        (self.start, self.end) = (0, length);
        length == self.bytes.len()
    }

    /// The bytes that are still to be written.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Records a write.
    ///
    /// # Panics
    ///
    /// Panics if `length` is larger than the rest.
    pub(super) fn written(&mut self, length: usize) -> io::Result<usize> {
        assert!(length <= self.rest().len(), "the writer claims to have written more than it was given");
        self.start += length;
        if length == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(length) }
    }
}

/// Without the bytes, which are private.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("held", &self.rest().len()).field("size", &self.size).finish_non_exhaustive()
    }
}
