//! What `#[mini::test(sim, seeds = 200)]` becomes: the body under each seed, each on a fresh thread, several at once.
//!
//! The first seed that fails ends the run: the smallest of those that do, so that how many threads there are does not
//! matter. It is told with the command that runs it again.
//!
//! A thread for each seed, as what a test keeps in thread-local variables must not come from another seed.
//!
//! | variable | meaning |
//! |---|---|
//! | `MINI_SEED` | only this seed |
//! | `MINI_SEEDS` | so many seeds, from 1 on |
//! | `MINI_SIM_JOBS` | so many at once; as many as there are processors by default |
//! | `MINI_SIM_CHECK=1` | each seed twice: both runs must take the same steps |

use std::env;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::run::{Sim, Trace};
use super::steps::Step;
use crate::primitives::lock;

/// A test and its seeds.
#[derive(Debug)]
pub struct Seeds {
    module: &'static str,
    name: &'static str,
    count: u64,
}

/// What a test may return.
pub trait Outcome {
    /// Why it has failed, if it has.
    fn into_failure(self) -> Option<String>;
}

impl Outcome for () {
    fn into_failure(self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Debug> Outcome for Result<T, E> {
    fn into_failure(self) -> Option<String> {
        self.err().map(|error| format!("the test returned an error: {error:?}"))
    }
}

/// How the environment wants it.
struct Wish {
    seeds: std::ops::RangeInclusive<u64>,
    jobs: u64,
    checks: bool,
}

/// The first seed that failed so far, and how.
#[derive(Default)]
struct First(Option<(u64, String)>);

impl Seeds {
    /// `count` seeds of the test `name` in `module`.
    pub fn new(module: &'static str, name: &'static str, count: u64) -> Self {
        Self { module, name, count }
    }

    /// Runs `body` under each seed.
    ///
    /// # Panics
    ///
    /// If one fails, or the environment asks for what cannot be.
    #[track_caller]
    pub fn run<F, B>(&self, body: B)
    where
        B: Fn() -> F + Sync,
        F: Future<Output: Outcome>,
    {
        let wish = Wish::from_environment(self.count).unwrap_or_else(|text| panic!("{text}"));
        let (next, first) = (AtomicU64::new(0), Mutex::new(First::default()));
        let work = || loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(seed) = wish.seeds.start().checked_add(number).filter(|seed| wish.seeds.contains(seed)) else {
                return;
            };
            if lock(&first).is_before(seed) {
                return;
            }
            if let Err(text) = on_thread(seed, || try_seed(seed, &body, wish.checks)) {
                lock(&first).note(seed, text);
            }
        };
        thread::scope(|scope| {
            for _ in 1..wish.jobs {
                scope.spawn(work);
            }
            work();
        });
        if let Some((seed, text)) = lock(&first).0.take() {
            panic!("{}", self.report(seed, &text, wish.checks));
        }
    }

    fn report(&self, seed: u64, text: &str, checks: bool) -> String {
        let module = self.module.split_once("::").map_or("", |(_, module)| module);
        let path = if module.is_empty() { self.name.to_owned() } else { format!("{module}::{}", self.name) };
        let check = if checks { " MINI_SIM_CHECK=1" } else { "" };
        format!("{text}  replay: MINI_SEED={seed}{check} cargo test {path} -- --exact\n")
    }
}

impl First {
    fn is_before(&self, seed: u64) -> bool {
        self.0.as_ref().is_some_and(|(first, _)| *first < seed)
    }

    fn note(&mut self, seed: u64, text: String) {
        if !self.is_before(seed) {
            self.0 = Some((seed, text));
        }
    }
}

impl Wish {
    fn from_environment(count: u64) -> Result<Self, String> {
        let seeds = match (number("MINI_SEED")?, number("MINI_SEEDS")?) {
            (Some(seed), _) => seed..=seed,
            (None, Some(0)) => return Err("MINI_SEEDS=0: expected a number from 1 on".to_owned()),
            (None, seeds) => 1..=seeds.unwrap_or(count),
        };
        let processors = || thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let jobs = number("MINI_SIM_JOBS")?.unwrap_or_else(processors).max(1);
        Ok(Self { seeds, jobs, checks: number("MINI_SIM_CHECK")? == Some(1) })
    }
}

fn number(variable: &str) -> Result<Option<u64>, String> {
    let Some(value) = env::var_os(variable) else { return Ok(None) };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| format!("{variable}={}: expected a number", value.display()))
}

/// Runs `job` on a thread of its own, whose name is in the message of a panic.
fn on_thread<T: Send>(seed: u64, job: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(format!("seed {seed}")).spawn_scoped(scope, job);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(format!("seed {seed}: panicked outside of the test's future\n")),
            Err(error) => Err(format!("seed {seed}: no thread: {error}\n")),
        }
    })
}

fn try_seed<F, B>(seed: u64, body: &B, checks: bool) -> Result<(), String>
where
    B: Fn() -> F,
    F: Future<Output: Outcome>,
{
    let sim = if checks { Sim::new(seed).keep_steps() } else { Sim::new(seed) };
    let (result, trace) = sim.run_noting(async { body().await });
    if checks {
        let (_, again) = on_this_thread(&sim, body);
        compare(seed, &trace, &again)?;
    }
    match result {
        Ok(output) => output.into_failure().map_or(Ok(()), |text| Err(format!("seed {seed}: {text}\n"))),
        Err(failure) => Err(failure.to_string()),
    }
}

fn on_this_thread<F: Future>(sim: &Sim, body: impl Fn() -> F) -> (bool, Trace) {
    let (result, trace) = sim.run_noting(async { body().await });
    (result.is_ok(), trace)
}

/// Whether two runs of a seed have taken the same steps.
fn compare(seed: u64, first: &Trace, second: &Trace) -> Result<(), String> {
    if first.sum == second.sum {
        return Ok(());
    }
    let same = |(one, other): &(&Step, &Step)| (one.number, one.at) == (other.number, other.at);
    let common = first.steps.iter().zip(&second.steps).take_while(same).count();
    let told = |trace: &Trace| match trace.steps.get(common) {
        Some(step) => format!("task {} at {:?}", step.task, step.at),
        None => "the end".to_owned(),
    };
    Err(format!(
        "seed {seed}: two runs of it differ, first in step {common}: {}, and {}; what is not simulated (hash maps, clocks, \
         random numbers, threads) decides there\n",
        told(first),
        told(second)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::run::Sim;
    use std::time::Duration;

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
        assert!(
            text.starts_with("seed 3: two runs of it differ, first in step 2: task 0 at 2s, and task 0 at 3s"),
            "{text}"
        );
    }

    #[test]
    fn the_smallest_seed_that_failed_is_kept() {
        let mut first = First::default();
        for seed in [7, 9, 3, 5] {
            first.note(seed, format!("{seed}"));
        }
        assert_eq!(first.0, Some((3, "3".to_owned())));
        assert!(first.is_before(4) && !first.is_before(3));
    }
}
