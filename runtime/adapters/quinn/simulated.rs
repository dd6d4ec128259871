//! The socket of an endpoint in a simulation: a datagram goes through the methods of mini's `UdpSocket`, as the system
//! knows nothing of it.
//!
//! Called where a socket is made; the others are `Socket`. One datagram a call, no congestion marks.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mini::net::UdpSocket;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use super::{Wait, is_passing};

/// In a simulation: a simulated socket with the address of `socket`, which is one of the system's.
pub(crate) fn bound_as(socket: &std::net::UdpSocket) -> io::Result<Option<Arc<dyn AsyncUdpSocket>>> {
    if mini::sim::try_current().is_none() {
        return Ok(None);
    }
    let socket = UdpSocket::bind_with(socket.local_addr()?, |_| Ok(()))?;
    Ok(Some(Arc::new(Simulated(socket))))
}

/// In a simulation: `socket`, as quinn wants it. Else it is given back.
pub(crate) fn adopt(socket: UdpSocket) -> Result<Arc<dyn AsyncUdpSocket>, UdpSocket> {
    if mini::sim::try_current().is_some() { Ok(Arc::new(Simulated(socket))) } else { Err(socket) }
}

#[derive(Debug)]
struct Simulated(UdpSocket);

impl AsyncUdpSocket for Simulated {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable { socket: self, waiting: None })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send_to(transmit.contents, transmit.destination).map(drop)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            match ready!(self.0.poll_recv_from(cx, &mut bufs[0])) {
                Err(error) if is_passing(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok((len, addr)) => {
                    meta[0] = RecvMeta { addr, len, stride: len, ecn: None, dst_ip: None };
                    return Poll::Ready(Ok(1));
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn may_fragment(&self) -> bool {
        false // so that quinn looks for the longest datagram, as it does elsewhere
    }
}

/// One connection's wait until the socket can be written.
struct Writable {
    socket: Arc<Simulated>,
    waiting: Option<Wait>,
}

impl UdpPoller for Writable {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, waiting } = self.get_mut();
        let wait = waiting.get_or_insert_with(|| {
            let socket = socket.clone();
            Box::pin(async move { socket.0.writable().await })
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
