//! One seed: a program from its beginning to its end, or to what it fails of.

use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use mini_context::sim::{self, Faults, Random};
use mini_kernel::scheduler::config::Config;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::threads::Names;
use mini_time::Clock;

use super::coverage::{self, Reached};
use super::failure::{Cause, Details, Failure};
use super::last::Last;
use super::seeds::Outcome;
use super::steps::Step;
use super::tasks::Tasks;
use super::world::{Limits, World};
use super::{disk, hosts, interpose, panics, preempt, sites, unseen};
use crate::insight;
use crate::insight::Dump;
use crate::runtime::Runtime;
use crate::runtime::layers;
use crate::runtime::settings::Settings;
use crate::structure::branches::swap_drawn;
use crate::task::group;

/// A simulation of one seed.
///
/// # Examples
///
/// A program that looks for a seed by itself, under which two tasks lose an update:
///
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use mini::task::{spawn_local, yield_now};
///
/// async fn add(counter: Rc<Cell<u32>>) {
///     let before = counter.get();
///     yield_now().await;
///     counter.set(before + 1);
/// }
///
/// let count = |seed| {
///     let simulation = mini::sim::Sim::new(seed).run(async {
///         let counter = Rc::new(Cell::new(0));
///         let both = [(); 2].map(|()| spawn_local(add(counter.clone())));
///         for task in both {
///             task.await.unwrap();
///         }
///         counter.get()
///     });
///     simulation.unwrap()
/// };
/// assert!((0..100).any(|seed| count(seed) == 1)); // lost
/// assert!((0..100).any(|seed| count(seed) == 2));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a simulation does nothing until `run` is called"]
pub struct Sim {
    limits: Limits,
    skipped: Vec<RangeInclusive<u64>>,
}

impl Sim {
    /// Creates a simulation with that seed.
    ///
    /// # Examples
    ///
    /// See [`Sim`].
    pub fn new(seed: u64) -> Self {
        let (time, steps) = (Duration::from_secs(3600), 1_000_000);
        Self { limits: Limits { seed, time, steps, keeps_steps: false, is_fifo: false }, skipped: Vec::new() }
    }

    /// Sets the maximum virtual time of the simulation: an hour by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let sim = mini::sim::Sim::new(1).time_limit(Duration::from_secs(10));
    /// let failure = sim.run(mini::time::sleep(Duration::from_secs(11))).unwrap_err();
    /// assert!(failure.to_string().contains("10s of virtual time"));
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// Sets the maximum number of polls in a row without an advance of time: a million by default. More count as a
    /// livelock.
    ///
    /// # Examples
    ///
    /// ```
    /// let spins = async {
    ///     loop {
    ///         mini::task::yield_now().await;
    ///     }
    /// };
    /// let failure = mini::sim::Sim::new(1).step_limit(1000).run(spins).unwrap_err();
    /// assert!(failure.to_string().contains("a livelock"));
    /// ```
    pub fn step_limit(mut self, limit: u64) -> Self {
        self.limits.steps = limit;
        self
    }

    /// Leaves out the faults with these numbers, in addition to those that are left out already; see
    /// [`Failure::faults`].
    ///
    /// A fault that is left out keeps its number. The program takes another path without it, so a higher number may be
    /// another fault than before.
    ///
    /// # Examples
    ///
    /// ```
    /// let fails = async || assert!(!(0..100).any(|_| mini::sim::buggify!(0.5)));
    /// let failing = (1..).map(mini::sim::Sim::new).find(|sim| sim.run(fails()).is_err()).unwrap();
    /// let failure = failing.run(fails()).unwrap_err();
    /// assert_eq!(failure.faults()[0].number, 1);
    /// failing.skip([1..=u64::MAX]).run(fails()).unwrap();
    /// ```
    pub fn skip(mut self, numbers: impl IntoIterator<Item = RangeInclusive<u64>>) -> Self {
        self.skipped.extend(numbers);
        self
    }

    /// Runs tasks in the order in which they became ready; they yield only if they must, as on a `current_thread`
    /// runtime. The seed still determines faults, the network and random numbers. Use it for comparisons: a failure
    /// that it finds does not depend on the schedule.
    #[doc(hidden)]
    pub fn fifo(mut self) -> Self {
        self.limits.is_fifo = true;
        self
    }

    pub(super) fn keep_steps(mut self) -> Self {
        self.limits.keeps_steps = true;
        self
    }

    /// Runs `future` on the calling thread, with a clock, a schedule and random numbers that the seed determines.
    ///
    /// # Errors
    ///
    /// If the future or a task whose handle was dropped panics; if the program of a host ends with an error; if nothing
    /// is left that could wake any task; if a limit is reached; if a thread that is not simulated wakes a task; if it
    /// is called in a task or a `block_on`.
    ///
    /// # Panics
    ///
    /// In another simulation; if the system has no descriptors for the runtime; if `MINI_WARN` is neither 0 nor 1.
    ///
    /// # Examples
    ///
    /// See [`Sim`].
    #[track_caller]
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, Failure> {
        self.run_noting(Box::pin(future)).0
    }

    /// Runs the simulation, and also returns the number of the steps and their hash: for tests of what a seed
    /// determines.
    #[doc(hidden)]
    #[track_caller]
    pub fn run_hashed<F: Future>(&self, future: F) -> (Result<F::Output, Failure>, (u64, u64)) {
        let (result, trace) = self.run_noting(future);
        (result, trace.sum)
    }

    /// Runs the simulation, and also returns its [`Trace`].
    #[track_caller]
    pub(super) fn run_noting<F: Future>(&self, future: F) -> (Result<F::Output, Failure>, Trace) {
        self.run_judging(future, |_| None)
    }

    /// Runs the simulation of a test, which also fails if the future returns an error.
    #[track_caller]
    pub(super) fn run_test<F: Future<Output: Outcome>>(&self, future: F) -> (Option<Failure>, Trace) {
        let future = Box::pin(future);
        let (result, trace) = self.run_judging(async { future.await.into_failure() }, Option::clone);
        (result.err(), trace)
    }

    /// Runs the simulation; `judge` decides whether the output is a failure.
    #[track_caller]
    fn run_judging<F: Future>(
        &self,
        future: F,
        judge: impl Fn(&F::Output) -> Option<String>,
    ) -> (Result<F::Output, Failure>, Trace) {
        assert!(!sim::is_simulated(), "a simulation cannot run inside another one: run it on another thread");
        let mut drawn = Drawn::begin(self);
        let runtime = self.runtime();
        let shared = runtime.shared().clone();
        let mut seen = Seen::default();
        let caught = catch_unwind(AssertUnwindSafe(|| runtime.block_on(watch(future, judge, &shared, &mut seen))));
        let world = World::of(&shared.cores[0]).expect("it is simulated");
        let halt = world.take_halt();
        let end = catch_unwind(AssertUnwindSafe(|| drop(runtime))); // with the tasks that are left
        let trace = drawn.end(world);
        let unseen = unseen::take();
        let cause = match (halt, caught, end) {
            (Some((_, dump)), ..) if !unseen.is_empty() => {
                seen.dump = Some(dump);
                Cause::Unseen(unseen)
            }
            (Some((halt, dump)), ..) => {
                seen.dump = Some(dump);
                Cause::Halt(halt)
            }
            (None, Ok(Err(payload)) | Err(payload), _) => Cause::Panic(payload, seen.place.or_else(panics::last)),
            (None, _, Err(payload)) => Cause::Panic(payload, panics::last()),
            (None, Ok(Ok(_)), Ok(())) if !unseen.is_empty() => Cause::Unseen(unseen),
            (None, Ok(Ok(output)), Ok(())) => match seen.returned {
                Some(text) => Cause::Returned(text),
                None => return (Ok(output), trace),
            },
        };
        let (seed, faults, last) = (self.limits.seed, trace.faults.clone(), Last::of(world, &trace));
        (
            Err(Failure::new(Details { seed, cause, faults, dump: seen.dump, last, errors: unseen::take_errors() })),
            trace,
        )
    }

    fn runtime(&self) -> Runtime {
        let mut config = Config::new(false);
        // The clock begins with the time that the program reads in its first step: where `interpose!` is used, it and
        // the standard library's `Instant` are one clock.
        sim::begin_step(0, Duration::ZERO);
        let clock = Clock::paused_at(Instant::now());
        sim::end_step();
        let world = Arc::new(World::new(self.limits, &clock));
        (config.start_paused, config.pick) = (true, Some((clock, world as _)));
        config.thread_name = Names::Prefix(thread::current().name().unwrap_or("unnamed").to_owned());
        let settings = Settings {
            on_task_panic: Some(Arc::new(unseen::note_panic)),
            on_task_error: Some(Arc::new(unseen::note_error)),
            ..Settings::default()
        };
        layers::begin(config, settings).unwrap_or_else(|error| panic!("the simulation cannot be started: {error}"))
    }
}

/// The state that was seen where the main future failed.
#[derive(Default)]
struct Seen {
    dump: Option<Dump>,
    /// Where it panicked.
    place: Option<String>,
    /// The error that it returned.
    returned: Option<String>,
}

/// Runs `future`, and looks at all others as soon as it fails: what runs after that would change the dump.
async fn watch<F: Future>(
    future: F,
    judge: impl Fn(&F::Output) -> Option<String>,
    shared: &Shared,
    seen: &mut Seen,
) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => {
            hosts::thaw(None, &shared.cores[0]);
            seen.returned = judge(&output);
            seen.dump = seen.returned.is_some().then(|| insight::dump(shared));
            Poll::Ready(Ok(output))
        }
        Err(payload) => {
            seen.place = panics::last();
            hosts::thaw(None, &shared.cores[0]);
            seen.dump = Some(insight::dump(shared));
            Poll::Ready(Err(payload))
        }
    })
    .await
}

/// While it lives, this thread is in a simulation: races, budgets and faults draw from its seed.
struct Drawn {
    drawn: u64,
    coin: u32,
    budgets: Option<Random>,
}

impl Drawn {
    fn begin(sim: &Sim) -> Self {
        let seed = sim.limits.seed;
        interpose::begin(seed); // first, as the others may make the first hash map of this thread
        sim::enter(Faults::skipping(sim.skipped.clone()));
        mini_net::sim::enter(seed);
        hosts::reset();
        unseen::reset();
        panics::forget();
        disk::begin(seed);
        sites::begin(seed);
        coverage::begin();
        let mut random = Random::new(seed, 3);
        let coin = mini_context::swap_coin(random.draw() as u32);
        let budgets = (!sim.limits.is_fifo).then(|| Random::new(seed, 4));
        Self { drawn: swap_drawn(random.draw()), coin, budgets: preempt::swap(budgets) }
    }

    /// The program has ended. What did it do?
    fn end(&mut self, world: &World) -> Trace {
        let (reached, hosts) = (coverage::end(), mini_net::sim::host_names());
        interpose::note_use();
        let faults = Arc::new(leave());
        world.with_steps(|steps| {
            let tasks = Tasks { all: steps.take_tasks(), hosts };
            Trace { sum: steps.sum(), steps: steps.take_kept(), tasks, faults, reached }
        })
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        leave();
        swap_drawn(self.drawn);
        mini_context::swap_coin(self.coin);
        preempt::swap(self.budgets);
    }
}

/// No simulation is on this thread any more. Returns the faults of the one that was, the first time.
fn leave() -> Faults {
    hosts::reset();
    group::simulated::forget(None);
    mini_net::sim::leave();
    disk::end();
    sites::end();
    coverage::end();
    sim::leave().unwrap_or_default()
}

/// The trace of a seed's simulation.
#[derive(Debug)]
pub(super) struct Trace {
    /// How many steps, and their hash.
    pub(super) sum: (u64, u64),
    /// The steps, if they are kept.
    pub(super) steps: Vec<Step>,
    pub(super) tasks: Tasks,
    pub(super) faults: Arc<Faults>,
    pub(super) reached: Reached,
}
