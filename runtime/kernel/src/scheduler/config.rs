//! The configuration of a runtime: the defaults, the environment, and the check of the user's settings.
//!
//! Filled by the `Builder`, read where a setting is needed.
//!
//! Rejected: reading the environment when a builder is made (a mistake there must be an error of `build`, and must not
//! matter to a user who sets the number of workers).

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mini_time::Clock;

use crate::scheduler::observe::Observe;
use crate::scheduler::pick::Pick;
use crate::threads::{Hooks, Names};

/// Sets the number of workers of a runtime whose builder does not.
const WORKERS_VARIABLE: &str = "MINI_WORKER_THREADS";

/// A larger number of workers is taken for a mistake.
const MAX_WORKERS: usize = 1 << 15;

/// The configuration that a runtime was built with.
#[derive(Clone)]
pub struct Config {
    pub is_multi_thread: bool,
    pub workers: usize,
    /// The number of the first worker: the runtimes of a `PerCore` count theirs together.
    pub first_worker: usize,
    pub max_blocking_threads: usize,
    pub thread_keep_alive: Duration,
    pub thread_name: Names,
    pub stack_size: Option<usize>,
    pub timer_slack: Option<Duration>,
    pub shutdown_grace: Duration,
    pub start_paused: bool,
    pub hooks: Hooks,
    /// Are told what the runtime does.
    pub observers: Vec<Arc<dyn Observe>>,
    /// The choice of the next task, in place of the worker's rule, and the clock that belongs to it.
    pub pick: Option<(Clock, Arc<dyn Pick>)>,
}

impl Config {
    /// The defaults. One worker; the builder sets more for its flavour.
    pub fn new(is_multi_thread: bool) -> Self {
        Self {
            is_multi_thread,
            workers: 1,
            first_worker: 0,
            max_blocking_threads: 512,
            thread_keep_alive: Duration::from_secs(10),
            thread_name: Names::Prefix("mini".to_owned()),
            stack_size: None,
            timer_slack: Some(Duration::from_nanos(1)),
            shutdown_grace: Duration::from_secs(1),
            start_paused: false,
            hooks: Hooks::default(),
            observers: Vec::new(),
            pick: None,
        }
    }

    /// Whether all of the runtime happens on one thread, in virtual time.
    pub fn has_pick(&self) -> bool {
        self.pick.is_some()
    }

    /// Returns the seed of a simulation, if the runtime is simulated.
    pub fn seed(&self) -> Option<u64> {
        self.pick.as_ref().map(|(_, pick)| pick.seed())
    }

    /// Refuses settings that make no sense, with an error that names the setting.
    pub fn check(&self) -> io::Result<()> {
        if self.max_blocking_threads == 0 {
            return Err(invalid("max_blocking_threads(0): at least one is needed, to resolve names"));
        }
        if self.start_paused && self.is_multi_thread {
            return Err(invalid("start_paused(true): the clock of a multi_thread runtime cannot be paused"));
        }
        if let Names::Prefix(name) = &self.thread_name
            && name.contains('\0')
        {
            return Err(invalid(format!("thread_name({name:?}): a name must not contain NUL")));
        }
        Ok(())
    }
}

/// What the environment says; nothing if that is empty.
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The number of workers, if the builder was told `asked`.
pub fn workers(asked: Option<usize>) -> io::Result<usize> {
    match (asked, variable(WORKERS_VARIABLE)) {
        (Some(0), _) => Err(invalid("worker_threads(0): a runtime needs at least one worker")),
        (Some(count), _) if count > MAX_WORKERS => {
            Err(invalid(format!("worker_threads({count}): at most {MAX_WORKERS} are possible")))
        }
        (Some(count), _) => Ok(count),
        (None, Some(value)) => parse_workers(&value),
        (None, None) => Ok(thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// The number of workers that the environment asks for.
fn parse_workers(value: &OsStr) -> io::Result<usize> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.filter(|count| (1..=MAX_WORKERS).contains(count)).ok_or_else(|| {
        invalid(format!("{WORKERS_VARIABLE}={}: expected a number from 1 to {MAX_WORKERS}", value.display()))
    })
}

pub fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.into())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_environment_gives_a_number_or_an_error_that_quotes_it() {
        assert_eq!(parse_workers(OsStr::new("3")).unwrap(), 3);
        for wrong in ["", "0", "-1", "two", "32769", " 4"] {
            let error = parse_workers(OsStr::new(wrong)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().starts_with(&format!("MINI_WORKER_THREADS={wrong}: expected")), "{error}");
        }
    }
}
