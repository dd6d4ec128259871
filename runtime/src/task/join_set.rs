//! A set of tasks, whose outputs come in the order in which the tasks end.
//!
//! Each task's join handle has a waker of the set (`ended.rs`), which puts the number of its place into a list when the
//! task is done, and wakes the task that waits for the set. So a completion costs the same whatever the size of the
//! set, and handles that are not done are never polled. A place is used again only after its number has been taken from
//! the list.
//!
//! Rejected: a wrapper around each future that reports its end (it runs before the output is there, so the waiting task
//! must wait once more). One channel for all outputs (nothing comes from a task that panics or is cancelled).

mod ended;
mod next;
mod spawn;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{Location, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Note, Reason, leave_note};

use super::{Id, JoinError, JoinHandle};
use ended::Ended;
use next::without_id;
pub use next::{JoinNext, JoinNextWithId};

/// A set of tasks with outputs of one type. Dropping it aborts them all.
///
/// A task may hold the set that contains it. If the task drops the set or calls [`shutdown`](JoinSet::shutdown), it
/// ends too, at its next await. If it calls [`join_next`](JoinSet::join_next) and no other task is left, it waits for
/// itself until it is aborted or the runtime ends.
///
/// # Examples
///
/// ```
/// use mini::task::JoinSet;
/// mini::block_on(async {
///     let mut set = JoinSet::new();
///     for i in 0..10 {
///         set.spawn(async move { i });
///     }
///     let mut sum = 0;
///     while let Some(output) = set.join_next().await {
///         sum += output.unwrap();
///     }
///     assert_eq!(sum, 45);
/// });
/// ```
#[must_use = "dropping a JoinSet aborts its tasks"]
pub struct JoinSet<T> {
    /// The handles, by their number; empty places are in `free`.
    handles: Vec<Option<JoinHandle<T>>>,
    free: Vec<u32>,
    /// Numbers taken out of `ended`: one look at that serves all tasks that have ended by then.
    ready: VecDeque<u32>,
    ended: Arc<Ended>,
}

impl<T> JoinSet<T> {
    /// Creates an empty set.
    ///
    /// # Examples
    ///
    /// See [`JoinSet`].
    pub fn new() -> Self {
        Self { handles: Vec::new(), free: Vec::new(), ready: VecDeque::new(), ended: Arc::default() }
    }

    /// Returns the number of tasks that have not been joined, whether they have ended or not.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::from_iter([(), ()].map(std::future::ready));
    ///     assert_eq!(set.len(), 2);
    ///     set.join_next().await.unwrap().unwrap();
    ///     assert_eq!(set.len(), 1);
    /// });
    /// ```
    pub fn len(&self) -> usize {
        self.handles.len() - self.free.len()
    }

    /// Returns `true` if all tasks have been joined.
    ///
    /// # Examples
    ///
    /// See [`JoinSet::shutdown`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks all tasks to stop. They stay in the set until they are joined.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::new();
    ///     set.spawn(std::future::pending::<()>());
    ///     set.abort_all();
    ///     assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort_all(&mut self) {
        self.handles.iter().flatten().for_each(JoinHandle::abort);
    }

    /// Detaches all tasks from the set, which is empty afterwards; the tasks keep running.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::new();
    ///     let task = set.spawn(mini::task::yield_now());
    ///     set.detach_all();
    ///     drop(set);
    ///     while !task.is_finished() {
    ///         mini::task::yield_now().await;
    ///     }
    /// });
    /// ```
    pub fn detach_all(&mut self) {
        // A task that ends from here on is put into the old list.
        let ended = std::mem::take(&mut self.ended);
        self.free.clear();
        self.ready.clear();
        drop(std::mem::take(&mut self.handles));
        ended.wake();
    }

    /// Puts an empty place to use, or a new one.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.handles.push(None);
            u32::try_from(self.handles.len() - 1).expect("fewer than 2^32 tasks in one set")
        })
    }

    /// Whether a task has ended; if not, `waiter` is woken when one does.
    fn is_any_ready(&mut self, waiter: Option<&Waker>) -> bool {
        if self.ready.is_empty() {
            self.ended.take_or_wait(&mut self.ready, waiter.cloned());
        }
        !self.ready.is_empty()
    }

    /// Takes out a task that has ended, by its number.
    fn take(&mut self, number: u32) -> Result<(Id, T), JoinError> {
        let mut handle = self.handles[number as usize].take().expect("each task ends once");
        self.free.push(number);
        match handle.poll_with(Waker::noop()) {
            Poll::Ready(output) => output.map(|output| (handle.id(), output)),
            Poll::Pending => unreachable!("it is woken when the output is in place"),
        }
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        location: &'static Location<'static>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        if self.is_empty() {
            return mini_context::poll_budget(cx, self).map(|()| None);
        }
        if !self.is_any_ready(None) && !self.is_any_ready(Some(cx.waker())) {
            leave_note(Note { reason: Reason::JoinSet(self.len() as u64), location });
            return Poll::Pending;
        }
        ready!(mini_context::poll_budget(cx, self));
        let number = self.ready.pop_front().expect("there was one");
        Poll::Ready(Some(self.take(number)))
    }
}

impl<T: 'static> JoinSet<T> {
    /// Waits for a task to end, and takes its output out of the set. `None` if the set is empty.
    ///
    /// The outputs come in the order in which the tasks end.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Duration, sleep};
    /// mini::block_on(async {
    ///     mini::time::pause();
    ///     let mut set = mini::task::JoinSet::new();
    ///     for seconds in [3, 1, 2] {
    ///         set.spawn(async move {
    ///             sleep(Duration::from_secs(seconds)).await;
    ///             seconds
    ///         });
    ///     }
    ///     assert_eq!(set.join_next().await.unwrap().unwrap(), 1);
    ///     assert_eq!(set.join_next().await.unwrap().unwrap(), 2);
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// A [`JoinError`] if that task panicked or was cancelled.
    ///
    /// # Cancel safety
    ///
    /// Safe: no output is lost.
    #[track_caller]
    pub fn join_next(&mut self) -> JoinNext<'_, T> {
        JoinNext(self.join_next_with_id())
    }

    /// Waits for the next task that ends, and returns its id too; see [`join_next`](Self::join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::new();
    ///     let seven = set.spawn(async { 7 }).id();
    ///     assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (seven, 7));
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// A [`JoinError`], which has the id too, if that task panicked or was cancelled.
    ///
    /// # Cancel safety
    ///
    /// Safe: no output is lost.
    #[track_caller]
    pub fn join_next_with_id(&mut self) -> JoinNextWithId<'_, T> {
        JoinNextWithId { set: self, location: Location::caller() }
    }

    /// Takes out the output of a task that has ended. `None` if none has.
    ///
    /// # Errors
    ///
    /// A [`JoinError`] if that task panicked or was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::new();
    ///     set.spawn(async { 1 });
    ///     assert!(set.try_join_next().is_none()); // it has not run yet
    ///     mini::task::yield_now().await;
    ///     assert_eq!(set.try_join_next().unwrap().unwrap(), 1);
    /// });
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join_next_with_id().map(without_id)
    }

    /// Returns a task that has ended, with its id; see [`try_join_next`](Self::try_join_next).
    ///
    /// # Examples
    ///
    /// See [`try_join_next`](Self::try_join_next).
    ///
    /// # Errors
    ///
    /// A [`JoinError`], which has the id too, if that task panicked or was cancelled.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.is_any_ready(None);
        let number = self.ready.pop_front()?;
        Some(self.take(number))
    }

    /// Polls for the output of a task that has ended; see [`join_next`](Self::join_next).
    ///
    /// Returns `Pending`, too, if the budget of the calling task is spent; that task is then woken. Only the waker of
    /// the last call is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// mini::block_on(async {
    ///     let mut set = mini::task::JoinSet::from_iter([std::future::ready(7)]);
    ///     assert_eq!(poll_fn(|cx| set.poll_join_next(cx)).await.unwrap().unwrap(), 7);
    ///     assert!(poll_fn(|cx| set.poll_join_next(cx)).await.is_none());
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// A [`JoinError`] if that task panicked or was cancelled.
    #[track_caller]
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_join_next_with_id(cx).map(|next| next.map(without_id))
    }

    /// Polls for a task that has ended, with its id; see [`poll_join_next`](Self::poll_join_next).
    ///
    /// # Examples
    ///
    /// See [`poll_join_next`](Self::poll_join_next).
    ///
    /// # Errors
    ///
    /// A [`JoinError`], which has the id too, if that task panicked or was cancelled.
    #[track_caller]
    pub fn poll_join_next_with_id(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.poll_next(cx, Location::caller())
    }

    /// Waits for all tasks, and returns their outputs in the order in which they ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::JoinSet;
    /// let futures = [1, 2, 3].map(std::future::ready);
    /// let mut outputs = mini::block_on(async { JoinSet::from_iter(futures).join_all().await });
    /// outputs.sort();
    /// assert_eq!(outputs, [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If a task panicked, with its payload, or was cancelled; the others are aborted then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future early aborts the remaining tasks and loses the outputs of the others.
    #[track_caller]
    pub fn join_all(mut self) -> impl Future<Output = Vec<T>> {
        let location = Location::caller();
        async move {
            let mut outputs = Vec::with_capacity(self.len());
            while let Some(output) = (JoinNextWithId { set: &mut self, location }).await {
                match output.map_err(JoinError::try_into_panic) {
                    Ok((_, output)) => outputs.push(output),
                    Err(Ok(payload)) => resume_unwind(payload),
                    Err(Err(error)) => panic!("JoinSet::join_all: {error}"),
                }
            }
            outputs
        }
    }

    /// Aborts all tasks and waits until their futures have been dropped.
    ///
    /// Blocking jobs that have started run on, and are waited for.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let held = std::sync::Arc::new(());
    ///     let inside = held.clone();
    ///     let mut set = mini::task::JoinSet::new();
    ///     set.spawn(async move {
    ///         let _inside = inside;
    ///         std::future::pending::<()>().await
    ///     });
    ///     set.shutdown().await;
    ///     assert_eq!(std::sync::Arc::strong_count(&held), 1); // it is really gone
    ///     assert!(set.is_empty());
    /// });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// The tasks are aborted by the call. Those that have not been waited for stay in the set.
    #[track_caller]
    pub fn shutdown(&mut self) -> impl Future<Output = ()> {
        let location = Location::caller();
        self.abort_all();
        async move { while (JoinNextWithId { set: self, location }).await.is_some() {} }
    }
}

/// Yields the outputs in the order in which the tasks end. Requires the feature `stream`.
#[cfg(feature = "stream")]
impl<T: 'static> futures_core::Stream for JoinSet<T> {
    type Item = Result<T, JoinError>;

    #[track_caller]
    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_join_next(cx)
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish_non_exhaustive()
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<JoinSet<u8>>();
const _: () = assert_send_sync::<JoinNext<'_, u8>>();
