//! `shield`: what must not be dropped half-way, run as a task of its own.
//!
//! The task belongs to the group of its caller, which `member.rs` knows, or else to the program: so every shutdown that
//! covers the caller waits for it. A group that takes no more tasks is passed over for the one above it; a destructor
//! of an aborted task may still shield its last words.
//!
//! The grace is counted by the task itself. The handle has a token, which its drop cancels; the task then sets a timer.
//! So it does not matter where the handle is dropped, and no other task looks after it.
//!
//! Rejected: a grace of its own for the shield after that of the group (a shutdown would take as long as the longest
//! shield that begins at its end; a supervisor with a time limit kills it then). Starting the task in the first poll (a
//! future that is dropped unpolled would have done nothing, and that is what a shield is against).

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mini_context::{notes, swap_notes};
use mini_kernel::task::LastWait;
use mini_time::{Sleep, sleep};
use pin_project_lite::pin_project;

use super::cancel::WaitForCancelOwned;
use super::large::boxed;
use super::unseen::error_in;
use super::{CancelToken, JoinHandle, Reason, group};

/// Runs `future` to its end, even if the caller is cancelled.
///
/// `future` becomes a task of its own, which begins with this call. Awaiting the shield returns its output; a panic
/// passes through.
///
/// If the shield is dropped early, the task continues for at most `grace`. If it is not done by then, it is dropped,
/// and its lines are reported on stderr.
///
/// The task belongs to the [`Group`](crate::task::Group) of the task that calls this, or to the program. So a shutdown
/// waits for it, but not for longer than the shutdown's own grace: after that the shielded task is aborted and named
/// like any other task.
///
/// # Examples
///
/// ```
/// use mini::task::shield;
/// use mini::time::{Duration, sleep, timeout};
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
///
/// mini::block_on(async {
/// # mini::time::pause();
///     let is_stored = Arc::new(AtomicBool::new(false));
///     let inside = is_stored.clone();
///     let store = shield(Duration::from_secs(10), async move {
///         sleep(Duration::from_secs(2)).await; // half of it would be worse than nothing
///         inside.store(true, Ordering::Relaxed);
///     });
///     assert!(timeout(Duration::from_secs(1), store).await.is_err());
///     assert!(!is_stored.load(Ordering::Relaxed));
///     sleep(Duration::from_secs(2)).await;
///     assert!(is_stored.load(Ordering::Relaxed));
/// });
/// ```
///
/// # Panics
///
/// Outside of a runtime, at the caller's line. The returned future panics if `future` does, and if the task was aborted
/// by a shutdown that does not cover the caller.
///
/// # Cancel safety
///
/// Goes on: that is what it is for.
#[track_caller]
pub fn shield<F>(grace: Duration, future: F) -> Shield<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (released, location) = (CancelToken::new(), Location::caller());
    let is_released = released.clone().cancelled_owned();
    let handle = boxed!(Box::pin, future: F => {
        let shielded = Shielded { future, is_released, grace, timer: None, location };
        group::spawn_shielded(shielded, "mini::task::shield")
    });
    Shield { handle, released }
}

/// Future of [`shield`]: resolves to the `T` of the shielded task. Dropping it early leaves the task its grace.
///
/// # Examples
///
/// See [`shield`].
///
/// # Cancel safety
///
/// Goes on: see [`shield`].
#[must_use = "the task runs already; if this is dropped, it has its grace to end"]
pub struct Shield<T> {
    handle: JoinHandle<Ended<T>>,
    released: CancelToken,
}

/// How a shielded task has ended.
pub(crate) enum Ended<T> {
    /// The caller may still want the output.
    Awaited(Unread<T>),
    /// The caller is gone.
    Alone(T),
    /// The grace was too short.
    Expired,
}

impl<T: 'static> Ended<T> {
    /// What has failed.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Awaited(unread) => unread.output.as_ref().and_then(error_in),
            Self::Alone(output) => error_in(output),
            Self::Expired => Some("it was shielded, and did not end within its grace".to_owned()),
        }
    }
}

/// An output for the caller. If it is an error, and dropped unread, that is told.
pub(crate) struct Unread<T> {
    output: Option<T>,
    failure: fn(&T) -> Option<String>,
    location: &'static Location<'static>,
}

impl<T> Unread<T> {
    fn read(mut self) -> T {
        self.output.take().expect("it is read once")
    }
}

impl<T> Drop for Unread<T> {
    fn drop(&mut self) {
        if let Some(error) = self.output.as_ref().and_then(self.failure) {
            tell(self.location, &error);
        }
    }
}

fn tell(location: &Location<'_>, error: &str) {
    say!("the future shielded at {location} ended with an error, and no task awaits it: {error}");
}

pin_project! {
    /// The task.
    pub(crate) struct Shielded<F> {
        #[pin]
        future: F,
        is_released: WaitForCancelOwned,
        grace: Duration,
        timer: Option<Sleep>,
        location: &'static Location<'static>,
    }
}

impl<F: Future<Output: 'static>> Future for Shielded<F> {
    type Output = Ended<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let poll = this.future.poll(cx);
        let noted = notes(); // of what it waits for, if it does
        if this.timer.is_none() && this.is_released.poll_unnoted(cx).is_ready() {
            *this.timer = Some(sleep(*this.grace));
        }
        let Some(timer) = this.timer else {
            let unread = |output| Unread { output: Some(output), failure: error_in, location: this.location };
            return poll.map(|output| Ended::Awaited(unread(output)));
        };
        if let Poll::Ready(output) = poll {
            let ended = Ended::Alone(output);
            if let Some(error) = ended.failure() {
                tell(this.location, &error);
            }
            return Poll::Ready(ended);
        }
        let expired = Pin::new(timer).poll(cx);
        swap_notes(noted);
        ready!(expired);
        let (location, grace, wait) = (this.location, this.grace, LastWait::of(noted, mini_context::task()));
        say!("the future shielded at {location} has not ended within its grace of {grace:?} and is dropped: {wait}");
        Poll::Ready(Ended::Expired)
    }
}

impl<T> Future for Shield<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.handle).poll(cx)) {
            Ok(Ended::Awaited(unread)) => Poll::Ready(unread.read()),
            Ok(Ended::Alone(output)) => Poll::Ready(output),
            Ok(Ended::Expired) => unreachable!("the grace begins with the drop of the shield"),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => panic!("the task of an awaited shield is gone: {error}"),
        }
    }
}

impl<T> Drop for Shield<T> {
    fn drop(&mut self) {
        if !self.handle.is_finished() {
            self.released.cancel(Reason::ParentGone);
        }
    }
}

impl<T> fmt::Debug for Shield<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shield").field(&self.handle).finish()
    }
}

const _: () = {
    const fn assert<T: Send + Sync + Unpin>() {}
    assert::<Shield<u8>>();
};
