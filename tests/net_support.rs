//! What the socket tests share: connected pairs, bytes that can be checked, paths that go away, a count of open files.
//!
//! Called by the files in `tests/` that open sockets. Every address is on the loopback, every port is one that was
//! free.
//!
//! Rejected: random bytes from a crate (a fixed sequence fails the same way twice).

use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use mini::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
#[cfg(feature = "sim")]
use mini::sim::Sim;

use crate::on_each_flavour;

/// Where everything here binds to: the loopback, any free port.
pub const ANY_PORT: &str = "127.0.0.1:0";

/// Runs `body` on each flavour, once as the future of `block_on` and once as a task, within the limit of the tests.
pub fn in_each_runtime<F>(body: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    on_each_flavour(move |builder| {
        let runtime = builder.build().expect("a runtime");
        runtime.block_on(body());
        runtime.block_on(runtime.spawn(body())).expect("a task that ends well");
    });
}

/// As [`in_each_runtime`], and in simulations, whose network has to be as the system's.
///
/// # Panics
///
/// If a simulation fails.
#[cfg(feature = "sim")]
pub fn in_each_world<F>(body: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for seed in 1..=2 {
        let end = Sim::new(seed).run(async {
            mini::sim::current().rough(false); // the bodies count on whole reads and writes
            body().await;
        });
        end.unwrap_or_else(|failure| panic!("{failure}"));
    }
    in_each_runtime(body);
}

/// Two ends of one TCP connection: the connecting one, and the accepted one.
///
/// # Panics
///
/// If there is no loopback.
pub async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(ANY_PORT).await.expect("a free port");
    connected_to(&listener).await
}

/// A new connection to `listener`: the connecting end, and the accepted one.
///
/// # Panics
///
/// If the listener is not a working one, or others connect to it too.
pub async fn connected_to(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let addr = listener.local_addr().expect("bound");
    let client = TcpStream::connect(addr).await.expect("somebody listens");
    let (server, from) = listener.accept().await.expect("a connection");
    assert_eq!(from, client.local_addr().expect("connected"), "somebody else has connected");
    (client, server)
}

/// A listener whose queue has no room, and the connections in it. It leaves other connections unanswered, so that they
/// have to wait.
///
/// # Panics
///
/// If there is no loopback, or the queue has no end.
pub async fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(ANY_PORT.parse().expect("an address")).expect("a free port");
    let listener = socket.listen(0).expect("a listener");
    let addr = listener.local_addr().expect("bound");
    let mut in_queue = Vec::new();
    loop {
        let mut connect = pin!(TcpStream::connect(addr));
        match connect.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(stream) => in_queue.push(stream.expect("a connection")),
            Poll::Pending => return (listener, in_queue),
        }
        assert!(in_queue.len() < 100, "the queue has no end");
    }
}

/// As [`tcp_pair`], with buffers so small that a writer soon has to wait.
///
/// # Panics
///
/// As [`tcp_pair`].
pub async fn narrow_tcp_pair() -> (TcpStream, TcpStream) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 << 10).expect("an option");
    socket.bind(ANY_PORT.parse().expect("an address")).expect("a free port");
    let listener = socket.listen(16).expect("a listener");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(16 << 10).expect("an option");
    let client = socket.connect(listener.local_addr().expect("bound")).await.expect("a connection");
    let (server, _) = listener.accept().await.expect("a connection");
    (client, server)
}

/// Two UDP sockets, each connected to the other.
///
/// # Panics
///
/// If there is no loopback.
pub async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (udp().await, udp().await);
    a.connect(b.local_addr().expect("bound")).await.expect("a route");
    b.connect(a.local_addr().expect("bound")).await.expect("a route");
    (a, b)
}

/// A UDP socket.
///
/// # Panics
///
/// If there is no loopback.
pub async fn udp() -> UdpSocket {
    UdpSocket::bind(ANY_PORT).await.expect("a free port")
}

/// A socket that keeps a TCP port and does not listen: connecting to it is refused for as long as it lives.
///
/// # Panics
///
/// If there is no loopback.
pub fn refusing_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(ANY_PORT.parse().expect("an address")).expect("a free port");
    let addr = socket.local_addr().expect("bound");
    (socket, addr)
}

/// An endless sequence of words that depends on where it started, and the sum of what was taken from it or shown to it.
#[derive(Clone, Debug)]
pub struct Words {
    state: u64,
    sum: u64,
}

impl Words {
    /// The sequence number `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(2).wrapping_add(1), sum: 0xcbf2_9ce4_8422_2325 }
    }

    /// The next `len` bytes, which must be whole words.
    ///
    /// # Panics
    ///
    /// If `len` is not a multiple of 8.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }

    /// As [`Words::take`], into `bytes`.
    ///
    /// # Panics
    ///
    /// As [`Words::take`].
    pub fn fill(&mut self, bytes: &mut [u8]) {
        assert_eq!(bytes.len() % 8, 0);
        for word in bytes.chunks_exact_mut(8) {
            // Knuth's MMIX generator: each value follows from the one before, so a lost or doubled block shows.
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&self.state.to_ne_bytes());
        }
        self.add(bytes);
    }

    /// Adds bytes, whole words again, to the sum.
    pub fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks_exact(8) {
            let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
            // FNV-1a, a word at a time.
            self.sum = (self.sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The sum, which depends on the order too.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

/// A path that nothing else uses; a file there is removed with it.
#[derive(Debug)]
pub struct ScratchPath(PathBuf);

impl ScratchPath {
    /// A path with `name` in it.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("mini-{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(unique);
        let _ = fs::remove_file(&path);
        Self(path)
    }
}

impl AsRef<Path> for ScratchPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchPath {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A new fifo.
///
/// # Panics
///
/// If it can't be made.
pub fn fifo() -> ScratchPath {
    let path = ScratchPath::new("fifo");
    let made = Command::new("mkfifo").arg(path.as_ref()).status().expect("a program that makes fifos");
    assert!(made.success(), "{made}");
    path
}

/// An empty directory that nothing else uses; it is removed with all that is in it.
#[derive(Debug)]
pub struct ScratchDir(ScratchPath);

impl ScratchDir {
    /// A directory with `name` in its own.
    ///
    /// # Panics
    ///
    /// If it can't be made.
    pub fn new(name: &str) -> Self {
        let path = ScratchPath::new(name);
        fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.as_ref()
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path());
    }
}

/// How many files this process has open.
///
/// # Panics
///
/// If the system does not tell.
pub fn open_files() -> usize {
    // The directory that is read here is among them, each time. The file by which the monitor of a runtime looks at a
    // thread's state does not count.
    let counts = |path: PathBuf| match fs::read_link(path) {
        Ok(file) => !(file.starts_with("/proc") && file.ends_with("stat")),
        Err(error) => error.kind() != io::ErrorKind::NotFound, // where these are no links
    };
    fs::read_dir("/dev/fd").expect("a list of open files").filter(|file| counts(file.as_ref().unwrap().path())).count()
}

/// Calls `on_wait` whenever `future` has to wait.
pub async fn watched<F: Future>(future: F, mut on_wait: impl FnMut()) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx: &mut Context<'_>| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            on_wait();
        }
        polled
    })
    .await
}

/// What kind of error it is, which it must be.
///
/// # Panics
///
/// If it is none.
pub fn kind_of<T>(result: io::Result<T>) -> io::ErrorKind {
    match result {
        Ok(_) => panic!("this should have failed"),
        Err(e) => e.kind(),
    }
}

/// The output of a future that was polled and must be done.
///
/// # Panics
///
/// If it is not.
pub fn now<T>(polled: Poll<T>) -> T {
    match polled {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("this should not have to wait"),
    }
}

/// The number of the system's error: of `error` itself, or of its source.
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    let source = || std::error::Error::source(error)?.downcast_ref::<io::Error>()?.raw_os_error();
    error.raw_os_error().or_else(source)
}
