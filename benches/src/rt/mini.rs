//! mini as an [`Rt`].

use std::future::Future;
use std::io;
use std::net;
use std::time::Duration;

use mini::net::TcpStream;
use mini::runtime::{Builder, Runtime};

use super::{Flavour, Rt, Stream, WORKERS};

pub(crate) struct Mini(Runtime);

impl Rt for Mini {
    type Stream = TcpStream;

    fn start(flavour: Flavour) -> Self {
        let builder = match flavour {
            Flavour::CurrentThread => Builder::new_current_thread(),
            Flavour::MultiThread => Builder::new_multi_thread().worker_threads(WORKERS),
        };
        Self(builder.build().expect("mini starts"))
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
        let handle = mini::spawn(future);
        async move { handle.await.expect("the task ends") }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        mini::task::yield_now()
    }

    async fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> bool {
        mini::time::timeout(limit, future).await.is_ok()
    }
}

impl Stream for TcpStream {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        TcpStream::from_std(stream)
    }

    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        TcpStream::read(self, buf)
    }

    fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> impl Future<Output = io::Result<()>> + Send + 'a {
        TcpStream::write_all(self, buf)
    }
}
