//! The futures that wait for a token: one borrows the token, one owns it, and one also runs another future.
//!
//! A waiter keeps a clone of the waker that it has left with the node. So a poll by the same task compares two wakers
//! and reads a flag. It takes no lock: the connections of a server all wait for one token, each in every poll.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use mini_context::{Note, forget_wait, leave_note, notes, poll_first, spend};
use pin_project_lite::pin_project;

use super::node::Node;
use super::{CancelToken, Cancelled};

/// Future of [`CancelToken::cancelled`]: resolves to a [`Cancelled`], the reason.
///
/// # Examples
///
/// See [`CancelToken::cancelled`].
///
/// # Cancel safety
///
/// Safe: there is nothing to lose.
#[must_use = "futures do nothing unless awaited"]
pub struct WaitForCancel<'a> {
    node: &'a Node,
    waiter: Waiter,
}

/// Future of [`CancelToken::cancelled_owned`]: resolves to a [`Cancelled`], the reason.
///
/// # Examples
///
/// See [`CancelToken::cancelled_owned`].
///
/// # Cancel safety
///
/// Safe: there is nothing to lose.
#[must_use = "futures do nothing unless awaited"]
pub struct WaitForCancelOwned {
    token: CancelToken,
    waiter: Waiter,
}

pin_project! {
    /// Future of [`CancelToken::run`]: resolves to `Result<F::Output, Cancelled>`.
    ///
    /// # Examples
    ///
    /// See [`CancelToken::run`].
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as the inner future, which is dropped together with this one.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Run<F> {
        #[pin]
        pub(super) future: Option<F>,
        pub(super) wait: WaitForCancelOwned,
    }
}

/// A place among the waiters of a node. Its owner must call [`leave`](Self::leave) in the end.
struct Waiter {
    place: Option<(u32, Waker)>,
    /// It has asked the budget about the cancellation.
    has_asked: bool,
    location: &'static Location<'static>,
}

impl Waiter {
    fn new(location: &'static Location<'static>) -> Self {
        Self { place: None, has_asked: false, location }
    }

    /// Asks the budget, for a token that is cancelled: a loop over it would keep other tasks from running. It yields
    /// once at most, as another future may spend all before it in each poll. Nothing overtakes it in that poll.
    fn poll_spent(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.has_asked, true) {
            spend(1);
            return Poll::Ready(());
        }
        poll_first(cx, self)
    }

    fn poll(&mut self, node: &Node, cx: &Context<'_>) -> Poll<Cancelled> {
        if let Some(why) = node.why() {
            self.place = None; // taken out by the one who cancelled
            return Poll::Ready(why);
        }
        if self.place.as_ref().is_some_and(|(_, waker)| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let (mine, other) = (cx.waker().clone(), cx.waker().clone());
        self.leave(node);
        match node.add_waiter(other) {
            Ok(key) => {
                self.place = Some((key, mine));
                Poll::Pending
            }
            Err(why) => Poll::Ready(why),
        }
    }

    fn leave(&mut self, node: &Node) {
        if let Some((key, waker)) = self.place.take()
            && !node.is_cancelled()
        {
            let _other = node.remove_waiter(key);
            drop(waker);
        }
    }

    fn note(&self) -> Note {
        Note { reason: mini_context::Reason::Cancel, location: self.location }
    }

    fn forget_note(&self) {
        if self.place.is_some() {
            forget_wait(|wait| wait == self.note().into());
        }
    }
}

impl<'a> WaitForCancel<'a> {
    pub(super) fn new(node: &'a Node, location: &'static Location<'static>) -> Self {
        Self { node, waiter: Waiter::new(location) }
    }
}

impl WaitForCancelOwned {
    pub(super) fn new(token: CancelToken, location: &'static Location<'static>) -> Self {
        Self { token, waiter: Waiter::new(location) }
    }

    /// As `poll`, without a note of the wait.
    pub(in crate::task) fn poll_unnoted(&mut self, cx: &Context<'_>) -> Poll<Cancelled> {
        self.waiter.poll(&self.token.node, cx)
    }
}

impl Future for WaitForCancel<'_> {
    type Output = Cancelled;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Cancelled> {
        let Self { node, waiter } = &mut *self;
        let poll = waiter.poll(node, cx);
        if poll.is_pending() {
            leave_note(waiter.note());
            return Poll::Pending;
        }
        ready!(waiter.poll_spent(cx));
        poll
    }
}

impl Future for WaitForCancelOwned {
    type Output = Cancelled;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Cancelled> {
        let poll = self.poll_unnoted(cx);
        if poll.is_pending() {
            leave_note(self.waiter.note());
            return Poll::Pending;
        }
        ready!(self.waiter.poll_spent(cx));
        poll
    }
}

impl<F: Future> Future for Run<F> {
    type Output = Result<F::Output, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(why) = this.wait.poll_unnoted(cx) {
            ready!(this.wait.waiter.poll_spent(cx));
            this.future.set(None);
            return Poll::Ready(Err(why));
        }
        let future = this.future.as_mut().as_pin_mut().expect("a Run was polled after it was ready");
        if let Poll::Ready(output) = future.poll(cx) {
            this.future.set(None);
            return Poll::Ready(Ok(output));
        }
        if notes().is_empty() {
            leave_note(this.wait.waiter.note()); // of the two, the inner future says more
        }
        Poll::Pending
    }
}

impl Drop for WaitForCancel<'_> {
    fn drop(&mut self) {
        self.waiter.forget_note();
        self.waiter.leave(self.node);
    }
}

impl Drop for WaitForCancelOwned {
    fn drop(&mut self) {
        self.waiter.forget_note();
        self.waiter.leave(&self.token.node);
    }
}

impl fmt::Debug for WaitForCancel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancel").finish_non_exhaustive()
    }
}

impl fmt::Debug for WaitForCancelOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancelOwned").field("token", &self.token).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Run<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("token", &self.wait.token).finish_non_exhaustive()
    }
}
