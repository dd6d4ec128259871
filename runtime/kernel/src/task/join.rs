//! The user's handles to a task: to await it, to abort it, to cancel it and wait until it is gone.

#![allow(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Note, Reason, forget_wait, leave_note, note_waker};

use super::refcount::{OnJoin, OnWithdraw};
use super::{Id, JoinError, SharedJoinHandle, Task};
use crate::scheduler::current;

/// Handle of a task: a future that resolves to `Result<T, JoinError>`.
///
/// Dropping it detaches the task, which keeps running.
///
/// Made by `mini::spawn`, `mini::spawn_local` and `mini::spawn_blocking`.
///
/// Its `Debug` shows the task: id, name, the line that spawned it, how often it was polled, and as `last_wait` what its
/// last poll was pending for, with the line that made that future. If there are several futures it shows one: a socket
/// rather than a timer, otherwise the last. `unknown` means a future that does not belong to this runtime, such as a
/// channel of another crate.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// });
/// ```
///
/// # Errors
///
/// Its output is a [`JoinError`] if the task panicked or was cancelled.
///
/// # Panics
///
/// If a task awaits its own handle: it would wait forever.
///
/// # Cancel safety
///
/// Goes on: dropping the handle, or a future that polled it by reference, does not touch the task.
pub struct JoinHandle<T> {
    task: ManuallyDrop<Task>,
    is_spent: bool,
    /// `Sync` if the output is `Send`: no method gives out a reference to the output.
    output: PhantomData<Mutex<T>>,
}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: Task) -> Self {
        Self { task: ManuallyDrop::new(task), is_spent: false, output: PhantomData }
    }

    /// Asks the task to stop. Its future is dropped where it runs, and the handle then returns a
    /// [cancelled](JoinError::is_cancelled) error, unless the task finished first.
    ///
    /// A task that is being polled is dropped at the end of that poll. A blocking job that has started runs on.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(std::future::pending::<()>());
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Aborts the task and waits until its future has been dropped.
    ///
    /// The call makes the request; the returned future only waits. Its output is the task's output if the task finished
    /// first.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let held = std::sync::Arc::new(());
    ///     let inside = held.clone();
    ///     let task = mini::spawn(async move {
    ///         let _inside = inside;
    ///         std::future::pending::<()>().await
    ///     });
    ///     assert!(task.cancel().await.unwrap_err().is_cancelled());
    ///     assert_eq!(std::sync::Arc::strong_count(&held), 1); // it is really gone
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// The future's output is a [`JoinError`], like the handle's, unless the task finished first.
    ///
    /// # Panics
    ///
    /// The returned future panics if a task awaits its own end.
    ///
    /// # Cancel safety
    ///
    /// Goes on: the task stays cancelled if the returned future is dropped.
    pub fn cancel(self) -> Cancel<T> {
        self.abort();
        Cancel(self)
    }

    /// Returns a handle that can be cloned: several tasks await one task, and each gets a clone of its output.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let answer = mini::spawn(async { 6 * 7 }).shared();
    ///     let other = answer.clone();
    ///     assert_eq!((answer.await.unwrap(), other.await.unwrap()), (42, 42));
    /// });
    /// ```
    pub fn shared(self) -> SharedJoinHandle<T>
    where
        T: Clone,
    {
        let _displaced = self.take_waiter(); // by an earlier poll: under the handle's lock it would run user code
        SharedJoinHandle::new(self)
    }

    /// Returns `true` if the task has ended and its future has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(async {});
    ///     assert!(!task.is_finished()); // it has not run yet
    ///     mini::task::yield_now().await;
    ///     assert!(task.is_finished());
    /// });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns a handle that can abort the task but not await it.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(std::future::pending::<()>());
    ///     let abort = task.abort_handle();
    ///     mini::spawn(async move { abort.abort() });
    ///     assert!(task.await.is_err());
    /// });
    /// ```
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::new(Task::clone(&self.task))
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let task = mini::spawn(async { mini::task::id() });
    ///     let id = task.id();
    ///     assert_eq!(task.await.unwrap(), id);
    /// });
    /// ```
    pub fn id(&self) -> Id {
        self.task.id()
    }

    /// Returns the name of the task, if it was given one by a `mini::task::Builder`.
    ///
    /// # Examples
    ///
    /// See `mini::task::Builder::spawn_on`.
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name().cloned()
    }

    /// Returns `true` if the output was taken out.
    #[doc(hidden)]
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Polls. The note about the wait is for a task that is polled with that waker.
    #[doc(hidden)]
    pub fn poll_with(&mut self, waker: &Waker) -> Poll<Result<T, JoinError>> {
        let found = self.register(waker);
        let task = &*self.task;
        if found == OnJoin::Pending {
            assert!(!current::is_current(task), "{} waits for itself: it would never end", task.source());
            leave_note(Note { reason: Reason::Join(task.id().get()), location: task.location() });
            return Poll::Pending;
        }
        assert!(!self.is_spent, "a JoinHandle was polled after it was ready");
        let mut output: Option<Result<T, JoinError>> = None;
        // SAFETY: `refs` said DONE, so the output is the handle's; `T` is the task's output type since `new`, and
        // `output` is `None`.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { (task.header().vtable.take_output)(task.0, (&raw mut output).cast()) };
        self.is_spent = true;
        Poll::Ready(output.expect("a task that is done has an output"))
    }

    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    /// Leaves a clone of `waker` with the runner, unless the task is done or the runner has such a clone.
    fn register(&mut self, waker: &Waker) -> OnJoin {
        let header = self.task.header();
        let refs = &header.refs;
        if refs.is_done() {
            return OnJoin::Done;
        }
        if !refs.has_waiter() {
            return self.offer(waker.clone()).map_or(OnJoin::Done, |()| OnJoin::Pending);
        }
        if header.waiter.is(waker) {
            return OnJoin::Pending;
        }
        self.leave_waiter(waker.clone()).0
    }

    /// Leaves `waiter` with the runner, instead of the waiter that it has; `waiter` is not woken if the task is done.
    /// Returns the wakers that are not needed. The caller drops them last, since that runs user code.
    #[doc(hidden)]
    pub fn leave_waiter(&mut self, waiter: Waker) -> (OnJoin, [Option<Waker>; 2]) {
        let displaced = match self.take_waiter() {
            Ok(displaced) => displaced,
            Err(AlreadyDone) => return (OnJoin::Done, [Some(waiter), None]),
        };
        match self.offer(waiter) {
            Ok(()) => (OnJoin::Pending, [displaced, None]),
            Err(refused) => (OnJoin::Done, [displaced, Some(refused)]),
        }
    }

    /// Leaves `waiter` with the runner, which has none; gives it back if the task is done.
    #[inline]
    fn offer(&mut self, waiter: Waker) -> Result<(), Waker> {
        let header = self.task.header();
        header.waiter.put(waiter);
        match header.refs.offer() {
            OnJoin::Pending => Ok(()),
            // SAFETY: just put there, and the offer came too late, so it is still the handle's (refcount.rs).
            // Test: refcount/models.rs, `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
            OnJoin::Done => Err(unsafe { header.waiter.look().into_waker() }),
        }
    }

    /// Takes back the waiter that was left with the runner, if there is one.
    fn take_waiter(&self) -> Result<Option<Waker>, AlreadyDone> {
        let header = self.task.header();
        match header.refs.withdraw() {
            OnWithdraw::Done => Err(AlreadyDone),
            OnWithdraw::Nothing => Ok(None),
            // SAFETY: offered, and withdrawn in time, so the waiter is the handle's (refcount.rs).
            // Test: refcount/models.rs, `the_output_has_one_owner_and_a_waiter_is_not_forgotten`.
            OnWithdraw::Waiter => Ok(Some(unsafe { header.waiter.look().into_waker() })),
        }
    }
}

/// The task has ended: its waiter, if there was one, is the runner's.
struct AlreadyDone;

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_finished() {
            ready!(mini_context::poll_budget(cx, &*self));
        }
        let polled = self.get_mut().poll_with(cx.waker());
        if polled.is_pending() {
            note_waker(cx.waker());
        }
        polled
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_spent {
            return self.leave();
        }
        // SAFETY: not used again.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { ManuallyDrop::take(&mut self.task) }.release_ended();
    }
}

impl<T> JoinHandle<T> {
    /// Dropped before it had the output.
    #[inline(never)]
    fn leave(&mut self) {
        let waiter = self.take_waiter().ok().flatten(); // user code: dropped when all is done
        if waiter.is_some() {
            let mine = Reason::Join(self.task.id().get());
            forget_wait(|wait| wait.is_for(mine));
        }
        if self.task.header().refs.leave() == OnJoin::Pending {
            return; // with its reference
        }
        self.task.drop_output();
        // SAFETY: the handle is being dropped, which does nothing more.
        // Test: tests/tests/tasks/tasks.rs `every_future_and_output_is_dropped_once`.
        unsafe { ManuallyDrop::take(&mut self.task) }.release_ended();
        drop(waiter);
    }
}

impl<T> Unpin for JoinHandle<T> {}
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(&*self.task).finish()
    }
}

/// Future of [`JoinHandle::cancel`]: resolves to `Result<T, JoinError>` when the task's future has been dropped.
#[must_use = "the task is cancelled already; this waits until its future has been dropped"]
pub struct Cancel<T>(JoinHandle<T>);

impl<T> Future for Cancel<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> fmt::Debug for Cancel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&*self.0.task).finish()
    }
}

/// Aborts a task from anywhere; made by [`JoinHandle::abort_handle`]. Dropping it does nothing.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(std::future::pending::<()>());
///     let abort = task.abort_handle();
///     assert_eq!((abort.id(), abort.name()), (task.id(), None));
///     assert!(!abort.is_finished());
///     abort.abort();
///     assert!(task.await.unwrap_err().is_cancelled());
///     assert!(abort.is_finished());
/// });
/// ```
pub struct AbortHandle {
    task: Task,
}

impl Clone for AbortHandle {
    fn clone(&self) -> Self {
        Self::new(Task::clone(&self.task))
    }
}

/// Before the reference, which is then not taken for a waker.
impl Drop for AbortHandle {
    fn drop(&mut self) {
        self.task.aborts(-1);
    }
}

impl AbortHandle {
    fn new(task: Task) -> Self {
        task.aborts(1);
        Self { task }
    }

    /// Asks the task to stop, as [`JoinHandle::abort`] does.
    ///
    /// # Examples
    ///
    /// See [`AbortHandle`].
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Returns `true` if the task has ended and its future has been dropped.
    ///
    /// # Examples
    ///
    /// See [`AbortHandle`].
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// See [`AbortHandle`].
    pub fn id(&self) -> Id {
        self.task.id()
    }

    /// Returns the name of the task, if it was given one by a `mini::task::Builder`.
    ///
    /// # Examples
    ///
    /// See [`AbortHandle`].
    pub fn name(&self) -> Option<Arc<str>> {
        self.task.name().cloned()
    }
}

impl AbortHandle {
    #[doc(hidden)]
    pub fn task(&self) -> &Task {
        &self.task
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AbortHandle").field(&self.task).finish()
    }
}

const fn assert_send_sync<T: Send + Sync>() {}
const _: () = assert_send_sync::<JoinHandle<u8>>();
const _: () = assert_send_sync::<AbortHandle>();
const _: () = assert_send_sync::<JoinError>();
