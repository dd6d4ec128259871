//! A seed that failed as a picture: its steps and faults in a file that <https://ui.perfetto.dev> opens.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::run::Trace;
use crate::recorder::simulated::Picture;

/// Draws the run into a file of that name, and returns its path.
pub(super) fn write(name: &str, trace: &Trace) -> io::Result<PathBuf> {
    let folder = target().join("mini-sim");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.perfetto-trace"));
    fs::write(&path, draw(name, trace))?;
    Ok(path)
}

fn draw(name: &str, trace: &Trace) -> Vec<u8> {
    let steps = &trace.steps;
    let tasks = steps.iter().map(|step| step.number + 1).max().unwrap_or(0);
    let faults = trace.faults.injected().iter().enumerate().map(|(nth, fault)| {
        let after = steps.partition_point(|step| step.faults <= nth); // the first step that came after the fault
        (after.saturating_sub(1), fault.number, &fault.text[..])
    });
    let picture = Picture {
        title: name.to_owned(),
        tasks: (0..tasks).map(|number| trace.tasks.shown(number)).collect(),
        steps: steps.iter().map(|step| (step.number, step.at)).collect(),
        faults: faults.collect(),
    };
    picture.draw()
}

/// Where cargo builds: tests run from a folder in there, which cargo marks.
fn target() -> PathBuf {
    let executable = env::current_exe().unwrap_or_default();
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    let marked = executable.ancestors().skip(1).find(is_target).map(Path::to_owned);
    marked.or_else(|| env::var_os("CARGO_TARGET_DIR").map(PathBuf::from)).unwrap_or_else(|| PathBuf::from("target"))
}
