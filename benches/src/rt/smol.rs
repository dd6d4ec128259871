//! smol as two [`Rt`]s, since its executors are two types.
//!
//! [`SmolLocal`] drives a `LocalExecutor` from `block_on`; [`SmolShared`] is laid out as smol's global executor is: a
//! static `Executor`, threads that run it, and a `block_on` that runs only its own future.

use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::{Async, Executor, LocalExecutor, Timer, future};

use super::{Flavour, Listener, Rt, Stream, Udp};

thread_local! {
    // Leaked: `spawn` and `run` want it for longer than a `with`.
    static LOCAL: &'static LocalExecutor<'static> = Box::leak(Box::new(LocalExecutor::new()));
}

static SHARED: Executor<'static> = Executor::new();

pub(crate) struct SmolLocal;

impl Rt for SmolLocal {
    type Stream = Async<net::TcpStream>;
    type Listener = Async<net::TcpListener>;
    type Udp = Async<net::UdpSocket>;

    fn start(flavour: Flavour) -> io::Result<Self> {
        assert!(matches!(flavour, Flavour::CurrentThread | Flavour::PerCore));
        Ok(Self)
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let executor = LOCAL.with(|executor| *executor);
        smol::block_on(executor.run(future))
    }

    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        LOCAL.with(|executor| *executor).spawn(future)
    }

    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
        LOCAL.with(|executor| *executor).spawn(future).detach();
    }

    async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        smol::unblock(job).await
    }

    fn read_file(path: &Path) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        smol::fs::read(path)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }

    async fn sleep(time: Duration) {
        Timer::after(time).await;
    }

    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        timeout(limit, future)
    }
}

pub(crate) struct SmolShared {
    /// Closed to let the threads end.
    stop: Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Rt for SmolShared {
    type Stream = Async<net::TcpStream>;
    type Listener = Async<net::TcpListener>;
    type Udp = Async<net::UdpSocket>;

    fn start(flavour: Flavour) -> io::Result<Self> {
        let Flavour::MultiThread(workers) = flavour else { panic!("the shared executor has workers") };
        let (stop, stopped) = async_channel::bounded(1);
        let threads = (0..workers).map(|_| {
            let stopped = stopped.clone();
            thread::spawn(move || work(&stopped))
        });
        let threads = threads.collect();
        Ok(Self { stop, threads })
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        smol::block_on(future)
    }

    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        SHARED.spawn(future)
    }

    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
        SHARED.spawn(future).detach();
    }

    async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        smol::unblock(job).await
    }

    fn read_file(path: &Path) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        smol::fs::read(path)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }

    async fn sleep(time: Duration) {
        Timer::after(time).await;
    }

    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        timeout(limit, future)
    }
}

impl Drop for SmolShared {
    fn drop(&mut self) {
        self.stop.close();
        for thread in self.threads.drain(..) {
            thread.join().expect("a worker ends");
        }
    }
}

/// A worker's thread: runs tasks until the channel is closed.
fn work(stopped: &Receiver<()>) {
    let closed = smol::block_on(SHARED.run(stopped.recv()));
    closed.expect_err("nobody sends");
}

/// smol has no timeout; this is how its documentation builds one.
async fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> bool {
    let ready = async {
        future.await;
        true
    };
    let late = async {
        Timer::after(limit).await;
        false
    };
    future::or(ready, late).await
}

impl Stream for Async<net::TcpStream> {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        Async::try_from(stream)
    }

    async fn connect(addr: SocketAddr) -> io::Result<Self> {
        Async::<net::TcpStream>::connect(addr).await
    }

    async fn read(&mut self, mut buf: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        (AsyncReadExt::read(self, &mut buf).await, buf)
    }

    async fn write_all(&mut self, buf: Vec<u8>, length: usize) -> (io::Result<()>, Vec<u8>) {
        (AsyncWriteExt::write_all(self, &buf[..length]).await, buf)
    }
}

impl Listener for Async<net::TcpListener> {
    type Stream = Async<net::TcpStream>;

    fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        Async::try_from(listener)
    }

    async fn accept(&self) -> io::Result<Self::Stream> {
        Ok(Async::<net::TcpListener>::accept(self).await?.0)
    }
}

impl Udp for Async<net::UdpSocket> {
    fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        Async::try_from(socket)
    }

    async fn send_to(&mut self, buf: Vec<u8>, addr: SocketAddr) -> (io::Result<usize>, Vec<u8>) {
        (Async::<net::UdpSocket>::send_to(self, &buf, addr).await, buf)
    }
}
