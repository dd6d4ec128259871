//! The events of a trace, as JSON that <https://ui.perfetto.dev> and the tracing of Chrome open.
//!
//! The format is described in "Trace Event Format" of the Chromium project. A track is a thread there, and a group of
//! tracks a process. Events may come in any order. An arrow begins and ends at events of one `bind_id`; as it needs
//! slices, a moment is a slice without a duration.
//!
//! Rejected: Perfetto's own format, in protocol buffers (half as large, and four times the code: packets must be in the
//! order of their times, and each slice is two of them).

use std::fmt::{Display, Formatter, Result};

use crate::json::Fields;

/// The events so far.
#[derive(Default)]
pub(crate) struct Events {
    text: String,
    tracks: u32,
    arrows: u64,
}

/// A track of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Track {
    group: Group,
    number: u32,
}

/// Tracks that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Of a simulation all.
    Workers = 1,
    Tasks = 2,
}

/// No track has the number of a group: it would be shown as the main thread of a process.
const FIRST: u32 = 3;

/// Of so many nanoseconds, in microseconds.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Events {
    fn add(&mut self, kind: &str, group: Group, name: impl Display) -> Fields<'_> {
        self.text.push_str(if self.text.is_empty() { "[" } else { ",\n" });
        let mut event = Fields::begin(&mut self.text);
        event.text("ph", kind);
        event.value("pid", group as u32);
        event.text("name", name);
        event
    }

    fn add_to(&mut self, track: Track, kind: &str, at: u64, name: impl Display) -> Fields<'_> {
        let mut event = self.add(kind, track.group, name);
        event.value("tid", track.number);
        event.value("ts", Micros(at));
        event
    }

    /// Names a group.
    pub(crate) fn name(&mut self, group: Group, name: impl Display) {
        self.add("M", group, "process_name").object("args").text("name", name);
    }

    pub(crate) fn track(&mut self, group: Group, name: impl Display) -> Track {
        let track = Track { group, number: FIRST + self.tracks };
        self.tracks += 1;
        let mut event = self.add("M", group, "thread_name");
        event.value("tid", track.number);
        event.object("args").text("name", name);
        track
    }

    /// Adds a slice, which goes on if there is no end. Times are in nanoseconds.
    pub(crate) fn slice(&mut self, track: Track, begin: u64, end: Option<u64>, name: impl Display) -> Fields<'_> {
        let mut event = self.add_to(track, if end.is_some() { "X" } else { "B" }, begin, name);
        if let Some(end) = end {
            event.value("dur", Micros(end - begin));
        }
        event
    }

    pub(crate) fn moment(&mut self, track: Track, at: u64, name: impl Display) -> Fields<'_> {
        self.slice(track, at, Some(at), name)
    }

    /// Adds the length of a queue.
    pub(crate) fn count(&mut self, at: u64, name: impl Display, tasks: u64) {
        let mut event = self.add("C", Group::Workers, name);
        event.value("ts", Micros(at));
        event.object("args").value("tasks", tasks);
    }

    /// A new arrow.
    pub(crate) fn arrow(&mut self) -> u64 {
        self.arrows += 1;
        self.arrows
    }

    /// The trace, which has an event at least.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.text.push(']');
        self.text.into_bytes()
    }
}
