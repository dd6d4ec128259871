//! The budget of a task, for futures that compute between two waits, and for futures that must not be made to yield.
//!
//! The budget itself is in `mini-context`: all leaf futures spend it, and make the task yield once it is spent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// Spends one unit of the task's budget of 128, and yields if the budget is spent.
///
/// For a loop that computes: it stays on the thread for 128 rounds, and then lets everything else that is ready run.
/// Sockets and timers of mini do so by themselves. Outside of tasks and of `block_on` the budget is endless: there this
/// never yields.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let mut sum = 0_u64;
///     for i in 0..1000 {
///         sum += i;
///         mini::task::consume_budget().await;
///     }
///     assert_eq!(sum, 499_500);
/// });
/// ```
///
/// # Cancel safety
///
/// Safe: there is nothing to lose.
pub fn consume_budget() -> ConsumeBudget {
    ConsumeBudget(0)
}

/// Future of [`consume_budget`]: resolves to `()`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct ConsumeBudget(u8); // not empty, so that its address is its own

impl Future for ConsumeBudget {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        mini_context::poll_budget(cx, &self.0)
    }
}

/// Wraps `future` so that its budget never makes it yield.
///
/// Sockets and timers in it have the least overhead, but starve everything else on the thread if they are always ready.
///
/// # Examples
///
/// ```
/// use std::{pin::pin, task::{Context, Waker}};
/// let mut cx = Context::from_waker(Waker::noop());
/// let many = async {
///     for _ in 0..1000 {
///         mini::task::consume_budget().await;
///     }
/// };
/// assert!(pin!(mini::task::unconstrained(many)).poll(&mut cx).is_ready());
/// ```
///
/// # Cancel safety
///
/// As cancel safe as `future`.
pub fn unconstrained<F: Future>(future: F) -> Unconstrained<F> {
    Unconstrained { future }
}

pin_project! {
    /// Future of [`unconstrained`]: resolves to `F::Output`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _endless = Endless { left: mini_context::swap_budget(mini_context::ENDLESS) };
        self.project().future.poll(cx)
    }
}

/// While it lives, the budget of this thread does not end. Dropping it brings back what was left.
struct Endless {
    left: u8,
}

impl Drop for Endless {
    fn drop(&mut self) {
        mini_context::swap_budget(self.left);
    }
}
