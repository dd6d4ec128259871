//! The functions that start tasks, and those a task calls about itself.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mini_kernel::scheduler::current;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::Origin;

use super::large::boxed;
use super::span::{carried, carried_job};
use super::{Id, JoinHandle};

/// Starts a task on the current runtime and returns a handle to its output.
///
/// The task begins to run soon, whether or not the handle is awaited; it does not run before this returns. Dropping the
/// handle detaches the task.
///
/// A panic ends only this task. Its future is dropped while the panic unwinds, so locks that it holds are poisoned, and
/// the handle gets the payload. If a destructor then panics, that panic is only printed.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(async { "done" });
///     assert_eq!(task.await.unwrap(), "done");
/// });
/// ```
///
/// # Panics
///
/// Outside of a runtime, at the caller's line; in a child of [fork(2)](crate::runtime::Runtime#fork).
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    boxed!(Box::pin, future: F => spawn_from(future, Location::caller(), "mini::spawn"))
}

/// [`spawn`] for callers that know the task's origin; `call` is what the user has called.
#[inline]
#[track_caller]
pub(super) fn spawn_from<F>(future: F, origin: impl Origin, call: &str) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current::with_shared(|shared| spawn_on(shared, future, origin)) {
        Some(handle) => handle,
        None => current::missing(call),
    }
}

/// Starts a task of that runtime.
#[inline]
pub(crate) fn spawn_on<F>(shared: &Arc<Shared>, future: F, origin: impl Origin) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    shared.spawn(carried(future), origin)
}

/// Starts a task that never leaves this thread, so its future need not be `Send`.
///
/// On a `current_thread` runtime the task lives as long as the runtime, which must be driven (and dropped) on this
/// thread while the task is alive. A thread that has [entered](crate::runtime::Runtime::enter) such a runtime may spawn
/// too, while no thread drives it; the task begins to run in the next `block_on` or `turn`.
///
/// On a worker of a multi-threaded runtime the task lives until that worker ends. On a thread in `block_on` of a
/// multi-threaded runtime it ends with the call.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// mini::block_on(async {
///     let count = Rc::new(Cell::new(0));
///     let inside = count.clone();
///     mini::spawn_local(async move { inside.set(1) }).await.unwrap();
///     assert_eq!(count.get(), 1);
/// });
/// ```
///
/// # Panics
///
/// Panics outside a runtime, at the caller's line. Panics on a thread that has only entered a runtime, if that runtime
/// is multi-threaded, or if another thread drives it or has local tasks on it.
///
/// Panics in a `block_on` of a `current_thread` runtime that another thread runs, inside the closure given to
/// [`block_in_place`](crate::task::block_in_place), and in a job of [`spawn_blocking`].
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    boxed!(Box::pin, future: F => spawn_local_from(future, Location::caller(), "mini::spawn_local"))
}

/// [`spawn_local`] for callers that know the task's origin; `call` is what the user has called.
#[track_caller]
pub(crate) fn spawn_local_from<F>(future: F, origin: impl Origin, call: &str) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    mini_kernel::scheduler::spawn_local(carried(future), origin, call)
}

/// Runs `job` on a thread of the blocking pool, where it may block, and returns a handle to its output.
///
/// Use it for file I/O, name resolution, locks that are held for long, and computations of more than a few hundred
/// microseconds. An abort takes effect only before the job has started, and only when a thread takes the job: until
/// then the handle waits.
///
/// A runtime that is dropped still runs its queued jobs, within its [grace](crate::runtime::Runtime#shutdown).
///
/// If the system cannot start a thread, the job waits for one that exists. If no thread exists, the handle gets an
/// error that counts as cancelled and gives the reason.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let text = mini::spawn_blocking(|| std::fs::read_to_string("Cargo.toml")).await.unwrap();
///     assert!(text.is_ok());
/// });
/// ```
///
/// # Panics
///
/// Outside of a runtime, at the caller's line; in a child of [fork(2)](crate::runtime::Runtime#fork).
#[track_caller]
pub fn spawn_blocking<F, T>(job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = current::shared("mini::spawn_blocking");
    boxed!(Box::new, job: F => spawn_blocking_on(&shared, job, Location::caller()))
}

/// Runs a job on a thread of that runtime.
#[inline]
pub(crate) fn spawn_blocking_on<F, T>(shared: &Arc<Shared>, job: F, origin: impl Origin) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    shared.spawn_blocking(carried_job(job), origin)
}

/// Yields: other tasks that are ready run before this task continues.
///
/// A task that has run for 100 µs without a wait gets at least a fifth of the time, though other tasks are ready all
/// the time. So it may continue before all of them have run, if they take longer than a millisecond together. To wait
/// for what another task does, use a channel or its handle, not a number of yields.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(async {});
///     mini::task::yield_now().await;
///     assert!(task.is_finished());
/// });
/// ```
///
/// # Cancel safety
///
/// Safe: there is nothing to lose.
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// Future of [`yield_now`]: resolves to `()` at its second poll.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        mini_kernel::task::yield_to_others(cx.waker());
        Poll::Pending
    }
}

/// Returns the id of the calling task, whose future is polled or dropped, or whose output the runtime or its handle
/// drops.
///
/// # Examples
///
/// See [`JoinHandle::id`].
///
/// # Panics
///
/// Outside of a task, at the caller's line. The future given to `block_on` is not a task.
#[track_caller]
pub fn id() -> Id {
    match try_id() {
        Some(id) => id,
        None => panic!("mini::task::id: this is not inside a task (the future given to block_on is none)"),
    }
}

/// Returns the id of the calling task, or `None` outside a task.
///
/// # Examples
///
/// ```
/// assert_eq!(mini::task::try_id(), None);
/// ```
pub fn try_id() -> Option<Id> {
    current::task()
}
