//! The load of the downloads, on the CPU of the calling thread: a thread that downloads, and this one that asks for the
//! small file.
//!
//! The downloaded bytes are not looked at, and not even copied (tcp(7), `MSG_TRUNC`): the server shall be the
//! bottleneck.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::time::Timespec;

use super::{LARGE, SMALL};
use crate::stats::percentile;

/// Between an answer and the next request for the small file.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a receive.
const PIECE: usize = 1 << 20;

/// Bytes that the head of an answer has at most.
const HEAD: usize = 4096;

/// What the clients saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Of the small file, in milliseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Of all downloads together, in GB/s.
    pub(super) rate: f64,
}

/// Asks for the small file for `span`, beside `count` downloads.
pub(super) fn ask(port: u16, count: usize, span: Duration) -> io::Result<Seen> {
    let downloads = (0..count).map(|_| Download::start(port)).collect::<io::Result<Vec<_>>>()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let start = Instant::now();
            download(downloads, &is_over).map(|bytes| bytes as f64 / 1e9 / start.elapsed().as_secs_f64())
        });
        thread::sleep(span / 4); // warm-up
        let small = ask_small(port, span);
        is_over.store(true, Relaxed);
        let rate = thread.join().expect("it only reads")?;
        let small = small?;
        Ok(Seen { p50: percentile(&small, 50.0), p99: percentile(&small, 99.0), rate })
    })
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn request(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// What each answer took, in milliseconds.
fn ask_small(port: u16, span: Duration) -> io::Result<Vec<f64>> {
    let (mut stream, request) = (connect(port)?, request(SMALL.0));
    let mut took = Vec::new();
    let mut buf = vec![0; HEAD];
    let start = Instant::now();
    while took.is_empty() || start.elapsed() < span {
        thread::sleep(PAUSE);
        let asked = Instant::now();
        stream.write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            match stream.read(&mut buf[length..])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                more => length += more,
            }
            if head(&buf[..length])?.is_some_and(|head| length == head + SMALL.1) {
                break;
            }
        }
        took.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Bytes of the head of an answer; `None` if more of it has to come.
fn head(answer: &[u8]) -> io::Result<Option<usize>> {
    if !b"HTTP/1.1 200".starts_with(&answer[..answer.len().min(12)]) {
        return Err(io::Error::new(ErrorKind::InvalidData, "the server does not serve the file"));
    }
    Ok(answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4))
}

/// A connection that downloads the large file again and again.
struct Download {
    stream: TcpStream,
    /// Of the body, once the head has come.
    left: Option<usize>,
    head: Vec<u8>,
}

impl Download {
    fn start(port: u16) -> io::Result<Self> {
        let mut stream = connect(port)?;
        stream.write_all(request(LARGE.0).as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, left: None, head: Vec::new() })
    }

    /// Receives once; returns the number of bytes.
    fn receive(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (wanted, flags) = match self.left {
            Some(left) => (left.min(PIECE), RecvFlags::TRUNC),
            None => (HEAD - self.head.len(), RecvFlags::empty()),
        };
        let length = match recv(&self.stream, &mut buf[..wanted], flags) {
            Ok((_, 0)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((_, length)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        match &mut self.left {
            Some(left) => *left -= length,
            None => {
                self.head.extend_from_slice(&buf[..length]);
                self.left = head(&self.head)?.map(|head| head + LARGE.1 - self.head.len());
            }
        }
        if self.left == Some(0) {
            (self.left, self.head) = (None, Vec::new());
            self.stream.write_all(request(LARGE.0).as_bytes())?;
        }
        Ok(length)
    }
}

/// Downloads until `is_over`; returns the number of bytes.
fn download(mut downloads: Vec<Download>, is_over: &AtomicBool) -> io::Result<usize> {
    let (mut buf, mut bytes) = (vec![0; PIECE], 0);
    let limit = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !is_over.load(Relaxed) {
        let mut fds: Vec<_> = downloads.iter().map(|download| PollFd::new(&download.stream, PollFlags::IN)).collect();
        poll(&mut fds, Some(&limit))?;
        let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (download, _) in downloads.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
            bytes += download.receive(&mut buf)?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_with_an_empty_line() {
        assert_eq!(head(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nxx").unwrap(), Some(25));
        assert_eq!(head(b"HTTP/1.").unwrap(), None);
        assert!(head(b"HTTP/1.1 404 Not Found\r\n").is_err());
    }
}
