//! smol as two [`Rt`]s, since its executors are two types.
//!
//! [`SmolLocal`] drives a `LocalExecutor` from `block_on`; [`SmolShared`] is laid out as smol's global executor is: a
//! static `Executor`, threads that run it for ever, and a `block_on` that runs only its own future.

use std::future::Future;
use std::io;
use std::net;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::{Async, Executor, LocalExecutor, Timer, future};

use super::{Flavour, Rt, Stream, WORKERS};

thread_local! {
    // Leaked: `spawn` and `run` want it for longer than a `with`.
    static LOCAL: &'static LocalExecutor<'static> = Box::leak(Box::new(LocalExecutor::new()));
}

static SHARED: Executor<'static> = Executor::new();
static THREADS: Once = Once::new();

pub(crate) struct SmolLocal;

impl Rt for SmolLocal {
    type Stream = Async<net::TcpStream>;

    fn start(flavour: Flavour) -> Self {
        assert_eq!(flavour, Flavour::CurrentThread);
        Self
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send,
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

    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }

    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        timeout(limit, future)
    }
}

pub(crate) struct SmolShared;

impl Rt for SmolShared {
    type Stream = Async<net::TcpStream>;

    fn start(flavour: Flavour) -> Self {
        assert_eq!(flavour, Flavour::MultiThread);
        THREADS.call_once(|| {
            for _ in 0..WORKERS {
                thread::spawn(|| smol::block_on(SHARED.run(future::pending::<()>())));
            }
        });
        Self
    }

    fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send,
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

    fn yield_now() -> impl Future<Output = ()> + Send {
        future::yield_now()
    }

    fn timeout<F: Future<Output = ()> + Send>(limit: Duration, future: F) -> impl Future<Output = bool> + Send {
        timeout(limit, future)
    }
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

    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + Send + 'a {
        AsyncReadExt::read(self, buf)
    }

    fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> impl Future<Output = io::Result<()>> + Send + 'a {
        AsyncWriteExt::write_all(self, buf)
    }
}
