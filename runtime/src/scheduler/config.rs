//! The configuration of a runtime: the defaults, the environment, and the check of the user's settings.
//!
//! Filled by the [`Builder`](crate::runtime::Builder), read where a setting is needed.
//!
//! Rejected: reading the environment when a builder is made (a mistake there must be an error of `build`, and must not
//! matter to a user who sets the number of workers).

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mini_time::Clock;

use crate::insight::Warning;
use crate::scheduler::observe::Observe;
use crate::scheduler::pick::Pick;
use crate::task::{JoinError, TaskError};
use crate::threads::{Hooks, Names};

/// Called with a panic that no join handle will see.
type PanicHook = Arc<dyn Fn(&JoinError) + Send + Sync>;

/// Called with an error that no join handle will see.
type ErrorHook = Arc<dyn Fn(&TaskError) + Send + Sync>;

/// Called with what the watcher has seen.
type WarningHook = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Sets the number of workers of a runtime whose builder does not.
const WORKERS_VARIABLE: &str = "MINI_WORKER_THREADS";

/// Says whether runtimes warn, whatever their builders say.
const WARN_VARIABLE: &str = "MINI_WARN";

/// Where the trace of a program goes that heeds it.
const TRACE_VARIABLE: &str = "MINI_TRACE";

/// What its flight recorder takes for each worker, unless its builder says so.
const TRACE_BYTES: usize = 1 << 20;

/// What a flight recorder takes at least and at most for each worker.
const RECORDER_SIZES: RangeInclusive<usize> = 1 << 10..=1 << 30;

/// A larger number of workers is taken for a mistake.
const MAX_WORKERS: usize = 1 << 15;

/// The configuration that a runtime was built with.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) is_multi_thread: bool,
    pub(crate) workers: usize,
    /// The number of the first worker: the runtimes of a [`PerCore`](crate::runtime::PerCore) count theirs together.
    pub(crate) first_worker: usize,
    pub(crate) max_blocking_threads: usize,
    pub(crate) thread_keep_alive: Duration,
    pub(crate) thread_name: Names,
    pub(crate) stack_size: Option<usize>,
    pub(crate) timer_slack: Option<Duration>,
    pub(crate) shutdown_grace: Duration,
    pub(crate) start_paused: bool,
    pub(crate) dump_on_quit: bool,
    /// It is a part of mini, of which a dump of the program says nothing.
    pub(crate) is_internal: bool,
    /// The main thread of the process is that of a test harness, which waits for its tests.
    pub(crate) in_test_harness: bool,
    pub(crate) warnings: bool,
    pub(crate) on_warning: Option<WarningHook>,
    /// Bytes for each worker.
    pub(crate) flight_recorder: Option<usize>,
    pub(crate) histograms: bool,
    /// Whether the environment may ask for a trace.
    pub(crate) heeds_trace_variable: bool,
    pub(crate) trace_path: Option<PathBuf>,
    pub(crate) on_task_panic: Option<PanicHook>,
    pub(crate) on_task_error: Option<ErrorHook>,
    pub(crate) hooks: Hooks,
    /// Is told what the runtime does.
    pub(crate) observer: Option<Arc<dyn Observe>>,
    /// The clock of a simulation, and what chooses the tasks that run.
    pub(crate) simulation: Option<(Clock, Arc<dyn Pick>)>,
}

impl Config {
    /// The defaults. One worker; the builder sets more for its flavour.
    pub(crate) fn new(is_multi_thread: bool) -> Self {
        Self {
            is_multi_thread,
            workers: 1,
            first_worker: 0,
            max_blocking_threads: 512,
            thread_keep_alive: Duration::from_secs(10),
            thread_name: Names::Prefix("mini".to_owned()),
            stack_size: None,
            dump_on_quit: false,
            is_internal: false,
            in_test_harness: false,
            warnings: false,
            on_warning: None,
            timer_slack: Some(Duration::from_nanos(1)),
            shutdown_grace: Duration::from_secs(1),
            start_paused: false,
            flight_recorder: None,
            histograms: false,
            heeds_trace_variable: false,
            trace_path: None,
            on_task_panic: None,
            on_task_error: None,
            hooks: Hooks::default(),
            observer: None,
            simulation: None,
        }
    }

    /// Whether all of the runtime happens on one thread, in virtual time.
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }

    /// Returns the seed of a simulation, if the runtime is simulated.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.simulation.as_ref().map(|(_, pick)| pick.seed())
    }

    /// Refuses settings that make no sense, with an error that names the setting.
    pub(crate) fn check(&self) -> io::Result<()> {
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
        if let Some(bytes) = self.flight_recorder
            && !RECORDER_SIZES.contains(&bytes)
        {
            let (least, most) = (RECORDER_SIZES.start(), RECORDER_SIZES.end());
            return Err(invalid(format!("flight_recorder({bytes}): expected {least} to {most} bytes for each worker")));
        }
        Ok(())
    }
}

impl Config {
    /// Turns the recorder on if the environment asks for a trace and the program heeds that. The file is made now, so
    /// that a path that does not work is an error at once.
    pub(crate) fn heed_trace_variable(&mut self) -> io::Result<()> {
        let path = variable(TRACE_VARIABLE).filter(|_| self.heeds_trace_variable);
        let Some(path) = path else { return Ok(()) };
        if !HAS_INSIGHT {
            return Err(lacks_insight(TRACE_VARIABLE));
        }
        // Not emptied before the trace is there: it may be that of another runtime. Absolute, as the program may move.
        let made = std::fs::File::options().create(true).append(true).open(Path::new(&path));
        if let Err(error) = made.and_then(|_| std::path::absolute(&path)).map(|path| self.trace_path = Some(path)) {
            let text = format!("{TRACE_VARIABLE}={}: cannot create this file: {error}", path.display());
            return Err(io::Error::new(error.kind(), text));
        }
        self.flight_recorder.get_or_insert(TRACE_BYTES);
        Ok(())
    }
}

/// What the environment says; nothing if that is empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether there are warnings, if the builder was told `asked`.
pub(crate) fn warns(asked: bool) -> io::Result<bool> {
    let told = variable(WARN_VARIABLE).map(|value| parse_switch(WARN_VARIABLE, &value)).transpose()?;
    if told == Some(true) && !HAS_INSIGHT {
        say!("{}", lacks_insight(WARN_VARIABLE)); // it may be meant for another program, whose child this is
    }
    Ok(told.unwrap_or(asked))
}

const HAS_INSIGHT: bool = cfg!(feature = "insight");

/// Somebody asks by `variable` for what is not compiled.
fn lacks_insight(variable: &str) -> io::Error {
    let text = format!("{variable} needs the feature `insight` of mini-rt, which this program was built without");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn parse_switch(variable: &str, value: &OsStr) -> io::Result<bool> {
    match value.to_str() {
        Some("1") => Ok(true),
        Some("0") => Ok(false),
        _ => Err(invalid(format!("{variable}={}: expected 1 or 0", value.display()))),
    }
}

/// The number of workers, if the builder was told `asked`.
pub(crate) fn workers(asked: Option<usize>) -> io::Result<usize> {
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

pub(crate) fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.into())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_1_or_0() {
        assert!(parse_switch("MINI_WARN", OsStr::new("1")).unwrap());
        assert!(!parse_switch("MINI_WARN", OsStr::new("0")).unwrap());
        for wrong in ["", "yes", "10", "true"] {
            let error = parse_switch("MINI_WARN", OsStr::new(wrong)).unwrap_err();
            assert_eq!(error.to_string(), format!("MINI_WARN={wrong}: expected 1 or 0"));
        }
    }

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
