//! One connection of the load client: how far it has sent, how far the echo has come back.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// The bytes of every connection: byte `n` of a stream is `n % 251`, so that a shifted echo does not fit.
pub(super) struct Pattern(Vec<u8>);

impl Pattern {
    /// Bytes that can be had at once.
    pub(super) const LONGEST: usize = 16 * 1024;

    /// Prime, so that it divides neither messages nor buffers.
    const PERIOD: usize = 251;

    pub(super) fn new() -> Self {
        Self((0..Self::LONGEST + Self::PERIOD).map(|index| (index % Self::PERIOD) as u8).collect())
    }

    /// The bytes of a stream from `offset` on.
    fn at(&self, offset: u64, length: usize) -> &[u8] {
        &self.0[(offset % Self::PERIOD as u64) as usize..][..length]
    }
}

pub(super) struct Connection {
    stream: TcpStream,
    /// Bytes sent and received since it was opened.
    sent: u64,
    received: u64,
    /// How far to send in this run.
    goal: u64,
    open: bool,
    pub(super) sent_at: Instant,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, sent: 0, received: 0, goal: 0, open: false, sent_at: Instant::now() }
    }

    /// A run begins, in which it shall send so many bytes.
    pub(super) fn begin(&mut self, bytes: u64) {
        (self.goal, self.open, self.sent_at) = (self.sent + bytes, true, Instant::now());
    }

    pub(super) fn end(&mut self) {
        self.open = false;
    }

    /// Whether it takes part in the run.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// No message begins from here on.
    pub(super) fn stop(&mut self, message: u64) {
        self.goal = self.goal.min(self.sent.next_multiple_of(message));
    }

    pub(super) fn is_answered(&self) -> bool {
        self.received == self.sent
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_answered() && self.sent == self.goal
    }

    /// Sends until the window or the socket is full; says whether anything went out.
    pub(super) fn send(&mut self, window: u64, pattern: &Pattern) -> io::Result<bool> {
        let before = self.sent;
        loop {
            let room = (self.received + window).min(self.goal) - self.sent;
            let length = room.min(Pattern::LONGEST as u64) as usize;
            if length == 0 {
                return Ok(self.sent > before);
            }
            match self.stream.write(pattern.at(self.sent, length)) {
                Ok(sent) => self.sent += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(self.sent > before),
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives and checks all there is; returns how many bytes.
    pub(super) fn receive(&mut self, buf: &mut [u8], pattern: &Pattern) -> io::Result<u64> {
        let before = self.received;
        loop {
            let length = match self.stream.read(buf) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed")),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            if buf[..length] != *pattern.at(self.received, length) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the echo differs from what was sent"));
            }
            self.received += length as u64;
            if length < buf.len() {
                break;
            }
        }
        Ok(self.received - before)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connected() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(stream), listener.accept().unwrap().0)
    }

    #[test]
    fn the_window_bounds_what_is_under_way() {
        let (mut connection, mut server) = connected();
        let (pattern, mut buf) = (Pattern::new(), [0; 4096]);
        connection.begin(300);
        assert!(connection.send(200, &pattern).unwrap());
        assert!(!connection.send(200, &pattern).unwrap());
        server.read_exact(&mut buf[..200]).unwrap();
        server.write_all(&buf[..200]).unwrap();
        assert_eq!(connection.receive(&mut buf, &pattern).unwrap(), 200);
        assert!(connection.is_answered() && !connection.is_done());
        assert!(connection.send(200, &pattern).unwrap());
        server.read_exact(&mut buf[..100]).unwrap();
        server.write_all(&buf[..100]).unwrap();
        assert_eq!(connection.receive(&mut buf, &pattern).unwrap(), 100);
        assert!(connection.is_done());
    }

    #[test]
    fn a_wrong_echo_is_an_error() {
        let (mut connection, mut server) = connected();
        let (pattern, mut buf) = (Pattern::new(), [0; 4096]);
        server.write_all(&[0, 1, 2, 4]).unwrap();
        let error = connection.receive(&mut buf, &pattern).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_end_of_a_run_completes_the_message() {
        let (mut connection, _server) = connected();
        connection.begin(u64::MAX / 2);
        connection.sent = 100;
        connection.stop(64);
        assert_eq!(connection.goal, 128);
    }
}
