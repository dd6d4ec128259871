//! `CancelToken`: a request to stop, which is passed down a tree, with the reason and the line it came from.
//!
//! Dropping a future cancels it where it awaits. A token asks: who holds it may finish a sentence first. The tree, and
//! why no cancellation is missed, is in `cancel/node.rs`; the futures are in `cancel/wait.rs`.
//!
//! `Cancelled` is both what a waiter gets and the error of `run`: one type, of a word and a byte.
//!
//! Rejected: polling the inner future of `run` before the token (what is ready at once would win over a cancellation,
//! and a future that is always ready would never be stopped). A `run` that borrows its token (it could not be spawned).

#[cfg(all(test, loom))]
mod models;
mod node;
mod reason;
mod wait;

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use node::Node;
pub use reason::{Cancelled, Reason};
pub use wait::{Run, WaitForCancel, WaitForCancelOwned};

/// A request to stop, which can be awaited and queried. Clones are the same token.
///
/// Tokens form a tree: [`child`](Self::child) makes a token that is cancelled with its parent, but not the other way
/// round. A token is cancelled once, and keeps its reason. Dropping a token cancels nothing; see
/// [`drop_guard`](Self::drop_guard).
///
/// # Examples
///
/// ```
/// use mini::task::{CancelToken, Reason};
///
/// mini::block_on(async {
///     let token = CancelToken::new();
///     let inside = token.child();
///     let worker = mini::spawn(async move {
///         let why = inside.cancelled().await; // and then it tidies up
///         why.reason()
///     });
///     token.cancel(Reason::Requested);
///     assert_eq!(worker.await.unwrap(), Reason::Requested);
/// });
/// ```
#[derive(Clone)]
pub struct CancelToken {
    node: Arc<Node>,
}

impl CancelToken {
    /// Creates a token without a parent.
    ///
    /// # Examples
    ///
    /// See [`CancelToken`].
    #[must_use]
    pub fn new() -> Self {
        Self { node: Node::root() }
    }

    /// Gives this token, and thereby all clones of it, a name that its `Debug` shows.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = mini::task::CancelToken::new().name("upload");
    /// assert!(format!("{token:?}").contains("upload"));
    /// ```
    #[must_use]
    pub fn name(self, name: impl AsRef<str>) -> Self {
        self.node.set_name(name.as_ref().into());
        self
    }

    /// Creates a token that is cancelled when this one is, for the same reason. A child of a cancelled token is
    /// cancelled from the start.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// let parent = CancelToken::new();
    /// let (one, other) = (parent.child(), parent.child());
    /// one.cancel(Reason::Deadline);
    /// assert!(!parent.is_cancelled());
    ///
    /// parent.cancel(Reason::Requested);
    /// assert_eq!(one.reason(), Some(Reason::Deadline)); // it was the first
    /// assert_eq!(other.reason(), Some(Reason::Requested));
    /// assert_eq!(parent.child().reason(), Some(Reason::Requested));
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        Self { node: self.node.child() }
    }

    /// Cancels this token and all its descendants, and wakes everything that waits for one of them.
    ///
    /// Returns `false` if this token was cancelled before: it keeps its first reason and line, and this call does
    /// nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// let token = CancelToken::new();
    /// assert!(token.cancel(Reason::Signal));
    /// assert!(!token.cancel(Reason::Requested));
    /// assert_eq!(token.reason(), Some(Reason::Signal));
    /// ```
    #[track_caller]
    pub fn cancel(&self, reason: Reason) -> bool {
        self.cancel_from(reason, Location::caller())
    }

    pub(super) fn cancel_from(&self, reason: Reason, location: &'static Location<'static>) -> bool {
        self.node.cancel(Cancelled::new(reason, location))
    }

    /// Returns `true` if the token is cancelled. Reads one flag, so a loop that computes may call it often.
    ///
    /// # Examples
    ///
    /// See [`child`](Self::child).
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Returns the reason of the cancellation, or `None` if the token is not cancelled.
    ///
    /// # Examples
    ///
    /// See [`cancel`](Self::cancel).
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.why().map(|why| why.reason())
    }

    /// Returns the reason and the line of the cancellation, or `None` if the token is not cancelled.
    ///
    /// # Examples
    ///
    /// See [`Cancelled`].
    #[must_use]
    pub fn why(&self) -> Option<Cancelled> {
        self.node.why()
    }

    /// Waits until the token is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// mini::block_on(async {
    ///     let token = CancelToken::new();
    ///     token.cancel(Reason::Requested);
    ///     let why = token.cancelled().await;
    ///     println!("{why}"); // requested at src/main.rs:6:11
    /// });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Safe: there is nothing to lose.
    #[track_caller]
    pub fn cancelled(&self) -> WaitForCancel<'_> {
        WaitForCancel::new(&self.node, Location::caller())
    }

    /// Waits until the token is cancelled, by a future that borrows nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// mini::block_on(async {
    ///     let token = CancelToken::new();
    ///     let waiting = mini::spawn(token.clone().cancelled_owned());
    ///     token.cancel(Reason::Shutdown);
    ///     assert_eq!(waiting.await.unwrap().reason(), Reason::Shutdown);
    /// });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Safe: there is nothing to lose.
    #[track_caller]
    pub fn cancelled_owned(self) -> WaitForCancelOwned {
        WaitForCancelOwned::new(self, Location::caller())
    }

    /// Runs `future` until it is ready or the token is cancelled.
    ///
    /// Each poll checks the token first: once it is cancelled, `future` is not polled any more, even if it could be
    /// ready. `future` is dropped before the result is returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// mini::block_on(async {
    ///     let token = CancelToken::new();
    ///     assert_eq!(token.run(async { 7 }).await, Ok(7));
    ///
    ///     let reading = mini::spawn(token.run(std::future::pending::<()>()));
    ///     token.cancel(Reason::Requested);
    ///     assert_eq!(reading.await.unwrap().unwrap_err().reason(), Reason::Requested);
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// The future's output is a [`Cancelled`] if the token was cancelled first.
    ///
    /// # Panics
    ///
    /// The returned future panics if it is polled again after it was ready with an output.
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as `future`, which is dropped together with the returned future, and by a cancellation.
    #[track_caller]
    pub fn run<F: Future>(&self, future: F) -> Run<F> {
        Run { future: Some(future), wait: self.clone().cancelled_owned() }
    }

    /// Returns a guard that cancels the token when it is dropped, for instance by an early return.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// let token = CancelToken::new();
    /// let children = token.child();
    /// let guard = token.drop_guard(Reason::ParentGone);
    /// assert!(!children.is_cancelled());
    /// drop(guard);
    /// assert_eq!(children.reason(), Some(Reason::ParentGone));
    /// ```
    #[track_caller]
    pub fn drop_guard(&self, reason: Reason) -> CancelOnDrop {
        CancelOnDrop { token: self.clone(), why: Cancelled::new(reason, Location::caller()) }
    }
}

/// Cancels a token when it is dropped; returned by [`CancelToken::drop_guard`], whose line the cancellation reports.
///
/// # Examples
///
/// See [`CancelToken::drop_guard`].
#[derive(Debug)]
#[must_use = "dropping it cancels the token: bind it to a name"]
pub struct CancelOnDrop {
    token: CancelToken,
    why: Cancelled,
}

impl CancelOnDrop {
    /// Gives up the guard without cancelling the token.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{CancelToken, Reason};
    ///
    /// let token = CancelToken::new();
    /// token.drop_guard(Reason::ParentGone).disarm();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn disarm(self) {
        let mut this = self;
        this.token = CancelToken::new(); // which nobody else has
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.token.node.cancel(self.why);
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sight = self.node.sight();
        let mut out = f.debug_struct("CancelToken");
        if let Some(name) = sight.name {
            out.field("name", &name);
        }
        match sight.why {
            Some(why) => out.field("cancelled", &format_args!("{why}")),
            None => out.field("children", &sight.children).field("waiters", &sight.waiters),
        };
        out.finish()
    }
}

const _: () = {
    const fn assert<T: Send + Sync + Unpin>() {}
    assert::<CancelToken>();
    assert::<WaitForCancel<'_>>();
    assert::<WaitForCancelOwned>();
};
