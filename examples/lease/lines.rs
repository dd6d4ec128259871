//! `Lines`: the lines that come from a connection.

use std::io;

use mini::net::TcpStream;

/// A line may be no longer, without its end.
const LONGEST: usize = 1000;

pub(crate) struct Lines<'a> {
    stream: &'a TcpStream,
    buffer: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(stream: &'a TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The next line, without its end; `None` at the end of the stream.
    ///
    /// Cancel-safe: what has come of a line stays.
    pub(crate) async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let rest = self.buffer.split_off(at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(at);
                return String::from_utf8(line).map(Some).map_err(io::Error::other);
            }
            if self.buffer.len() > LONGEST {
                return Err(io::Error::other("a line is too long"));
            }
            let mut bytes = [0; 512];
            match self.stream.read(&mut bytes).await? {
                0 => return Ok(None),
                count => self.buffer.extend_from_slice(&bytes[..count]),
            }
        }
    }
}
