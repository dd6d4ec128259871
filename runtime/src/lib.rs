//! A small, fast async runtime: you write `async`/`await`, it runs it.
//!
//! ```no_run
//! use mini::net::{TcpListener, TcpStream, next_connection};
//!
//! #[mini::main]
//! async fn main() -> std::io::Result<()> {
//!     let listener = TcpListener::bind("127.0.0.1:7000").await?;
//!     println!("serving on {}; try: nc 127.0.0.1 7000", listener.local_addr()?);
//!     loop {
//!         let (stream, _) = next_connection(&listener).await?;
//!         mini::spawn(echo(stream));
//!     }
//! }
//!
//! async fn echo(stream: TcpStream) -> std::io::Result<()> {
//!     let mut buf = [0; 4096];
//!     loop {
//!         match stream.read(&mut buf).await? {
//!             0 => return Ok(()), // the client has closed
//!             n => stream.write_all(&buf[..n]).await?,
//!         }
//!     }
//! }
//! ```
//!
//! The package is `mini-rt`, and programs write `mini`. It is not on crates.io yet:
//!
//! ```console
//! $ cargo add mini-rt --git https://github.com/mini-rt/mini
//! ```
//!
//! `cargo add mini` fetches an unrelated crate.
//!
//! # Where to start
//!
//! - The [guide] has a chapter for each subject, from a [first program](guide::first_program) to
//!   [deploying](guide::deploying).
//! - [Porting](guide::porting) is for users of tokio: name by name, each with a line of code.
//! - [Other crates](guide::crates) lists which crates work with mini, and how: hyper, axum, tonic, quinn and more.
//! - [Platforms](guide::platforms) lists what was tested where. mini needs Rust 1.88 or newer.
//!
//! # The parts
//!
//! - [`#[mini::main]`](main) and [`#[mini::test]`](test) set a runtime up; [`block_on`] runs one future anywhere, with
//!   I/O and timers; [`runtime::Builder`] configures.
//! - [`spawn`] starts a task, [`spawn_local`] one whose future is not `Send`, [`spawn_blocking`] runs code that blocks;
//!   [`task`] has sets of tasks, names and task locals.
//! - [`scope!`] has children that borrow, [`join!`] waits for several futures and [`race!`] for the first;
//!   [`task::Group`] keeps the tasks of a part of the program, which end together.
//! - [`time`] has sleeps, timeouts, intervals and a clock that tests can pause; [`net`] has the sockets; [`io`] has
//!   copying, the standard streams, and what other file descriptors need; [`fs`] has files, [`process`] child
//!   processes, and [`signal`] signals.
//! - [`sync`] has channels and locks for tasks, named as in tokio. Channels and locks of other crates (`async-channel`,
//!   `async-lock`, `futures`) work here unchanged.
//!
//! # Flavours
//!
//! A `multi_thread` runtime (the default) has several workers that share tasks. It is for servers. A `current_thread`
//! runtime has one worker, the thread in `block_on`. Its tasks are woken, queued and polled without an atomic
//! read-modify-write. It is for command line tools, for tests, and for use
//! [inside other event loops](runtime::Runtime::turn). A [`PerCore`](runtime::PerCore) has one `current_thread` runtime
//! per processor; these share nothing. It is for servers whose connections are independent of each other.
//!
//! # Cancellation
//!
//! Dropping a future stops it where it awaits; the section "Cancel safety" of each function says what that may lose.
//! Without such a section, nothing is lost. Dropping a [`JoinHandle`](task::JoinHandle) detaches its task.
//! [`abort`](task::JoinHandle::abort) asks a task to stop; [`cancel`](task::JoinHandle::cancel) also waits until its
//! future has been dropped. A [`CancelToken`](task::CancelToken) only requests cancellation, with a reason; the code
//! that holds it decides how to stop. Code that must not be cut off is [shielded](task::shield).
//!
//! # Blocking
//!
//! A task that blocks or computes for long holds up its worker, and all tasks of a `current_thread` runtime. On a
//! `multi_thread` runtime the other workers serve the tasks, sockets and timers of such a worker within about a
//! millisecond. Code that is known to block belongs in [`spawn_blocking`], whose threads start on demand, or, in the
//! middle of a task, in [`block_in_place`](task::block_in_place).
//!
//! # Errors
//!
//! Errors of system calls are those of the system, with its number
//! ([`raw_os_error`](std::io::Error::raw_os_error)), as in the standard library. The errors of `bind` and `connect`
//! also name the address: "failed to connect to 127.0.0.1:80: Connection refused (os error 111)". Their
//! [`kind`](std::io::Error::kind) is that of the system's error, which is their
//! [`source`](std::error::Error::source) and has the number.
//!
//! # Shutdown
//!
//! `#[mini::main(grace = "10s")]` turns Ctrl-C and SIGTERM into the cancellation of [`shutdown()`](shutdown). The
//! program's groups then have ten seconds to end. A task that does not end is named with the line where it waits.
//!
//! Dropping a [`Runtime`](runtime::Runtime) drops each task where it ran, and its join handle returns an error. A
//! socket that is used later returns an error, and a timer that is polled later panics, instead of waiting forever.
//! Blocking jobs that were spawned before the drop get a [grace](runtime::Builder::shutdown_grace); jobs that are left
//! behind or cancelled after it are [named](runtime::Runtime::shutdown_timeout).
//!
//! # Features
//!
//! A feature that is off is not compiled. The following features are on by default. `fs`, `process` and `signal` add
//! the modules of the same names. `futures-io` implements the traits of that crate for all streams and adds
//! [`io::copy`]. `insight` adds [dumps](runtime::Dump), [warnings](guide::warnings), the
//! [flight recorder](guide::trace) and histograms. These features are off by default:
//!
//! | feature | what it does |
//! |---|---|
//! | `backtrace` | the [warning](runtime::Warning::stack) of a long poll has the native stack of its thread, on Linux for x86-64 |
//! | `futures-task` | [`runtime::Handle`] implements `futures_task::Spawn`, `task::LocalSpawner` `LocalSpawn`, for libraries that take an executor |
//! | `hyper` | sockets implement `hyper::rt::{Read, Write}`; `mini::hyper` has the timer and executors |
//! | `io-util` | [`io`] has `AsyncReadExt`, `AsyncWriteExt`, `BufReader`, `lines` and their kin |
//! | `sim` | `mini::sim`: tests under a virtual clock with a schedule that a seed determines |
//! | `stream` | [`time::Interval`] and [`task::JoinSet`] implement `futures_core::Stream`, and `net::incoming` is one of connections |
//! | `tokio-io` | streams, pipes, files and standard streams implement `tokio::io::{AsyncRead, AsyncWrite}`; these are its traits alone, no runtime is compiled |
//! | `tracing` | tasks and blocking jobs keep the span that is current where they are spawned, entered for each poll and while they are dropped; without a span that costs 40 bytes per task |
//!
//! # Testing
//!
//! A test runs with its own runtime, under a paused or simulated clock if it asks for one ([testing](guide::testing)):
//!
//! ```
//! use std::time::Duration;
//!
//! #[mini::test(start_paused = true)]
//! async fn gives_up_after_an_hour() {
//!     let slow = mini::time::sleep(Duration::from_secs(7200)); // takes microseconds
//!     assert!(mini::time::timeout(Duration::from_secs(3600), slow).await.is_err());
//! }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use(say)]
extern crate mini_kernel;

mod accept;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "futures-task")]
mod futures_task;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg_attr(not(feature = "insight"), path = "no_insight.rs")]
mod insight;
#[cfg(feature = "insight")]
mod json;
#[cfg(feature = "io-util")]
mod lines;
mod order;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "insight")]
mod recorder;
pub mod runtime;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(feature = "sim")]
pub mod sim;
#[doc(hidden)]
pub mod structure;
pub mod task;

pub use mini_macros::{main, test};
pub use task::group::program::{grace_left, shutdown};
pub use task::{spawn, spawn_blocking, spawn_local};

/// TCP, UDP and Unix sockets, and name resolution.
///
/// Methods take `&self`: one socket may be read, written and shared by any number of tasks. A socket belongs to the
/// runtime in which it is made, and its waits fail when that shuts down.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, _from) = listener.accept().await?;
/// client.write_all(b"ping").await?;
/// let mut buf = [0; 4];
/// server.read_exact(&mut buf).await?;
/// assert_eq!(&buf, b"ping");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub mod net {
    #[cfg(feature = "stream")]
    pub use crate::accept::{Incoming, incoming};
    pub use crate::accept::{NextConnection, next_connection};
    pub use mini_net::{Listener, future};
    pub use mini_net::{
        TcpListener, TcpSocket, TcpStream, ToSocketAddrs, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacket,
        UnixSeqpacketListener, UnixStream, lookup_host,
    };

    /// The halves of TCP streams.
    pub mod tcp {
        pub use mini_net::tcp::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
    }

    /// The halves of Unix streams, the credentials of their peers, and pipes.
    pub mod unix {
        pub use mini_net::unix::pipe;
        pub use mini_net::unix::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, UCred, WriteHalf};
        #[doc(no_inline)]
        pub use std::os::unix::net::SocketAddr;
    }
}

/// Standard streams, copying, readiness of other file descriptors, the traits of the streams, and details of errors.
///
/// The traits are those of `futures-io`, so the adapters of `futures` and `futures-lite` (`BufReader`, `lines`) work.
/// With the feature `io-util` this module also has the adapters of `futures-lite`.
///
/// # Examples
///
/// ```no_run
/// # mini::block_on(async {
/// // What comes in goes to a server, and its answer comes out.
/// let mut server = mini::net::TcpStream::connect("127.0.0.1:7000").await?;
/// mini::io::copy(&mut mini::io::stdin(), &mut server).await?;
/// server.shutdown(std::net::Shutdown::Write)?;
/// mini::io::copy(&mut server, &mut mini::io::stdout()).await?;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// Lines, with the feature `io-util`:
///
#[cfg_attr(feature = "io-util", doc = "```")]
#[cfg_attr(not(feature = "io-util"), doc = "```ignore")]
/// use mini::io::{AsyncBufReadExt, BufReader};
///
/// # mini::block_on(async {
/// let (client, server) = mini::net::UnixStream::pair()?;
/// client.write_all(b"hello\n").await?;
/// let mut line = String::new();
/// BufReader::new(server).read_line(&mut line).await?;
/// assert_eq!(line, "hello\n");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub mod io {
    #[cfg(feature = "io-util")]
    pub use crate::lines::{AsyncBufReadExt, FillBuf, Lines, NextLine, ReadLine, ReadUntil, Split};
    #[cfg(feature = "futures-io")]
    #[doc(no_inline)]
    pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
    #[cfg(feature = "io-util")]
    #[doc(no_inline)]
    pub use futures_lite::io::{
        AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufWriter, Bytes, Chain, Cursor, Empty, Repeat, Sink,
        Take, empty, repeat, sink, split,
    };
    #[cfg(feature = "io-util")]
    #[doc(no_inline)]
    pub use futures_lite::stream::StreamExt; // for `lines`
    pub use mini_net::{AsyncFd, AsyncFdReadyGuard, Interest, Ready, TryIoError};
    pub use mini_net::{Output, Stderr, Stdin, Stdout, stderr, stdin, stdout};
    #[cfg(feature = "futures-io")]
    pub use mini_net::{copy, copy_bidirectional};
    #[doc(no_inline)]
    pub use std::io::{Error, ErrorKind, Result, SeekFrom};
}

#[cfg(feature = "sync")]
#[doc(inline)]
pub use mini_sync as sync;

/// Sleeps, timeouts, intervals, and a clock that can be paused.
///
/// # Examples
///
/// ```
/// use mini::time::{Duration, Instant, interval, sleep, timeout};
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// assert!(timeout(Duration::from_millis(5), sleep(Duration::from_secs(1))).await.is_err());
///
/// let mut beat = interval(Duration::from_millis(10));
/// for _ in 0..3 {
///     beat.tick().await; // the first one comes at once
/// }
/// assert!(start.elapsed() >= Duration::from_millis(25));
/// # });
/// ```
pub mod time {
    pub use mini_time::error;
    pub use mini_time::{
        Advance, Deadline, Instant, Interval, MissedTickBehavior, Sleep, Tick, Timeout, advance, current_deadline,
        deadline, interval, interval_at, pause, remaining, resume, sleep, sleep_until, timeout, timeout_at,
    };
    #[doc(hidden)]
    pub use mini_time::{Inherit, inherit};
    pub use std::time::Duration;
}

/// Runs `future` to completion on the calling thread, with tasks, I/O and timers.
///
/// Inside of a runtime (on a [`spawn_blocking`] thread, or while an [`EnterGuard`](runtime::EnterGuard) lives) the
/// future runs there. Anywhere else it gets a `current_thread` runtime of its own, which ends with the call: tasks that
/// are still alive are dropped. So it is the helper for tests and for synchronous programs with a little to await.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// let out = mini::block_on(async {
///     mini::time::sleep(Duration::from_millis(1)).await;
///     mini::spawn(async { 7 }).await.unwrap()
/// });
/// assert_eq!(out, 7);
/// ```
///
/// # Panics
///
/// Inside a task or another `block_on`; if `future` panics; if the system has no descriptors left for a new runtime, or
/// `MINI_WARN` is neither 1 nor 0.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    mini_kernel::scheduler::refuse_inside_worker("block_on");
    task::large::boxed!(Box::pin, future: F => match runtime::Handle::try_current() {
        Ok(handle) => handle.block_on(future),
        Err(_) => match runtime::Builder::new_current_thread().build() {
            Ok(runtime) => runtime.block_on(future),
            Err(error) => panic!("mini::block_on: {error}"),
        },
    })
}
