//! `Clocks`: the speed of each host's clock, and the lateness of timers.
//!
//! A host whose clock was not skewed shows the time of the simulation. A skewed clock runs faster or slower from some
//! time on, without a jump.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{Random, STEP, Step, inject, now};

/// An exact clock advances by this many parts in the time in which a skewed one advances by `ppm` more.
const PARTS: i128 = 1_000_000;

thread_local! {
    static CLOCKS: RefCell<Clocks> = const { RefCell::new(Clocks { skews: BTreeMap::new(), late: None }) };
}

struct Clocks {
    /// By host.
    skews: BTreeMap<u32, Skew>,
    late: Option<Late>,
}

/// The clock showed `shown` at the time `since`, and makes `ppm` more parts of a million since then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skew {
    since: Duration,
    shown: Duration,
    ppm: i32,
}

/// The probability that a timer is late, and the most by which it is.
struct Late {
    probability: f64,
    most: Duration,
    random: Random,
}

impl Skew {
    fn shown_at(&self, now: Duration) -> Duration {
        self.shown + scaled(now.saturating_sub(self.since), PARTS + i128::from(self.ppm), PARTS)
    }
}

fn scaled(time: Duration, by: i128, of: i128) -> Duration {
    let nanos = time.as_nanos() as i128 * by / of;
    Duration::from_nanos(nanos.clamp(0, i128::from(u64::MAX)) as u64)
}

/// Resets the clocks when a simulation begins or ends on this thread.
pub(super) fn reset() {
    CLOCKS.with_borrow_mut(|clocks| (clocks.skews, clocks.late) = (BTreeMap::new(), None));
}

pub(super) fn skew_of(host: u32) -> Option<Skew> {
    CLOCKS.with_borrow(|clocks| clocks.skews.get(&host).copied())
}

/// Skews the clock of `host`: from now on it runs faster by `ppm` parts in a million, or slower if that is negative.
/// `ppm` must be more than -1,000,000.
pub fn skew(host: u32, ppm: i32) {
    let since = now();
    let shown = skew_of(host).map_or(since, |before| before.shown_at(since));
    let skew = Skew { since, shown, ppm };
    CLOCKS.with_borrow_mut(|clocks| clocks.skews.insert(host, skew));
    let step = STEP.get();
    if step.host == host {
        STEP.set(Step { skew: Some(skew), ..step });
    }
}

/// Makes timers late: from now on a timer that is started is late with that probability, by `most` at most.
pub fn make_timers_late(seed: u64, probability: f64, most: Duration) {
    let late = Late { probability, most, random: Random::new(seed, 7) };
    CLOCKS.with_borrow_mut(|clocks| clocks.late = Some(late));
}

/// Returns the time on the clock of the host whose step is in progress, or `None` if that clock is exact or there is no
/// step.
#[inline]
pub fn host_time() -> Option<Duration> {
    let step = STEP.get();
    let skew = step.skew.filter(|_| step.is_running)?;
    Some(skew.shown_at(step.now))
}

/// Returns the time until a timer fires that the host in progress has set to `wait`: the time that its clock takes for
/// that, and more if the timer is late.
pub fn real_wait(wait: Duration) -> Duration {
    let step = STEP.get();
    if !step.is_running {
        return wait;
    }
    let by_clock = step.skew.map_or(wait, |skew| {
        // Up, so that the host's clock shows at least the time that was set.
        scaled(wait, PARTS, PARTS + i128::from(skew.ppm)) + Duration::from_nanos(2)
    });
    by_clock + draw_lateness()
}

fn draw_lateness() -> Duration {
    let late = CLOCKS.with_borrow_mut(|clocks| {
        let late = clocks.late.as_mut()?;
        let most = late.most.as_nanos().min(u128::from(u64::MAX)) as u64;
        let by = Duration::from_nanos(1 + late.random.below(most.max(1)));
        late.random.happens(late.probability).then_some(by)
    });
    late.filter(|by| inject(|| format!("a timer is late by {by:?}"))).unwrap_or_default()
}
