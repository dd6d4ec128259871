//! A trace of a runtime, taken by any thread: what the rings of all cores have now, and where it goes.
//!
//! Called by [`Handle::trace`](crate::runtime::Handle::trace), and by itself at the end of a runtime that the
//! environment asks to be traced. Nothing here waits for a worker: rings are copied while they are written, and the
//! lines of spawns are read without a lock. Only tasks whose spawn is no longer in a ring are looked up among those
//! that are alive, as a dump does it (`task/owned.rs`), and only in a trace that shows such a task.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::scheduler::shared::Shared;
use mini_kernel::task::Source;

use super::event::Number;
use super::ring::Ring;
use super::trace::{self, Copied, Label};
use super::{Probe, Recorder};
use crate::insight::sources;

/// What was recorded.
pub(crate) fn take(shared: &Shared) -> io::Result<Vec<u8>> {
    let recorder = Recorder::of(shared).filter(|recorder| recorder.events.is_some());
    recorder.map(|recorder| trace_of(shared, recorder)).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "the flight recorder is off: set Builder::flight_recorder, or start a program of #[mini::main] with \
             MINI_TRACE=file",
        )
    })
}

/// Whether there is a trace.
pub(crate) fn records(shared: &Shared) -> bool {
    Recorder::of(shared).is_some_and(|recorder| recorder.events.is_some())
}

fn trace_of(shared: &Shared, recorder: &Recorder) -> Vec<u8> {
    let workers = shared.all_cores().filter_map(Probe::of).map(|probe| {
        let events = probe.ring.as_ref().map_or(Vec::new(), Ring::copy);
        (events, probe.doing()) // in this order: what is in the ring is over
    });
    let workers = workers.collect();
    let outside = recorder.outside.as_ref().map_or(Vec::new(), |outside| outside.ring.copy());
    let line = |number| recorder.places.line(number);
    let (tick, first) = (recorder.clock.tick(), shared.config.first_worker);
    trace::draw(Copied { tick, first, workers, outside, line: &line }, |tasks| labels(shared, tasks))
}

/// Where those of `tasks`, which are in order, come from that are alive.
fn labels(shared: &Shared, tasks: &[Number]) -> HashMap<Number, Label> {
    if tasks.iter().all(|task| task.is_main()) {
        return HashMap::new();
    }
    let sources = sources(shared, tasks.len(), |id| tasks.binary_search(&Number::of(id)).is_ok());
    let label = |Source { id, location, name }: Source| {
        let name = name.map_or(Vec::new(), |name| name.as_bytes().to_vec());
        (Number::of(id.get()), Label { line: Some(location), name })
    };
    sources.into_iter().map(label).collect()
}

impl Recorder {
    /// Writes a trace where the environment says, if it does; once.
    pub(super) fn write_trace(&self, shared: &Shared) {
        let Some(path) = &self.path else { return };
        if self.was_written.swap(true, Relaxed) || !shared.process.is_current() {
            return;
        }
        if let Err(error) = take(shared).and_then(|trace| write(path, &trace)) {
            say!("{error}");
        }
    }
}

/// Writes a trace into a file.
pub(crate) fn write(path: &Path, trace: &[u8]) -> io::Result<()> {
    std::fs::write(path, trace)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write a trace to {}: {error}", path.display())))
}
