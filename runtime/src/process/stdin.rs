//! `ChildStdin`: writing to a child.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::{self, Stdio};
use std::task::{Context, Poll};

use mini_net::future;
use mini_net::unix::pipe::Sender;

/// The end to write to of the pipe that is a child's standard input.
///
/// The child sees the end of its input when this is dropped, or closed with `AsyncWriteExt::close`. If no process can
/// read the pipe any more, a write fails with `BrokenPipe`, as Rust programs ignore SIGPIPE.
///
/// Methods take `&self`, so several tasks may use it at the same time; their data are then interleaved.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use mini::process::Command;
///
/// # mini::block_on(async {
/// let mut child = Command::new("wc").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// let stdin = child.stdin.take().unwrap();
/// stdin.write_all(b"hello").await?;
/// drop(stdin);
/// let output = child.wait_with_output().await?;
/// assert_eq!(output.stdout.trim_ascii(), b"5");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub struct ChildStdin(Option<Sender>);

impl ChildStdin {
    /// Takes over a pipe of the standard library, and makes it non-blocking.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::process::{Command, Stdio};
    /// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
    /// let stdin = mini::process::ChildStdin::from_std(child.stdin.take().unwrap())?;
    /// mini::block_on(stdin.write_all(b""))?;
    /// # drop(stdin);
    /// # child.wait()?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2).
    pub fn from_std(stdin: process::ChildStdin) -> io::Result<Self> {
        Sender::from_owned_fd_unchecked(stdin.into()).map(|pipe| Self(Some(pipe)))
    }

    /// Writes as much of the front of `buf` as there is room for; returns the number of bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::process::Stdio;
    /// # mini::block_on(async {
    /// let child = mini::process::Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    /// assert_eq!(child.stdin.as_ref().unwrap().write(b"ping").await?, 4);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of write(2) (`BrokenPipe`: the reading end is closed). Fails if it has to wait and the
    /// runtime has shut down.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless the pipe has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has written no byte.
    #[track_caller]
    pub fn write<'a>(&'a self, buf: &'a [u8]) -> Write<'a> {
        match &self.0 {
            Some(pipe) => Write(Some(pipe.write(buf))), // not in a closure: the caller's line counts
            None => Write(None),
        }
    }

    /// Writes all of `buf`.
    ///
    /// # Examples
    ///
    /// See [`ChildStdin`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](ChildStdin::write). The number of bytes written is unknown then.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`write`](ChildStdin::write).
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses the number of bytes written.
    #[track_caller]
    pub fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAll<'a> {
        match &self.0 {
            Some(pipe) => WriteAll(Some(pipe.write_all(buf))), // not in a closure: the caller's line counts
            None => WriteAll(None),
        }
    }

    /// Leaves the runtime and becomes a descriptor that blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{io::Write, process::Stdio};
    /// # mini::block_on(async {
    /// let mut child = mini::process::Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    /// let mut file = std::fs::File::from(child.stdin.take().unwrap().into_owned_fd()?);
    /// file.write_all(b"ping")?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2), and `BrokenPipe` if it was closed.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        self.0.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?.into_blocking_fd()
    }
}

/// Future of [`ChildStdin::write`]: resolves to `io::Result<usize>`, the number of bytes written.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Write<'a>(Option<future::Write<'a, File>>);

/// Future of [`ChildStdin::write_all`]: resolves to `io::Result<()>` when the whole buffer is written.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAll<'a>(Option<future::WriteAll<'a, File>>);

impl Future for Write<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Some(write) => Pin::new(write).poll(cx),
            None => poll_closed(cx),
        }
    }
}

impl Future for WriteAll<'_> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Some(write) => Pin::new(write).poll(cx),
            None => poll_closed(cx),
        }
    }
}

/// The pipe was closed. A task may try again and again, so that others run after a while.
fn poll_closed<R>(cx: &mut Context<'_>) -> Poll<io::Result<R>> {
    let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "writing to a child's stdin that was closed here");
    mini_context::poll_budget(cx, std::ptr::null::<ChildStdin>()).map(|()| Err(closed()))
}

/// Makes it the output of another child. Fails as [`into_owned_fd`](ChildStdin::into_owned_fd) does.
impl TryFrom<ChildStdin> for Stdio {
    type Error = io::Error;

    fn try_from(stdin: ChildStdin) -> io::Result<Stdio> {
        stdin.into_owned_fd().map(Stdio::from)
    }
}

/// # Panics
///
/// After `AsyncWrite::poll_close`.
impl AsFd for ChildStdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("this ChildStdin was closed").as_fd()
    }
}

/// # Panics
///
/// After `AsyncWrite::poll_close`.
impl AsRawFd for ChildStdin {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for ChildStdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fd = self.0.as_ref().map(|pipe| pipe.as_fd().as_raw_fd());
        f.debug_struct("ChildStdin").field("fd", &fd).finish_non_exhaustive()
    }
}

/// By value only: closing takes the pipe away, which a shared reference can't.
#[cfg(feature = "futures-io")]
mod io_traits {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_io::AsyncWrite;

    use super::{ChildStdin, poll_closed};

    impl AsyncWrite for ChildStdin {
        #[track_caller]
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            match &mut self.get_mut().0 {
                Some(pipe) => Pin::new(pipe).poll_write(cx, buf),
                None => poll_closed(cx),
            }
        }

        /// Nothing is buffered here, so there is nothing to flush.
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        /// Closes the pipe: the child reads the end.
        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            drop(self.get_mut().0.take());
            Poll::Ready(Ok(()))
        }
    }
}

/// Tokio's traits for a child's standard input.
#[cfg(feature = "tokio-io")]
mod tokio_io {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::AsyncWrite;

    use super::{ChildStdin, poll_closed};

    impl AsyncWrite for ChildStdin {
        #[track_caller]
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            match &mut self.get_mut().0 {
                Some(pipe) => Pin::new(pipe).poll_write(cx, buf),
                None => poll_closed(cx),
            }
        }

        /// Nothing is buffered here, so there is nothing to flush.
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        /// Closes the pipe: the child reads the end.
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            drop(self.get_mut().0.take());
            Poll::Ready(Ok(()))
        }
    }
}
