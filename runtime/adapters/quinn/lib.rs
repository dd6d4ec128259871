//! QUIC on mini: [`MiniRuntime`] gives quinn its tasks, timers and UDP sockets.
//!
//! Give a [`MiniRuntime`] to `quinn::Endpoint::new`. A datagram goes through quinn's own system calls (`quinn::udp`:
//! many datagrams a call, congestion marks).
//!
//! In a simulation of mini (feature `sim`) quinn runs too, over the simulated network: see [`socket`]. Its random
//! numbers are the system's, so that two runs of a seed differ, unless `EndpointConfig::rng_seed` says otherwise.

// The system calls run under the readiness of an `AsyncFd`, which unlike a socket's methods can be told that a short
// batch was all there is.
//
// The hard part: any number of connections wait until the one socket can be written, each in a task of its own, and a
// socket's `poll_` functions hold one waker per direction. So each connection that has to wait has a future of its
// own, `writable`, which has its own place among the waiters.
//
// It is a crate of its own because a program needs it as it stands, and so do the benches.
//
// Rejected: a feature of `mini`: a new version of quinn would be a new version of the runtime.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use mini::io::{AsyncFd, Interest};
use mini::net::UdpSocket;
use mini::time::Sleep;
use quinn::udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

#[cfg_attr(not(feature = "sim"), path = "not_simulated.rs")]
mod simulated;

/// The runtime that the caller is in, as quinn wants it.
///
/// quinn starts tasks where an endpoint is made, where it connects and where it accepts. These calls panic outside a
/// mini runtime. Time is mini's, which tests can pause.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use quinn::{Endpoint, EndpointConfig};
///
/// # mini::block_on(async {
/// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(mini_quinn::MiniRuntime))?;
/// assert_ne!(endpoint.local_addr()?.port(), 0);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MiniRuntime;

/// Converts a socket of mini for quinn's `Endpoint::new_with_abstract_socket`.
///
/// `Endpoint::new` with [`MiniRuntime`] does the same for a socket of the standard library. In a simulation this
/// function is better: there `Endpoint::new` binds the address of its socket again in the simulated network. Until then
/// the port belongs to the system, and another program, or another host of the simulation, may use it at that moment.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use mini::net::UdpSocket;
/// use quinn::{Endpoint, EndpointConfig};
///
/// # mini::block_on(async {
/// let socket = mini_quinn::socket(UdpSocket::bind("127.0.0.1:0").await?)?;
/// let runtime = Arc::new(mini_quinn::MiniRuntime);
/// let endpoint = Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, runtime)?;
/// assert_ne!(endpoint.local_addr()?.port(), 0);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
///
/// # Errors
///
/// If the system refuses an option that quinn sets.
///
/// # Panics
///
/// Outside of a mini runtime.
pub fn socket(socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    simulated::adopt(socket).or_else(|socket| MiniRuntime.wrap_udp_socket(socket.into_std()?))
}

impl Runtime for MiniRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer(mini::time::sleep_until(at.into())))
    }

    #[track_caller]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(mini::spawn(future));
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        if let Some(simulated) = simulated::bound_as(&socket)? {
            return Ok(simulated);
        }
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Arc::new(Socket { state, io: AsyncFd::new(socket)? }))
    }

    fn now(&self) -> Instant {
        mini::time::Instant::now().into()
    }
}

#[derive(Debug)]
struct Timer(Sleep);

impl AsyncTimer for Timer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        Pin::new(&mut self.get_mut().0).reset(at.into());
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.get_mut().0).poll(cx)
    }
}

#[derive(Debug)]
struct Socket {
    io: AsyncFd<std::net::UdpSocket>,
    state: UdpSocketState,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.io.try_io(Interest::WRITABLE, |io| self.state.send(io.into(), transmit))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut readiness = ready!(self.io.poll_read_ready(cx))?;
            match readiness.try_io(|io| self.state.recv(io.into(), bufs, meta)) {
                Err(_would_block) => {}
                Ok(Err(error)) if is_passing(&error) => {}
                Ok(result) => {
                    if result.as_ref().is_ok_and(|&count| HAS_BATCHES && count < bufs.len().min(BATCH_SIZE)) {
                        readiness.clear_ready();
                    }
                    return Poll::Ready(result);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Whether one call receives all there is, up to a batch: then a short one spares the call that would say so. Elsewhere
/// `quinn::udp` takes one datagram a call, whatever it is given.
const HAS_BATCHES: bool =
    cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_vendor = "apple"));

/// Whether to receive again: an ICMP message, which anybody can send, has set the socket's error (udp(7); RFC 9000,
/// section 14.2.1), and reading has taken it away. Any other error would come again, and ends the endpoint.
fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable)
}

/// One connection's wait until the socket can be written.
struct Writable {
    socket: Arc<Socket>,
    waiting: Option<Wait>,
}

/// Made only when the socket's buffer is full, so seldom that its allocation costs nothing.
type Wait = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, waiting } = self.get_mut();
        let wait = waiting.get_or_insert_with(|| {
            let socket = socket.clone();
            Box::pin(async move { socket.io.writable().await.map(drop) })
        });
        let result = ready!(wait.as_mut().poll(cx));
        *waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").field("socket", &self.socket).finish_non_exhaustive()
    }
}
