//! A future that has to be ready at a point in time. Everything polled inside of it can read this deadline.
//!
//! The deadline is set for the thread while the future is polled (`mini_context::set_due`). A deadline inside of an
//! earlier one is moved to that. Each poll asks, so this also holds for a future that was made outside. It stays moved
//! if the future is later polled elsewhere. At that time both are over, and the inner one is ready first, in the same
//! poll: the code between the two can still answer. Each reads the clock by itself, and the inner one may only wake a
//! future in the same task that answers. So the outer one polls once more when it finds that its time has come.
//!
//! A spawned task does not inherit a deadline, because most of them continue after the request that spawned them: a
//! task that fills a cache or writes a log must not fail because one caller was in a hurry. Tasks of a scope are polled
//! inside. For a group, whose tasks end with it, there is [`inherit`].
//!
//! Rejected:
//! - A deadline that plain timeouts set too. A limit on one step does not limit the whole, and each `timeout` would pay
//!   for it.
//! - Comparing only when the future is made: made outside and polled inside, it would outlive the outer one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mini_context::{Due, due, set_due};
use pin_project_lite::pin_project;

use crate::error::{Elapsed, NOT_KNOWN};
use crate::instant::Instant;
use crate::sleep::{Origin, Sleep};
use crate::timeout::{elapsed, poll_limit};

pin_project! {
    /// Future of [`deadline`]: resolves to `Result<F::Output, Elapsed>`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Deadline, Instant, deadline};
    /// use std::{future, time::Duration};
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let limited: Deadline<_> = deadline(Instant::now() + Duration::from_secs(1), future::ready(7));
    /// assert_eq!(limited.await, Ok(7));
    /// # });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Same as the inner future, which is dropped with the `Deadline`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Deadline<F> {
        #[pin]
        future: F,
        limit: Sleep,
    }
}

/// Limits `future` to the time until `at`, and makes this deadline known to everything inside of it.
///
/// The output is that of [`timeout_at`](crate::timeout_at). In addition, code inside `future` can read
/// [`current_deadline`] and [`remaining`], for example to send a server the time that this client will wait.
///
/// Inside another deadline, the earlier one applies. If that is the outer one, both expire together and the inner one
/// is ready first. So the code that awaits the inner one can still answer, as long as it does not wait.
///
/// Everything polled inside of `future` inherits the deadline, such as joined futures and tasks of a scope. A task that
/// is spawned elsewhere has no deadline, as it may continue after this future has ended. To limit such a task too, give
/// it its own: `mini::spawn(deadline(at, task))`. The future of a `block_on` inside has no deadline either.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, current_deadline, deadline, remaining, sleep};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let second = Duration::from_secs(1);
/// let at = Instant::now() + 3 * second;
/// let answer = deadline(at, async {
///     sleep(second).await;
///     assert_eq!(remaining(), Some(2 * second));
///     // A step may ask for more time than there is, and gets what there is.
///     let step = deadline(Instant::now() + 60 * second, sleep(30 * second));
///     match step.await {
///         Ok(()) => "done",
///         Err(_) => "not in time",
///     }
/// });
/// assert_eq!(answer.await, Ok("not in time"));
/// assert_eq!((Instant::now(), current_deadline()), (at, None));
/// # });
/// ```
///
/// # Errors
///
/// Returns [`Elapsed`], which converts into an [`std::io::Error`] of the kind `TimedOut`. If an outer deadline was
/// earlier, the [`location`](Elapsed::location) is the call that set the outer one.
///
/// # Panics
///
/// Panics like [`sleep`](crate::sleep()) if `future` is not ready at the first poll.
///
/// # Cancel safety
///
/// Same as `future`, which is dropped with the [`Deadline`].
#[track_caller]
pub fn deadline<F: IntoFuture>(at: Instant, future: F) -> Deadline<F::IntoFuture> {
    let limit = Sleep::new(at, Origin::Deadline);
    Deadline { future: future.into_future(), limit }
}

/// Returns the earliest [`deadline`] around the running code, if there is one.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, current_deadline, deadline};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let at = Instant::now() + Duration::from_secs(1);
/// assert_eq!(deadline(at, async { current_deadline() }).await, Ok(Some(at)));
/// assert_eq!(current_deadline(), None);
///
/// // For a task to be as limited as the one that spawns it:
/// let limited = deadline(at, async {
///     let at = current_deadline().unwrap();
///     mini::spawn(deadline(at, async { current_deadline() })).await.unwrap()
/// });
/// assert_eq!(limited.await, Ok(Ok(Some(at))));
/// # });
/// ```
#[must_use]
pub fn current_deadline() -> Option<Instant> {
    due().map(|due| Instant::from_std(due.at))
}

/// Returns the time until the earliest [`deadline`] around the running code, if there is one. Zero if it is over.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, deadline, remaining};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let request = async {
///     // In the unit of the protocol's header.
///     remaining().map(|time| format!("{}m", time.as_millis()))
/// };
/// let header = deadline(Instant::now() + Duration::from_secs(1), request).await;
/// assert_eq!(header.unwrap().as_deref(), Some("1000m"));
/// # });
/// ```
#[must_use]
pub fn remaining() -> Option<Duration> {
    current_deadline().map(|at| at - Instant::now())
}

/// Passes the current deadline on: `future` can read it wherever it is polled. Use it for tasks that end with the
/// future that spawns them. It sets no limit by itself.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, deadline, inherit, remaining};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let second = Duration::from_secs(1);
/// let limited = deadline(Instant::now() + second, async {
///     mini::spawn(inherit(async { remaining() })).await.unwrap()
/// });
/// assert_eq!(limited.await, Ok(Some(second)));
/// # });
/// ```
///
/// # Cancel safety
///
/// Same as `future`.
#[doc(hidden)]
pub fn inherit<F: Future>(future: F) -> Inherit<F> {
    Inherit { future, due: due().map(Box::new) }
}

pin_project! {
    /// Future of [`inherit`]: resolves to `F::Output`.
    #[doc(hidden)]
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Inherit<F> {
        #[pin]
        future: F,
        // Three words, and most have none.
        due: Option<Box<Due>>,
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Deadline<()>>() == size_of::<Sleep>());
    assert!(size_of::<Inherit<()>>() == 8, "a task without a deadline pays one word");
};

impl<F> Deadline<F> {
    /// Returns a reference to the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, deadline};
    ///
    /// let limited = deadline(Instant::now(), std::future::ready(7));
    /// assert_eq!(limited.get_ref().clone().into_inner(), 7);
    /// ```
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns a mutable reference to the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, deadline};
    /// use std::future;
    ///
    /// # mini::block_on(async {
    /// let mut limited = deadline(Instant::now(), future::ready(7));
    /// *limited.get_mut() = future::ready(8);
    /// assert_eq!(limited.await, Ok(8));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Returns the inner future, without the deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Instant, deadline};
    ///
    /// # mini::block_on(async {
    /// let limited = deadline(Instant::now(), std::future::ready(7));
    /// assert_eq!(limited.into_inner().await, 7);
    /// # });
    /// ```
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Deadline<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(mini_context::check_order(cx, &*self)); // as with a timeout
        let mut this = self.project();
        let own = Due { at: this.limit.deadline().into_std(), location: this.limit.location() };
        let due = earlier(own, due());
        if due != own {
            Pin::new(&mut *this.limit).reset(Instant::from_std(due.at));
            this.limit.relabel(Origin::Deadline, due.location);
        }
        let before = mini_context::mark_notes();
        if let Poll::Ready(output) = poll_until(due, this.future.as_mut(), cx) {
            return Poll::Ready(Ok(output));
        }
        ready!(poll_limit(this.limit, cx));
        // Once more: a deadline inside that has looked at the clock just before is over now, and comes first.
        Poll::Ready(match poll_until(due, this.future, cx) {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => Err(elapsed(this.limit, NOT_KNOWN, before)),
        })
    }
}

impl<F: Future> Future for Inherit<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(taken) = this.due.as_deref() else { return this.future.poll(cx) };
        let _inside = set_due(Some(earlier(*taken, due())));
        this.future.poll(cx)
    }
}

/// Polls a future for which that deadline counts.
#[inline]
fn poll_until<F: Future>(due: Due, future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let _inside = set_due(Some(due));
    future.poll(cx)
}

/// The deadline that counts within both; `own` if they are at the same time.
fn earlier(own: Due, outer: Option<Due>) -> Due {
    outer.filter(|outer| outer.at < own.at).unwrap_or(own)
}
