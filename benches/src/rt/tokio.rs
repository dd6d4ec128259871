//! tokio as an [`Rt`].

use std::future::Future;
use std::io;
use std::net;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::{Flavour, Rt, Stream, WORKERS};

pub(crate) struct Tokio(Runtime);

impl Rt for Tokio {
    type Stream = TcpStream;

    fn start(flavour: Flavour) -> Self {
        let mut builder = match flavour {
            Flavour::CurrentThread => Builder::new_current_thread(),
            Flavour::MultiThread => Builder::new_multi_thread(),
        };
        if flavour == Flavour::MultiThread {
            builder.worker_threads(WORKERS);
        }
        Self(builder.enable_all().build().expect("tokio starts"))
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send,
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

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    async fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> bool {
        tokio::time::timeout(limit, future).await.is_ok()
    }
}

impl Stream for TcpStream {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        TcpStream::from_std(stream)
    }

    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        AsyncReadExt::read(self, buf)
    }

    fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> impl Future<Output = io::Result<()>> + Send + 'a {
        AsyncWriteExt::write_all(self, buf)
    }
}
