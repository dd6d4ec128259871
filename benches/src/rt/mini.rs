//! mini as an [`Rt`].

use std::future::Future;
use std::io;
use std::net;
use std::path::Path;
use std::time::Duration;

use mini::net::TcpStream;
use mini::runtime::{Builder, Runtime};

use super::{Flavour, Rt, Stream};

pub(crate) struct Mini(Runtime);

impl Rt for Mini {
    type Stream = TcpStream;

    fn start(flavour: Flavour) -> io::Result<Self> {
        let builder = match flavour {
            Flavour::CurrentThread => Builder::new_current_thread(),
            Flavour::MultiThread(workers) => Builder::new_multi_thread().worker_threads(workers),
        };
        builder.build().map(Self)
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

impl Stream for TcpStream {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        TcpStream::from_std(stream)
    }

    async fn read(&mut self, mut buf: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        (TcpStream::read(self, &mut buf).await, buf)
    }

    async fn write_all(&mut self, buf: Vec<u8>, length: usize) -> (io::Result<()>, Vec<u8>) {
        (TcpStream::write_all(self, &buf[..length]).await, buf)
    }
}
