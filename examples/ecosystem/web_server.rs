//! A web server for services of hyper, and so for axum's: limits for connections and for slow clients, and an end in
//! which the requests that have begun are answered.
//!
//! Used by the examples `axum` and `hyper`. [`serve`] has a task per connection; [`connection`] is one of them. The
//! hard part is how long a client may take: until its first request, for a head, for a body, and after the stop. hyper
//! knows the second only, and not before it has told HTTP/1 from HTTP/2 by the first bytes.
//!
//! Rejected: `GracefulShutdown` of hyper-util (it counts connections; here a `JoinSet` has them, and can also cut them
//! off).

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use futures_lite::future::or;
use hyper::body::{Body, Incoming};
use hyper::rt::{Read, Write};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response, Version};
use hyper_util::server::conn::auto;
use mini::hyper::{Executor, Timer};
use mini::net::{TcpListener, next_connection};
use mini::task::JoinSet;
use mini::time::{sleep, timeout};
use tokio::sync::watch;

/// How a connection fails.
pub type Failure = Box<dyn Error + Send + Sync>;

/// What a client may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many connections there may be; more wait in the listener's queue.
    pub connections: usize,
    /// From the connection to the first request.
    pub first_request: Duration,
    /// For the head of a request of HTTP/1, and for a sign of life of an HTTP/2 connection.
    pub silence: Duration,
    /// From the head of a request to that of its answer, with a body that the service reads before.
    pub answer: Duration,
    /// For the requests that have begun when the server is to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 10_000,
            first_request: seconds(10),
            silence: seconds(10),
            answer: seconds(30),
            grace: seconds(10),
        }
    }
}

/// What became of the connections.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Ended in order, by either side; see [`connection`].
    pub finished: usize,
    /// Ended by an error: of the network, the protocol, or a limit.
    pub failed: usize,
    /// Still busy after the grace.
    pub cut: usize,
}

impl Report {
    fn count<E>(&mut self, ended: Result<Result<(), Failure>, E>) {
        match ended {
            Ok(Ok(())) => self.finished += 1,
            _ => self.failed += 1,
        }
    }
}

/// Serves connections until `stop`, then lets those that are busy end.
///
/// # Errors
///
/// Those of `accept` that will not pass, such as a listener that is none.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> io::Result<Report>
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<Failure>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Failure>,
{
    let (mut stop, (tell, told)) = (pin!(stop), watch::channel(false));
    let (mut report, mut connections) = (Report::default(), JoinSet::new());
    loop {
        let accept = async { Some(next(&listener, &mut connections, limits.connections, &mut report).await) };
        let stopped = async {
            stop.as_mut().await;
            None
        };
        let Some(stream) = or(stopped, accept).await else { break };
        let stream = stream?;
        // Or the second message of a stream waits until the client has acknowledged the first. A client that is gone
        // shows later.
        let _ = stream.set_nodelay(true);
        connections.spawn(connection(stream, service.clone(), limits.clone(), told.clone()));
    }
    drop(listener); // from here connections are refused
    let _ = tell.send(true);
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report.count(ended);
        }
    };
    let _ = timeout(limits.grace, all).await;
    report.cut = connections.len();
    connections.shutdown().await;
    Ok(report)
}

/// The next connection, when there is room for it.
async fn next(
    listener: &TcpListener,
    connections: &mut JoinSet<Result<(), Failure>>,
    most: usize,
    report: &mut Report,
) -> io::Result<mini::net::TcpStream> {
    while let Some(ended) = connections.try_join_next() {
        report.count(ended);
    }
    while connections.len() >= most {
        report.count(connections.join_next().await.expect("there are some"));
    }
    Ok(next_connection(listener).await?.0)
}

/// Serves one connection, HTTP/1 or HTTP/2 as its first bytes say, to its end; after `stop` says so, without new
/// requests.
///
/// A client of HTTP/2 that has asked for something may leave when it likes. It says so and closes (RFC 9113, section
/// 6.8), and whether the server's own last word then still finds it there is chance. Requests that it leaves in the
/// middle learn that themselves. A connection of HTTP/1 is its request: one that breaks off is an error.
///
/// # Errors
///
/// What hyper finds wrong with the client or the network, and `TimedOut` for a client that has asked for nothing.
pub async fn connection<I, S, B>(
    stream: I,
    service: S,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Failure>
where
    I: Read + Write + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<Failure>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Failure>,
{
    let version = Arc::new(OnceLock::new()); // of the first request
    let noted = version.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        noted.get_or_init(|| request.version());
        in_time(limits.answer, service.call(request))
    });
    let mut server = auto::Builder::new(Executor::new());
    server.http1().timer(Timer::new()).header_read_timeout(limits.silence);
    let mut http2 = server.http2();
    http2.timer(Timer::new()).keep_alive_interval(limits.silence).keep_alive_timeout(limits.silence);

    let mut http = pin!(server.serve_connection(stream, service));
    let mut first_request = pin!(sleep(limits.first_request));
    let mut stopped = pin!(stop.wait_for(|&stop| stop));
    let mut is_stopping = false;
    poll_fn(|cx| {
        if !is_stopping && stopped.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            http.as_mut().graceful_shutdown();
        }
        match (http.as_mut().poll(cx), version.get()) {
            (Poll::Ready(_), None) if is_stopping => return Poll::Ready(Ok(())),
            (Poll::Ready(Err(e)), Some(&Version::HTTP_2)) if is_departure(&e) => return Poll::Ready(Ok(())),
            (Poll::Ready(ended), _) => return Poll::Ready(ended),
            (Poll::Pending, _) => {}
        }
        if version.get().is_none() && first_request.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(late("no request")));
        }
        Poll::Pending
    })
    .await
}

/// The answer of a service, unless it takes too long. Then the connection ends with an error, or the stream of HTTP/2.
async fn in_time<T, E: Into<Failure>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    match timeout(limit, answer).await {
        Ok(answer) => answer.map_err(E::into),
        Err(_) => Err(late("no answer in time, or no request to its end")),
    }
}

fn late(text: &'static str) -> Failure {
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

/// Whether a connection has failed because the other side is no longer there.
fn is_departure(error: &Failure) -> bool {
    let cause = error.downcast_ref::<hyper::Error>().and_then(Error::source);
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|e| matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset))
}
