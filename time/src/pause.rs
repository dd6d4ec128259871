//! Control of time in a test: pause the clock, move it, resume it.
//!
//! Tests on a `current_thread` runtime call it. While the clock is paused and nothing can run, the runtime moves it to
//! the next deadline by itself.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::ClockError;
use crate::current;
use crate::simulated::is_simulated;
use crate::timers::Timers;

/// Future of [`advance`]: resolves to `()` when the clock has been moved.
///
/// # Examples
///
/// ```
/// use mini::time::{Advance, advance};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let step: Advance = advance(Duration::from_secs(1));
/// step.await;
/// # });
/// ```
///
/// # Cancel safety
///
/// *Goes on*: once the future is polled, the clock has moved.
#[must_use = "futures do nothing unless awaited"]
pub struct Advance {
    by: Duration,
    location: &'static Location<'static>,
    is_moved: bool,
}

/// Pauses the clock of the current runtime; does nothing if it is already paused.
///
/// Timers then fire when [`advance`] moves the clock past them, or when the runtime is idle and moves it to the next
/// deadline.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, pause, resume, sleep};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// # resume();
/// pause();
/// let start = Instant::now();
/// sleep(Duration::from_secs(3600)).await;
/// assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// # });
/// ```
///
/// # Panics
///
/// Panics on a thread that runs no mini runtime, or one that is not a `current_thread` runtime.
#[track_caller]
pub fn pause() {
    let timers = current_timers("pause");
    match timers.clock().pause() {
        Ok(()) => timers.notify(),
        Err(error) => refuse("pause", error),
    }
}

/// Resumes the clock of the current runtime from the time that it shows; does nothing if it runs.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, pause, resume};
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// pause();
/// let paused_at = Instant::now();
/// resume();
/// assert!(Instant::now() >= paused_at);
/// # });
/// ```
///
/// # Panics
///
/// Panics on a thread that runs no mini runtime, or one that is not a `current_thread` runtime. Panics in a simulation,
/// whose clock never runs by itself.
#[track_caller]
pub fn resume() {
    assert!(
        !is_simulated(),
        "`mini::time::resume` was called in a simulation, whose clock never runs by itself: it jumps to the next \
         deadline when no task can run"
    );
    let timers = current_timers("resume");
    match timers.clock().resume() {
        Ok(()) => timers.notify(),
        Err(error) => refuse("resume", error),
    }
}

/// Moves the paused clock of the current runtime forward by `duration`, and lets the tasks that this wakes run.
///
/// The clock of the polling runtime moves in one step, at the first poll, so all woken tasks see the new time. They are
/// woken in the order of their deadlines, and are queued before the caller continues. If they sleep again, the caller
/// does not wait for that.
///
/// # Examples
///
/// ```
/// use mini::time::{Instant, advance};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let start = Instant::now();
/// advance(Duration::from_secs(60)).await;
/// assert_eq!(start.elapsed(), Duration::from_secs(60));
/// # });
/// ```
///
/// # Panics
///
/// The first poll panics on a thread that runs no mini runtime, or one that is not a `current_thread` runtime. It also
/// panics if the clock is not paused, or would be moved further than 584 years after its start, where timers end. The
/// call itself does not panic.
///
/// # Cancel safety
///
/// *Goes on*: once the future is polled, the clock has moved.
#[track_caller]
pub fn advance(duration: Duration) -> Advance {
    Advance { by: duration, location: Location::caller(), is_moved: false }
}

#[track_caller]
fn current_timers(call: &str) -> Timers {
    match current::timers() {
        Some(timers) => timers,
        None => panic!(
            "`mini::time::{call}` was called on a thread that runs no mini runtime: use `#[mini::main]`, \
             `mini::block_on` or `Runtime::enter`"
        ),
    }
}

#[track_caller]
fn refuse(call: &str, error: ClockError) -> ! {
    panic!("`mini::time::{call}`: {error}")
}

impl Future for Advance {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_moved {
            return Poll::Ready(());
        }
        let place = self.location;
        let Some(timers) = current::timers() else {
            panic!(
                "`mini::time::advance`, called at {place}, was polled on a thread that runs no mini runtime: use \
                 `#[mini::main]`, `mini::block_on` or `Runtime::enter`"
            )
        };
        if let Err(error) = timers.clock().advance(self.by) {
            panic!("`mini::time::advance`, called at {place}: {error}");
        }
        self.is_moved = true;
        timers.turn();
        // If the driver sleeps, in another thread, its wait was computed by the old time.
        timers.notify();
        // The caller queues behind the tasks just woken.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl fmt::Debug for Advance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Advance").field("by", &self.by).field("is_moved", &self.is_moved).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, UnwindSafe};
    use std::task::Waker;

    use super::*;
    use crate::probe::{Probe, paused_timers};
    use crate::{Clock, Instant, enter, sleep};

    const MS: Duration = Duration::from_millis(1);

    fn panic_of(call: impl FnOnce() + UnwindSafe) -> String {
        *panic::catch_unwind(call).expect_err("it panics").downcast::<String>().unwrap()
    }

    fn poll_advance(duration: Duration) {
        let _ = Probe::default().poll(&mut advance(duration));
    }

    #[test]
    fn without_a_runtime_they_say_so() {
        assert!(panic_of(pause).contains("`mini::time::pause` was called on a thread that runs no"));
        assert!(panic_of(resume).contains("`mini::time::resume` was called on a thread that runs no"));
        let text = panic_of(|| poll_advance(MS));
        assert!(text.contains("was polled on a thread that runs no") && text.contains(file!()), "{text}");
    }

    #[test]
    fn a_real_clock_and_a_running_one_are_refused() {
        let real = Timers::new(Clock::real(), Waker::noop().clone());
        let entered = enter(&real);
        assert!(panic_of(pause).contains("cannot be paused"));
        assert!(panic_of(resume).contains("cannot be paused"));
        assert!(panic_of(|| poll_advance(MS)).contains("cannot be paused"));
        drop(entered);
        let running = Timers::new(Clock::pausable(false), Waker::noop().clone());
        let _entered = enter(&running);
        assert!(panic_of(|| poll_advance(MS)).contains("pause it before moving it"));
    }

    #[test]
    fn advance_moves_the_clock_wakes_what_is_due_and_yields_once() {
        let (timers, notifier) = paused_timers();
        let _entered = enter(&timers);
        let (start, sleeper, probe) = (Instant::now(), Probe::default(), Probe::default());
        let (mut due, mut ahead) = (sleep(MS), sleep(3 * MS));
        assert_eq!((sleeper.poll(&mut due), sleeper.poll(&mut ahead)), (Poll::Pending, Poll::Pending));
        let mut step = advance(2 * MS);
        assert_eq!(start.elapsed(), Duration::ZERO, "not before it is polled");
        assert_eq!(probe.poll(&mut step), Poll::Pending);
        assert_eq!((start.elapsed(), sleeper.wakes(), probe.wakes()), (2 * MS, 1, 1));
        assert_eq!(probe.poll(&mut step), Poll::Ready(()));
        assert_eq!((start.elapsed(), notifier.wakes()), (2 * MS, 0));
    }

    #[test]
    fn an_advance_moves_the_clock_of_the_runtime_that_polls_it() {
        let mut step = advance(MS);
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let start = Instant::now();
        assert_eq!(Probe::default().poll(&mut step), Poll::Pending);
        assert_eq!(start.elapsed(), MS);
    }

    #[test]
    fn a_driver_that_sleeps_learns_that_time_changed() {
        let (timers, notifier) = paused_timers();
        let _entered = enter(&timers);
        for (wakes, change) in [(1, pause as fn()), (2, resume), (3, pause)] {
            let _ = timers.prepare_park();
            change();
            assert_eq!(notifier.wakes(), wakes);
        }
    }

    #[test]
    fn a_driver_that_sleeps_on_another_thread_learns_of_an_advance() {
        let (timers, notifier) = paused_timers();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(timers.prepare_park(), crate::Park::Forever));
        });
        let _entered = enter(&timers);
        assert_eq!(Probe::default().poll(&mut advance(MS)), Poll::Pending);
        assert_eq!(notifier.wakes(), 1);
    }

    #[test]
    fn advance_goes_as_far_as_timers_do() {
        let (timers, _) = paused_timers();
        let _entered = enter(&timers);
        let probe = Probe::default();
        let last = Duration::from_nanos(u64::MAX - 1);
        assert!(panic_of(|| poll_advance(Duration::MAX)).contains("further than 584 years"));
        for duration in [Duration::ZERO, last] {
            let mut step = advance(duration);
            assert_eq!(probe.poll(&mut step), Poll::Pending);
            assert_eq!(probe.poll(&mut step), Poll::Ready(()));
        }
        let text = panic_of(|| poll_advance(MS));
        assert!(text.contains("further than 584 years") && text.contains(file!()), "{text}");
    }
}
