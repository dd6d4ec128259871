//! `FuturesIo`: hyper's traits for streams that have those of `futures-io`.
//!
//! Called by users, in a handshake: a TLS stream knows the traits of `futures-io`, and hyper has its own. Reads go
//! through a buffer on the stack, as hyper lends memory that is not initialised, which safe code cannot hand on. A copy
//! of 8 KiB takes less than a tenth of the time that TLS takes to decrypt them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use mini::io::{AsyncRead, AsyncWrite};

/// The most that one read takes.
const READ: usize = 8 << 10;

/// A stream for hyper, of one that has the traits of `futures-io`: a TLS stream, for example, in
/// [`Serve::handshake`](crate::Serve::handshake). mini's own streams need none of this.
///
/// # Examples
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use futures_rustls::{TlsAcceptor, rustls::ServerConfig};
/// use mini::net::{TcpListener, TcpStream};
/// use mini_hyper::FuturesIo;
///
/// async fn serve(config: ServerConfig) -> std::io::Result<()> {
///     let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
///     let router = Router::new().route("/", get(async || "hello"));
///     let listener = TcpListener::bind("127.0.0.1:8443").await?;
///     let server = mini_hyper::serve(listener, router).handshake(move |tcp: TcpStream| {
///         let accepting = acceptor.accept(tcp);
///         async move { accepting.await.map(FuturesIo::new) }
///     });
///     server.await.map(drop)
/// }
/// ```
#[derive(Debug)]
pub struct FuturesIo<T>(T);

impl<T> FuturesIo<T> {
    /// Wraps `stream`.
    pub fn new(stream: T) -> Self {
        Self(stream)
    }

    /// Returns the inner stream.
    pub fn get_ref(&self) -> &T {
        &self.0
    }

    /// Returns the inner stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Returns the inner stream.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: AsyncRead + Unpin> Read for FuturesIo<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ];
        let room = buf.remaining().min(READ);
        let read = ready!(Pin::new(&mut self.0).poll_read(cx, &mut bytes[..room]))?;
        buf.put_slice(&bytes[..read]);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> Write for FuturesIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true // those of `futures-io` cannot tell; where it is not so, the first slice is written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }
}
