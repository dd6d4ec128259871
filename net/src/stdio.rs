//! The standard streams, where possible without a thread that blocks on them.
//!
//! Called by users. A pipe, a FIFO or a terminal is opened once more (`polled`), non-blocking, and waited for like a
//! socket; each call on a socket asks it not to block. All other streams, mostly files, go through a thread (`thread`),
//! and so do pipes and terminals that can't be opened anew, or would be others then.
//!
//! The hard part is that a standard stream is shared: with the shell, with parents and children, all of which need it
//! to keep blocking, and some of which may read it too.
//!
//! # Rejected
//!
//! - `O_NONBLOCK` on the stream itself: it belongs to the open file, so the shell and all the others get `WouldBlock`
//!   too, even after this process has ended.
//! - Waiting for readiness, then a read that blocks: if another process takes the bytes in between, a worker of the
//!   runtime stands still. A poll(2) right before the read makes that seldom, not impossible.
//! - `RWF_NOWAIT` (preadv2(2)): terminals refuse it, and pipes do on most kernels in use.
//! - A thread for everything: if a read is dropped, what the thread has read is lost for the other readers of the
//!   stream; and each line costs two hand-offs between threads.
//! - A write by a thread that is ready when the thread has written, for pipes and terminals that can't be opened anew.
//!   A write that is dropped before would have written bytes, or have to be recognised in the next one.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use crate::ready::Interest;
use crate::slot::Key;
use crate::source::{CallSite, Left, Source, poll_error};
use crate::sys::fork::Process;
use crate::unfilled::Unfilled;

#[cfg(feature = "futures-io")]
mod io_traits;
mod leaf;
mod polled;
#[cfg_attr(not(feature = "sim"), path = "stdio/not_simulated.rs")]
mod simulated;
mod thread;
#[cfg(feature = "tokio-io")]
mod tokio_io;

pub use leaf::{FlushOutput, ReadStdin, WriteAllOutput, WriteOutput};
use polled::Polled;
use thread::{FINISH, Number, Reader, Writer, new_number};

static INPUT: LazyLock<Reader> = LazyLock::new(|| Reader::new(|| duplicate(io::stdin().as_fd())));
static OUTPUTS: [LazyLock<Writer>; 2] =
    [LazyLock::new(|| Writer::new(Stdout::current)), LazyLock::new(|| Writer::new(Stderr::current))];

/// Waits until everything written to [`stdout`] and [`stderr`] is out, for at most `limit`. Output that a thread has
/// still to write, usually to a file, would be lost if the process ended now. `#[mini::main]` calls this at its end.
///
/// # Examples
///
/// ```
/// mini_net::finish_output(std::time::Duration::from_secs(1));
/// ```
pub fn finish_output(limit: Duration) {
    if let Some(finish) = FINISH.get() {
        finish(limit);
    }
}

fn finish_all(limit: Duration) {
    let begin = Instant::now();
    OUTPUTS.iter().for_each(|output| output.finish(limit.saturating_sub(begin.elapsed())));
}

/// The standard input of the process.
///
/// A waiting read keeps neither the runtime nor the process from ending. Where no thread is needed (see below), it
/// takes nothing until it is ready, and the handle has no buffer: unread bytes remain for other handles, for child
/// processes, and for the next reader of the terminal. For lines, wrap the handle in a `BufReader` (of `futures` or
/// `futures-lite`) and keep that.
///
/// The standard library's `std::io::stdin()` has a buffer of its own; use one or the other.
///
/// A handle belongs to the runtime in which it is made, as a socket does: its waits fail when that runtime shuts down.
///
/// If several tasks wait for one handle by the I/O traits, only the last one to poll is sure to be woken. A task with a
/// future or a handle of its own is independent of others.
///
/// # Inputs that need a thread
///
/// If the input is a file, or a device that can't be waited for, a thread reads it, 64 KiB ahead, shared by all
/// handles. It also does so if the input is a pipe or a terminal that this process can't open once more:
///
/// - one of another user, as after su(1), sudo(8) or setpriv(1);
/// - the master of a pseudoterminal (pty(7)), or a `/dev/tty` that another session has opened;
/// - any while /proc is not mounted, and on systems other than Linux.
///
/// Then only this process gets the bytes that were read ahead. A read that was dropped while it waited may still take
/// the next bytes; the next read of this process returns them.
///
/// # Examples
///
/// ```no_run
/// # mini::block_on(async {
/// let (stdin, stdout, mut buf) = (mini::io::stdin(), mini::io::stdout(), [0; 1024]);
/// loop {
///     match stdin.read(&mut buf).await? {
///         0 => break,
///         length => stdout.write_all(&buf[..length]).await?,
///     }
/// }
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub struct Stdin(Stream);

/// The standard output; made by [`stdout`].
pub type Stdout = Output<1>;

/// The standard error output; made by [`stderr`].
pub type Stderr = Output<2>;

/// [`Stdout`] or [`Stderr`].
///
/// Bytes go out in the order of the writes of a handle. For pipes, terminals and sockets there is no buffer: bytes that
/// a write has taken are with the system, even if the process ends right away. A thread writes, up to 64 KiB behind, to
/// a file, to a device that can't be waited for, and to a pipe or a terminal that this process can't open once more
/// (one of another user, say; see [`Stdin`](Stdin#inputs-that-need-a-thread)). In these cases call
/// [`flush`](Output::flush) before others are to see the output, or before the process ends. The end of `#[mini::main]`
/// waits for one second at most; a process that ends otherwise, as by `std::process::exit`, does not wait.
///
/// `println!` and `std::io::stdout()` write to the same place. They buffer a line until it is complete, so whole lines
/// there are in order with flushed writes here.
///
/// A handle belongs to the runtime in which it is made, as a socket does: its waits fail when that runtime shuts down.
///
/// If several tasks wait for one handle by the I/O traits, only the last one to poll is sure to be woken. A task with a
/// future or a handle of its own is independent of others.
///
/// If a pipe or a socket has no reader any more, a write fails with `BrokenPipe`, because Rust programs ignore
/// `SIGPIPE`. An output that is closed, or not open for writing, accepts all bytes and discards them, as in the
/// standard library.
pub struct Output<const FD: i32>(Stream);

/// One handle's access to a stream.
enum Stream {
    Polled(Source<Polled>),
    /// A wait by the I/O traits has this number. A future has one of its own.
    Thread(Number, Process),
}

/// Returns a handle to the standard input of the process.
///
/// Each handle is a file of its own (see proc_pid_fd(5)), so make one and keep it. It keeps the input that the process
/// had when the handle was made. If no descriptor is left then, a thread reads for it, from the input that the process
/// has at the time.
///
/// # Examples
///
/// See [`Stdin`].
pub fn stdin() -> Stdin {
    Stdin(Stream::open(io::stdin().as_fd(), Interest::READABLE))
}

/// Returns a handle to the standard output of the process.
///
/// Each handle is a file of its own (see proc_pid_fd(5)), so make one and keep it. It keeps the output that the process
/// had when the handle was made. If no descriptor is left then, a thread writes for it, to the output that the process
/// has at the time.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let out = mini::io::stdout();
/// out.write_all(b"hello\n").await?;
/// out.flush().await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub fn stdout() -> Stdout {
    Output(Stream::open(io::stdout().as_fd(), Interest::WRITABLE))
}

/// Returns a handle to the standard error output of the process; see [`stdout`].
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// mini::io::stderr().write_all(b"this is no error\n").await?;
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
pub fn stderr() -> Stderr {
    Output(Stream::open(io::stderr().as_fd(), Interest::WRITABLE))
}

/// The `Site` of a method: `site!(Stdin, read, Read)` is `Stdin::read`, which waits to read.
macro_rules! site {
    ($owner:expr, $method:ident, $kind:ident) => {
        const { &crate::source::Site { owner: $owner, method: stringify!($method), kind: mini_context::IoKind::$kind } }
    };
}

#[cfg(any(feature = "futures-io", feature = "tokio-io"))]
use site;

impl Stream {
    fn open(fd: BorrowedFd<'_>, interest: Interest) -> Stream {
        Polled::open(fd, interest).map_or_else(|| Stream::Thread(new_number(), Process::current()), Stream::Polled)
    }

    fn is_by_thread(&self) -> bool {
        matches!(self, Stream::Thread(..))
    }
}

/// The number of a wait with this key, or else of one by the I/O traits.
fn number_of(key: Option<&mut Key>, handle: Number) -> Number {
    key.map_or(handle, |key| key.number(new_number))
}

impl Stdin {
    /// Reads what has arrived into the front of `buf`, and waits if there is nothing.
    ///
    /// Returns the number of bytes, `0..=buf.len()`. If `buf` is not empty, 0 is the end: the pipe has no writer any
    /// more, or the user has pressed Ctrl-D at a terminal, where more may follow. An input that is closed, or not open
    /// for reading, is at its end, as in the standard library. By default a terminal delivers one line at a time
    /// (termios(3)).
    ///
    /// # Examples
    ///
    /// See [`Stdin`].
    ///
    /// # Errors
    ///
    /// Returns the errors of read(2). Fails if a thread is needed and can't be started, or has no descriptor left to
    /// open the stream.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless it has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has taken no byte.
    #[track_caller]
    pub fn read<'a>(&'a self, buf: &'a mut [u8]) -> ReadStdin<'a> {
        ReadStdin::new(self, site!("Stdin", read, Read), buf)
    }

    fn poll_read_from(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        key: Option<&mut Key>,
        mut buf: impl Unfilled,
    ) -> Poll<io::Result<usize>> {
        if buf.remaining() == 0 {
            return mini_context::poll_budget(cx, self).map(|()| Ok(0));
        }
        if let Err(e) = simulated::check_read(call_site) {
            return poll_error(cx, self, e);
        }
        match &self.0 {
            Stream::Thread(handle, _) => {
                ready!(mini_context::check_budget(cx, self));
                mini_context::spend_if_ready(INPUT.poll_read(cx, call_site, number_of(key, *handle), &mut buf))
            }
            Stream::Polled(source) => source.poll_io(cx, call_site, Interest::READABLE, key, |source| {
                Ok((source.io().read(&mut buf)?, Left::Perhaps))
            }),
        }
    }
}

impl<const FD: i32> Output<FD> {
    const NAME: &'static str = if FD == 1 { "Stdout" } else { "Stderr" };

    fn writer() -> &'static Writer {
        &OUTPUTS[FD as usize - 1]
    }

    /// A duplicate of what the process has now.
    fn current() -> io::Result<File> {
        if FD == 1 { duplicate(io::stdout().as_fd()) } else { duplicate(io::stderr().as_fd()) }
    }

    /// Writes as much of the front of `buf` as there is room for, and waits if there is none.
    ///
    /// Returns the number of bytes, `0..=buf.len()`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// assert_eq!(mini::io::stdout().write(b"hello\n").await?, 6);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of write(2): `BrokenPipe` if there is no reader. If a thread writes, returns the error of an
    /// earlier write, whose bytes are lost, or fails if the thread can't be started. One of its errors is that no
    /// descriptor is left to open the stream.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait outside a mini runtime, unless it has already joined one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a future dropped before it is ready has written no byte.
    #[track_caller]
    pub fn write<'a>(&'a self, buf: &'a [u8]) -> WriteOutput<'a, FD> {
        WriteOutput::new(self, site!(Self::NAME, write, Write), buf)
    }

    /// Writes all of `buf`.
    ///
    /// # Examples
    ///
    /// See [`stdout`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write`](Output::write), and `WriteZero` if the system takes nothing. After an error, the
    /// number of bytes written is unknown.
    ///
    /// # Panics
    ///
    /// Same as [`write`](Output::write).
    ///
    /// # Cancel safety
    ///
    /// Loses the number of bytes written: a part of `buf` may be out.
    #[track_caller]
    pub fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAllOutput<'a, FD> {
        WriteAllOutput::new(self, site!(Self::NAME, write_all, Write), buf)
    }

    /// Waits until the system has everything that was written before the first poll. If a thread writes, the wait
    /// may include bytes that other tasks have written since.
    ///
    /// The future is ready at once where no thread is needed; see [`Output`]. The buffer of `println!` is not flushed.
    ///
    /// # Examples
    ///
    /// See [`stdout`].
    ///
    /// # Errors
    ///
    /// Returns the error of an earlier write by a thread, once.
    ///
    /// # Cancel safety
    ///
    /// Safe: the writing continues.
    #[track_caller]
    pub fn flush(&self) -> FlushOutput<'_, FD> {
        FlushOutput::new(self, site!(Self::NAME, flush, Write))
    }

    fn poll_write_to(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        key: Option<&mut Key>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return mini_context::poll_budget(cx, self).map(|()| Ok(0));
        }
        if let Some(polled) = simulated::poll_write(cx, self, Self::current, buf) {
            return polled;
        }
        match &self.0 {
            Stream::Thread(handle, _) => {
                ready!(mini_context::check_budget(cx, self));
                mini_context::spend_if_ready(Self::writer().poll_write(cx, call_site, number_of(key, *handle), buf))
            }
            Stream::Polled(source) => source
                .poll_io(cx, call_site, Interest::WRITABLE, key, |source| Ok((source.io().write(buf)?, Left::Perhaps))),
        }
    }

    fn poll_flush_of(
        &self,
        cx: &mut Context<'_>,
        call_site: &CallSite,
        key: Option<&mut Key>,
        until: &mut Option<u64>,
    ) -> Poll<io::Result<()>> {
        match &self.0 {
            Stream::Polled(_) => mini_context::poll_budget(cx, self).map(Ok), // the system has it
            Stream::Thread(handle, _) => {
                ready!(mini_context::check_budget(cx, self));
                mini_context::spend_if_ready(Self::writer().poll_flush(cx, call_site, number_of(key, *handle), until))
            }
        }
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> io::Result<File> {
    fd.try_clone_to_owned().map(File::from)
}

impl Drop for Stdin {
    fn drop(&mut self) {
        if let Stream::Thread(number, process) = self.0 {
            INPUT.forget(number, process);
        }
    }
}

impl<const FD: i32> Drop for Output<FD> {
    fn drop(&mut self) {
        if let Stream::Thread(number, process) = self.0 {
            Self::writer().forget(number, process);
        }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("by_thread", &self.0.is_by_thread()).finish()
    }
}

impl<const FD: i32> fmt::Debug for Output<FD> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(Self::NAME).field("by_thread", &self.0.is_by_thread()).finish()
    }
}

const _: fn() = || {
    fn assert<T: Send + Sync + Unpin>() {}
    assert::<(Stdin, Stdout, Stderr)>();
    assert::<(ReadStdin<'_>, WriteOutput<'_, 1>, WriteAllOutput<'_, 1>, FlushOutput<'_, 1>)>();
};
