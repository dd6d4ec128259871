//! Pipes within a process, to another process, and by a path (pipe(7), fifo(7)).
//!
//! [`pipe()`](pipe()) creates both ends of a pipe; [`OpenOptions`] opens an end of a FIFO by its path.
//!
//! # Examples
//!
//! See [`pipe()`](pipe()).

// An end is a `Source` of a `File`, used by the same futures as a stream. `receiver` and `sender` have the methods.
//
// The hard part is a FIFO that nobody has opened for writing yet. Its reads say "the end" as they do when the last
// writer has gone, and only the poller knows the difference; so an end that was not made here with its writer asks the
// poller before its first read (`Rule::Fifo`).
//
// Rejected: a type of socket. A pipe has no address, no options, and read(2) in place of recv(2).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use socket2::SockRef;

use crate::source::{Rule, Source};

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::Sender;

/// Creates a pipe: bytes written to its sender come out of its receiver. A pipe is a stream of bytes. If `O_DIRECT`
/// makes it carry packets (pipe(2)), a read may wait although a packet is there.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::net::unix::pipe;
///
/// let (sender, receiver) = pipe::pipe()?;
/// sender.write_all(b"ping").await?;
/// let mut buf = [0; 16];
/// assert_eq!(receiver.read(&mut buf).await?, 4);
/// drop(sender);
/// assert_eq!(receiver.read(&mut buf).await?, 0);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns the errors of pipe(2).
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    set_nonblocking(&reader)?;
    set_nonblocking(&writer)?;
    let receiver = Receiver(Source::new(reader.into(), Rule::Stream));
    Ok((Sender(Source::new(writer.into(), Rule::Stream)), receiver))
}

/// Options for opening a FIFO by its path.
///
/// # Examples
///
/// ```no_run
/// # mini::block_on(async {
/// use mini::net::unix::pipe::OpenOptions;
///
/// // After `mkfifo /run/orders`.
/// let orders = OpenOptions::new().open_receiver("/run/orders")?;
/// let mut buf = [0; 512];
/// while let received @ 1.. = orders.read(&mut buf).await? {
///     println!("{} bytes", received);
/// }
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it opens nothing by itself"]
pub struct OpenOptions {
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Creates the default options: one direction, and an error if the file is not a FIFO.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Enables opening the FIFO for both directions, though only one is used. A receiver then never reaches the end,
    /// and a sender needs no reader. Linux supports this; POSIX does not define it.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn read_write(&mut self, value: bool) -> &mut OpenOptions {
        self.read_write = value;
        self
    }

    /// Enables opening any file, without checking that it is a FIFO.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    pub fn unchecked(&mut self, value: bool) -> &mut OpenOptions {
        self.unchecked = value;
        self
    }

    /// Opens the FIFO at `path` to read from it.
    ///
    /// This does not wait for a writer. The first read does, if it is made in a runtime.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2), and `InvalidInput` if the file is not a FIFO.
    pub fn open_receiver(&self, path: impl AsRef<Path>) -> io::Result<Receiver> {
        let file = self.open(path.as_ref(), fs::OpenOptions::new().read(true).write(self.read_write))?;
        Ok(Receiver(Source::new(file, Rule::Fifo)))
    }

    /// Opens the FIFO at `path` to write to it.
    ///
    /// # Examples
    ///
    /// See [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// Returns the errors of open(2): `ENXIO` if no process has it open for reading; try again later. Returns
    /// `InvalidInput` if the file is not a FIFO.
    pub fn open_sender(&self, path: impl AsRef<Path>) -> io::Result<Sender> {
        let file = self.open(path.as_ref(), fs::OpenOptions::new().write(true).read(self.read_write))?;
        Ok(Sender(Source::new(file, Rule::Stream)))
    }

    fn open(&self, path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
        let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
        if !self.unchecked && !is_pipe(&file)? {
            return Err(invalid(format!("{path:?} is not a FIFO")));
        }
        Ok(file)
    }
}

/// Checks that a file of the user's is the end of a pipe that allows `access`, and makes it non-blocking.
///
/// `access` moves nothing, and is refused if the file is not open for it.
fn check(file: File, access: fn(&mut &File) -> io::Result<usize>, what: &str) -> io::Result<File> {
    if !is_pipe(&file)? {
        return Err(invalid("the file is not a pipe".to_owned()));
    }
    match access(&mut &file) {
        Err(e) if e.raw_os_error() == Some(libc::EBADF) => Err(invalid(format!("the pipe is not open for {what}"))),
        _ => set_nonblocking(&file).map(|()| file),
    }
}

fn check_receiver(file: File) -> io::Result<File> {
    check(file, |file| file.read(&mut []), "reading")
}

fn check_sender(file: File) -> io::Result<File> {
    check(file, |file| file.write(&[]), "writing")
}

fn is_pipe(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_fifo())
}

/// By fcntl(2), which is the same for every fd.
fn set_nonblocking(fd: &impl AsFd) -> io::Result<()> {
    SockRef::from(fd).set_nonblocking(true)
}

fn set_blocking(fd: &impl AsFd) -> io::Result<()> {
    SockRef::from(fd).set_nonblocking(false)
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The methods of both ends: conversions and readiness.
macro_rules! end {
    ($end:ident, $rule:ident, $check:path) => {
        impl $end {
            pub(crate) const NAME: &'static str = stringify!($end);

            pub(crate) fn source(&self) -> &Source<File> {
                &self.0
            }

            /// Takes over an open file, which must be this end of a pipe, and makes it non-blocking.
            ///
            /// # Examples
            ///
            /// See [`from_owned_fd`](Self::from_owned_fd).
            ///
            /// # Errors
            ///
            /// Returns `InvalidInput` if the file is not a pipe or not open for this direction, and the errors of
            /// fcntl(2).
            pub fn from_file(file: File) -> io::Result<Self> {
                Ok(Self(Source::new($check(file)?, Rule::$rule)))
            }

            /// Takes over a descriptor, such as one from another process, like [`from_file`](Self::from_file).
            ///
            /// # Examples
            ///
            /// ```
            /// use mini::net::unix::pipe::{Receiver, Sender};
            ///
            /// let (reader, writer) = std::io::pipe()?;
            /// let sender = Sender::from_owned_fd(writer.into())?;
            /// let receiver = Receiver::from_owned_fd(reader.into())?;
            /// sender.try_write(b"ping")?;
            /// assert_eq!(receiver.try_read(&mut [0; 16])?, 4);
            /// assert!(Sender::from_owned_fd(receiver.into_blocking_fd()?).is_err());
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// Same as [`from_file`](Self::from_file).
            pub fn from_owned_fd(fd: OwnedFd) -> io::Result<Self> {
                Self::from_file(fd.into())
            }

            /// Takes over an open file like [`from_file`](Self::from_file), without checking it.
            ///
            /// # Examples
            ///
            /// See [`from_owned_fd`](Self::from_owned_fd).
            ///
            /// # Errors
            ///
            /// Returns the errors of fcntl(2).
            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                set_nonblocking(&file)?;
                Ok(Self(Source::new(file, Rule::$rule)))
            }

            /// Takes over a descriptor like [`from_owned_fd`](Self::from_owned_fd), without checking it.
            ///
            /// # Examples
            ///
            /// See [`from_owned_fd`](Self::from_owned_fd).
            ///
            /// # Errors
            ///
            /// Returns the errors of fcntl(2).
            pub fn from_owned_fd_unchecked(fd: OwnedFd) -> io::Result<Self> {
                Self::from_file_unchecked(fd.into())
            }

            /// Leaves the runtime and becomes a blocking descriptor, to give to a child process for example.
            ///
            /// # Examples
            ///
            /// See [`from_owned_fd`](Self::from_owned_fd).
            ///
            /// # Errors
            ///
            /// Returns the errors of fcntl(2); after an error the pipe's end is closed.
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let fd = self.into_nonblocking_fd();
                set_blocking(&fd)?;
                Ok(fd)
            }

            /// Leaves the runtime and becomes a non-blocking descriptor.
            ///
            /// # Examples
            ///
            /// See [`from_owned_fd`](Self::from_owned_fd).
            pub fn into_nonblocking_fd(self) -> OwnedFd {
                self.0.into_io().into()
            }

            /// Waits until any part of `interest` is ready, and returns what is ready.
            ///
            /// # Examples
            ///
            /// ```
            /// # mini::block_on(async {
            /// use mini::io::Interest;
            /// use mini::net::unix::pipe;
            ///
            /// let (sender, receiver) = pipe::pipe()?;
            /// assert!(sender.ready(Interest::WRITABLE).await?.is_writable());
            /// drop(sender);
            /// assert!(receiver.ready(Interest::READABLE).await?.is_read_closed());
            /// # Ok::<(), std::io::Error>(()) }).unwrap();
            /// ```
            ///
            /// # Errors
            ///
            /// Fails if the runtime has shut down, or the kernel refuses to watch the pipe.
            ///
            /// # Panics
            ///
            /// Panics outside a mini runtime, unless the pipe has already joined one.
            ///
            /// # Cancel safety
            ///
            /// Safe: nothing is lost.
            #[track_caller]
            pub fn ready(&self, interest: Interest) -> future::WaitReady<'_, File> {
                future::WaitReady::of(Readiness::new(self.source(), site!(ready, Ready), interest))
            }
        }

        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source().io().as_fd()
            }
        }

        impl AsRawFd for $end {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }

        impl fmt::Debug for $end {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(Self::NAME).field("fd", &self.as_raw_fd()).finish_non_exhaustive()
            }
        }
    };
}
use end;
