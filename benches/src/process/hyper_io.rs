//! What hyper needs of mini: its I/O traits for a stream, and its timer.
//!
//! Used by the HTTP server on mini (`server/mini.rs`). HTTP/1 spawns nothing, so there is no executor.
//!
//! Rejected: reading into hyper's own buffer. It hands out memory that is not initialised, and zeroing 8 KiB per read
//! costs more than copying a request out of a buffer that stays.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{ReadBufCursor, Sleep, Timer};
use mini::io::{AsyncRead, AsyncWrite};
use mini::net::TcpStream;

/// Bytes read at once; hyper starts with as many.
const BUFFER: usize = 8 * 1024;

/// A stream of mini for hyper.
pub(super) struct MiniIo {
    stream: TcpStream,
    buf: Box<[u8; BUFFER]>,
}

impl MiniIo {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buf: Box::new([0; BUFFER]) }
    }
}

impl hyper::rt::Read for MiniIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut cursor: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let wanted = cursor.remaining().min(BUFFER);
        let length = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut this.buf[..wanted]))?;
        cursor.put_slice(&this.buf[..length]);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for MiniIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

/// mini's sleeps for hyper.
pub(super) struct MiniTimer;

impl Timer for MiniTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(MiniSleep(mini::time::sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(MiniSleep(mini::time::sleep_until(deadline.into())))
    }

    fn now(&self) -> Instant {
        mini::time::Instant::now().into()
    }

    /// hyper moves one deadline per connection on with each request.
    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<MiniSleep>() {
            Some(mut sleep) => Pin::new(&mut sleep.0).reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

struct MiniSleep(mini::time::Sleep);

impl Future for MiniSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Sleep for MiniSleep {}
