//! What a runtime has to offer to be measured. A workload is written once, against this trait.
//!
//! One adapter per runtime and nothing but the runtime's own calls in it, so that every column runs the same path:
//! `mini.rs`, `tokio.rs`, `smol.rs`. Used by `workload.rs`.
//!
//! Rejected: boxing futures in the adapters to make the trait object-safe (an allocation that no user would have).

use std::future::Future;
use std::io;
use std::net;
use std::time::Duration;

pub(crate) mod mini;
pub(crate) mod smol;
pub(crate) mod tokio;

/// How many threads run tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    CurrentThread,
    /// Two workers.
    MultiThread,
}

/// Workers of a [`Flavour::MultiThread`] runtime.
pub(crate) const WORKERS: usize = 2;

/// A runtime. The functions without `self` are called inside of it.
pub(crate) trait Rt: Sized + 'static {
    type Stream: Stream;

    fn start(flavour: Flavour) -> Self;

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send;

    /// Starts a task at once. The returned future waits for its end.
    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Whether `future` was ready within `limit`.
    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send;
}

/// A connected TCP socket of a runtime.
pub(crate) trait Stream: Sized + Send + 'static {
    /// Takes over a socket that is in non-blocking mode.
    fn from_std(stream: net::TcpStream) -> io::Result<Self>;

    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a;

    fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> impl Future<Output = io::Result<()>> + Send + 'a;
}
