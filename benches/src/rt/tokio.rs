//! tokio as an [`Rt`].

use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, Runtime};

use super::{Flavour, Listener, Rt, Stream, Udp};

pub(crate) struct Tokio(Runtime);

impl Rt for Tokio {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Udp = UdpSocket;

    fn start(flavour: Flavour) -> io::Result<Self> {
        let mut builder = match flavour {
            Flavour::CurrentThread | Flavour::PerCore => Builder::new_current_thread(),
            Flavour::MultiThread(_) => Builder::new_multi_thread(),
        };
        if let Flavour::MultiThread(workers) = flavour {
            builder.worker_threads(workers);
        }
        builder.enable_all().build().map(Self)
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.block_on(future)
    }

    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = tokio::spawn(future);
        async move { handle.await.expect("the task ends") }
    }

    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(future));
    }

    async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        tokio::task::spawn_blocking(job).await.expect("the job ends")
    }

    fn read_file(path: &Path) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        tokio::fs::read(path)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    async fn sleep(time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> bool {
        tokio::time::timeout(limit, future).await.is_ok()
    }
}

impl Stream for TcpStream {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        TcpStream::from_std(stream)
    }

    async fn connect(addr: SocketAddr) -> io::Result<Self> {
        TcpStream::connect(addr).await
    }

    async fn read(&mut self, mut buf: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        (AsyncReadExt::read(self, &mut buf).await, buf)
    }

    async fn write_all(&mut self, buf: Vec<u8>, length: usize) -> (io::Result<()>, Vec<u8>) {
        (AsyncWriteExt::write_all(self, &buf[..length]).await, buf)
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
