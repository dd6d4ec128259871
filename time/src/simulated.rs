//! The clock in a simulation: each host has one, which may be skewed, and timers may be late.
//!
//! The clock of the runtime shows the time of the simulation. A task reads the time of its host, and sets timers by it.

use std::time::Duration;

use mini_context::sim;

use crate::instant::Instant;
use crate::timers::Timers;

#[inline]
pub(crate) fn is_simulated() -> bool {
    mini_context::sim::is_simulated()
}

/// The time that the host in progress shows at the time `now`.
pub(crate) fn shown(now: Instant) -> Instant {
    let Some(shown) = sim::host_time() else { return now };
    let real = sim::now();
    if shown >= real { now.saturating_add(shown - real) } else { now.checked_sub(real - shown).unwrap_or(now) }
}

/// The time at which a timer goes off that the host in progress has set to `deadline`.
pub(crate) fn meant(deadline: Instant, now: impl FnOnce() -> Instant) -> Instant {
    if !is_simulated() {
        return deadline;
    }
    let now = now();
    let shown = shown(now);
    let wait = deadline.saturating_duration_since(shown);
    // What is further away than a century is for never.
    let is_near = wait > Duration::ZERO && wait < Duration::from_secs(100 * 365 * 24 * 3600);
    let real = if is_near { sim::real_wait(wait) } else { wait };
    if real == wait && shown == now { deadline } else { now.saturating_add(real) }
}

impl Timers {
    /// Moves a paused clock like [`auto_advance`](Timers::auto_advance), but no further than to `limit`.
    #[doc(hidden)]
    pub fn auto_advance_until(&self, limit: Option<Instant>) -> bool {
        self.advance_to_first(limit.map(|limit| self.clock().nanos(limit)))
    }
}
