//! The alert: for how long workers act as if another one were stuck, after the watch has seen one that was.
//!
//! The watch raises it and ends it, at its looks; the workers ask for it, and say what they do for it. All of it is a hint, by
//! relaxed loads and stores: two who count at once may count once, and what the watch has renewed meanwhile be spent until its
//! next look.

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// How long it lasts after the last look that found a stuck worker, whatever it costs. Who is stuck less often than that delays
/// others by up to two milliseconds each time, which are not a hundredth of the time.
const BRIEF: Duration = Duration::from_millis(250);

/// The same as long as there is credit.
const LONG: Duration = Duration::from_secs(10);

/// How often somebody may be woken, or rise, for its sake and in vain, as no look finds a stuck worker again.
const CREDIT: u32 = 64;

/// How often workers are called between two looks.
const CALLS: u8 = 4;

#[derive(Debug, Default)]
pub(crate) struct Alert {
    is_on: AtomicBool,
    /// What is left of [`CREDIT`].
    credit: AtomicU32,
    /// What is left of [`CALLS`].
    calls: AtomicU8,
}

impl Alert {
    /// Whether workers have been stuck lately.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Whether somebody may call a worker: that has not been done too often since the last look.
    pub(crate) fn may_call(&self) -> bool {
        self.calls.load(Relaxed) > 0
    }

    /// A worker has been called.
    pub(crate) fn note_call(&self) {
        self.calls.store(self.calls.load(Relaxed).saturating_sub(1), Relaxed);
        self.spend();
    }

    /// Somebody is woken, or rises, for the sake of the alert.
    pub(crate) fn spend(&self) {
        self.credit.store(self.credit.load(Relaxed).saturating_sub(1), Relaxed);
    }

    /// Workers may be called again, the watch has looked.
    pub(super) fn renew_calls(&self) {
        self.calls.store(CALLS, Relaxed);
    }

    /// A look at `now` has found a stuck worker, or none; `last` is when one was found last.
    pub(super) fn note_look(&self, is_stuck: bool, last: &mut Option<Instant>, now: Instant) {
        if is_stuck {
            *last = Some(now);
            self.credit.store(CREDIT, Relaxed);
        }
        let lasts = if self.credit.load(Relaxed) > 0 { LONG } else { BRIEF };
        *last = last.filter(|&last| now.saturating_duration_since(last) < lasts);
        self.is_on.store(last.is_some(), Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// For how many milliseconds the alert lasts if it is used `calls` times after each look, one every ten milliseconds.
    fn lasts(calls: u32) -> u64 {
        let (alert, begin, mut last) = (Alert::default(), Instant::now(), None);
        alert.note_look(false, &mut last, begin);
        assert!(!alert.is_on());
        alert.note_look(true, &mut last, begin);
        for millis in (0..).step_by(10) {
            alert.note_look(false, &mut last, begin + Duration::from_millis(millis));
            if !alert.is_on() {
                return millis;
            }
            (0..calls).for_each(|_| alert.spend());
        }
        unreachable!()
    }

    #[test]
    fn it_lasts_for_long_where_it_costs_little() {
        assert_eq!(lasts(0), 10_000);
        assert_eq!(lasts(1), 640);
        assert_eq!(lasts(50), 250);
    }

    #[test]
    fn a_stuck_worker_renews_it() {
        let (alert, begin, mut last) = (Alert::default(), Instant::now(), None);
        for millis in (0..20_000).step_by(200) {
            alert.note_look(true, &mut last, begin + Duration::from_millis(millis));
            (0..1000).for_each(|_| alert.spend());
            alert.note_look(false, &mut last, begin + Duration::from_millis(millis + 199));
            assert!(alert.is_on());
        }
    }

    #[test]
    fn a_few_calls_a_look() {
        let alert = Alert::default();
        alert.renew_calls();
        for _ in 0..CALLS {
            assert!(alert.may_call());
            alert.note_call();
        }
        assert!(!alert.may_call());
        alert.renew_calls();
        assert!(alert.may_call());
    }
}
