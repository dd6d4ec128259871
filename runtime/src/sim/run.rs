//! One seed: a program from its beginning to its end, or to what it fails of.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mini_context::sim::{self, Faults, Random};

use super::steps::Step;
use super::world::{Halt, Limits, World};
use super::{hosts, preempt};
use crate::insight::Dump;
use crate::primitives::{Mutex, lock};
use crate::runtime::Runtime;
use crate::scheduler::config::Config;
use crate::scheduler::shared::Shared;
use crate::structure::branches::swap_drawn;
use crate::task::error::message;

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
}

impl Sim {
    /// A simulation of that seed.
    ///
    /// # Examples
    ///
    /// See [`Sim`].
    pub fn new(seed: u64) -> Self {
        let (time, steps) = (Duration::from_secs(3600), 1_000_000);
        Self { limits: Limits { seed, time, steps, keeps_steps: false } }
    }

    /// How much virtual time it may take: an hour by default.
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

    /// How many runs of tasks there may be in a row without the time going on: a million by default. More are taken for
    /// a livelock.
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

    pub(super) fn keep_steps(mut self) -> Self {
        self.limits.keeps_steps = true;
        self
    }

    /// Runs `future` on the calling thread, with a clock, a schedule and random numbers that the seed determines.
    ///
    /// # Errors
    ///
    /// If the future or a task whose handle was dropped panics; if nothing is left that could wake any task; if a limit
    /// is reached; if a socket is waited for, or a thread that is not simulated wakes a task.
    ///
    /// # Panics
    ///
    /// In a task or a `block_on`; if the system has no descriptors for the runtime.
    ///
    /// # Examples
    ///
    /// See [`Sim`].
    #[track_caller]
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, Failure> {
        self.run_noting(future).0
    }

    /// The same, with the steps and their number and hash.
    #[track_caller]
    pub(super) fn run_noting<F: Future>(&self, future: F) -> (Result<F::Output, Failure>, Trace) {
        let _drawn = Drawn::from(self.limits.seed);
        let unseen = Arc::default();
        let runtime = self.runtime(Arc::clone(&unseen));
        let shared = runtime.shared().clone();
        let mut dump = None;
        // What runs once the future has panicked would change the dump.
        let caught = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                let mut future = pin!(future);
                poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                    Ok(Poll::Pending) => Poll::Pending,
                    Ok(Poll::Ready(output)) => {
                        hosts::thaw(None, &shared.cores[0]);
                        Poll::Ready(Ok(output))
                    }
                    Err(payload) => {
                        hosts::thaw(None, &shared.cores[0]);
                        dump = Some(shared.dump());
                        Poll::Ready(Err(payload))
                    }
                })
                .await
            })
        }));
        let world = shared.cores[0].world.as_deref().expect("it is simulated");
        let (trace, halt) = (Trace::of(world), world.take_halt());
        let end = catch_unwind(AssertUnwindSafe(|| drop(runtime))); // with the tasks that are left
        let cause = match (halt, caught, end) {
            (Some((halt, seen)), ..) => {
                dump = Some(seen);
                Cause::Halt(halt)
            }
            (None, Ok(Err(payload)) | Err(payload), _) | (None, _, Err(payload)) => Cause::Panic(payload),
            (None, Ok(Ok(output)), Ok(())) if lock(&unseen).is_empty() => return (Ok(output), trace),
            (None, Ok(Ok(_)), Ok(())) => Cause::Unseen(lock(&unseen).join("; ")),
        };
        let details = Details { seed: self.limits.seed, cause, dump, last: Last::of(world) };
        (Err(Failure(Box::new(details))), trace)
    }

    fn runtime(&self, unseen: Arc<Mutex<Vec<String>>>) -> Runtime {
        let mut config = Config::new(false);
        (config.start_paused, config.simulation) = (true, Some(self.limits));
        config.on_task_panic =
            Some(Arc::new(move |error| lock(&unseen).push(format!("{error}, and nobody awaits it"))));
        Runtime::new_from(Shared::new(config).expect("the system has descriptors for a runtime"))
    }
}

/// While it lives, races and budgets on this thread draw from a seed.
struct Drawn(u64, u32, Option<Random>);

impl From<u64> for Drawn {
    fn from(seed: u64) -> Self {
        sim::enter(Faults::default());
        mini_net::sim::enter(seed);
        hosts::reset();
        let mut random = Random::new(seed, 3);
        let coin = mini_context::swap_coin(random.draw() as u32);
        Self(swap_drawn(random.draw()), coin, preempt::swap(Some(Random::new(seed, 4))))
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        hosts::reset();
        mini_net::sim::leave();
        sim::leave();
        swap_drawn(self.0);
        mini_context::swap_coin(self.1);
        preempt::swap(self.2);
    }
}

/// What the simulation of a seed did.
#[derive(Debug)]
pub(super) struct Trace {
    /// How many steps, and their hash.
    pub(super) sum: (u64, u64),
    /// If they are kept.
    pub(super) steps: Vec<Step>,
}

impl Trace {
    fn of(world: &World) -> Self {
        world.with_steps(|steps| Self { sum: steps.sum(), steps: steps.take_all() })
    }
}

/// Why a simulation failed. Its `Display` also says what every task waited for, and what ran last.
///
/// # Examples
///
/// ```
/// use mini::sync::Notify;
///
/// let notify = Notify::new();
/// let failure = mini::sim::Sim::new(3).run(notify.notified()).unwrap_err();
/// let text = failure.to_string();
/// assert!(text.starts_with("seed 3: deadlock: nothing is left that could wake a task"), "{text}");
/// assert!(text.contains("its main task waits for Notify at "), "{text}");
/// ```
pub struct Failure(Box<Details>); // boxed, as results that hardly ever are one carry it

struct Details {
    seed: u64,
    cause: Cause,
    dump: Option<Dump>,
    last: Last,
}

enum Cause {
    Panic(Box<dyn Any + Send>),
    /// Of tasks that nobody joined.
    Unseen(String),
    Halt(Halt),
}

/// The last steps, as text: runs of one task in a row count as one.
struct Last(String);

impl Last {
    fn of(world: &World) -> Self {
        let mut lines: Vec<(Step, u32)> = Vec::new();
        world.with_steps(|steps| {
            for &step in steps.last() {
                match lines.last_mut() {
                    Some((before, runs)) if (before.task, before.at) == (step.task, step.at) => *runs += 1,
                    _ => lines.push((step, 1)),
                }
            }
        });
        let line = |(step, runs): &(Step, u32)| {
            let task = if step.task == 0 { "main".to_owned() } else { format!("task {}", step.task) };
            let times = if *runs > 1 { format!(", {runs} times") } else { String::new() };
            format!("    {:>12.6} s  {task}{times}\n", step.at.as_secs_f64())
        };
        Self(lines.iter().map(line).collect())
    }
}

impl Failure {
    /// The seed: the same program fails under it again.
    ///
    /// # Examples
    ///
    /// ```
    /// let failure = mini::sim::Sim::new(3).run(std::future::pending::<()>()).unwrap_err();
    /// assert_eq!(failure.seed(), 3);
    /// ```
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// What every task did when it failed, if the simulation came so far.
    ///
    /// # Examples
    ///
    /// ```
    /// let failure = mini::sim::Sim::new(3).run(std::future::pending::<()>()).unwrap_err();
    /// assert!(failure.dump().unwrap().tasks().is_empty()); // there is only the main task
    /// ```
    pub fn dump(&self) -> Option<&Dump> {
        self.0.dump.as_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { seed, cause, dump, last } = &*self.0;
        write!(f, "seed {seed}: ")?;
        match cause {
            Cause::Panic(payload) => writeln!(f, "panicked: {}", message(payload.as_ref()))?,
            Cause::Unseen(panics) => writeln!(f, "{panics}")?,
            Cause::Halt(Halt(text)) => writeln!(f, "{text}")?,
        }
        if let Some(dump) = dump {
            write!(f, "{dump}")?;
        }
        if !last.0.is_empty() {
            write!(f, "  the last steps:\n{}", last.0)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
