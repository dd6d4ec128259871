//! The leaf futures of the standard streams, as `leaf.rs` has those of the sockets.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{Output, Stdin};
use crate::slot::Key;
use crate::source::{Site, Wait};

/// Reads from the standard input; returned by `Stdin::read`.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadStdin<'a> {
    held: Held<'a, Stdin>,
    buf: &'a mut [u8],
}

/// Writes to an output; returned by `Stdout::write`.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteOutput<'a, const FD: i32> {
    held: Held<'a, Output<FD>>,
    buf: &'a [u8],
}

/// Writes a whole buffer to an output; returned by `Stdout::write_all`.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAllOutput<'a, const FD: i32> {
    held: Held<'a, Output<FD>>,
    rest: &'a [u8],
}

/// Waits until all is out; returned by `Stdout::flush`.
#[must_use = "futures do nothing unless awaited"]
pub struct FlushOutput<'a, const FD: i32> {
    held: Held<'a, Output<FD>>,
    /// What it waits for, once that is known.
    until: Option<u64>,
}

/// A future's hold on a stream: when it is dropped, nobody waits in its place.
struct Held<'a, S: Stream> {
    stream: &'a S,
    wait: Wait,
    key: Key,
}

trait Stream {
    fn forget(&self, key: &mut Key);
}

impl Stream for Stdin {
    fn forget(&self, key: &mut Key) {
        Stdin::forget(self, key);
    }
}

impl<const FD: i32> Stream for Output<FD> {
    fn forget(&self, key: &mut Key) {
        Output::forget(self, key);
    }
}

impl<'a, S: Stream> Held<'a, S> {
    #[track_caller]
    fn new(stream: &'a S, site: &'static Site) -> Held<'a, S> {
        Held { stream, wait: Wait::here(site), key: Key::default() }
    }
}

impl<S: Stream> Drop for Held<'_, S> {
    fn drop(&mut self) {
        if !self.key.is_empty() {
            self.stream.forget(&mut self.key);
            self.wait.forget_note();
        }
    }
}

impl<S: Stream> fmt::Debug for Held<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wait { site, location } = &self.wait;
        write!(f, "{}::{} at {location}", site.owner, site.method)
    }
}

impl<'a> ReadStdin<'a> {
    #[track_caller]
    pub(super) fn new(stream: &'a Stdin, site: &'static Site, buf: &'a mut [u8]) -> ReadStdin<'a> {
        ReadStdin { held: Held::new(stream, site), buf }
    }
}

impl<'a, const FD: i32> WriteOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site, buf: &'a [u8]) -> WriteOutput<'a, FD> {
        WriteOutput { held: Held::new(stream, site), buf }
    }
}

impl<'a, const FD: i32> WriteAllOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site, buf: &'a [u8]) -> WriteAllOutput<'a, FD> {
        WriteAllOutput { held: Held::new(stream, site), rest: buf }
    }
}

impl<'a, const FD: i32> FlushOutput<'a, FD> {
    #[track_caller]
    pub(super) fn new(stream: &'a Output<FD>, site: &'static Site) -> FlushOutput<'a, FD> {
        FlushOutput { held: Held::new(stream, site), until: None }
    }
}

impl Future for ReadStdin<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ReadStdin { held: Held { stream, wait, key }, buf } = self.get_mut();
        stream.poll_read_from(cx, wait, Some(key), buf)
    }
}

impl<const FD: i32> Future for WriteOutput<'_, FD> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let WriteOutput { held: Held { stream, wait, key }, buf } = self.get_mut();
        stream.poll_write_to(cx, wait, Some(key), buf)
    }
}

impl<const FD: i32> Future for WriteAllOutput<'_, FD> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let WriteAllOutput { held: Held { stream, wait, key }, rest } = self.get_mut();
        while !rest.is_empty() {
            match ready!(stream.poll_write_to(cx, wait, Some(key), rest))? {
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
        let FlushOutput { held: Held { stream, wait, key }, until } = self.get_mut();
        stream.poll_flush_of(cx, wait, Some(key), until)
    }
}

impl fmt::Debug for ReadStdin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadStdin").field(&self.held).finish()
    }
}

impl<const FD: i32> fmt::Debug for WriteOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteOutput").field(&self.held).finish()
    }
}

impl<const FD: i32> fmt::Debug for WriteAllOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteAllOutput").field(&self.held).finish()
    }
}

impl<const FD: i32> fmt::Debug for FlushOutput<'_, FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlushOutput").field(&self.held).finish()
    }
}
