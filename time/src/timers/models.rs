//! Models, under loom, of threads that add, remove and fire timers at once.

use std::sync::Arc;
use std::task::Wake;

use loom::thread;

use super::*;
use crate::primitives::atomic::AtomicUsize;

/// Counts its wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Count {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0)))
    }

    fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

fn model(model: impl Fn(&Timers) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || model(&Timers::new(Clock::pausable(true), Waker::noop().clone())));
}

/// A timer that is due is added and removed while another thread fires: it wakes once at most, leaves nothing behind,
/// and a timer that takes its place is not touched.
///
/// Planted: `remove` that does not ask for the generation of the key.
#[test]
fn a_timer_is_removed_or_fires() {
    model(|timers| {
        let (first, second) = (Count::new(), Count::new());
        let other = timers.clone();
        let driver = thread::spawn(move || other.turn());
        let lease = timers.0.lease;
        let now = timers.clock().now();
        let (key, _) = lease.add(now, first.clone().into()).unwrap();
        let (next, _) = lease.add(now.saturating_add(Duration::from_secs(1)), second.clone().into()).unwrap();
        lease.remove(key);
        lease.remove(key);
        let fired = driver.join().unwrap();
        assert_eq!((timers.turn(), timers.len()), (0, 1));
        assert_eq!((first.get(), second.get()), (fired, 0));
        lease.remove(next);
        assert!(timers.is_empty());
    });
}

/// A timer is added while the driver turns: if that turn misses it, the next turn and a park do not.
///
/// Planted: `note` left out of `finish_change`.
#[test]
fn a_turn_that_comes_too_early_leaves_the_timer_to_the_next() {
    model(|timers| {
        let count = Count::new();
        let adder = thread::spawn({
            let (timers, count) = (timers.clone(), count.clone());
            move || drop(timers.0.lease.add(timers.clock().now(), count.into()))
        });
        timers.turn();
        let park = timers.prepare_park();
        adder.join().unwrap();
        timers.finish_park();
        assert!(count.get() == 0 || park == Park::Forever);
        timers.turn();
        assert_eq!(count.get(), 1);
    });
}

/// The owner and another thread that minds its timers both turn: each timer wakes once.
///
/// Planted: `expire` that leaves what it takes in the slab.
#[test]
fn two_who_turn_fire_each_timer_once() {
    model(|timers| {
        let counts = [Count::new(), Count::new()];
        for count in &counts {
            timers.0.lease.add(timers.clock().now(), count.clone().into()).unwrap();
        }
        let other = timers.clone();
        let minder = thread::spawn(move || other.turn());
        let fired = timers.turn() + minder.join().unwrap();
        assert_eq!(fired, 2);
        assert_eq!(counts.map(|count| count.get()), [1, 1]);
        assert!(timers.is_empty());
    });
}

/// The timers end while another thread adds one: it is refused, or woken.
///
/// Planted: `add` that does not ask whether they were shut down.
#[test]
fn who_comes_during_the_end_is_refused_or_woken() {
    model(|timers| {
        let count = Count::new();
        let adder = thread::spawn({
            let (timers, count) = (timers.clone(), count.clone());
            move || timers.0.lease.add(timers.clock().now(), count.into()).is_err()
        });
        timers.shutdown();
        let is_refused = adder.join().unwrap();
        assert_eq!(count.get(), usize::from(!is_refused));
        assert!(timers.is_empty());
    });
}
