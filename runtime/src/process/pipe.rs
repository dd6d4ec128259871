//! `Pipe`: our end of a pipe to a child, and the futures that read and write it.
//!
//! Called by `stdin` and `output`. A pipe is a file that does not block, in an `AsyncFd`; every operation is the same
//! loop: wait until the kernel says that it is ready, try, and wait again on `WouldBlock`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mini_net::future::FdReady;
use mini_net::{self as net, AsyncFd, AsyncFdReadyGuard, Interest};
#[cfg(any(feature = "futures-io", feature = "tokio-io"))]
use mini_net::{IoKind, Site};

use super::sys::set_nonblocking;

#[derive(Debug)]
pub(super) struct Pipe(AsyncFd<File>);

/// Future of [`ChildOutput::read`](super::ChildOutput::read): resolves to `io::Result<usize>`, the number of bytes
/// read, 0 at the end.
#[must_use = "futures do nothing unless awaited"]
pub struct Read<'a> {
    wait: Wait<'a>,
    buf: &'a mut [u8],
}

/// Future of [`ChildOutput::read_exact`](super::ChildOutput::read_exact): resolves to `io::Result<()>` when the
/// buffer is full.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadExact<'a> {
    wait: Wait<'a>,
    buf: &'a mut [u8],
    filled: usize,
}

/// Future of [`ChildOutput::read_to_end`](super::ChildOutput::read_to_end): resolves to `io::Result<usize>`, the number
/// of bytes read.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadToEnd<'a> {
    wait: Wait<'a>,
    buf: &'a mut Vec<u8>,
    read: usize,
}

/// Future of [`ChildStdin::write`](super::ChildStdin::write): resolves to `io::Result<usize>`, the number of bytes
/// written.
#[must_use = "futures do nothing unless awaited"]
pub struct Write<'a> {
    /// `None` if the pipe has been closed.
    wait: Option<Wait<'a>>,
    buf: &'a [u8],
}

/// Future of [`ChildStdin::write_all`](super::ChildStdin::write_all): resolves to `io::Result<()>` when the whole
/// buffer is written.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAll<'a> {
    /// `None` if the pipe has been closed.
    wait: Option<Wait<'a>>,
    rest: &'a [u8],
}

/// A wait that goes on until an operation has succeeded.
struct Wait<'a>(FdReady<'a, File>);

impl Pipe {
    pub(super) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Pipe> {
        set_nonblocking(fd.as_fd(), true)?;
        AsyncFd::with_interest(File::from(fd), interest).map(Pipe)
    }

    /// Our end as other processes expect it: blocking, and no longer with a runtime.
    pub(super) fn into_blocking(self) -> io::Result<OwnedFd> {
        let file = self.0.into_inner();
        set_nonblocking(file.as_fd(), false)?;
        Ok(file.into())
    }

    pub(super) fn read<'a>(&'a self, call: net::Wait, buf: &'a mut [u8]) -> Read<'a> {
        Read { wait: Wait(self.0.ready_for(call, Interest::READABLE)), buf }
    }

    pub(super) fn read_exact<'a>(&'a self, call: net::Wait, buf: &'a mut [u8]) -> ReadExact<'a> {
        ReadExact { wait: Wait(self.0.ready_for(call, Interest::READABLE)), buf, filled: 0 }
    }

    pub(super) fn read_to_end<'a>(&'a self, call: net::Wait, buf: &'a mut Vec<u8>) -> ReadToEnd<'a> {
        ReadToEnd { wait: Wait(self.0.ready_for(call, Interest::READABLE)), buf, read: 0 }
    }

    pub(super) fn write<'a>(&'a self, call: net::Wait, buf: &'a [u8]) -> Write<'a> {
        Write { wait: Some(Wait(self.0.ready_for(call, Interest::WRITABLE))), buf }
    }

    pub(super) fn write_all<'a>(&'a self, call: net::Wait, buf: &'a [u8]) -> WriteAll<'a> {
        WriteAll { wait: Some(Wait(self.0.ready_for(call, Interest::WRITABLE))), rest: buf }
    }

    #[cfg(any(feature = "futures-io", feature = "tokio-io"))]
    #[track_caller]
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, mut buf: impl net::Unfilled) -> Poll<io::Result<usize>> {
        const SITE: &Site = &Site { owner: "ChildOutput", method: "poll_read", kind: IoKind::Read };
        if buf.remaining() == 0 {
            return mini_context::poll_budget(cx, self).map(|()| Ok(0));
        }
        self.poll_io(cx, &net::Wait::here(SITE), Interest::READABLE, |file| net::read_into(file, &mut buf))
    }

    /// Fails without a pipe, which was closed.
    #[cfg(any(feature = "futures-io", feature = "tokio-io"))]
    #[track_caller]
    pub(super) fn poll_write(this: Option<&Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Some(this) = this else { return poll_closed(cx, std::ptr::null::<Self>()) };
        if buf.is_empty() {
            return mini_context::poll_budget(cx, this).map(|()| Ok(0));
        }
        const SITE: &Site = &Site { owner: "ChildStdin", method: "poll_write", kind: IoKind::Write };
        this.poll_io(cx, &net::Wait::here(SITE), Interest::WRITABLE, |mut file| file.write(buf))
    }

    #[cfg(any(feature = "futures-io", feature = "tokio-io"))]
    fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        call: &net::Wait,
        interest: Interest,
        mut op: impl FnMut(&File) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let mut guard = ready!(self.0.poll_ready_for(cx, call, interest))?;
            if let Some(result) = attempt(&mut guard, &mut op) {
                return Poll::Ready(result);
            }
        }
    }
}

impl Write<'_> {
    pub(super) const CLOSED: Self = Write { wait: None, buf: &[] };
}

impl WriteAll<'_> {
    pub(super) const CLOSED: Self = WriteAll { wait: None, rest: &[] };
}

/// Tries `op` once; `None` if it has to be tried again.
fn attempt<R>(
    guard: &mut AsyncFdReadyGuard<'_, File>,
    op: impl FnOnce(&File) -> io::Result<R>,
) -> Option<io::Result<R>> {
    match guard.try_io(|fd| op(fd.get_ref())) {
        Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => None,
        result => result.ok(),
    }
}

impl Wait<'_> {
    fn poll_io<R>(&mut self, cx: &mut Context<'_>, mut op: impl FnMut(&File) -> io::Result<R>) -> Poll<io::Result<R>> {
        loop {
            let mut guard = ready!(Pin::new(&mut self.0).poll(cx))?;
            if let Some(result) = attempt(&mut guard, &mut op) {
                return Poll::Ready(result);
            }
        }
    }
}

/// As `closed`, for a task that tries again and again.
fn poll_closed<L, R>(cx: &mut Context<'_>, leaf: *const L) -> Poll<io::Result<R>> {
    mini_context::poll_budget(cx, leaf).map(|()| Err(closed()))
}

pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "writing to a child's stdin that was closed here")
}

impl Future for Read<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Read { wait, buf } = self.get_mut();
        if buf.is_empty() {
            return mini_context::poll_budget(cx, buf).map(|()| Ok(0));
        }
        wait.poll_io(cx, |mut file| file.read(buf))
    }
}

impl Future for ReadExact<'_> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ReadExact { wait, buf, filled } = self.get_mut();
        if buf.is_empty() {
            return mini_context::poll_budget(cx, filled).map(Ok);
        }
        while *filled < buf.len() {
            match ready!(wait.poll_io(cx, |mut file| file.read(&mut buf[*filled..])))? {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => *filled += read,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Future for ReadToEnd<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ReadToEnd { wait, buf, read } = self.get_mut();
        loop {
            net::make_room(buf);
            match ready!(wait.poll_io(cx, |file| net::read_into(file, *buf)))? {
                0 => return Poll::Ready(Ok(*read)),
                received => *read += received,
            }
        }
    }
}

impl Future for Write<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Write { wait, buf } = self.get_mut();
        let Some(wait) = wait else { return poll_closed(cx, buf) };
        if buf.is_empty() {
            return mini_context::poll_budget(cx, buf).map(|()| Ok(0));
        }
        wait.poll_io(cx, |mut file| file.write(buf))
    }
}

impl Future for WriteAll<'_> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let WriteAll { wait, rest } = self.get_mut();
        let Some(wait) = wait else { return poll_closed(cx, rest) };
        if rest.is_empty() {
            return mini_context::poll_budget(cx, rest).map(Ok);
        }
        while !rest.is_empty() {
            match ready!(wait.poll_io(cx, |mut file| file.write(rest)))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *rest = &rest[written..],
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

macro_rules! debug {
    ($($name:ident $wait:ident)*) => { $(
        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.$wait).finish()
            }
        }
    )* };
}

debug! { Read wait ReadExact wait ReadToEnd wait Write wait WriteAll wait }

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Read<'_>, ReadExact<'_>, ReadToEnd<'_>, Write<'_>, WriteAll<'_>)>();
};
