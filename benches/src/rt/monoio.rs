//! monoio as an [`Rt`], on each of its drivers. One thread, so `current_thread` rows only.
//!
//! Its futures are not `Send` and the workloads' must be: [`OneThread`] bridges that. Its feature `sync` is on, for
//! wakes from other threads and for blocking jobs. It has no `yield_now`; smol's works on any
//! runtime, but monoio runs a task that wakes itself again before all others: its `yield` row goes round no queue.
//!
//! Rejected: workloads without `Send`, which tokio's `spawn` does not take; a macro that writes each workload twice;
//! a run-time check of the thread at every poll, which only monoio would pay for.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::{self, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use monoio::blocking::DefaultThreadPool;
use monoio::buf::IoBuf;
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::udp::UdpSocket;
use monoio::net::{TcpListener, TcpStream};
use monoio::time::TimeDriver;
use monoio::{Buildable, IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder};

use super::{Flavour, Listener, Rt, Stream, Udp};

/// Something of monoio that claims to be `Send`.
struct OneThread<T>(T);

// SAFETY: no value of this type reaches a second thread. The type is private and made only by the functions of the
// `Rt` and `Stream` impls below, which panic unless they run inside a monoio runtime, so on that runtime's thread. The
// futures and streams that hold one are awaited where they were made or handed to `Rt::spawn` and `Rt::block_on` of
// the same runtime, which poll and drop them on its one thread; the outputs of both, which a workload passes on, are
// `Send` without this type's help except for a stream that goes from one task to the next on the same thread.
unsafe impl<T> Send for OneThread<T> {}

impl<F: Future> Future for OneThread<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the field is pinned whenever the whole is: this type has no `Drop`, is `Unpin` only if the field is,
        // and nothing else hands the field out.
        let future = unsafe { self.map_unchecked_mut(|whole| &mut whole.0) };
        future.poll(cx)
    }
}

/// A driver of monoio.
pub(crate) trait Driver: monoio::Driver + Buildable + Sized + 'static {
    /// Whether sockets are to be left in blocking mode: io_uring waits by itself.
    const BLOCKING_SOCKETS: bool;

    fn runtime() -> io::Result<Runtime<TimeDriver<Self>>>;
}

impl Driver for LegacyDriver {
    const BLOCKING_SOCKETS: bool = false;

    fn runtime() -> io::Result<Runtime<TimeDriver<Self>>> {
        RuntimeBuilder::<Self>::new().attach_thread_pool(pool()).enable_timer().build()
    }
}

impl Driver for IoUringDriver {
    const BLOCKING_SOCKETS: bool = true;

    fn runtime() -> io::Result<Runtime<TimeDriver<Self>>> {
        RuntimeBuilder::<Self>::new().attach_thread_pool(pool()).enable_timer().build()
    }
}

fn pool() -> Box<DefaultThreadPool> {
    Box::new(DefaultThreadPool::new(4))
}

pub(crate) struct Monoio<D: 'static>(RefCell<Runtime<TimeDriver<D>>>);

impl<D: Driver> Rt for Monoio<D> {
    type Stream = MonoioStream<D>;
    type Listener = MonoioListener<D>;
    type Udp = MonoioUdp<D>;

    fn start(flavour: Flavour) -> io::Result<Self> {
        assert!(matches!(flavour, Flavour::CurrentThread | Flavour::PerCore));
        Ok(Self(RefCell::new(D::runtime()?)))
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.borrow_mut().block_on(future)
    }

    fn spawn<F>(future: F) -> impl Future<Output = F::Output> + Send + 'static
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        OneThread(monoio::spawn(future))
    }

    fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
        drop(monoio::spawn(future));
    }

    async fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        OneThread(monoio::spawn_blocking(job)).await.unwrap_or_else(|error| panic!("the job ends: {error:?}"))
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        smol::future::yield_now()
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        OneThread(monoio::time::sleep(time))
    }

    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        OneThread(async move { monoio::time::timeout(limit, future).await.is_ok() })
    }
}

pub(crate) struct MonoioStream<D> {
    stream: OneThread<TcpStream>,
    driver: PhantomData<fn() -> D>,
}

impl<D: Driver> Stream for MonoioStream<D> {
    fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(!D::BLOCKING_SOCKETS)?;
        Ok(Self { stream: OneThread(TcpStream::from_std(stream)?), driver: PhantomData })
    }

    fn connect(addr: SocketAddr) -> impl Future<Output = io::Result<Self>> + Send {
        OneThread(async move {
            let stream = TcpStream::connect_addr(addr).await?;
            Ok(Self { stream: OneThread(stream), driver: PhantomData })
        })
    }

    fn read(&mut self, buf: Vec<u8>) -> impl Future<Output = (io::Result<usize>, Vec<u8>)> + Send {
        OneThread(self.stream.0.read(buf))
    }

    fn write_all(&mut self, buf: Vec<u8>, length: usize) -> impl Future<Output = (io::Result<()>, Vec<u8>)> + Send {
        let stream = &mut self.stream.0;
        OneThread(async move {
            let (result, slice) = stream.write_all(buf.slice(..length)).await;
            (result.map(drop), slice.into_inner())
        })
    }
}

pub(crate) struct MonoioListener<D> {
    listener: OneThread<TcpListener>,
    driver: PhantomData<fn() -> D>,
}

impl<D: Driver> Listener for MonoioListener<D> {
    type Stream = MonoioStream<D>;

    fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(!D::BLOCKING_SOCKETS)?;
        Ok(Self { listener: OneThread(TcpListener::from_std(listener)?), driver: PhantomData })
    }

    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send {
        let listener = &self.listener.0;
        OneThread(async move {
            let (stream, _) = listener.accept().await?;
            Ok(MonoioStream { stream: OneThread(stream), driver: PhantomData })
        })
    }
}

pub(crate) struct MonoioUdp<D> {
    socket: OneThread<UdpSocket>,
    driver: PhantomData<fn() -> D>,
}

impl<D: Driver> Udp for MonoioUdp<D> {
    fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(!D::BLOCKING_SOCKETS)?;
        Ok(Self { socket: OneThread(UdpSocket::from_std(socket)?), driver: PhantomData })
    }

    fn send_to(&mut self, buf: Vec<u8>, addr: SocketAddr) -> impl Future<Output = (io::Result<usize>, Vec<u8>)> + Send {
        OneThread(self.socket.0.send_to(buf, addr))
    }
}
