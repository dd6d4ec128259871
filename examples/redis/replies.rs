//! Replies of RESP2, gathered in one buffer that is written at once.
//!
//! Filled by `commands`, written by `connection`. A long value is not copied: it is kept beside the buffer, with its
//! place in the buffer. So the replies to a batch take no more memory than the batch, whatever the values: a client
//! that asks for a hundred long ones and never reads costs a hundred references.

use std::fmt::Display;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use mini::net::TcpStream;

/// Values up to this length are copied.
const COPIED: usize = 64;
/// Up to here longer ones are copied as well, if they have no more than `COPIED_EARLY` bytes.
const EARLY: usize = 64 << 10;
const COPIED_EARLY: usize = 4 << 10;

/// What a client is going to get.
#[derive(Default)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    /// Values, and where they come into the bytes.
    shared: Vec<(usize, Arc<[u8]>)>,
}

impl Replies {
    /// One of the fixed replies, `+OK\r\n` say.
    pub(crate) fn raw(&mut self, reply: &str) {
        self.bytes.extend_from_slice(reply.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.raw("+OK\r\n");
    }

    pub(crate) fn null(&mut self) {
        self.raw("$-1\r\n");
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// The head of an array; its elements follow.
    pub(crate) fn array(&mut self, length: usize) {
        self.header(b'*', length as i64);
    }

    pub(crate) fn bulk(&mut self, text: &[u8]) {
        self.header(b'$', text.len() as i64);
        self.bytes.extend_from_slice(text);
        self.raw("\r\n");
    }

    /// As [`bulk`](Self::bulk), without a copy if the value is long.
    pub(crate) fn value(&mut self, value: &Arc<[u8]>) {
        let is_copied = value.len() <= COPIED || (self.bytes.len() < EARLY && value.len() <= COPIED_EARLY);
        if is_copied {
            return self.bulk(value);
        }
        self.header(b'$', value.len() as i64);
        self.shared.push((self.bytes.len(), value.clone()));
        self.raw("\r\n");
    }

    /// A line that says what was wrong; line ends in it become blanks.
    pub(crate) fn error(&mut self, error: impl Display) {
        self.raw("-");
        let start = self.bytes.len();
        let _ = write!(self.bytes, "{error}");
        let line_ends = self.bytes[start..].iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n'));
        line_ends.for_each(|byte| *byte = b' ');
        self.raw("\r\n");
    }

    /// Writes everything, as soon as the client takes it.
    pub(crate) async fn write_to(&mut self, stream: &TcpStream) -> io::Result<()> {
        if self.shared.is_empty() {
            stream.write_all(&self.bytes).await?;
        } else {
            let mut pieces = self.pieces();
            let mut rest = &mut pieces[..];
            while !rest.is_empty() {
                let written = stream.write_vectored(rest).await?;
                IoSlice::advance_slices(&mut rest, written);
            }
        }
        self.bytes.clear();
        self.shared.clear();
        Ok(())
    }

    /// Writes what the client takes at once; says whether that was all.
    pub(crate) fn try_write_to(&mut self, mut stream: &std::net::TcpStream) -> io::Result<bool> {
        if !self.shared.is_empty() {
            self.bytes = self.pieces().iter().flat_map(|piece| piece.iter().copied()).collect();
            self.shared.clear();
        }
        while !self.bytes.is_empty() {
            match stream.write(&self.bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.bytes.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the buffer has grown, so that it should not be kept for others.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.capacity() > 2 * EARLY || self.shared.capacity() > 1024
    }

    /// What is to be written, in order; no piece is empty.
    fn pieces(&self) -> Vec<IoSlice<'_>> {
        let mut pieces = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut from = 0;
        for (at, value) in &self.shared {
            pieces.push(IoSlice::new(&self.bytes[from..*at]));
            pieces.push(IoSlice::new(value));
            from = *at;
        }
        pieces.push(IoSlice::new(&self.bytes[from..]));
        pieces
    }

    fn header(&mut self, kind: u8, number: i64) {
        let mut line = [0; 24];
        let mut at = line.len() - 2;
        line[at..].copy_from_slice(b"\r\n");
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            line[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            line[at] = b'-';
        }
        at -= 1;
        line[at] = kind;
        self.bytes.extend_from_slice(&line[at..]);
    }
}
