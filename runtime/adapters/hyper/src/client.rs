//! `Connector` and `client`, by which hyper-util's pooling client connects through mini. Requires the feature `client`.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::body::Body;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Builder, Client};
use mini::hyper::{Executor, Timer};
use mini::net::TcpStream;

/// Creates a client that keeps its connections for further requests, over plain HTTP/1.
///
/// It bounds nothing but how long an idle connection is kept (90 s): put a [`timeout`](mini::time::timeout()) or a
/// [`deadline`](mini::time::deadline()) around a request.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::get};
/// use http_body_util::{BodyExt, Empty};
/// use mini::net::TcpListener;
/// use mini::time::{Duration, timeout};
///
/// # mini::block_on(async {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let uri: hyper::Uri = format!("http://{}/", listener.local_addr()?).parse()?;
/// let router = Router::new().route("/", get(async || "hello"));
/// let server = mini::spawn(mini_hyper::serve(listener, router).into_future());
///
/// let client = mini_hyper::client::<Empty<&[u8]>>();
/// let answer = timeout(Duration::from_secs(10), client.get(uri)).await??;
/// assert_eq!(answer.into_body().collect().await?.to_bytes(), "hello");
/// # server.abort();
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn client<B>() -> Client<Connector, B>
where
    B: Body + Send,
    B::Data: Send,
{
    client_builder().build(Connector::new())
}

/// Returns the builder of a client that runs on mini, for other settings and other connectors, such as one of a TLS
/// crate around a [`Connector`].
///
/// # Examples
///
/// ```
/// use http_body_util::Empty;
/// use mini_hyper::Connector;
///
/// let client = mini_hyper::client_builder().pool_max_idle_per_host(2).build::<_, Empty<&[u8]>>(Connector::new());
/// # drop(client);
/// ```
pub fn client_builder() -> Builder {
    let mut builder = Client::builder(Executor::new());
    builder.timer(Timer::new()).pool_timer(Timer::new());
    builder
}

/// Connects to the host of a URI, by TCP and without delay of small writes (`TCP_NODELAY`).
///
/// # Examples
///
/// See [`client_builder`].
///
/// # Errors
///
/// Returns the errors of [`TcpStream::connect`]. Returns `InvalidInput` if the URI names no host, or a scheme other
/// than `http` and [other schemes](Self::any_scheme) are refused.
#[derive(Clone, Debug, Default)]
pub struct Connector {
    is_any_scheme: bool,
}

impl Connector {
    /// Creates a connector for `http` alone.
    ///
    /// # Examples
    ///
    /// See [`client_builder`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Connects for any scheme; use it inside a connector that encrypts. If the URI names no port, it is 443 for
    /// `https`, and 80 for other schemes.
    ///
    /// # Examples
    ///
    /// ```
    /// let connector = mini_hyper::Connector::new().any_scheme();
    /// # drop(connector);
    /// ```
    #[must_use]
    pub fn any_scheme(self) -> Self {
        Self { is_any_scheme: true }
    }

    /// Host and port.
    fn target(&self, uri: &Uri) -> io::Result<(String, u16)> {
        let refused = |text: String| Err(io::Error::new(ErrorKind::InvalidInput, text));
        let Some(host) = uri.host() else { return refused(format!("`{uri}` names no host")) };
        let port = match uri.scheme_str() {
            Some("https") if self.is_any_scheme => 443,
            Some("http") | None => 80,
            _ if self.is_any_scheme => 80,
            Some(scheme) => {
                return refused(format!("`{scheme}` of `{uri}` is not plain HTTP: it needs another connector"));
            }
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok((host.to_owned(), uri.port_u16().unwrap_or(port)))
    }
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<ClientStream>> + Send>>;

impl tower_service::Service<Uri> for Connector {
    type Response = ClientStream;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let target = self.target(&uri);
        Box::pin(async move {
            let (host, port) = target?;
            let stream = TcpStream::connect((&*host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(ClientStream(stream))
        })
    }
}

/// A connection that a [`Connector`] has made.
#[derive(Debug)]
pub struct ClientStream(TcpStream);

impl ClientStream {
    /// Returns the inner stream.
    pub fn into_inner(self) -> TcpStream {
        self.0
    }
}

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Read::poll_read(Pin::new(&mut self.0), cx, buf)
    }
}

impl Write for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Write::poll_write(Pin::new(&mut self.0), cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Write::poll_write_vectored(Pin::new(&mut self.0), cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        Write::is_write_vectored(&self.0)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Write::poll_flush(Pin::new(&mut self.0), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Write::poll_shutdown(Pin::new(&mut self.0), cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_a_host_and_a_port() {
        let of = |connector: &Connector, uri: &str| connector.target(&uri.parse().unwrap());
        let (plain, any) = (Connector::new(), Connector::new().any_scheme());
        assert_eq!(of(&plain, "http://[::1]:8080/a").unwrap(), ("::1".to_owned(), 8080));
        assert_eq!(of(&plain, "http://example.org/a").unwrap(), ("example.org".to_owned(), 80));
        assert_eq!(of(&any, "https://example.org").unwrap(), ("example.org".to_owned(), 443));
        for (uri, text) in [("/a", "names no host"), ("https://example.org", "`https` of `https://example.org/`")] {
            let error = of(&plain, uri).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
