//! `Pipe`: carries bytes from one socket to another without a copy.
//!
//! Called by `flow`. A pipe is filled only when it is empty, so "would block" has one meaning at each end: the source
//! socket has no data, or the target socket has no room.
//!
//! Rejected: filling it while it holds something. "Would block" could then also mean a full pipe (a pipe is full when
//! its slots are, whatever the bytes). The gain is only what the receive buffer of the socket holds as well.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;

use crate::sys;

/// How much goes through at once.
const ROOM: usize = 512 << 10;

/// With less than this, copying is as good. A user who has many large pipes gets small ones (pipe(7),
/// `pipe-user-pages-soft`).
const LEAST: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    held: usize,
}

impl Pipe {
    /// `None` if bytes have to be copied, also when the process has no file descriptors left.
    pub(super) fn open() -> Option<Pipe> {
        if !sys::can_splice() {
            return None;
        }
        let (reader, writer) = io::pipe().ok()?;
        (sys::widen(writer.as_fd(), ROOM) >= LEAST).then_some(Pipe { reader, writer, held: 0 })
    }

    /// Returns `true` if the pipe holds no bytes.
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Takes in what has arrived at `socket`. Call only while the pipe is empty. 0 proves nothing: only a read shows
    /// the end.
    pub(super) fn fill(&mut self, socket: impl AsFd) -> io::Result<usize> {
        debug_assert!(self.is_empty(), "see the module documentation");
        self.held = sys::splice(socket.as_fd(), self.writer.as_fd(), ROOM)?;
        Ok(self.held)
    }

    /// Gives `socket` what it has room for; the pipe is not empty. `Unsupported` if the bytes have to be copied.
    pub(super) fn drain(&mut self, socket: impl AsFd) -> io::Result<usize> {
        // Checked each time: the program may have begun to listen to SIGPIPE since the last one.
        if !sys::can_splice() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let moved = sys::splice(self.reader.as_fd(), socket.as_fd(), self.held)?;
        self.held -= moved;
        Ok(moved)
    }

    /// Takes bytes out of a pipe that is not empty, to be written in the usual way.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.held -= read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixStream;

    #[test]
    fn what_is_in_it_can_be_written_or_read_back() {
        let Some(mut pipe) = Pipe::open() else { return };
        let (a, b) = UnixStream::pair().unwrap();
        let (c, d) = UnixStream::pair().unwrap();
        a.try_write(b"pingpong").unwrap();
        assert_eq!(pipe.fill(&b).unwrap(), 8);
        let mut buf = [0; 16];
        assert_eq!(pipe.read(&mut buf[..4]).unwrap(), 4);
        assert_eq!(&buf[..4], b"ping");
        assert_eq!(pipe.drain(&c).unwrap(), 4);
        assert!(pipe.is_empty());
        assert_eq!(d.try_read(&mut buf).unwrap(), 4);
        assert_eq!(&buf[..4], b"pong");
        assert_eq!(pipe.fill(&b).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
