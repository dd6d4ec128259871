//! The tasks that a dump shows in one line: spawned at one line, and waiting for the same thing at one line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::mem::{self, Discriminant, discriminant};
use std::panic::Location;
use std::ptr;

use mini_context::{IoKind, Note, Reason, SyncKind, Wait};
use mini_kernel::task::{Beside, LastWait, Standing};

use super::DumpedTask;
use crate::order::sorted;

/// A deadline after this is none: nine years.
const NEVER: u64 = 1 << 58;

/// More lines than these that differ in nothing but numbers in the names of their tasks are one.
const NUMBERED: usize = 8;

/// At least one task.
pub(super) struct Line<'a> {
    pub(super) tasks: Vec<&'a DumpedTask>,
    /// Of all of them. A `*` stands for numbers, if these are not the same.
    pub(super) name: Option<Cow<'a, str>>,
}

/// The properties that all tasks of a line share. Lines of code are compared by their address: two addresses for one
/// line make two lines.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    spawned: *const Location<'static>,
    name: Option<Cow<'a, str>>,
    standing: Standing,
    is_running: bool,
    is_lost: bool,
    held_at: Option<*const Location<'static>>,
    wait: Option<Kind>,
    beside: [Option<Kind>; 3],
}

/// The kind of thing that tasks wait for, without its number, and where.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    known: Option<Discriminant<Reason>>,
    wait: Discriminant<LastWait>,
    /// Of sockets, locks and channels.
    of: u8,
    /// Of a lock or a join: each has its own task.
    task: u64,
    location: *const Location<'static>,
}

/// The lines of a dump: the largest first, and then in the order of the ids.
pub(super) fn lines(tasks: &[DumpedTask]) -> Vec<Line<'_>> {
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    let mut lines: Vec<Line<'_>> = Vec::new();
    for task in tasks {
        let name = task.name().map(Cow::Borrowed);
        let place = *places.entry(key(task, name.clone())).or_insert_with(|| {
            lines.push(Line { tasks: Vec::new(), name });
            lines.len() - 1
        });
        lines[place].tasks.push(task);
    }
    if lines.len() > NUMBERED {
        join_numbered(&mut lines);
    }
    sorted(lines, |line| !(line.tasks.len() as u64)) // the largest first
}

/// Tasks may be named one by one, such as connections.
fn join_numbered(lines: &mut Vec<Line<'_>>) {
    let mut alike: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    for (line, at) in lines.iter().zip(0..) {
        if let Some(name) = line.name.as_deref().and_then(without_numbers) {
            alike.entry(key(line.tasks[0], Some(name.into()))).or_default().push(at);
        }
    }
    for (key, places) in alike.into_iter().filter(|(_, places)| places.len() > NUMBERED) {
        let tasks: Vec<_> = places.iter().flat_map(|&at| mem::take(&mut lines[at].tasks)).collect();
        let tasks = sorted(tasks, |task| task.id().get());
        lines[places[0]] = Line { tasks, name: key.name };
    }
    lines.retain(|line| !line.tasks.is_empty());
}

/// With a `*` for each number, if there is one.
fn without_numbers(name: &str) -> Option<String> {
    let mut text = String::new();
    for digit_or_not in name.chars() {
        match digit_or_not {
            '0'..='9' if text.ends_with('*') => {}
            '0'..='9' => text.push('*'),
            other => text.push(other),
        }
    }
    (text != name).then_some(text)
}

fn key<'a>(task: &'a DumpedTask, name: Option<Cow<'a, str>>) -> Key<'a> {
    Key {
        spawned: task.location(),
        name,
        standing: task.standing,
        is_running: task.is_running,
        is_lost: task.is_lost,
        held_at: task.holder.and_then(|holder| holder.location).map(ptr::from_ref),
        wait: task.waits().map(kind),
        beside: task.beside().map(|wait| wait.map(|wait| kind(LastWait::Known(wait)))),
    }
}

fn kind(wait: LastWait) -> Kind {
    let none = Kind { known: None, wait: discriminant(&wait), of: 0, task: 0, location: ptr::null() };
    let LastWait::Known(known) = wait else { return none };
    let (of, task) = match known.reason() {
        Reason::Io(kind, _) => (kind as u8, 0),
        Reason::Join(task) => (0, task),
        // Of each its own channel, which may have its own other end.
        Reason::Sync(kind @ (SyncKind::Send | SyncKind::Receive), _) => (kind as u8, 0),
        Reason::Sync(kind, holder) | Reason::SyncAt(kind, holder) => (kind as u8, holder),
        _ => (0, 0),
    };
    Kind { known: Some(discriminant(&known.reason())), of, task, location: known.location(), ..none }
}

/// What the tasks of the line wait for.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(wait) = self.tasks[0].waits() else { return Ok(()) };
        match wait {
            LastWait::Unknown => return f.write_str("something unknown to mini"),
            LastWait::Known(known) if self.tasks.len() > 1 => {
                if let Reason::Io(kind, fd) = known.reason()
                    && fd >= 0
                {
                    return self.fds(f, kind, known.location());
                }
            }
            _ => {}
        }
        write!(f, "{}", self.wait().unwrap_or(wait).without_timer())
    }
}

/// The same wait, without the other end of a channel.
fn alone(wait: Wait) -> Wait {
    match wait.reason() {
        Reason::Sync(kind @ (SyncKind::Send | SyncKind::Receive), _) => {
            Note { reason: Reason::Sync(kind, 0), location: wait.location() }.into()
        }
        _ => wait,
    }
}

impl Line<'_> {
    /// What all of the tasks wait for: of channels with different other ends without these.
    pub(super) fn wait(&self) -> Option<LastWait> {
        match self.tasks[0].waits()? {
            LastWait::Known(wait) if !self.has_one_holder() => Some(LastWait::Known(alone(wait))),
            wait => Some(wait),
        }
    }

    /// What they wait for beside that.
    pub(super) fn beside(&self) -> Beside {
        let beside = self.tasks[0].beside();
        if self.tasks.len() == 1 { beside } else { beside.map(|wait| wait.map(alone)) }
    }

    /// The hosts that they run on, in a simulation that has some.
    pub(super) fn hosts(&self) -> Vec<&str> {
        let mut hosts = Vec::new();
        for host in self.tasks.iter().filter_map(|task| task.host()) {
            if let Err(at) = hosts.binary_search(&host) {
                hosts.insert(at, host);
            }
        }
        hosts
    }

    /// If these are timers: the first of their deadlines, in nanoseconds.
    pub(super) fn due(&self) -> Option<u64> {
        let deadlines = self.tasks.iter().filter_map(|task| match task.waits() {
            Some(LastWait::Known(wait)) => match wait.reason() {
                Reason::Timer(deadline) | Reason::Limit(deadline) => Some(deadline),
                _ => None,
            },
            _ => None,
        });
        deadlines.filter(|&deadline| deadline < NEVER).min()
    }

    /// Whether all wait for what the same task has: not if each waits for a channel of its own.
    pub(super) fn has_one_holder(&self) -> bool {
        let holder = |task: &DumpedTask| task.waits().and_then(LastWait::holder);
        self.tasks.iter().all(|task| holder(task) == holder(self.tasks[0]))
    }

    /// As that of one task, with several descriptors.
    fn fds(&self, f: &mut fmt::Formatter<'_>, kind: IoKind, location: &Location<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let fds = self.tasks.iter().filter_map(|task| match task.waits() {
            Some(LastWait::Known(wait)) => match wait.reason() {
                Reason::Io(_, fd) => Some(fd.to_string()),
                _ => None,
            },
            _ => None,
        });
        let shown: Vec<String> = fds.take(SHOWN).collect();
        let more = if self.tasks.len() > SHOWN { ", …" } else { "" };
        write!(f, "{kind:?} at {location}, on fd {}{more}", shown.join(", "))
    }
}

/// That the kinds fit into the keys.
const _: () = assert!(SyncKind::Closed as usize <= u8::MAX as usize);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_left_out() {
        let names = ["conn 17", "10.0.0.1:80", "7*", "no number", ""].map(without_numbers);
        assert_eq!(names.each_ref().map(Option::as_deref), [Some("conn *"), Some("*.*.*.*:*"), Some("**"), None, None]);
    }
}
