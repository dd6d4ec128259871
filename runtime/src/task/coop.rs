//! Cooperation: futures of your own that take part in the [budget](super::consume_budget), as sockets, timers and
//! handles do by themselves.
//!
//! A poll of a task has a budget of 128 units. A task that always finds something ready spends it and then yields:
//! everything else that is ready runs first, and then the task continues. A channel of your own, for example, calls
//! [`poll_proceed`] before it gives out a message.
//!
//! The future given to `block_on` has such a budget too. Nothing else has a budget: on a thread without a runtime, in
//! [`Runtime::enter`](crate::runtime::Runtime::enter), in `spawn_blocking` and in `block_in_place`, no operation that
//! could complete is made to yield. Nor is an operation that another executor polls, as with tokio. An executor inside
//! a task shares the task's budget: once that is spent, an operation is refused a few times before it continues.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pub use super::budget::{ConsumeBudget, Unconstrained, consume_budget, unconstrained};

/// Returns `true` if some of the budget is left, and always outside a task. If none is left, [`poll_proceed`] makes the
/// task yield.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let mut rounds = 0;
///     while mini::task::coop::has_budget_remaining() {
///         mini::task::coop::consume_budget().await;
///         rounds += 1;
///     }
///     assert_eq!(rounds, 128);
/// });
/// ```
pub fn has_budget_remaining() -> bool {
    mini_context::has_budget()
}

/// Returns `Ready` if the task may proceed. Once the budget is spent, it wakes the task and returns `Pending`.
///
/// If the operation completes, call [`made_progress`](Proceed::made_progress), which spends a unit. An operation that
/// does not complete spends nothing.
///
/// # Examples
///
/// ```
/// use std::collections::VecDeque;
/// use std::task::{Context, Poll, ready};
/// use mini::task::coop;
///
/// /// The next message, if there is one and the task may take it.
/// fn poll_next(messages: &mut VecDeque<u32>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
///     let coop = ready!(coop::poll_proceed(cx));
///     let message = messages.pop_front();
///     if message.is_some() {
///         coop.made_progress();
///     }
///     Poll::Ready(message)
/// }
///
/// # mini::block_on(async {
/// let mut messages: VecDeque<u32> = (0..200).collect();
/// let mut cx = Context::from_waker(std::task::Waker::noop());
/// while poll_next(&mut messages, &mut cx).is_ready() {}
/// assert!(messages.len() >= 71);
/// # });
/// ```
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<Proceed> {
    mini_context::check_budget(cx, std::ptr::null::<()>()).map(Proceed)
}

/// The permission to complete an operation; see [`poll_proceed`].
#[derive(Debug)]
#[must_use = "an operation that has completed says `made_progress`"]
pub struct Proceed(());

impl Proceed {
    /// Reports that the operation has completed, which spends a unit of the budget.
    ///
    /// # Examples
    ///
    /// See [`poll_proceed`].
    pub fn made_progress(&self) {
        mini_context::spend(1);
    }
}

/// Makes `future` take part in the budget: it is not polled once the budget is spent, and spends a unit when it is
/// ready.
///
/// Use this for channels and other futures of crates that know nothing of the budget. A loop that always finds them
/// ready then yields, and a `timeout` around the loop takes effect.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mini::{task::coop::cooperative, time::timeout};
///
/// let (sender, receiver) = async_channel::unbounded();
/// sender.try_send(()).unwrap();
/// mini::block_on(async {
///     let busy = async {
///         loop {
///             cooperative(receiver.recv()).await.unwrap();
///             sender.try_send(()).unwrap();
///         }
///     };
///     assert!(timeout(Duration::from_millis(1), busy).await.is_err());
/// });
/// ```
///
/// # Cancel safety
///
/// As cancel safe as `future`.
pub fn cooperative<F: Future>(future: F) -> Cooperative<F> {
    Cooperative { future }
}

pin_project! {
    /// Future of [`cooperative`]: resolves to `F::Output`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Cooperative<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Cooperative<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let coop = ready!(mini_context::check_budget(cx, &*self).map(Proceed));
        let output = self.project().future.poll(cx);
        if output.is_ready() {
            coop.made_progress();
        }
        output
    }
}
