//! mini as an [`Rt`].

use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, UdpSocket};
use mini::runtime::{Builder, Runtime};

use super::{Flavour, Listener, Rt, Stream, Udp};

pub(crate) enum Mini {
    Runtime(Runtime),
    /// A `PerCore` is built for each `block_on`: it runs once.
    PerCore,
}

impl Rt for Mini {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Udp = UdpSocket;

    fn start(flavour: Flavour) -> io::Result<Self> {
        let builder = match flavour {
            Flavour::CurrentThread => Builder::new_current_thread(),
            Flavour::MultiThread(workers) => Builder::new_multi_thread().worker_threads(workers).clone(),
            Flavour::PerCore => return Ok(Self::PerCore),
        };
        builder.build().map(Self::Runtime)
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self {
            Self::Runtime(runtime) => runtime.block_on(future),
            Self::PerCore => run_on_one_core(future),
        }
    }

    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = mini::spawn(future);
        async move { handle.await.expect("the task ends") }
    }

    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
        drop(mini::spawn(future));
    }

    async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        mini::spawn_blocking(job).await.expect("the job ends")
    }

    fn read_file(path: &Path) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        mini::fs::read(path)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        mini::task::yield_now()
    }

    async fn sleep(time: Duration) {
        mini::time::sleep(time).await;
    }

    async fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> bool {
        mini::time::timeout(limit, future).await.is_ok()
    }
}

fn run_on_one_core<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let cores = Builder::new_per_core().worker_threads(1).build().expect("the system lets it run");
    let future = Mutex::new(Some(future));
    let take = |_| future.lock().expect("nobody panics").take().expect("there is one core");
    cores.run(take).expect("its thread starts").remove(0)
}

impl Stream for TcpStream {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        TcpStream::from_std(stream)
    }

    async fn connect(addr: SocketAddr) -> io::Result<Self> {
        TcpStream::connect(addr).await
    }

    async fn read(&mut self, mut buf: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        (TcpStream::read(self, &mut buf).await, buf)
    }

    async fn write_all(&mut self, buf: Vec<u8>, length: usize) -> (io::Result<()>, Vec<u8>) {
        (TcpStream::write_all(self, &buf[..length]).await, buf)
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        TcpListener::from_std(listener)
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        Ok(TcpListener::accept(self).await?.0)
    }
}

impl Udp for UdpSocket {
    fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        UdpSocket::from_std(socket)
    }

    async fn send_to(&mut self, buf: Vec<u8>, addr: SocketAddr) -> (io::Result<usize>, Vec<u8>) {
        (UdpSocket::send_to(self, &buf, addr).await, buf)
    }
}
