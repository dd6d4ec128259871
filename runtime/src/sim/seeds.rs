//! The expansion of `#[mini::test(sim, seeds = 200)]`: the body under each seed, each on a fresh thread, several at
//! once.
//!
//! The first seed that fails ends the run. It is the smallest of those that fail, so the number of threads does not
//! matter. It is reported with the command that runs it again, without the faults that it does not need (`rerun.rs`).
//! If no seed fails, the lines that should have been reached must have been (`coverage.rs`).
//!
//! A thread for each seed, as what a test keeps in thread-local variables must not come from another seed.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use mini_kernel::primitives::lock;

use super::coverage::Coverage;
use super::failure::Failure;
use super::rerun::{Again, Rerun};
use super::run::{Sim, Trace};
use super::skips::Skips;
use super::steps::Step;
use super::wish::Wish;
use super::{interpose, panics};

/// A test and its seeds.
#[derive(Debug)]
pub struct Seeds {
    module: &'static str,
    name: &'static str,
    count: u64,
    time: Option<Duration>,
    steps: Option<u64>,
}

/// The types that a test with seeds, and the future of a [host](super::Current::host), may return: nothing, or a
/// `Result`. An error fails the test, and is shown by its `Debug`.
///
/// # Examples
///
/// ```
/// use mini::sim::Outcome;
///
/// assert_eq!(Ok::<u8, &str>(3).into_failure(), None);
/// assert_eq!(Err::<u8, &str>("no reply").into_failure().as_deref(), Some("\"no reply\""));
///
/// let failure = mini::sim::Sim::new(7).run(async {
///     mini::sim::current().host("server", || async { Err::<(), _>("no reply") });
///     mini::time::sleep(std::time::Duration::from_secs(1)).await;
/// });
/// assert!(failure.unwrap_err().to_string().contains("host server: \"no reply\""));
/// ```
pub trait Outcome {
    /// Why it has failed, if it has.
    ///
    /// # Examples
    ///
    /// See [`Outcome`].
    fn into_failure(self) -> Option<String>;
}

impl Outcome for () {
    fn into_failure(self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Debug> Outcome for Result<T, E> {
    fn into_failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// Why a seed did not pass.
pub(super) enum Trouble {
    Fails(Box<Failure>),
    /// It was not even run as it should, or not twice in the same way.
    Other(String),
}

/// The first seed that failed so far, and how.
#[derive(Default)]
struct First(Option<(u64, Trouble)>);

impl Seeds {
    /// `count` seeds of the test `name` in `module`.
    pub fn new(module: &'static str, name: &'static str, count: u64) -> Self {
        assert!(count > 0, "`seeds` must be at least 1"); // a test of none would pass
        Self { module, name, count, time: None, steps: None }
    }

    /// The [`Sim::time_limit`] of each seed.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time = Some(limit);
        self
    }

    /// The [`Sim::step_limit`] of each seed.
    pub fn step_limit(mut self, limit: u64) -> Self {
        self.steps = Some(limit);
        self
    }

    fn sim(&self, seed: u64) -> Sim {
        let mut sim = Sim::new(seed);
        if let Some(limit) = self.time {
            sim = sim.time_limit(limit);
        }
        if let Some(limit) = self.steps {
            sim = sim.step_limit(limit);
        }
        sim
    }

    /// Runs `body` under each seed.
    ///
    /// # Panics
    ///
    /// If one fails, if none has reached what should be reached, or the environment asks for what cannot be.
    #[track_caller]
    pub fn run<F, B>(&self, body: B)
    where
        B: Fn() -> F + Sync,
        F: Future<Output: Outcome>,
    {
        let wish = Wish::from_environment(self.count).unwrap_or_else(|text| panic!("{text}"));
        panics::watch();
        let (next, first) = (AtomicU64::new(0), Mutex::new(First::default()));
        let coverage = Mutex::new(Coverage::default());
        let work = || loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(seed) = wish.seeds.start().checked_add(number).filter(|seed| wish.seeds.contains(seed)) else {
                return;
            };
            if lock(&first).is_before(seed) {
                return;
            }
            match on_thread(seed, || try_seed(self.sim(seed), seed, &body, &wish)) {
                Ok(trace) => lock(&coverage).add(&trace.reached),
                Err(trouble) => lock(&first).note(seed, trouble),
            }
        };
        thread::scope(|scope| {
            for _ in 1..wish.jobs {
                scope.spawn(work);
            }
            work();
        });
        if let Some((seed, trouble)) = lock(&first).0.take() {
            panic!("{}", self.report(seed, trouble, &wish, &body));
        }
        if let Some(text) = self.judge(&lock(&coverage), &wish) {
            panic!("{text}");
        }
    }

    fn report<F, B>(&self, seed: u64, trouble: Trouble, wish: &Wish, body: &B) -> String
    where
        B: Fn() -> F + Sync,
        F: Future<Output: Outcome>,
    {
        let (text, again) = match trouble {
            Trouble::Other(text) => (text, Again::Fails(wish.skips.clone())),
            Trouble::Fails(failure) => {
                let picture = format!("{}.{}-{seed}", self.module.replace("::", "."), self.name);
                let run = |skips: &Skips| on_thread(seed, || run_again(&self.sim(seed), body, skips));
                Rerun { wish, picture, run }.tell(*failure)
            }
        };
        let module = self.module.split_once("::").map_or("", |(_, module)| module);
        let path = if module.is_empty() { self.name.to_owned() } else { format!("{module}::{}", self.name) };
        let skips = |skips: Option<Skips>| skips.map_or(String::new(), |skips| format!(" MINI_SIM_SKIP={skips}"));
        let (verb, skips, checks) = match again {
            Again::Fails(left_out) => ("replay", skips(left_out), wish.checks),
            Again::Differs => ("compare two runs", skips(wish.skips.clone()), true),
        };
        let check = if checks { " MINI_SIM_CHECK=1" } else { "" };
        format!("{text}  {verb}: MINI_SEED={seed}{skips}{check} cargo test {path} -- --exact --include-ignored\n")
    }

    /// What the seeds, which have all passed, should have reached and did not.
    fn judge(&self, coverage: &Coverage, wish: &Wish) -> Option<String> {
        let missing = coverage.missing();
        let is_failure = !missing.is_empty() && !wish.is_partial;
        match (is_failure, wish.shows_coverage) {
            (true, _) => {}
            // Who asked for it is to see it: libtest captures what `eprint!` prints, and drops it if the test passes.
            (false, true) => say!("test {}::{}:\n{}", self.module, self.name, coverage.to_string().trim_end()),
            (false, false) if missing.is_empty() => {}
            (false, false) => eprint!("{coverage}"),
        }
        is_failure.then(|| {
            let texts: Vec<String> = missing.iter().map(|text| format!("{text:?}")).collect();
            format!("no seed of {} reached {}\n{coverage}", coverage.seeds(), texts.join(", nor "))
        })
    }
}

impl First {
    fn is_before(&self, seed: u64) -> bool {
        self.0.as_ref().is_some_and(|(first, _)| *first < seed)
    }

    fn note(&mut self, seed: u64, trouble: Trouble) {
        if !self.is_before(seed) {
            self.0 = Some((seed, trouble));
        }
    }
}

/// Runs `job` on a thread of its own, whose name is in the message of a panic.
fn on_thread<T: Send>(seed: u64, job: impl FnOnce() -> Result<T, Trouble> + Send) -> Result<T, Trouble> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(format!("seed {seed}")).spawn_scoped(scope, job);
        let other = |text| Err(Trouble::Other(text));
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => other(format!("seed {seed}: panicked outside of the test's future\n")),
            Err(error) => other(format!("seed {seed}: could not start a thread: {error}\n")),
        }
    })
}

fn try_seed<F, B>(sim: Sim, seed: u64, body: &B, wish: &Wish) -> Result<Trace, Trouble>
where
    B: Fn() -> F + Sync,
    F: Future<Output: Outcome>,
{
    let sim = sim.skip(wish.skips.iter().flat_map(Skips::ranges));
    let sim = if wish.checks { sim.keep_steps() } else { sim };
    let (failure, trace) = run(&sim, body);
    if wish.checks {
        // On a thread that knows as little of the seed as the first one did.
        let again = on_thread(seed, || Ok(run(&sim, body).1))?;
        compare(seed, &trace, &again).map_err(Trouble::Other)?;
    }
    failure.map_or(Ok(trace), |failure| Err(Trouble::Fails(Box::new(failure))))
}

/// Runs a seed that has failed once more. It is no error if it fails.
fn run_again<F, B>(sim: &Sim, body: &B, skips: &Skips) -> Result<(Option<Failure>, Trace), Trouble>
where
    B: Fn() -> F,
    F: Future<Output: Outcome>,
{
    Ok(panics::quietly(|| run(&sim.clone().skip(skips.ranges()).keep_steps(), body)))
}

fn run<F, B>(sim: &Sim, body: &B) -> (Option<Failure>, Trace)
where
    B: Fn() -> F,
    F: Future<Output: Outcome>,
{
    sim.run_test(async { body().await })
}

/// Whether two runs of a seed have taken the same steps.
fn compare(seed: u64, first: &Trace, second: &Trace) -> Result<(), String> {
    if first.sum == second.sum {
        return Ok(());
    }
    let same = |(one, other): &(&Step, &Step)| (one.number, one.at) == (other.number, other.at);
    let common = first.steps.iter().zip(&second.steps).take_while(same).count();
    let told = |trace: &Trace| match trace.steps.get(common) {
        Some(step) => format!("{} at {:?}", trace.tasks.lasting(step.number), step.at),
        None => "the end".to_owned(),
    };
    let number = |trace: &Trace| match trace.steps.get(common) {
        Some(step) => format!(" (number {} by its first step)", step.number),
        None => String::new(),
    };
    let (mut one, mut other) = (told(first), told(second));
    if one == other {
        (one, other) = (one + &number(first), other + &number(second));
    }
    let causes = interpose::causes();
    Err(format!("seed {seed}: two runs differ, first in step {common}: {one}, and {other}\n  {causes}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_are_told_with_the_first_step_that_does() {
        let trace = |naps: u64| {
            let sim = Sim::new(3).keep_steps();
            let (result, trace) = sim.run_noting(async move {
                crate::time::sleep(Duration::from_secs(1)).await;
                crate::time::sleep(Duration::from_secs(naps)).await;
            });
            result.unwrap();
            trace
        };
        assert_eq!(compare(3, &trace(1), &trace(1)), Ok(()));
        let text = compare(3, &trace(1), &trace(2)).unwrap_err();
        assert!(text.starts_with("seed 3: two runs differ, first in step 2: main at 2s, and main at 3s\n  "), "{text}");
    }

    #[test]
    fn the_smallest_seed_that_failed_is_kept() {
        let mut first = First::default();
        for seed in [7, 9, 3, 5] {
            first.note(seed, Trouble::Other(format!("{seed}")));
        }
        assert!(matches!(&first.0, Some((3, Trouble::Other(text))) if text == "3"));
        assert!(first.is_before(4) && !first.is_before(3));
    }
}
