//! What a connection has received and not used yet, in a buffer with an upper bound.

use std::io;

use mini::net::TcpStream;

/// What a buffer begins with, and goes back to.
const SMALL: usize = 2 << 10;

/// The most that is held: the longest head of a request.
pub(crate) const LARGE: usize = 16 << 10;

#[derive(Default)]
pub(crate) struct Input {
    buf: Vec<u8>,
    /// The unused bytes are in `start..end`.
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether nothing more can be received before something is used.
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start == LARGE
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
    }

    /// Receives something; zero at the end of the stream, or if the buffer is full.
    ///
    /// If it is dropped before it is ready, it has received nothing.
    pub(crate) async fn fill(&mut self, stream: &TcpStream) -> io::Result<usize> {
        self.make_room();
        let received = stream.read(&mut self.buf[self.end..]).await?;
        self.end += received;
        Ok(received)
    }

    /// To be called before a long wait.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() && self.buf.len() > SMALL {
            *self = Input::default();
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buf.len() {
            self.buf.resize((self.buf.len() * 2).clamp(SMALL, LARGE), 0);
        }
    }
}
