//! The server's loop: a task for each connection, and the end.
//!
//! Rejected: `GracefulShutdown` of hyper-util (it counts connections; here a `JoinSet` has them, and can also cut them
//! off).

use std::any::Any;
use std::fmt;
use std::future::{self, Pending, Ready, pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, Write};
use mini::net::{Listener, TcpStream, next_connection};
use mini::sync::watch;
use mini::task::JoinSet;
use mini::time::{Instant, sleep, timeout};

use crate::connection::{late, serve_connection};
use crate::{Failure, HttpService, Hyper, IntoService, Limits};

/// How much of the program's grace stays for what comes after the server, at most.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves HTTP/1 and HTTP/2 on all connections of `listener`, each in a task of its own, when it is awaited.
///
/// `service` is a service of hyper (`hyper::service::service_fn`) or of tower, such as axum's `Router`; it is cloned
/// for each connection. Accepting survives too many open files ([`next_connection`]).
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::get};
/// use mini::net::{TcpListener, TcpStream};
///
/// # mini::block_on(async {
/// let router: Router = Router::new().route("/", get(async || "hello"));
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let at = listener.local_addr()?;
/// mini::spawn(mini_hyper::serve(listener, router).into_future());
///
/// let stream = TcpStream::connect(at).await?;
/// stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
/// let mut answer = String::new();
/// futures_lite::AsyncReadExt::read_to_string(&mut &stream, &mut answer).await?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello"));
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// # Errors
///
/// The output is an error only if accepting fails permanently. Failures of a connection are counted in the [`Report`].
///
/// # Panics
///
/// The future panics outside of a mini runtime.
///
/// # Cancel safety
///
/// Dropping its future cuts all connections off, as [`JoinSet`] does. To let them end, see
/// [`with_graceful_shutdown`](Serve::with_graceful_shutdown).
pub fn serve<L, S, Kind>(listener: L, service: S) -> Serve<L, S::Service>
where
    L: Listener<Connection: Read + Write> + 'static,
    S: IntoService<Kind>,
{
    let (service, limits) = (service.into_service(), Limits::default());
    Serve { listener, service, limits, stop: pending(), handshake: Plain, on_error: None }
}

/// A server that is being set up; made by [`serve`], begins when it is awaited.
#[must_use = "a server does nothing unless awaited"]
pub struct Serve<L, S, Stop = Pending<()>, Shake = Plain> {
    listener: L,
    service: S,
    limits: Limits,
    on_error: Option<OnError>,
    stop: Stop,
    handshake: Shake,
}

impl<L, S, Stop, Shake> Serve<L, S, Stop, Shake> {
    /// Ends the server when `stop` is ready, whatever its output: closes the listener, lets requests in progress finish
    /// within [`Limits::grace`], and cuts off the other connections.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use axum::Router;
    /// # mini::block_on(async {
    /// # let (listener, router) = (mini::net::TcpListener::bind("127.0.0.1:8080").await?, Router::new());
    /// let report = mini_hyper::serve(listener, router).with_graceful_shutdown(mini::signal::termination()).await?;
    /// println!("{report}"); // connections: 12 finished, 1 cut off
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn with_graceful_shutdown<F: Future + Send + 'static>(self, stop: F) -> Serve<L, S, F, Shake> {
        let Self { listener, service, limits, on_error, handshake, .. } = self;
        Serve { listener, service, limits, on_error, stop, handshake }
    }

    /// Sets limits other than the [default](Limits::default) ones.
    ///
    /// # Examples
    ///
    /// ```
    /// # use axum::Router;
    /// # use mini_hyper::Limits;
    /// # mini::block_on(async {
    /// # let (listener, router) = (mini::net::TcpListener::bind("127.0.0.1:0").await?, Router::new());
    /// let server = mini_hyper::serve(listener, router).limits(Limits { connections: 100, ..Limits::default() });
    /// # drop(server);
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes each connection go through `handshake` first, in its task and within [`Limits::first_request`]: TLS, for
    /// example, or the first line of a proxy. A connection that fails is closed and counted.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use axum::Router;
    /// # mini::block_on(async {
    /// # let (listener, router) = (mini::net::TcpListener::bind("127.0.0.1:8080").await?, Router::new());
    /// let server = mini_hyper::serve(listener, router).handshake(async |stream: mini::net::TcpStream| {
    ///     let mut magic = [0; 4];
    ///     stream.read_exact(&mut magic).await?;
    ///     if magic == *b"open" { Ok(stream) } else { Err(std::io::ErrorKind::PermissionDenied.into()) }
    /// });
    /// # server.await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn handshake<H: Handshake<L::Connection>>(self, handshake: H) -> Serve<L, S, Stop, H>
    where
        L: Listener,
    {
        let Self { listener, service, limits, on_error, stop, .. } = self;
        Serve { listener, service, limits, on_error, stop, handshake }
    }

    /// Calls `hook` for each connection that fails, with the address of its peer and the error, for example to log it
    /// or to count errors by kind. A panic of a handler does not count as such a failure; it is reported like the panic
    /// of any task.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use axum::Router;
    /// # mini::block_on(async {
    /// # let (listener, router) = (mini::net::TcpListener::bind("127.0.0.1:8080").await?, Router::new());
    /// let server = mini_hyper::serve(listener, router)
    ///     .on_error(|peer, error| eprintln!("{peer:?}: {error}"));
    /// # server.await?;
    /// # std::io::Result::Ok(()) }).unwrap();
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&dyn fmt::Debug, &Failure) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(hook));
        self
    }
}

/// What is called for a connection that has failed, with the address of its peer.
type OnError = Arc<dyn Fn(&dyn fmt::Debug, &Failure) + Send + Sync>;

/// A step of a connection before it speaks HTTP; see [`Serve::handshake`]. Implemented for functions.
pub trait Handshake<C>: Clone + Send + 'static {
    /// The stream that speaks HTTP.
    type Stream: Read + Write + Unpin + Send + 'static;

    /// Resolves to the stream.
    type Future: Future<Output = io::Result<Self::Stream>> + Send + 'static;

    /// Begins the handshake.
    fn begin(&self, connection: C) -> Self::Future;
}

/// No handshake: connections speak HTTP at once.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl<C: Read + Write + Unpin + Send + 'static> Handshake<C> for Plain {
    type Stream = C;
    type Future = Ready<io::Result<C>>;

    fn begin(&self, connection: C) -> Ready<io::Result<C>> {
        future::ready(Ok(connection))
    }
}

impl<C, H, F, I> Handshake<C> for H
where
    H: Fn(C) -> F + Clone + Send + 'static,
    F: Future<Output = io::Result<I>> + Send + 'static,
    I: Read + Write + Unpin + Send + 'static,
{
    type Stream = I;
    type Future = F;

    fn begin(&self, connection: C) -> F {
        self(connection)
    }
}

/// The number of a server's connections, by how they ended. Its `Display` is a line for people.
///
/// # Examples
///
/// ```
/// let report = mini_hyper::Report { finished: 5, failed: 0, cut: 1 };
/// assert_eq!(report.to_string(), "connections: 5 finished, 1 cut off");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Ended in order, by either side, for example because the client was silent between two requests for too long; see
    /// [`serve_connection`].
    pub finished: usize,
    /// Ended by an error: of the handshake, the network, the protocol, a limit, or a service that panicked.
    pub failed: usize,
    /// Still busy after the grace.
    pub cut: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connections: {} finished", self.finished)?;
        let counts = [(self.failed, "failed"), (self.cut, "cut off")];
        counts.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, what)| write!(f, ", {count} {what}"))
    }
}

/// How a connection has ended. No `Result`: nothing is to be told of an error that nobody takes out of the set, as the
/// hook has heard of it.
enum Ended {
    InOrder,
    Failed,
}

/// The connections that there are, and what became of the others.
#[derive(Default)]
struct Connections {
    set: JoinSet<Ended>,
    report: Report,
}

impl Connections {
    fn count<E>(&mut self, ended: Result<Ended, E>) {
        match ended {
            Ok(Ended::InOrder) => self.report.finished += 1,
            Ok(Ended::Failed) | Err(_) => self.report.failed += 1,
        }
    }

    /// Ready when there are fewer than `most`. Takes out those that have ended, also if it was ready before.
    fn poll_room(&mut self, most: usize, cx: &mut Context<'_>) -> Poll<()> {
        while !self.set.is_empty()
            && let Poll::Ready(Some(ended)) = self.set.poll_join_next(cx)
        {
            self.count(ended);
        }
        if self.set.len() < most.max(1) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The next one, while there are fewer than `most`; `None` once `stop` is ready. Meanwhile those that end are taken
    /// out.
    async fn accept<L: Listener>(
        &mut self,
        listener: &L,
        most: usize,
        mut stop: Pin<&mut impl Future>,
    ) -> Option<io::Result<(L::Connection, L::Addr)>> {
        let mut next = pin!(next_connection(listener));
        poll_fn(|cx| {
            if stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            ready!(self.poll_room(most, cx));
            next.as_mut().poll(cx).map(Some)
        })
        .await
    }

    async fn all(&mut self) {
        while let Some(ended) = self.set.join_next().await {
            self.count(ended);
        }
    }
}

/// Ends when the connections have had their time: the grace of the server, or most of what the program has left.
async fn time_is_up(grace: Duration) {
    let program = async {
        mini::shutdown().cancelled().await;
        match mini::grace_left() {
            Some(left) => sleep(left - (left / 10).min(LAST_WORDS)).await,
            None => pending().await,
        }
    };
    mini::race!(sleep(grace), program);
}

impl<L, S, Stop, Shake> Serve<L, S, Stop, Shake>
where
    L: Listener + 'static,
    S: HttpService,
    Stop: Future + Send + 'static,
    Shake: Handshake<L::Connection>,
{
    async fn run(self) -> io::Result<Report> {
        let Self { listener, service, limits, on_error, stop, handshake } = self;
        let (mut stop, (tell, told)) = (pin!(stop), watch::channel(false));
        let mut connections = Connections::default();
        loop {
            let accepted = connections.accept(&listener, limits.connections, stop.as_mut()).await;
            let Some(accepted) = accepted else { break };
            let (stream, from) = accepted?;
            let (service, limits, handshake) = (service.clone(), limits.clone(), handshake.clone());
            let (told, on_error) = (told.clone(), on_error.clone());
            connections.set.spawn(async move {
                let ended = connection(stream, handshake, service, limits, told).await;
                let Err(error) = ended else { return Ended::InOrder };
                if let Some(hook) = &on_error {
                    hook(&from, &error);
                }
                Ended::Failed
            });
        }
        drop(listener); // from here connections are refused
        let _ = tell.send(true);
        mini::race!(connections.all(), time_is_up(limits.grace));
        connections.report.cut = connections.set.len();
        connections.set.shutdown().await;
        Ok(connections.report)
    }
}

/// A connection from its handshake to its end.
async fn connection<C, H, S>(
    stream: C,
    handshake: H,
    service: S,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Failure>
where
    C: Send + 'static,
    H: Handshake<C>,
    S: HttpService,
{
    if let Some(stream) = (&stream as &dyn Any).downcast_ref::<TcpStream>() {
        // Otherwise the second message of a stream waits until the client has acknowledged the first. If the client is
        // gone, that shows later.
        let _ = stream.set_nodelay(true);
    }
    let begun = Instant::now();
    let mut stop = pin!(async move { drop(stop.wait_for(|&stop| stop).await) });
    let shaken = mini::race! {
        shaken = timeout(limits.first_request, handshake.begin(stream)) => shaken,
        () = stop.as_mut() => return Ok(()), // it has begun no request
    };
    let stream = shaken.map_err(|_| late("no handshake"))??;
    let limits = Limits { first_request: limits.first_request.saturating_sub(begun.elapsed()), ..limits };
    serve_connection::<_, _, Hyper>(stream, service, limits, stop).await
}

/// A server that runs; made by awaiting a [`Serve`].
pub struct Serving(Pin<Box<dyn Future<Output = io::Result<Report>> + Send>>);

impl<L, S, Stop, Shake> IntoFuture for Serve<L, S, Stop, Shake>
where
    L: Listener + 'static,
    S: HttpService,
    Stop: Future + Send + 'static,
    Shake: Handshake<L::Connection>,
{
    type Output = io::Result<Report>;
    type IntoFuture = Serving;

    fn into_future(self) -> Serving {
        Serving(Box::pin(self.run()))
    }
}

impl Future for Serving {
    type Output = io::Result<Report>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<L: fmt::Debug, S, Stop, Shake> fmt::Debug for Serve<L, S, Stop, Shake> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve").field("listener", &self.listener).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    #[test]
    fn a_connection_that_ends_goes_though_no_other_one_comes() {
        let woken = Arc::new(Woken::default());
        let body = async move {
            let listener = mini::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (mut connections, mut stop) = (Connections::default(), pin!(pending::<()>()));
            let (end, ends) = mini::sync::oneshot::channel::<()>();
            connections.set.spawn(async { if ends.await.is_ok() { Ended::InOrder } else { Ended::Failed } });
            {
                let mut next = pin!(connections.accept(&listener, 10, stop.as_mut()));
                let mut poll =
                    || next.as_mut().poll(&mut Context::from_waker(&Waker::from(woken.clone()))).is_pending();
                assert!(poll());
                end.send(()).unwrap();
                while !woken.0.load(SeqCst) {
                    mini::task::yield_now().await;
                }
                assert!(poll());
            }
            assert!(connections.set.is_empty());
            assert_eq!(connections.report, Report { finished: 1, failed: 0, cut: 0 });
        };
        mini_tests::within(mini_tests::LIMIT, || mini::block_on(body));
    }
}
