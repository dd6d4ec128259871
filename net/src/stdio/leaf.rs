//! The leaf futures of the standard streams, as `leaf.rs` has those of the sockets.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{INPUT, Output, Stdin, Stream, new_number};
use crate::leaf::{Waitable, Waiting};
use crate::slot::Key;
use crate::source::Site;

/// Future of `Stdin::read`: resolves to `io::Result<usize>`, the number of bytes read, 0 at the end.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadStdin<'a> {
    waiting: Waiting<'a, Stdin>,
    buf: &'a mut [u8],
}

/// Future of `Stdout::write` and `Stderr::write`: resolves to `io::Result<usize>`, the number of bytes written.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteOutput<'a, const FD: i32> {
    waiting: Waiting<'a, Output<FD>>,
    buf: &'a [u8],
}

/// Future of `Stdout::write_all` and `Stderr::write_all`: resolves to `io::Result<()>` when all is written.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAllOutput<'a, const FD: i32> {
    waiting: Waiting<'a, Output<FD>>,
    rest: &'a [u8],
}

/// Future of `Stdout::flush` and `Stderr::flush`: resolves to `io::Result<()>` when all is out.
#[must_use = "futures do nothing unless awaited"]
pub struct FlushOutput<'a, const FD: i32> {
    waiting: Waiting<'a, Output<FD>>,
    /// The number of bytes that have to be out, once known.
    until: Option<u64>,
}

impl Waitable for Stdin {
    fn forget(&self, key: &mut Key) {
        match &self.0 {
            Stream::Polled(source) => source.forget(key),
            Stream::Thread(_, process) => INPUT.forget(key.number(new_number), *process),
        }
    }
}

impl<const FD: i32> Waitable for Output<FD> {
    fn forget(&self, key: &mut Key) {
        match &self.0 {
            Stream::Polled(source) => source.forget(key),
            Stream::Thread(_, process) => Self::writer().forget(key.number(new_number), *process),
        }
    }
}

impl<'a> ReadStdin<'a> {
    #[track_caller]
    pub(super) fn new(stream: &'a Stdin, site: &'static Site, buf: &'a mut [u8]) -> ReadStdin<'a> {
        ReadStdin { waiting: Waiting::new(stream, site), buf }
    }
}

impl<'a, const FD: i32> WriteOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site, buf: &'a [u8]) -> WriteOutput<'a, FD> {
        WriteOutput { waiting: Waiting::new(stream, site), buf }
    }
}

impl<'a, const FD: i32> WriteAllOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site, buf: &'a [u8]) -> WriteAllOutput<'a, FD> {
        WriteAllOutput { waiting: Waiting::new(stream, site), rest: buf }
    }
}

impl<'a, const FD: i32> FlushOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site) -> FlushOutput<'a, FD> {
        FlushOutput { waiting: Waiting::new(stream, site), until: None }
    }
}

impl Future for ReadStdin<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ReadStdin { waiting: Waiting { place: stream, call_site, key }, buf } = self.get_mut();
        stream.poll_read_from(cx, call_site, Some(key), &mut **buf)
    }
}

impl<const FD: i32> Future for WriteOutput<'_, FD> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let WriteOutput { waiting: Waiting { place: stream, call_site, key }, buf } = self.get_mut();
        stream.poll_write_to(cx, call_site, Some(key), buf)
    }
}

impl<const FD: i32> Future for WriteAllOutput<'_, FD> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let WriteAllOutput { waiting: Waiting { place: stream, call_site, key }, rest } = self.get_mut();
        if rest.is_empty() {
            return mini_context::poll_budget(cx, rest).map(Ok);
        }
        while !rest.is_empty() {
            match ready!(stream.poll_write_to(cx, call_site, Some(key), rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *rest = &rest[written..],
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<const FD: i32> Future for FlushOutput<'_, FD> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let FlushOutput { waiting: Waiting { place: stream, call_site, key }, until } = self.get_mut();
        stream.poll_flush_of(cx, call_site, Some(key), until)
    }
}

impl fmt::Debug for ReadStdin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadStdin").field(&self.waiting).finish()
    }
}

impl<const FD: i32> fmt::Debug for WriteOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteOutput").field(&self.waiting).finish()
    }
}

impl<const FD: i32> fmt::Debug for WriteAllOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteAllOutput").field(&self.waiting).finish()
    }
}

impl<const FD: i32> fmt::Debug for FlushOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlushOutput").field(&self.waiting).finish()
    }
}
