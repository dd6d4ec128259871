//! An executor for hyper's tasks, and a timer. Requires the feature `hyper`.
//!
//! For I/O, give hyper a [`TcpStream`](crate::net::TcpStream) or a [`UnixStream`](crate::net::UnixStream) as it is:
//! both implement `hyper::rt::{Read, Write}`.
//!
//! # Examples
//!
//! A server, with hyper's features `http2` and `server` (HTTP/1 needs no executor):
//!
//! ```ignore
//! let listener = mini::net::TcpListener::bind("127.0.0.1:8080").await?;
//! loop {
//!     let (stream, _) = mini::net::next_connection(&listener).await?;
//!     let mut http = hyper::server::conn::http2::Builder::new(mini::hyper::Executor::new());
//!     let http = http.timer(mini::hyper::Timer::new());
//!     mini::spawn(http.serve_connection(stream, service_fn(hello)));
//! }
//! ```

// Rejected: hyper's `Sleep` on mini-time's, without the wrapper here: that crate would depend on hyper for one empty
// impl.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::runtime::Handle;
use crate::time;

/// Runs hyper's tasks as tasks of a runtime.
///
/// # Examples
///
/// ```
/// use hyper::rt::Executor as _;
///
/// mini::block_on(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     mini::hyper::Executor::new().execute(async move { sender.send(7).unwrap() });
///     mini::task::yield_now().await;
///     assert_eq!(receiver.recv().unwrap(), 7);
/// });
/// ```
///
/// # Panics
///
/// `execute` panics outside of a runtime, if the executor has no runtime of its own ([`on`](Executor::on)).
#[derive(Clone, Debug, Default)]
pub struct Executor {
    handle: Option<Handle>,
}

impl Executor {
    /// Spawns onto the runtime that is current when hyper needs a task, as [`mini::spawn`](crate::spawn) does.
    ///
    /// # Examples
    ///
    /// See [`Executor`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns onto one runtime, from wherever hyper runs.
    ///
    /// Once that has shut down, tasks are dropped instead of run.
    ///
    /// # Examples
    ///
    /// ```
    /// use hyper::rt::Executor as _;
    ///
    /// let runtime = mini::runtime::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let executor = mini::hyper::Executor::on(runtime.handle().clone());
    /// executor.execute(async move { sender.send(7).unwrap() }); // this thread is in no runtime
    /// assert_eq!(receiver.recv().unwrap(), 7);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on(handle: Handle) -> Self {
        Self { handle: Some(handle) }
    }
}

impl<F> ::hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        drop(match &self.handle {
            Some(handle) => handle.spawn(future),
            None => crate::spawn(future),
        });
    }
}

/// Runs hyper's tasks on the thread that asks for them, so that services and bodies need not be `Send`.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use hyper::rt::Executor as _;
///
/// mini::block_on(async {
///     let count = Rc::new(Cell::new(0));
///     let inside = count.clone();
///     mini::hyper::LocalExecutor::new().execute(async move { inside.set(1) });
///     mini::task::yield_now().await;
///     assert_eq!(count.get(), 1);
/// });
/// ```
///
/// # Panics
///
/// `execute` panics where [`mini::spawn_local`](crate::spawn_local) does.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalExecutor(());

impl LocalExecutor {
    /// Creates an executor for the thread that uses it.
    ///
    /// # Examples
    ///
    /// See [`LocalExecutor`].
    pub fn new() -> Self {
        Self::default()
    }
}

impl<F> ::hyper::rt::Executor<F> for LocalExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        drop(crate::spawn_local(future));
    }
}

/// mini's clock and sleeps for hyper's time limits, which a paused clock pauses too.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use hyper::rt::Timer as _;
///
/// mini::block_on(async {
///     mini::time::pause();
///     let timer = mini::hyper::Timer::new();
///     let start = timer.now();
///     timer.sleep(Duration::from_secs(3600)).await; // takes microseconds
///     assert!(timer.now() - start >= Duration::from_secs(3600));
/// });
/// ```
///
/// # Panics
///
/// The sleeps panic in the same case as those of [`mini::time`](crate::time::Sleep): if they have to wait outside a
/// runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer(());

impl Timer {
    /// Creates a timer of the runtime that uses it.
    ///
    /// # Examples
    ///
    /// See [`Timer`].
    pub fn new() -> Self {
        Self::default()
    }
}

impl ::hyper::rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(Sleep(time::sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(Sleep(time::sleep_until(deadline.into())))
    }

    fn now(&self) -> Instant {
        time::Instant::now().into()
    }

    /// Moves the deadline, if the sleep is one of mini's: hyper does that for every request of a connection.
    fn reset(&self, sleep: &mut Pin<Box<dyn ::hyper::rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(mut sleep) => Pin::new(&mut sleep.0).reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// A sleep that hyper can know as its own.
struct Sleep(time::Sleep);

impl ::hyper::rt::Sleep for Sleep {}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
