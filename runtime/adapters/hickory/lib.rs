//! DNS on mini: [`MiniProvider`] gives hickory its tasks, timers and sockets.
//!
//! Give it to `hickory_resolver::Resolver::builder_with_config`, or to the clients of `hickory-net`. The answers come
//! over sockets of the runtime, whereas [`lookup_host`](mini::net::lookup_host) holds a blocking thread for each name.
//! DNS over TLS, HTTPS or QUIC is not there: hickory ties these to tokio.

// The hard part: hickory's tasks read from connections that it keeps for later, so no task awaits them. They live as
// long as the provider and its clones, of which the resolver has some: otherwise they would go on until the server
// hangs up.
//
// It is a crate of its own because a program needs it as it stands.
//
// Rejected: hickory's traits on mini's own types. Both are foreign here, and in `mini` they would tie its versions to
// hickory's.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_io::{AsyncRead, AsyncWrite};
use hickory_net::runtime::{DnsTcpStream, DnsUdpSocket, RuntimeProvider, Spawn, Time};
use mini::net::{TcpSocket, TcpStream, UdpSocket};
use mini::task::JoinSet;

/// How long a TCP connection may take where hickory sets no limit.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The runtime that the caller is in, as hickory wants it.
///
/// Tasks that it starts end when its last clone is dropped, or with the runtime. Its methods panic outside a mini
/// runtime.
///
/// # Examples
///
/// ```
/// use hickory_resolver::Resolver;
/// use hickory_resolver::config::{NameServerConfig, ResolverConfig};
///
/// # mini::block_on(async {
/// let servers = vec![NameServerConfig::udp_and_tcp([127, 0, 0, 1].into())];
/// let config = ResolverConfig::from_parts(None, vec![], servers);
/// let resolver = Resolver::builder_with_config(config, mini_hickory::MiniProvider::new()).build()?;
/// // An address needs no server.
/// assert_eq!(resolver.lookup_ip("192.0.2.1").await?.iter().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct MiniProvider {
    tasks: Tasks,
}

impl MiniProvider {
    /// Creates a provider that has not started anything yet.
    ///
    /// # Examples
    ///
    /// See [`MiniProvider`].
    pub fn new() -> Self {
        Self::default()
    }
}

impl RuntimeProvider for MiniProvider {
    type Handle = Tasks;
    type Timer = MiniTime;
    type Udp = Udp;
    type Tcp = Tcp;

    fn create_handle(&self) -> Tasks {
        self.tasks.clone()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        local: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Tcp>>>> {
        let connect = async move {
            let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            if let Some(local) = local {
                socket.bind(local)?;
            }
            socket.set_nodelay(true)?;
            socket.connect(server).await.map(Tcp)
        };
        Box::pin(async move { limited(limit.unwrap_or(CONNECT_LIMIT), connect).await? })
    }

    fn bind_udp(
        &self,
        local: SocketAddr,
        _server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Udp>>>> {
        Box::pin(async move { UdpSocket::bind(local).await.map(Udp) })
    }
}

impl fmt::Debug for MiniProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiniProvider").field("tasks", &self.tasks).finish()
    }
}

/// Hickory's tasks; they are aborted when the last clone is dropped.
#[derive(Clone, Default)]
pub struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a task that has ended; returns whether there was one. Its output, perhaps a panic, is dropped without
    /// the lock.
    fn reap(&self) -> bool {
        let ended = self.lock().try_join_next();
        ended.is_some()
    }
}

impl Spawn for Tasks {
    fn spawn_bg(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.lock().spawn(future);
        while self.reap() {}
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tasks").field(&self.lock().len()).finish()
    }
}

/// Mini's timers, which tests can pause.
#[derive(Clone, Copy, Debug)]
pub struct MiniTime;

#[async_trait]
impl Time for MiniTime {
    async fn delay_for(duration: Duration) {
        mini::time::sleep(duration).await;
    }

    async fn timeout<F: Future + Send + 'static>(duration: Duration, future: F) -> io::Result<F::Output> {
        limited(duration, future).await
    }
}

async fn limited<F: Future>(limit: Duration, future: F) -> io::Result<F::Output> {
    let output = mini::time::timeout(limit, future).await;
    output.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("not done after {limit:?}")))
}

/// A UDP socket, as hickory wants it.
#[derive(Debug)]
pub struct Udp(UdpSocket);

impl DnsUdpSocket for Udp {
    type Time = MiniTime;

    fn poll_recv_from(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.0.poll_recv_from(cx, buf)
    }

    fn poll_send_to(&self, cx: &mut Context<'_>, buf: &[u8], to: SocketAddr) -> Poll<io::Result<usize>> {
        self.0.poll_send_to(cx, buf, to)
    }
}

/// A TCP connection, as hickory wants it.
#[derive(Debug)]
pub struct Tcp(TcpStream);

impl DnsTcpStream for Tcp {
    type Time = MiniTime;
}

impl AsyncRead for Tcp {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buf)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_read_vectored(cx, bufs)
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_close(cx)
    }
}
