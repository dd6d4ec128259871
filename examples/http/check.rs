//! The self-check: a server on a temporary directory, and clients that ask it for everything that it promises.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_channel::Sender;
use mini::net::{TcpListener, TcpStream};
use mini::runtime::Handle;
use mini::task::yield_now;
use mini::time::timeout;

use super::client::{Client, MISDEEDS, misbehave};
use super::server::{Limits, Server};
use super::{BLOCKING_THREADS, schedulers};

/// Larger than what the buffers of two sockets take.
const BIG: u64 = 8 << 20;

/// Requests, each on a connection of its own, and the status of the answer.
const CASES: [(&str, u16); 24] = [
    ("GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("HEAD /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("GET /hello.txt HTTP/1.0\r\n\r\n", 200),
    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("GET /?query HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("GET http://x/hello.txt HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("GET /%68ello%2Etxt HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ("GET /nothing.txt HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ("GET /hello.txt/ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ("GET /directory HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ("GET /../secret.txt HTTP/1.1\r\nHost: x\r\n\r\n", 403),
    ("GET /%2e%2e/secret.txt HTTP/1.1\r\nHost: x\r\n\r\n", 403),
    ("GET /directory%2F..%2f..%2Fsecret.txt HTTP/1.1\r\nHost: x\r\n\r\n", 403),
    ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /hello.txt HTTP/1.1\r\n\r\n", 400),
    ("no HTTP at all\r\n\r\n", 400),
    ("POST /hello.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", 405),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    ("GET / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n\r\n", 417),
    ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
];

/// A directory with something to serve, removed when it is dropped.
pub(crate) struct Site(PathBuf);

impl Site {
    pub(crate) fn new() -> io::Result<Site> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let site = Site(std::env::temp_dir().join(format!("mini-http-{}-{number}", std::process::id())));
        std::fs::create_dir_all(site.root().join("directory"))?;
        std::fs::write(site.0.join("secret.txt"), "not below the root")?;
        std::fs::write(site.root().join("hello.txt"), "Hello, world!\n")?;
        std::fs::write(site.root().join("index.html"), "<title>It works</title>\n")?;
        std::fs::write(site.root().join("big.bin"), big())?;
        Ok(site)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }
}

impl AsRef<Path> for Site {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The content of `big.bin`: no two pieces of it are the same.
pub(crate) fn big() -> Vec<u8> {
    (0..BIG / 8).flat_map(u64::to_le_bytes).collect()
}

/// Checks everything, and prints what it checks.
pub(crate) async fn all() -> io::Result<()> {
    let site = Site::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("serving {} on http://{address}", site.root().display());
    let limits = Limits { header: Duration::from_millis(300), ..Limits::default() };
    let server = Server::new(site.root(), limits);
    let (stop, stopped) = async_channel::bounded(1);
    let serving = mini::spawn({
        let server = server.clone();
        async move { server.serve(listener, stopped).await }
    });
    let checks = async {
        println!("one request per connection:");
        for (request, status) in CASES {
            one(address, request, status).await?;
        }
        connections(address).await?;
        bad_clients(address).await?;
        last(address, &stop).await
    };
    timeout(Duration::from_secs(60), checks).await??;
    let cut_off = serving.await?;
    expect(cut_off == 0, "stopped; no connection was cut off")?;
    let threads = Handle::current().metrics().num_blocking_threads();
    expect(threads <= BLOCKING_THREADS, &format!("{threads} threads for blocking, {BLOCKING_THREADS} at most"))?;
    println!("  {} requests were answered", server.requests());
    schedulers::show().await
}

async fn one(server: SocketAddr, request: &str, status: u16) -> io::Result<()> {
    let mut client = Client::connect(server).await?;
    client.send(request).await?;
    let answer = client.answer_to(&request[..request.find(' ').unwrap_or(0)]).await?;
    let line = request.trim_end().replace("\r\n", " | ");
    println!("  {}  {line}", answer.status);
    expect_quietly(answer.status == status, &line)?;
    expect_quietly(answer.header("date").ends_with(" GMT"), "an answer has a date")
}

/// What happens on connections that go on.
async fn connections(server: SocketAddr) -> io::Result<()> {
    println!("several requests per connection:");
    let mut client = Client::connect(server).await?;
    let (first, second) = (client.get("/hello.txt").await?, client.get("/").await?);
    expect(first.body == b"Hello, world!\n" && second.body.starts_with(b"<title>"), "keep-alive")?;

    let get = "GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send([get, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", get].concat()).await?;
    let statuses = [client.answer().await?.status, client.answer().await?.status, client.answer().await?.status];
    expect(statuses == [200, 404, 200], "pipelining: answers come in order")?;

    for byte in get.as_bytes() {
        client.send([*byte]).await?;
    }
    expect(client.answer().await?.status == 200, "a request that comes byte by byte")?;

    let chunks =
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4;ext=1\r\nbody\r\n0\r\nTrailer: x\r\n\r\n";
    client.send([chunks, get].concat()).await?;
    let statuses = [client.answer().await?.status, client.answer().await?.status];
    expect(statuses == [405, 200], "the body of a refused request is received and forgotten")?;

    expect(client.get("/big.bin").await?.body == big(), "a large file, in pieces")?;

    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await?;
    expect(client.answer().await?.header("connection") == "keep-alive", "HTTP/1.0 with keep-alive")?;
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    expect(client.answer().await?.header("connection") == "close", "the client asks for a close")?;
    client.closed().await
}

/// Clients that don't behave harm only themselves.
async fn bad_clients(server: SocketAddr) -> io::Result<()> {
    println!("clients that don't behave:");
    let mut slow = Client::connect(server).await?;
    slow.send("GET /hello.txt HT").await?;
    let never_reads = Client::connect(server).await?;
    never_reads.send("GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let others: Vec<_> = (0..MISDEEDS * 10).map(|way| mini::spawn(misbehave(server, way, "/big.bin"))).collect();

    let mut good = Client::connect(server).await?;
    for _ in 0..100 {
        expect_quietly(good.get("/hello.txt").await?.status == 200, "a good client is served at the same time")?;
    }
    expect(true, "a good client is served at the same time")?;
    let answer = slow.answer().await?;
    expect(answer.status == 408 && answer.header("connection") == "close", "a slow one gets 408, and is closed")?;
    for other in others {
        let _ = other.await?; // whether it was told what it did wrong, or cut off
    }
    expect(good.get("/hello.txt").await?.status == 200, "and the server has survived all others")
}

/// A request in flight when the server stops.
async fn last(server: SocketAddr, stop: &Sender<Infallible>) -> io::Result<()> {
    println!("the end:");
    let mut idle = Client::connect(server).await?;
    idle.get("/hello.txt").await?;
    let mut busy = Client::connect(server).await?;
    busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /hello.txt HTTP/1.1\r\n").await?;
    busy.answer().await?; // the second request has been begun now
    stop.close();
    while TcpStream::connect(server).await.is_ok() {
        yield_now().await;
    }
    expect(true, "new clients are refused")?;
    idle.closed().await?;
    expect(true, "idle connections are closed")?;
    busy.send("Host: x\r\n\r\n").await?;
    let answer = busy.answer().await?;
    expect(answer.status == 200 && answer.header("connection") == "close", "the request in flight is answered")?;
    busy.closed().await
}

fn expect(is_so: bool, what: &str) -> io::Result<()> {
    expect_quietly(is_so, what)?;
    println!("  {what}");
    Ok(())
}

fn expect_quietly(is_so: bool, what: &str) -> io::Result<()> {
    if is_so { Ok(()) } else { Err(io::Error::other(format!("this is not so: {what}"))) }
}
