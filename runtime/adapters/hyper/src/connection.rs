//! One connection, from its first byte to its end.
//!
//! The hard part is how long a client may take: until its first request, for a head, for a body, and after the stop.
//! hyper knows the second only (see `heads.rs`), and not before it has told HTTP/1 from HTTP/2 by the first bytes.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::{Either, Empty};
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::server::conn::auto;
use mini::hyper::{Executor, Timer};
use mini::time::{sleep, timeout};

use crate::heads::{HeadTimer, Heads};
use crate::paced::Paced;
use crate::{Failure, IntoService, Limits};

/// hyper adds the limits that it gets to the time, which must not overflow: a century.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Serves one connection, HTTP/1 or HTTP/2 as its first bytes say, to its end; once `stop` is ready, without new
/// requests. Upgrades (`hyper::upgrade`) work.
///
/// An HTTP/2 client that has sent a request may leave at any time. It announces this and closes (RFC 9113, section
/// 6.8), and may not receive the server's last frame. Requests that it abandons end with an error of their own. An
/// HTTP/1 connection that breaks off during a request is an error. Between two requests it ends in order, whether the
/// client closes it or is silent for longer than [`Limits::idle`].
///
/// An HTTP/1 client may close its side of the connection once it has sent its request, as `nc -N` does, and still gets
/// the answer. A client that is gone looks the same until data are written to it. So its request is not cancelled, and
/// an answer that writes nothing for an hour keeps the connection for an hour. Let a stream of events write a comment
/// now and then.
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::get};
/// use mini_hyper::{Limits, serve_connection};
///
/// # mini::block_on(async {
/// let (client, server) = mini::net::UnixStream::pair()?;
/// let router: Router = Router::new().route("/", get(async || "hello"));
/// let served = mini::spawn(serve_connection(server, router, Limits::default(), std::future::pending()));
/// client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
/// let mut answer = String::new();
/// futures_lite::AsyncReadExt::read_to_string(&mut &client, &mut answer).await?;
/// assert!(answer.ends_with("\r\n\r\nhello"));
/// # Ok::<(), mini_hyper::Failure>(served.await.unwrap()?) }).unwrap();
/// ```
///
/// # Errors
///
/// Returns hyper's errors for the client or the network. Returns `TimedOut` for a client that has sent no request, has
/// stopped in the middle of a head, or takes none of the data sent to it.
///
/// # Panics
///
/// Outside of a mini runtime.
pub async fn serve_connection<I, S, Kind>(
    stream: I,
    service: S,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure>
where
    I: Read + Write + Unpin + Send + 'static,
    S: IntoService<Kind>,
{
    let heads = Arc::new(Heads::default());
    let noted = heads.clone();
    let service = service.into_service();
    let service = service_fn(move |request: Request<Incoming>| {
        noted.first.get_or_init(|| request.version());
        in_time(limits.request, hyper::service::Service::call(&service, request))
    });
    let mut server = auto::Builder::new(Executor::new());
    let idle = limits.idle.min(LONGEST);
    server.http1().timer(HeadTimer(heads.clone())).header_read_timeout(idle).half_close(true);
    let mut http2 = server.http2();
    http2.timer(Timer::new()).keep_alive_interval(idle).keep_alive_timeout(idle);

    let stream = Paced::new(stream, limits.write, heads.clone());
    let mut http = pin!(server.serve_connection_with_upgrades(stream, service));
    let mut first_request = pin!(sleep(limits.first_request));
    let mut stop = pin!(stop);
    let mut is_stopping = false;
    poll_fn(|cx| {
        if !is_stopping && stop.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            http.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(ended) = http.as_mut().poll(cx) {
            let asked_nothing = heads.first.get().is_none();
            return Poll::Ready(if is_stopping && asked_nothing { Ok(()) } else { verdict(ended, &heads) });
        }
        if heads.first.get().is_none() && first_request.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(late("no request")));
        }
        Poll::Pending
    })
    .await
}

/// What an end that hyper has told means.
fn verdict(ended: Result<(), Failure>, heads: &Heads) -> Result<(), Failure> {
    match (ended, heads.first.get()) {
        (Ok(()), None) if heads.is_late() => Err(late("no request")),
        (Err(e), _) if heads.is_late() && is_incomplete(&e) => Err(late("half of a request's head")),
        (Err(e), Some(&Version::HTTP_2)) if is_departure(&e) => Ok(()),
        (ended, _) => ended,
    }
}

/// The answer of a service. If it takes too long: 503, after which the client may try again (RFC 9110, section 15.6.4).
async fn in_time<B: Body, E: Into<Failure>>(
    limit: Duration,
    answer: impl Future<Output = Result<Response<B>, E>>,
) -> Result<Response<Either<B, Empty<B::Data>>>, Failure> {
    if let Ok(answer) = timeout(limit, answer).await {
        return answer.map(|answer| answer.map(Either::Left)).map_err(E::into);
    }
    let mut busy = Response::new(Either::Right(Empty::new()));
    *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    // HTTP/2 has no such header, and hyper takes it out there.
    busy.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(busy)
}

pub(crate) fn late(text: &'static str) -> Failure {
    late_error(text).into()
}

pub(crate) fn late_error(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// Whether a connection of HTTP/1 has ended in the middle of a request.
fn is_incomplete(error: &Failure) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
}

/// Whether a connection has failed because the other side is no longer there.
fn is_departure(error: &Failure) -> bool {
    let cause = error.downcast_ref::<hyper::Error>().and_then(Error::source);
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|e| matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset))
}
