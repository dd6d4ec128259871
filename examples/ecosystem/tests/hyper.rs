//! hyper over mini's streams, HTTP/1 and HTTP/2: its own client, curl and h2load, and servers that stop.

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper::{Request, Response, Version, client};
use mini::hyper::Executor;
use mini::net::{TcpListener, TcpStream, UnixStream};
use mini::process::Command;
use mini::task::JoinHandle;
use mini_hyper::{Limits, Report, serve, serve_connection};
use mini_tests::net_support::{ANY_PORT, kind_of, tcp_pair};
use mini_tests::{LIMIT, until};
use tokio::sync::watch;

#[path = "support/scenarios.rs"]
mod scenarios;

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

/// Time limits that no test reaches: no connection is closed by them.
fn patient() -> Limits {
    let long = LIMIT * 10;
    Limits { first_request: long, idle: long, request: long, grace: long, ..Limits::default() }
}

/// Answers with the body that came.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    Ok(Response::new(Full::new(request.into_body().collect().await?.to_bytes())))
}

/// A client's way to send a request on a connection of either version.
enum Sender {
    One(client::conn::http1::SendRequest<Full<Bytes>>),
    Two(client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    async fn new(stream: impl Read + Write + Unpin + Send + 'static, version: Version) -> Self {
        if version == Version::HTTP_2 {
            let (sender, connection) = client::conn::http2::handshake(Executor::new(), stream).await.unwrap();
            mini::spawn(connection);
            return Self::Two(sender);
        }
        let (sender, connection) = client::conn::http1::handshake(stream).await.unwrap();
        mini::spawn(connection);
        Self::One(sender)
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_closed(),
            Self::Two(sender) => sender.is_closed(),
        }
    }

    async fn post(&mut self, path: &str, body: Bytes) -> hyper::Result<Bytes> {
        let request = Request::post(format!("http://localhost{path}")).header("host", "localhost");
        let request = request.body(Full::new(body)).unwrap();
        let response = match self {
            Self::One(sender) => {
                sender.ready().await?; // the connection may be about to finish the answer before
                sender.send_request(request).await?
            }
            Self::Two(sender) => sender.send_request(request).await?,
        };
        assert_eq!(response.status(), 200);
        Ok(response.into_body().collect().await?.to_bytes())
    }
}

async fn converse<I: Read + Write + Unpin + Send + 'static>(client: I, server: I, version: Version) {
    let server = mini::spawn(serve_connection(server, service_fn(echo), patient(), pending()));
    let mut sender = Sender::new(client, version).await;
    for length in [0, 1, 8192, 1 << 20] {
        let body = Bytes::from(vec![length as u8; length]);
        assert_eq!(sender.post("/", body.clone()).await.unwrap(), body);
    }
    drop(sender);
    server.await.unwrap().unwrap();
}

async fn both_versions_over_tcp() {
    for version in VERSIONS {
        let (client, server) = tcp_pair().await;
        converse(client, server, version).await;
    }
}

async fn both_versions_over_unix() {
    for version in VERSIONS {
        let (client, server) = UnixStream::pair().unwrap();
        converse(client, server, version).await;
    }
}

async fn many_streams_share_a_connection() {
    let (client, server) = tcp_pair().await;
    let server = mini::spawn(serve_connection(server, service_fn(echo), patient(), pending()));
    let Sender::Two(sender) = Sender::new(client, Version::HTTP_2).await else { unreachable!("it was asked for") };
    let tasks: Vec<_> = (0..100_u8)
        .map(|number| {
            let mut sender = Sender::Two(sender.clone());
            mini::spawn(async move { sender.post("/", vec![number; 10_000].into()).await })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.unwrap().unwrap(), vec![number as u8; 10_000]);
    }
    drop(sender);
    server.await.unwrap().unwrap();
}

/// A server that stops when `say` is 1 or dropped, and answers `/slow` when `say` is 2.
struct Server {
    at: SocketAddr,
    say: watch::Sender<u8>,
    ended: JoinHandle<std::io::Result<Report>>,
    /// Requests for `/slow` so far.
    slow: Arc<AtomicUsize>,
}

async fn start(limits: Limits) -> Server {
    let listener = TcpListener::bind(ANY_PORT).await.unwrap();
    let at = listener.local_addr().unwrap();
    let (say, said) = watch::channel(0_u8);
    let mut stop = said.clone();
    let slow = Arc::<AtomicUsize>::default();
    let counted = slow.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut said, counted) = (said.clone(), counted.clone());
        async move {
            if request.uri().path() == "/slow" {
                counted.fetch_add(1, SeqCst);
                let _ = said.wait_for(|&said| said == 2).await;
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
        }
    });
    let stop = async move { stop.wait_for(|&said| said > 0).await.is_ok() };
    let server = serve(listener, service).limits(limits).with_graceful_shutdown(stop);
    Server { at, say, ended: mini::spawn(server.into_future()), slow }
}

async fn a_stop_lets_requests_end_and_refuses_new_ones() {
    let Server { at, say, ended, slow: begun } = start(patient()).await;
    let silent = TcpStream::connect(at).await.unwrap();
    let mut slow = Vec::new();
    for version in VERSIONS {
        let mut idle = Sender::new(TcpStream::connect(at).await.unwrap(), version).await;
        assert_eq!(idle.post("/", Bytes::new()).await.unwrap(), "hello");
        let mut sender = Sender::new(TcpStream::connect(at).await.unwrap(), version).await;
        sender.post("/", Bytes::new()).await.unwrap();
        slow.push((idle, mini::spawn(async move { sender.post("/slow", Bytes::new()).await })));
    }
    let mut busy = Sender::new(TcpStream::connect(at).await.unwrap(), Version::HTTP_11).await;
    busy.post("/", Bytes::new()).await.unwrap();
    until(|| begun.load(SeqCst) == 2).await;
    say.send(1).unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0); // who has asked for nothing is sent away
    assert_eq!(kind_of(TcpStream::connect(at).await), ErrorKind::ConnectionRefused);
    until(|| busy.is_closed()).await; // as is who waits between two requests
    assert!(busy.post("/", Bytes::new()).await.is_err());

    say.send(2).unwrap();
    for (idle, slow) in slow {
        assert_eq!(slow.await.unwrap().unwrap(), "hello");
        drop(idle);
    }
    let report = ended.await.unwrap().unwrap();
    assert_eq!((report.failed, report.cut), (0, 0), "{report:?}");
}

async fn a_grace_that_ends_cuts_off() {
    let Server { at, say, ended, slow: begun } = start(Limits { grace: Duration::from_millis(20), ..patient() }).await;
    let mut sender = Sender::new(TcpStream::connect(at).await.unwrap(), Version::HTTP_11).await;
    sender.post("/", Bytes::new()).await.unwrap();
    let slow = mini::spawn(async move { sender.post("/slow", Bytes::new()).await });
    until(|| begun.load(SeqCst) == 1).await;
    say.send(1).unwrap();
    assert!(slow.await.unwrap().is_err());
    assert_eq!(ended.await.unwrap().unwrap(), Report { finished: 0, failed: 0, cut: 1 });
}

async fn more_connections_than_allowed_wait() {
    let Server { at, say, ended, .. } = start(Limits { connections: 1, ..patient() }).await;
    let mut first = Sender::new(TcpStream::connect(at).await.unwrap(), Version::HTTP_11).await;
    first.post("/", Bytes::new()).await.unwrap();
    let second = TcpStream::connect(at).await.unwrap();
    let second = mini::spawn(async move { Sender::new(second, Version::HTTP_11).await.post("/", Bytes::new()).await });
    first.post("/", Bytes::new()).await.unwrap();
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(second.await.unwrap().unwrap(), "hello");
    say.send(1).unwrap();
    assert_eq!(ended.await.unwrap().unwrap(), Report { finished: 2, failed: 0, cut: 0 });
}

/// Runs a client of another make, unless it is missing where that is allowed.
async fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = match Command::new(program).args(args).output().await {
        Err(e) if e.kind() == ErrorKind::NotFound && std::env::var_os("MINI_TEST_SERVERS").is_none() => {
            println!("skipped: there is no {program} here");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{program}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

async fn curl_speaks_both_versions() {
    let Server { at, say, ended, .. } = start(patient()).await;
    let url = format!("http://{at}/");
    for (flag, version) in [("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")] {
        let answer = run("curl", &["-sS", "-m", "30", flag, "-w", " %{http_version}", &url]).await;
        if let Some(answer) = answer {
            assert_eq!(answer, format!("hello {version}"));
        }
    }
    drop(say);
    assert_eq!(ended.await.unwrap().unwrap().failed, 0);
}

async fn h2load_gets_all_its_answers() {
    let Server { at, say, ended, .. } = start(patient()).await;
    let url = format!("http://{at}/");
    if let Some(said) = run("h2load", &["-n", "2000", "-c", "10", "-m", "20", &url]).await {
        assert!(said.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "{said}");
    }
    drop(say);
    let report = ended.await.unwrap().unwrap();
    assert_eq!((report.failed, report.cut), (0, 0), "{report:?}");
}

mod tests {
    crate::scenarios::scenarios! {
        both_versions_over_tcp,
        both_versions_over_unix,
        many_streams_share_a_connection,
        a_stop_lets_requests_end_and_refuses_new_ones,
        a_grace_that_ends_cuts_off,
        more_connections_than_allowed_wait,
        curl_speaks_both_versions,
        h2load_gets_all_its_answers,
    }
}
