//! gRPC by tonic over hyper on mini: a service of hyper made of tonic's [`Routes`], and what tonic's clients send
//! through.
//!
//! Used by the example `tonic`; `mini_hyper` serves the [`service`]. Neither side needs a runtime of tokio's, nor
//! tonic's features `server` and `channel`, which need one: they spawn and sleep by themselves. The hard part is the
//! deadline of a call, for which tonic's own server uses tokio's timers; here mini's do it. As there, it bounds the
//! time until the answer begins; a client ends a stream when it stops reading.
//!
//! Rejected: tonic's `Channel` with mini's executor (it works, see the tests, but its time limits panic without tokio).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::http::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use mini::hyper::{Executor, Timer};
use mini::net::TcpStream;
use mini::task::JoinHandle;
use mini::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::{Service, ServiceExt};

/// The message of all methods.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Number {
    /// The number.
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// The service `mini.example.Sums`, as the build script writes it.
///
/// `Double` answers twice the number, `Count` with all numbers up to it, `Total` each number with the sum so far.
#[allow(missing_docs, clippy::all)]
pub mod sums {
    tonic::include_proto!("mini.example.Sums");
}

/// The services of `routes`, each call of which may take as long as its `grpc-timeout` says.
pub fn service(
    routes: Routes,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<axum::body::Body>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ Sync
+ 'static {
    let router = routes.prepare().into_axum_router();
    service_fn(move |request: Request<Incoming>| {
        let limit = limit(request.headers());
        let answer = router.clone().oneshot(request);
        async move {
            let Some(limit) = limit else { return answer.await };
            timeout(limit, answer).await.unwrap_or_else(|_| {
                let late = Status::deadline_exceeded("the deadline of the call has passed");
                Ok(late.into_http())
            })
        }
    })
}

/// The time that a call may take: at most eight digits and a unit.
///
/// Source: the gRPC protocol over HTTP/2, "Timeout".
fn limit(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let amount: u64 = if is_number { digits.parse().ok()? } else { return None };
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

/// A connection that tonic's clients send their calls through. Clones share it.
#[derive(Clone, Debug)]
pub struct Transport(SendRequest<Body>);

impl Transport {
    /// Connects to a server. The task ends when all clones are dropped, or the connection is lost.
    ///
    /// # Errors
    ///
    /// If no server listens there. If the server does not speak HTTP/2, the task and the first call fail.
    pub async fn connect(address: SocketAddr) -> io::Result<(Self, JoinHandle<hyper::Result<()>>)> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut http = http2::Builder::new(Executor::new());
        http.timer(Timer::new())
            .keep_alive_interval(Duration::from_secs(60))
            .keep_alive_timeout(Duration::from_secs(20));
        let (sender, connection) = http.handshake(stream).await.map_err(io::Error::other)?;
        Ok((Self(sender), mini::spawn(connection)))
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
