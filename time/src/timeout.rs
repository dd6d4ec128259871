//! A future with a time limit.
//!
//! The future is polled first, so if it is ready at once it costs no timer. At the poll in which the time is over, it
//! has therefore just noted again what it waits for. The error reports that, and only the duration has to be kept from
//! the beginning.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mini_context::{Note, NoteMark, Reason, Wait};
use pin_project_lite::pin_project;

use crate::error::{Elapsed, NOT_KNOWN};
use crate::instant::Instant;
use crate::sleep::{Origin, Sleep};

pin_project! {
    /// Future of [`timeout`] and [`timeout_at`]: resolves to `Result<F::Output, Elapsed>`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::{Timeout, timeout};
    /// use std::{future, time::Duration};
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let limited: Timeout<_> = timeout(Duration::from_secs(1), future::ready(7));
    /// assert_eq!(limited.await, Ok(7));
    /// # });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Same as the inner future, which is dropped with the `Timeout`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        limit: Sleep,
        // In nanoseconds, for the error.
        after: u64,
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Timeout<()>>() == size_of::<Sleep>() + 8);

/// Limits the time of `future` to `duration`, counted from this call.
///
/// The output is that of `future`, or [`Elapsed`] if the time is over first. If both happen at the same poll, the
/// output of `future` wins. When the time is over, `future` is not dropped at once, but with the [`Timeout`]. The limit
/// applies to waiting, not to computing: a future that never returns from its `poll` cannot be stopped. If the time is
/// over at the first poll, and `future` is not ready then, other tasks may run before the timeout is ready.
///
/// # Examples
///
/// ```
/// use mini::time::{sleep, timeout};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let second = Duration::from_secs(1);
/// assert!(timeout(second, sleep(second / 2)).await.is_ok());
/// assert!(timeout(second, sleep(second * 2)).await.is_err());
/// # });
/// ```
///
/// # Errors
///
/// Returns [`Elapsed`], which converts into an [`std::io::Error`] of the kind `TimedOut`.
///
/// # Panics
///
/// Panics like [`sleep`](crate::sleep()) if `future` is not ready at the first poll.
///
/// # Cancel safety
///
/// Same as `future`, which is dropped with the [`Timeout`].
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    let limit = Sleep::after(duration, Origin::Timeout);
    // Wrong above 584 years, after which no limit ends.
    Timeout { future: future.into_future(), limit, after: duration.as_nanos() as u64 }
}

/// Limits `future` to the time until `deadline`; see [`timeout`].
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, sleep, timeout_at};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let deadline = Instant::now() + Duration::from_secs(1);
/// assert!(timeout_at(deadline, sleep(Duration::from_millis(600))).await.is_ok());
/// assert!(timeout_at(deadline, sleep(Duration::from_millis(600))).await.is_err());
/// # });
/// ```
///
/// # Errors
///
/// Returns [`Elapsed`], which converts into an [`std::io::Error`] of the kind `TimedOut`.
///
/// # Panics
///
/// Panics like [`sleep`](crate::sleep()) if `future` is not ready at the first poll.
///
/// # Cancel safety
///
/// Same as `future`, which is dropped with the [`Timeout`].
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    let limit = Sleep::new(deadline, Origin::TimeoutAt);
    Timeout { future: future.into_future(), limit, after: NOT_KNOWN }
}

/// After a poll of the future that was not ready.
#[inline]
pub(crate) fn poll_limit(limit: &mut Sleep, cx: &mut Context<'_>) -> Poll<()> {
    let is_first = limit.is_new();
    // Outside the budget: the future may spend all of it, at each poll.
    ready!(limit.poll_elapsed(cx));
    // But in a loop, a limit that is over before any wait would keep other tasks from running. It yields once at most.
    if is_first { mini_context::poll_budget(cx, limit) } else { Poll::Ready(()) }
}

/// The error of a limit that is over, whose future was polled since `before`, and is not ready.
#[cold]
#[inline(never)]
pub(crate) fn elapsed(limit: &Sleep, after: u64, before: NoteMark) -> Elapsed {
    let location = limit.location();
    let own = Note { reason: Reason::Limit(0), location };
    let known = Wait::of(mini_context::notes_since(before)).map(|wait| wait.resolve(mini_context::task()));
    Elapsed::of(known.unwrap_or_else(|| Wait::from(own)), location, after)
}

impl<F> Timeout<F> {
    /// Returns a reference to the inner future.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let limited = mini::time::timeout(Duration::MAX, std::future::ready(7));
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
    /// # use std::time::Duration;
    /// use std::future;
    ///
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let mut limited = mini::time::timeout(Duration::MAX, future::ready(7));
    /// *limited.get_mut() = future::ready(8);
    /// assert_eq!(limited.await, Ok(8));
    /// # });
    /// ```
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Returns the inner future, without the limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # mini::block_on(async {
    /// # mini::time::pause();
    /// let limited = mini::time::timeout(Duration::ZERO, std::future::ready(7));
    /// assert_eq!(limited.into_inner().await, 7);
    /// # });
    /// ```
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    // With the room for an error in the result, a call would cost 25 instructions more than the body.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(mini_context::check_order(cx, &*self)); // or the limit could win, as the future is refused
        let this = self.project();
        let before = mini_context::mark_notes();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        ready!(poll_limit(this.limit, cx));
        Poll::Ready(Err(elapsed(this.limit, *this.after, before)))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::future;
    use std::panic::Location;

    use mini_context::{begin_poll, leave_note, take_notes};

    use super::*;
    use crate::probe::{Probe, pass, paused_timers};
    use crate::{Timers, deadline, enter, sleep};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn ready_at_the_first_poll_needs_no_timer_and_no_runtime() {
        let probe = Probe::default();
        assert_eq!(probe.poll(&mut timeout(MS, future::ready(7))), Poll::Ready(Ok(7)));
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let mut limited = timeout(MS, future::ready(7));
        assert_eq!(probe.poll(&mut limited), Poll::Ready(Ok(7)));
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn it_ends_at_the_limit_and_not_before() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let mut limited = timeout(MS, future::pending::<()>());
        assert_eq!(probe.poll(&mut limited), Poll::Pending);
        assert_eq!((pass(&timers, MS - Duration::from_nanos(1)), probe.wakes()), (0, 0));
        assert_eq!(probe.poll(&mut limited), Poll::Pending);
        assert_eq!((pass(&timers, Duration::from_nanos(1)), probe.wakes()), (1, 1));
        assert_eq!(probe.poll(&mut limited), Poll::Ready(Err(Elapsed::new())));
    }

    #[test]
    fn the_output_wins_when_both_are_due() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let mut limited = timeout(MS, sleep(MS));
        assert_eq!(probe.poll(&mut limited), Poll::Pending);
        assert_eq!(pass(&timers, MS), 2);
        assert_eq!(probe.poll(&mut limited), Poll::Ready(Ok(())));
    }

    #[test]
    fn a_future_whose_time_has_come_before_the_first_poll_wins() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let (start, [first, second, third]) = (Instant::now(), [(); 3].map(|()| sleep(MS)));
        timers.clock().advance(MS).unwrap();
        assert_eq!(probe.poll(&mut timeout(Duration::ZERO, first)), Poll::Ready(Ok(())));
        assert_eq!(probe.poll(&mut timeout_at(start, second)), Poll::Ready(Ok(())));
        assert_eq!(probe.poll(&mut deadline(start, third)), Poll::Ready(Ok(())));
    }

    #[test]
    fn dropping_it_removes_both_timers() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let mut limited = timeout(MS, sleep(2 * MS));
        assert_eq!(probe.poll(&mut limited), Poll::Pending);
        assert_eq!(timers.len(), 2);
        drop(limited);
        assert_eq!((timers.len(), probe.wakers()), (0, 0));
    }

    #[test]
    fn a_limit_of_zero_still_polls_once() {
        let probe = Probe::default();
        assert_eq!(probe.poll(&mut timeout(Duration::ZERO, future::ready(()))), Poll::Ready(Ok(())));
        let mut limited = timeout(Duration::ZERO, future::pending::<()>());
        assert_eq!(probe.poll(&mut limited), Poll::Ready(Err(Elapsed::new())));
    }

    #[test]
    fn a_future_that_always_spends_the_budget_is_stopped() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let busy = async {
            loop {
                sleep(Duration::ZERO).await;
            }
        };
        let mut limited = timeout(MS, Box::pin(busy));
        let mut poll = || -> Poll<Result<(), Elapsed>> {
            begin_poll(7);
            let polled = probe.poll(&mut limited);
            mini_context::end_poll();
            polled
        };
        for wakes in 1..4 {
            assert_eq!((poll(), probe.wakes()), (Poll::Pending, wakes));
        }
        timers.clock().advance(MS).unwrap();
        assert_eq!(poll(), Poll::Ready(Err(Elapsed::new())));
    }

    #[test]
    fn a_future_that_leaves_one_of_the_budget_is_stopped() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let busy = future::poll_fn(|_| {
            begin_poll(7);
            assert!((0..127).all(|_| Probe::default().poll(&mut sleep(Duration::ZERO)).is_ready()));
            Poll::<()>::Pending
        });
        let mut limited = timeout(MS, busy);
        assert_eq!(probe.poll(&mut limited), Poll::Pending);
        assert_eq!(pass(&timers, MS), 1);
        assert_eq!(probe.poll(&mut limited), Poll::Ready(Err(Elapsed::new())));
    }

    #[test]
    fn it_notes_its_own_place_and_limit() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let mut limited = timeout_at(Instant::now() + MS, future::pending::<()>());
        let line = line!() - 1;
        assert_eq!(Probe::default().poll(&mut limited), Poll::Pending);
        let note = take_notes().timer.unwrap();
        assert_eq!((note.reason(), note.location().line()), (Reason::Limit(1_000_000), line));
    }

    #[test]
    fn its_note_gives_way_to_that_of_what_it_limits() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let (mut limited, mut twice) =
            (timeout(MS, sleep(MS * 2)), timeout(MS, timeout(MS * 3, future::pending::<()>())));
        assert!(Probe::default().poll(&mut limited).is_pending());
        let note = take_notes().timer.unwrap();
        assert_eq!(note.reason(), Reason::Timer(2_000_000));
        assert!(Probe::default().poll(&mut twice).is_pending());
        let note = take_notes().timer.unwrap();
        assert_eq!(note.reason(), Reason::Limit(3_000_000));
    }

    /// The error of a limit that is over in the poll after the next, whose inner future is polled after `neighbour`.
    fn elapsed_beside<N: Future + Unpin, F: Future<Output: Debug> + Unpin>(
        timers: &Timers,
        neighbour: &mut N,
        limited: &mut F,
    ) -> F::Output {
        let probe = Probe::default();
        for _ in 0..2 {
            begin_poll(0);
            assert!(probe.poll(neighbour).is_pending());
            if let Poll::Ready(output) = probe.poll(limited) {
                return output;
            }
            pass(timers, MS);
        }
        panic!("the limit is over");
    }

    #[test]
    fn the_error_says_what_the_future_waited_for() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let slow = sleep(MS * 9);
        let (mut limited, line) = (timeout(MS, slow), line!());
        let error = elapsed_beside(&timers, &mut future::pending::<()>(), &mut limited).unwrap_err();
        let at = error.waited_for().unwrap().location();
        assert_eq!((at.line(), error.location().line()), (line - 1, line));
        assert_eq!(error.to_string(), format!("deadline has elapsed after 1ms while waiting for Timer at {at}"));
        assert_eq!(std::io::Error::from(error).to_string(), error.to_string());
        let debug = format!("{error:?}");
        assert!(debug.contains(&format!("Timer at {at}")) && debug.contains(&error.location().to_string()), "{debug}");
    }

    #[test]
    fn the_error_says_nothing_of_a_neighbours_wait() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let mut beside = sleep(MS * 9);
        let mut neighbour = future::poll_fn(|_| {
            leave_note(Note { reason: Reason::Join(7), location: Location::caller() });
            Probe::default().poll(&mut beside)
        });
        let mut limited = timeout_at(Instant::now() + MS, future::pending::<()>());
        let error = elapsed_beside(&timers, &mut neighbour, &mut limited).unwrap_err();
        assert_eq!((error.waited_for(), error.limit()), (None, None));
        let at = error.location();
        let text = format!("deadline has elapsed while waiting for something unknown, with a time limit at {at}");
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn the_outer_error_tells_of_the_future_inside_of_both_limits() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let mut limited = timeout(MS, timeout(MS * 3, sleep(MS * 9)));
        let error = elapsed_beside(&timers, &mut sleep(MS * 9), &mut limited).unwrap_err();
        assert!(error.waited_for().unwrap().to_string().starts_with("Timer at "));
        let inner = timeout(MS * 3, future::pending::<()>());
        let at = inner.limit.location();
        let error = elapsed_beside(&timers, &mut future::pending::<()>(), &mut timeout(MS, inner)).unwrap_err();
        assert!(error.to_string().ends_with(&format!("something unknown, with a time limit at {at}")), "{error}");
        assert_eq!(error.waited_for(), None);
    }
}
