//! `ChildStdout` and `ChildStderr`: reading from a child, bit by bit or all there is.

use std::fmt;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{self, Stdio};

use mini_net::future::{Read, ReadExact, ReadToEnd};
use mini_net::unix::pipe::Receiver;

use super::child::Wait;

/// The end to read from of the pipe that is a child's standard output.
///
/// # Examples
///
/// See [`from_std`](ChildOutput::from_std).
pub type ChildStdout = ChildOutput<kind::Stdout>;

/// The end to read from of the pipe that is a child's standard error.
///
/// # Examples
///
/// See [`ChildOutput`].
pub type ChildStderr = ChildOutput<kind::Stderr>;

/// The end to read from of a pipe that a child writes to; used as [`ChildStdout`] and [`ChildStderr`].
///
/// Methods take `&self`, so several tasks may use it at the same time; each reads another part.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use mini::process::Command;
///
/// # mini::block_on(async {
/// let mut child = Command::new("sh").args(["-c", "echo oops >&2"]).stderr(Stdio::piped()).spawn()?;
/// let stderr = child.stderr.take().unwrap();
/// let mut buf = [0; 16];
/// let read = stderr.read(&mut buf).await?;
/// assert_eq!(&buf[..read], b"oops\n");
/// child.wait().await?;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub struct ChildOutput<K> {
    pipe: Receiver,
    kind: PhantomData<fn() -> K>,
}

/// The kinds of a [`ChildOutput`]: standard output and standard error.
pub mod kind {
    use std::os::fd::OwnedFd;
    use std::process;

    /// The kind of [`ChildStdout`](super::ChildStdout).
    #[derive(Debug)]
    pub enum Stdout {}

    /// The kind of [`ChildStderr`](super::ChildStderr).
    #[derive(Debug)]
    pub enum Stderr {}

    /// Standard output or standard error.
    pub trait OutputKind: sealed::Kind {
        /// The type of the standard library for the same thing.
        type Std: Into<OwnedFd>;
    }

    impl OutputKind for Stdout {
        type Std = process::ChildStdout;
    }

    impl OutputKind for Stderr {
        type Std = process::ChildStderr;
    }

    pub(super) mod sealed {
        pub trait Kind {
            const NAME: &'static str;
        }

        impl Kind for super::Stdout {
            const NAME: &'static str = "ChildStdout";
        }

        impl Kind for super::Stderr {
            const NAME: &'static str = "ChildStderr";
        }
    }
}

use kind::OutputKind;

impl<K: OutputKind> ChildOutput<K> {
    /// Takes over a pipe of the standard library, and makes it non-blocking.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::process::{Command, Stdio};
    /// let mut child = Command::new("echo").arg("ping").stdout(Stdio::piped()).spawn()?;
    /// let stdout = mini::process::ChildStdout::from_std(child.stdout.take().unwrap())?;
    /// let mut buf = [0; 5];
    /// mini::block_on(stdout.read_exact(&mut buf))?;
    /// assert_eq!(&buf, b"ping\n");
    /// # child.wait()?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2).
    pub fn from_std(output: K::Std) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd_unchecked(output.into())?, kind: PhantomData })
    }

    /// Reads the available bytes into the front of `buf`; returns their number.
    ///
    /// 0 with a `buf` that is not empty is the end: every process that could write to the pipe has closed it or ended.
    ///
    /// # Examples
    ///
    /// See [`ChildOutput`].
    ///
    /// # Errors
    ///
    /// Returns the errors of read(2), and an error if the runtime has shut down.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime, unless the pipe has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no byte.
    #[track_caller]
    pub fn read<'a>(&'a self, buf: &'a mut [u8]) -> Read<'a, File> {
        self.pipe.read(buf)
    }

    /// Reads until `buf` is full.
    ///
    /// # Examples
    ///
    /// See [`from_std`](ChildOutput::from_std).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](ChildOutput::read), and `UnexpectedEof` if the output ends first. The number of
    /// bytes read is unknown then.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`read`](ChildOutput::read).
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses the number of bytes read: they are in the front of `buf`, and no longer in the pipe.
    #[track_caller]
    pub fn read_exact<'a>(&'a self, buf: &'a mut [u8]) -> ReadExact<'a, File> {
        self.pipe.read_exact(buf)
    }

    /// Reads to the end of the output, and appends what it reads to `buf`.
    ///
    /// Returns the number of bytes read. The end comes when the child, and every process that has inherited the pipe
    /// from it, has closed it.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// use std::process::Stdio;
    /// let mut child = mini::process::Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    /// let mut said = Vec::new();
    /// child.stdout.take().expect("piped").read_to_end(&mut said).await?;
    /// assert_eq!(said, b"hello\n");
    /// # child.wait().await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](ChildOutput::read). `buf` has the bytes that were read before.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`read`](ChildOutput::read).
    ///
    /// # Cancel safety
    ///
    /// Safe: the bytes that were read are in `buf`.
    #[track_caller]
    pub fn read_to_end<'a>(&'a self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, File> {
        self.pipe.read_to_end(buf)
    }

    /// Leaves the runtime and becomes a descriptor that blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::{io::Read, process::Stdio};
    /// # mini::block_on(async {
    /// let mut child = mini::process::Command::new("echo").arg("ping").stdout(Stdio::piped()).spawn()?;
    /// let mut file = std::fs::File::from(child.stdout.take().unwrap().into_owned_fd()?);
    /// let mut text = String::new();
    /// file.read_to_string(&mut text)?;
    /// assert_eq!(text, "ping\n");
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fcntl(2).
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        self.pipe.into_blocking_fd()
    }
}

/// Makes it the input of another child. Fails as [`into_owned_fd`](ChildOutput::into_owned_fd) does.
///
/// # Examples
///
/// ```
/// use std::process::Stdio;
/// use mini::process::Command;
///
/// # mini::block_on(async {
/// let mut echo = Command::new("echo").arg("ping").stdout(Stdio::piped()).spawn()?;
/// let from_echo: Stdio = echo.stdout.take().unwrap().try_into()?;
/// let output = Command::new("tr").args(["i", "o"]).stdin(from_echo).output().await?;
/// assert_eq!(output.stdout, b"pong\n");
/// echo.wait().await?;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
impl<K: OutputKind> TryFrom<ChildOutput<K>> for Stdio {
    type Error = io::Error;

    fn try_from(output: ChildOutput<K>) -> io::Result<Stdio> {
        output.into_owned_fd().map(Stdio::from)
    }
}

/// Waits for a child, and reads both outputs to the end.
pub(super) async fn collect(
    wait: Wait<'_>,
    call_site: mini_net::CallSite,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
) -> io::Result<process::Output> {
    let (status, stdout, stderr) = crate::try_join!(wait, rest(stdout, call_site), rest(stderr, call_site))?;
    Ok(process::Output { status, stdout, stderr })
}

/// Reads the rest of an output, if it was piped.
async fn rest<K>(output: Option<ChildOutput<K>>, call_site: mini_net::CallSite) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(output) = output {
        output.pipe.read_to_end_for(call_site, &mut bytes).await?;
    }
    Ok(bytes)
}

impl<K> AsFd for ChildOutput<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl<K> AsRawFd for ChildOutput<K> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<K: OutputKind> fmt::Debug for ChildOutput<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(K::NAME).field("fd", &self.as_raw_fd()).finish_non_exhaustive()
    }
}

#[cfg(feature = "futures-io")]
mod io_traits {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_io::AsyncRead;

    use super::ChildOutput;

    impl<K> AsyncRead for &ChildOutput<K> {
        #[track_caller]
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut &self.pipe).poll_read(cx, buf)
        }
    }

    impl<K> AsyncRead for ChildOutput<K> {
        #[track_caller]
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut &self.pipe).poll_read(cx, buf)
        }
    }
}

#[cfg(feature = "tokio-io")]
mod tokio_io {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, ReadBuf};

    use super::ChildOutput;

    impl<K> AsyncRead for ChildOutput<K> {
        #[track_caller]
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.get_mut().pipe).poll_read(cx, buf)
        }
    }
}
