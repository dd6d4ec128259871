//! Time for the `mini` runtime: a clock that can be paused, timers that fire to the microsecond and never early, and
//! the futures made of them. If many timers are due less than 40 µs apart, an otherwise idle driver wakes once for all
//! timers within up to half a millisecond.
//!
//! Timers are kept in a hierarchical timing wheel (Varghese and Lauck, SOSP 1987): rings of 2048 slots, for the next
//! 134 ms, 137 s, 39 hours, 4.5 years and all that can be counted. Adding, moving or removing a timer costs the same
//! however many are pending.
//!
//! Users get all of it as `mini::time`. A runtime makes a [`Clock`], [`Timers`] for each of its drivers, and enters
//! them ([`enter`]) on the threads where it polls. Nothing here knows about tasks or I/O: what crosses the border is
//! [`Waker`](std::task::Waker), up and down.
//!
//! # Examples
//!
//! ```
//! use mini::time::{error::Elapsed, sleep, timeout};
//! use std::time::Duration;
//!
//! # mini::block_on(async {
//! # mini::time::pause();
//! let slow = sleep(Duration::from_secs(10));
//! assert_eq!(timeout(Duration::from_millis(20), slow).await, Err(Elapsed::new()));
//! # });
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod current;
mod deadline;
pub mod error;
mod instant;
mod interval;
mod pause;
mod primitives;
#[cfg(test)]
mod probe;
#[cfg_attr(not(feature = "sim"), path = "not_simulated.rs")]
mod simulated;
mod sleep;
mod timeout;
mod timers;
mod wheel;

pub use clock::{Clock, ClockError};
pub use current::{EnterGuard, enter};
pub use deadline::{Deadline, current_deadline, deadline, remaining};
#[doc(hidden)]
pub use deadline::{Inherit, inherit};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, Tick, interval, interval_at};
pub use pause::{Advance, advance, pause, resume};
pub use sleep::{Sleep, sleep, sleep_until};
#[doc(hidden)]
pub use sleep::{retry_after, sleep_of};
pub use timeout::{Timeout, timeout, timeout_at};
pub use timers::{Park, Timers};

const _: () = {
    const fn assert_anywhere<T: Send + Sync + Unpin>() {}
    assert_anywhere::<Advance>();
    assert_anywhere::<Clock>();
    assert_anywhere::<error::Elapsed>();
    assert_anywhere::<error::WaitedFor>();
    assert_anywhere::<Deadline<std::future::Ready<()>>>();
    assert_anywhere::<Inherit<std::future::Ready<()>>>();
    assert_anywhere::<Interval>();
    assert_anywhere::<Tick<'_>>();
    assert_anywhere::<Timeout<std::future::Ready<()>>>();
    assert_anywhere::<Timers>();
};
