//! What a runtime has to offer to be measured. A workload is written once, against this trait.
//!
//! One adapter per runtime and nothing but the runtime's own calls in it, so that every column runs the same path:
//! `mini.rs`, `tokio.rs`, `smol.rs`, `monoio.rs`. Used by `workload.rs`.
//!
//! Buffers are owned, since monoio's are the kernel's while it reads; to the others a moved `Vec` is three words.
//!
//! Rejected: boxing futures in the adapters to make the trait object-safe (an allocation that no user would have).

use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::path::Path;
use std::time::Duration;

pub(crate) mod mini;
pub(crate) mod monoio;
pub(crate) mod smol;
pub(crate) mod tokio;

/// How many threads run tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    CurrentThread,
    /// That many workers.
    MultiThread(usize),
    /// One event loop per core, with one core. A runtime that has no such flavour runs its single-threaded one.
    PerCore,
}

impl Flavour {
    /// The multi-threaded flavour of the rows.
    pub(crate) const TWO: Self = Self::MultiThread(2);
}

/// A runtime. The functions without `self` are called inside of it.
pub(crate) trait Rt: Sized + 'static {
    type Stream: Stream;
    type Listener: Listener<Stream = Self::Stream>;
    type Udp: Udp;

    /// An error means that the system does not let this runtime run.
    fn start(flavour: Flavour) -> io::Result<Self>;

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Starts a task at once. The returned future waits for its end.
    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Starts a task that nobody waits for.
    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static);

    /// Runs `job` on a thread that may block. The returned future waits for its end.
    fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send;

    /// The whole content of a file; an error if the runtime has no files.
    fn read_file(path: &Path) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        let _ = path;
        async { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn yield_now() -> impl Future<Output = ()> + Send;

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send;

    /// Whether `future` was ready within `limit`.
    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send;
}

/// A connected TCP socket of a runtime.
pub(crate) trait Stream: Sized + Send + 'static {
    /// Takes over a socket that is in non-blocking mode.
    fn from_std(stream: net::TcpStream) -> io::Result<Self>;

    fn connect(addr: SocketAddr) -> impl Future<Output = io::Result<Self>> + Send;

    /// Reads into the front of `buf`. The result says how much of it, not the length.
    fn read(&mut self, buf: Vec<u8>) -> impl Future<Output = (io::Result<usize>, Vec<u8>)> + Send;

    /// Writes the first `length` bytes of `buf`.
    fn write_all(&mut self, buf: Vec<u8>, length: usize) -> impl Future<Output = (io::Result<()>, Vec<u8>)> + Send;
}

/// A listening TCP socket of a runtime.
pub(crate) trait Listener: Sized + Send + 'static {
    type Stream: Stream;

    /// Takes over a socket that is in non-blocking mode.
    fn from_std(listener: net::TcpListener) -> io::Result<Self>;

    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// A UDP socket of a runtime.
pub(crate) trait Udp: Sized + Send + 'static {
    /// Takes over a socket that is in non-blocking mode.
    fn from_std(socket: net::UdpSocket) -> io::Result<Self>;

    /// Sends all of `buf` as one datagram.
    fn send_to(&mut self, buf: Vec<u8>, addr: SocketAddr) -> impl Future<Output = (io::Result<usize>, Vec<u8>)> + Send;
}
