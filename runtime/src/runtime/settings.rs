//! The settings of a runtime that the layers above the scheduler read: the defaults, the environment, and the check of
//! what the user has set.

use std::ffi::OsStr;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_kernel::scheduler::config::{invalid, variable};

#[cfg(feature = "insight")]
use crate::insight::Warning;
use crate::runtime::Phases;
use crate::runtime::task_hooks::TaskHooks;
use crate::task::{JoinError, TaskError};

/// Called with a panic that no join handle will see.
type PanicHook = Arc<dyn Fn(&JoinError) + Send + Sync>;

/// Called with an error that no join handle will see.
type ErrorHook = Arc<dyn Fn(&TaskError) + Send + Sync>;

/// Called with each turn of a worker.
pub(crate) type TurnHook = Arc<dyn Fn(&Phases) + Send + Sync>;

/// Called with what the watcher has seen.
#[cfg(feature = "insight")]
type WarningHook = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Says whether runtimes warn, whatever their builders say.
const WARN_VARIABLE: &str = "MINI_WARN";

/// Where the trace of a program goes that heeds it.
const TRACE_VARIABLE: &str = "MINI_TRACE";

/// What its flight recorder takes for each worker, unless its builder says so.
const TRACE_BYTES: usize = 1 << 20;

/// What a flight recorder takes at least and at most for each worker.
const RECORDER_SIZES: RangeInclusive<usize> = 1 << 10..=1 << 30;

const HAS_INSIGHT: bool = cfg!(feature = "insight");

#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) dump_on_quit: bool,
    /// It is a part of mini, of which a dump of the program says nothing.
    #[cfg(all(feature = "insight", feature = "signal"))]
    pub(crate) is_internal: bool,
    /// The main thread of the process is that of a test harness, which waits for its tests.
    pub(crate) in_test_harness: bool,
    pub(crate) warnings: bool,
    #[cfg(feature = "insight")]
    pub(crate) on_warning: Option<WarningHook>,
    /// Bytes for each worker.
    pub(crate) flight_recorder: Option<usize>,
    #[cfg(feature = "insight")]
    pub(crate) histograms: bool,
    /// Whether the environment may ask for a trace.
    pub(crate) heeds_trace_variable: bool,
    pub(crate) trace_path: Option<PathBuf>,
    pub(crate) on_turn: Option<TurnHook>,
    pub(crate) on_task: TaskHooks,
    pub(crate) on_task_panic: Option<PanicHook>,
    pub(crate) on_task_error: Option<ErrorHook>,
}

impl Settings {
    /// Those of a runtime that is built now: with what the environment says, and without settings that make no sense.
    pub(crate) fn checked(&self) -> io::Result<Self> {
        let mut settings = self.clone();
        settings.heed_trace_variable()?;
        if let Some(bytes) = settings.flight_recorder
            && !RECORDER_SIZES.contains(&bytes)
        {
            let (least, most) = (RECORDER_SIZES.start(), RECORDER_SIZES.end());
            return Err(invalid(format!("flight_recorder({bytes}): expected {least} to {most} bytes for each worker")));
        }
        settings.warnings = warns(settings.warnings)?;
        Ok(settings)
    }

    /// Turns the recorder on if the environment asks for a trace and the program heeds that. The file is made now, so
    /// that a path that does not work is an error at once.
    fn heed_trace_variable(&mut self) -> io::Result<()> {
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

/// Whether there are warnings, if the builder was told `asked`.
pub(crate) fn warns(asked: bool) -> io::Result<bool> {
    let told = variable(WARN_VARIABLE).map(|value| parse_switch(WARN_VARIABLE, &value)).transpose()?;
    if told == Some(true) && !HAS_INSIGHT {
        say!("{}", lacks_insight(WARN_VARIABLE)); // it may be meant for another program, whose child this is
    }
    Ok(told.unwrap_or(asked))
}

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
}
