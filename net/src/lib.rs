//! Readiness and sockets: a reactor over epoll or kqueue, and the non-blocking sockets that wait on it.
//!
//! This is the lower half of the `mini` runtime, which turns the reactor and re-exports the sockets; programs use
//! `mini`. The crate spawns nothing, runs no task and reads no clock.
//!
//! A read goes `socket/stream` → `leaf` → `source` → `sys/socket`, and, when it has to wait, → `slot`. The way back is
//! `sys/epoll` (the kernel's events) → `reactor` (`turn`: readiness, then wakers) → the task's waker.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod addr;
mod async_fd;
mod call;
#[cfg(feature = "futures-io")]
mod copy;
mod current;
mod error;
pub mod future;
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
mod io_traits;
mod job;
mod leaf;
mod primitives;
mod reactor;
mod ready;
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim;
mod slot;
mod socket;
mod source;
mod split;
mod stdio;
mod sys;
pub mod tcp;
#[cfg(test)]
mod tests;
mod thread;
mod udp;
mod unfilled;
pub mod unix;

#[doc(hidden)]
pub mod kind;

pub use addr::{Addrs, ToSocketAddrs, lookup_host};
pub use async_fd::{AsyncFd, AsyncFdReadyGuard, TryIoError};
#[cfg(feature = "futures-io")]
pub use copy::{copy, copy_bidirectional};
pub use current::{Blocking, Delay, EnterGuard, enter};
#[doc(hidden)]
pub use error::{is_shortage, no_thread, with_limit};
pub use kind::Listener;
pub use mini_context::IoKind;
pub use reactor::{Events, Reactor};
pub use ready::{Interest, Ready};
#[doc(hidden)]
pub use source::{CallSite, Site};
pub use stdio::{Output, Stderr, Stdin, Stdout, finish_output, stderr, stdin, stdout};
pub use sys::fork::Process;
pub use tcp::{TcpListener, TcpSocket, TcpStream};
pub use thread::{SystemCall, ThreadNumber, heavy_fence, light_fence, pin_thread, set_timer_slack};
pub use udp::UdpSocket;
#[doc(hidden)]
pub use unfilled::{Unfilled, make_room, read_into};
pub use unix::pipe;
pub use unix::{UnixDatagram, UnixListener, UnixSeqpacket, UnixSeqpacketListener, UnixStream};
