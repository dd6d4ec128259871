//! A seed that failed as a picture: its steps and faults in a file that <https://ui.perfetto.dev> opens.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::run::Trace;
use crate::recorder::events::{Events, Group};

/// More steps than these are of no use to a viewer: the last ones are drawn.
const MOST: usize = 200_000;

/// Draws the run into a file of that name, and returns its path.
pub(super) fn write(name: &str, trace: &Trace) -> io::Result<PathBuf> {
    let folder = target().join("mini-sim");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, draw(name, trace))?;
    Ok(path)
}

/// A track for each task with its steps, and one with the faults, in virtual time.
///
/// A step takes no virtual time. Drawn so, all steps between two timers would lie on each other; so each is a
/// nanosecond wide, and begins where the one before it ends, if that is at the same time.
fn draw(name: &str, trace: &Trace) -> Vec<u8> {
    let mut events = Events::default();
    events.name(Group::Workers, name);
    let of_faults = events.track(Group::Workers, "faults");
    let tasks = trace.steps.iter().map(|step| step.number + 1).max().unwrap_or(0);
    let tracks: Vec<_> = (0..tasks).map(|number| events.track(Group::Workers, trace.tasks.shown(number))).collect();
    let (steps, faults) = (&trace.steps, trace.faults.injected());
    let mut last = 0;
    for (index, step) in steps.iter().enumerate().skip(steps.len().saturating_sub(MOST)) {
        let begin = last.max(step.at.as_nanos() as u64);
        last = begin + 1;
        let track = tracks[step.number as usize];
        events.slice(track, begin, Some(last), "runs").object("args").value("step", index + 1);
        // Those that there were up to the next step.
        let first = if index == 0 { 0 } else { step.faults };
        let next = steps.get(index + 1).map_or(faults.len(), |next| next.faults);
        for fault in faults.get(first..next).unwrap_or_default() {
            events.moment(of_faults, begin, &fault.text).object("args").value("fault", fault.number);
        }
    }
    events.into_bytes()
}

/// Where cargo builds: tests run from a folder in there, which cargo marks.
fn target() -> PathBuf {
    let executable = env::current_exe().unwrap_or_default();
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    let marked = executable.ancestors().skip(1).find(is_target).map(Path::to_owned);
    marked.or_else(|| env::var_os("CARGO_TARGET_DIR").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("target"))
}
