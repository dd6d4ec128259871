//! `Current`, the simulation of the calling thread, with its settings and queries.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::current;
use mini_kernel::scheduler::shared::Shared;

use super::cancel::CancelAtRandom;
use super::coverage;
use super::picks::waiting;
use super::world::World;

/// The simulation in which the calling task runs.
///
/// # Examples
///
/// ```
/// mini::sim::Sim::new(7)
///     .run(async {
///         let sim = mini::sim::current();
///         mini::time::sleep(std::time::Duration::from_secs(3600)).await; // takes no time
///         assert_eq!(sim.elapsed().as_secs(), 3600);
///         assert_eq!(sim.seed(), 7);
///     })
///     .unwrap();
/// ```
#[derive(Clone)]
pub struct Current {
    shared: Arc<Shared>,
}

/// Returns the simulation in which the calling task runs.
///
/// # Panics
///
/// If it runs in none: see [`try_current`].
///
/// # Examples
///
/// See [`Current`].
#[track_caller]
pub fn current() -> Current {
    try_current().expect("mini::sim::current() was called outside a simulation; see mini::sim::Sim")
}

/// Returns the simulation in which the calling task runs, or `None`.
///
/// # Examples
///
/// ```
/// assert!(mini::block_on(async { mini::sim::try_current().is_none() }));
/// ```
pub fn try_current() -> Option<Current> {
    let shared = current::with_shared(Arc::clone)?;
    World::of(&shared.cores[0]).is_some().then_some(Current { shared })
}

/// Returns a random number that the seed determines: [`Current::rand`] of the simulation in which the calling task
/// runs.
///
/// # Panics
///
/// If it runs in none.
///
/// # Examples
///
/// ```
/// let roll = |seed| mini::sim::Sim::new(seed).run(async { mini::sim::rand() % 6 + 1 }).unwrap();
/// assert_eq!(roll(7), roll(7));
/// assert!((1..=6).all(|face| (0..100).any(|seed| roll(seed) == face)));
/// ```
#[track_caller]
pub fn rand() -> u64 {
    current().rand()
}

impl Current {
    /// The owner's, which the calling task is.
    pub(super) fn core(&self) -> &Core {
        &self.shared.cores[0]
    }

    fn world(&self) -> &World {
        World::of(self.core()).expect("it is a simulation")
    }

    /// Returns the seed of the simulation.
    ///
    /// # Examples
    ///
    /// See [`Current`].
    pub fn seed(&self) -> u64 {
        self.world().seed()
    }

    /// Returns the virtual time since the simulation began.
    ///
    /// # Examples
    ///
    /// See [`Current`].
    pub fn elapsed(&self) -> Duration {
        self.world().elapsed(self.shared.cores[0].driver().timers().clock().now())
    }

    /// Returns a random number that the seed determines, from a stream of its own: drawing more does not change the
    /// schedule.
    ///
    /// # Examples
    ///
    /// ```
    /// let draw = || mini::sim::Sim::new(7).run(async { mini::sim::current().rand() }).unwrap();
    /// assert_eq!(draw(), draw());
    /// ```
    pub fn rand(&self) -> u64 {
        self.world().draw()
    }

    /// Awaits `future`, and at each of its awaits that has to wait drops it instead, with that probability.
    ///
    /// Any future may be dropped where it awaits: by a `race!`, a timeout, an abort. Values that it has taken out of a
    /// variable or a channel by then are lost, unless the future is written with care; this method tests that. Each
    /// drop is a fault, with a number and the line where the future waited. Each line that calls this method has random
    /// numbers of its own, which the seed determines.
    ///
    /// The output is `None` if the future was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sync::mpsc;
    /// use mini::time::{Duration, sleep};
    ///
    /// async fn forward(receive: &mut mpsc::Receiver<u32>, done: &mut Vec<u32>) {
    ///     while let Some(number) = receive.recv().await {
    ///         sleep(Duration::from_millis(1)).await; // if it is dropped here, the number is lost
    ///         done.push(number);
    ///     }
    /// }
    ///
    /// let all_arrive = async || {
    ///     let (send, mut receive) = mpsc::channel(10);
    ///     (0..10).for_each(|number| send.try_send(number).unwrap());
    ///     drop(send);
    ///     let mut done = Vec::new();
    ///     let sim = mini::sim::current();
    ///     while sim.cancel_at_random(0.1, forward(&mut receive, &mut done)).await.is_none() {}
    ///     assert_eq!(done.len(), 10);
    /// };
    /// assert!((0..10).any(|seed| mini::sim::Sim::new(seed).run(all_arrive()).is_err()));
    /// ```
    ///
    /// # Panics
    ///
    /// If `probability` is not a number from 0 to 1. The future panics if it is polled after it was ready.
    ///
    /// # Cancel safety
    ///
    /// As cancel safe as `future`, which is dropped together with the returned future.
    #[track_caller]
    pub fn cancel_at_random<F: Future>(&self, probability: f64, future: F) -> CancelAtRandom<F> {
        CancelAtRandom::new(probability, future)
    }

    /// Makes a test with seeds fail if none of its seeds reaches that text: an
    /// [`assert_reachable!`](super::assert_reachable), or an [`assert_sometimes!`](super::assert_sometimes) whose
    /// condition holds.
    ///
    /// Call it at the beginning of the test: a line that no seed has reached is otherwise unknown. In a [`Sim`] that a
    /// program runs by itself, nothing is counted, so this method does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::sim::{assert_reachable, buggify, current};
    ///
    /// // The body of a #[mini::test(sim, seeds = 200)].
    /// async fn what_is_lost_is_sent_again() {
    ///     current().must_reach("sent again");
    ///     while buggify!() {
    ///         assert_reachable!("sent again");
    ///     }
    /// }
    /// # mini::sim::Seeds::new("docs", "what_is_lost_is_sent_again", 200).run(what_is_lost_is_sent_again);
    /// # let never = std::panic::catch_unwind(|| {
    /// #     mini::sim::Seeds::new("docs", "never", 2).run(|| async { current().must_reach("the moon") })
    /// # });
    /// # assert!(never.unwrap_err().downcast::<String>().unwrap().starts_with("no seed of 2 reached \"the moon\"\n"));
    /// ```
    ///
    /// [`Sim`]: super::Sim
    #[track_caller]
    pub fn must_reach(&self, text: &'static str) {
        coverage::note_must(text);
    }

    /// Waits until every other task waits for something, without advancing the time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let (send, mut receive) = mini::sync::mpsc::channel(1);
    ///         let task = mini::spawn(async move {
    ///             mini::time::sleep(Duration::from_secs(1)).await;
    ///             drop(send.send(1).await);
    ///         });
    ///         mini::sim::current().settle().await;
    ///         assert!(receive.try_recv().is_err()); // it sleeps, and no time has passed
    ///         task.await.unwrap();
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Panics
    ///
    /// If it is polled outside of the simulation.
    pub fn settle(&self) -> Settle<'_> {
        Settle { current: self, counts: false }
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("seed", &self.seed()).field("elapsed", &self.elapsed()).finish()
    }
}

/// Future of [`Current::settle`]: resolves to `()` when every other task waits.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Settle<'a> {
    current: &'a Current,
    /// It is among those that settle.
    counts: bool,
}

impl Future for Settle<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &self.current.shared;
        let core = current::held_of(shared).expect("a future of `settle` was polled outside its simulation");
        // Those that settle too are queued while this one runs.
        let settling = &self.current.world().settling;
        let others = settling.load(Relaxed) - u64::from(self.counts);
        // What this step has sent on its host is there at the next one.
        if self.counts && waiting(core) as u64 <= others {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut self.counts, true) {
            self.current.world().settling.fetch_add(1, Relaxed);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        self.current.world().settling.fetch_sub(self.counts.into(), Relaxed);
    }
}
