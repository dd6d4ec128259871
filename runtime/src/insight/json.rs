//! A [`Dump`] for programs. RFC 8259.

use std::fmt::{Display, Write};

use mini_context::{ITSELF, Reason, SyncKind, is_main, untaken};

use super::circles::Circle;
use super::line::{Line, lines};
use super::{Doing, Dump, DumpedTask, Held, Worker};
use crate::task::{Beside, LastWait, Standing};

/// A text in quotes.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for char in self.0.to_string().chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                '\0'..' ' => write!(f, "\\u{:04x}", char as u32)?,
                _ => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}

/// The fields of an object, then its end.
struct Fields<'a> {
    text: &'a mut String,
    is_first: bool,
}

impl<'a> Fields<'a> {
    fn begin(text: &'a mut String) -> Self {
        text.push('{');
        Self { text, is_first: true }
    }

    /// The place for a value.
    fn name(&mut self, name: &str) -> &mut String {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        put(self.text, format_args!("{comma}\"{name}\":"));
        self.text
    }

    /// A value that is JSON already: a number, `true`.
    fn value(&mut self, name: &str, value: impl Display) {
        put(self.name(name), value);
    }

    fn text(&mut self, name: &str, value: impl Display) {
        put(self.name(name), Quoted(value));
    }

    fn array<T>(&mut self, name: &str, items: impl IntoIterator<Item = T>, mut print: impl FnMut(&mut String, T)) {
        let text = self.name(name);
        text.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            print(text, item);
        }
        text.push(']');
    }

    fn end(self) {
        self.text.push('}');
    }
}

fn put(text: &mut String, value: impl Display) {
    let _ = write!(text, "{value}"); // a `String` takes all
}

/// How many of the ids of a group are told.
const IDS: usize = 8;

pub(super) fn of(dump: &Dump) -> String {
    with(dump, |fields| fields.array("tasks", dump.tasks(), task))
}

/// With the `most` largest groups of tasks.
pub(super) fn of_groups(dump: &Dump, most: usize) -> String {
    let lines = lines(dump.tasks());
    with(dump, |fields| {
        fields.value("task_count", dump.seen.len());
        fields.array("groups", lines.iter().take(most), group);
        fields.value("groups_left_out", lines.len().saturating_sub(most));
        if let Some(before) = dump.before {
            fields.value("since_seconds", before.as_secs_f64());
        }
    })
}

fn with(dump: &Dump, tasks: impl FnOnce(&mut Fields<'_>)) -> String {
    let mut text = String::new();
    let mut fields = Fields::begin(&mut text);
    fields.value("runtime", dump.runtime);
    fields.text("flavour", dump.flavour);
    fields.value("up_seconds", dump.up.as_secs_f64());
    fields.value("has_ended", dump.has_ended);
    fields.value("warns", dump.warns);
    fields.value("records", dump.records);
    fields.array("workers", &dump.workers, worker);
    fields.array("block_on_threads", &dump.guests, worker);
    fields.array("external_threads", &dump.externals, |text, main| {
        let mut fields = Fields::begin(text);
        wait(&mut fields, "main_waits_for", main.wait);
        fields.end();
    });
    tasks(&mut fields);
    fields.array("circles", dump.all_circles(), |text, members| circle(text, dump, members));
    fields.array("possible_circles", &dump.possible_circles(), |text, members| circle(text, dump, members));
    fields.array("crowded_channels", &dump.crowds, |text, crowd| {
        let mut fields = Fields::begin(text);
        if let Some(location) = crowd.location {
            fields.text("made_at", location);
        }
        fields.value("messages", crowd.number);
        if crowd.task != 0 {
            fields.value("last_received_by", Id(crowd.task));
        }
        fields.end();
    });
    fields.value("new_tasks", dump.new);
    if let Some(error) = &dump.shortage {
        fields.text("shortage", error);
    }
    let mut blocking = Fields::begin(fields.name("blocking"));
    blocking.value("threads", dump.threads);
    blocking.value("idle", dump.idle_threads);
    blocking.value("queued", dump.queued_jobs);
    blocking.array("running", &dump.jobs, |text, job| {
        let mut fields = Fields::begin(text);
        fields.value("id", job.origin.id);
        fields.text("spawned_at", job.origin.location);
        if let Some(before) = dump.before.filter(|_| job.is_unchanged) {
            fields.value("seconds", before.as_secs_f64());
        }
        fields.end();
    });
    blocking.end();
    fields.end();
    text
}

/// The id of a task; a main task has none, and is called so.
struct Id(u64);

impl Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if is_main(self.0) { f.write_str("\"main\"") } else { self.0.fmt(f) }
    }
}

fn worker(text: &mut String, worker: &Worker) {
    let mut fields = Fields::begin(text);
    fields.value("index", worker.index);
    let state = match &worker.doing {
        Doing::Rests => "no thread",
        Doing::Parks => "parked",
        Doing::Works(run) if run.is_stalled => "stalled",
        Doing::Works(_) => "running",
        Doing::Blocks(_) => "block_in_place",
    };
    fields.text("state", state);
    match &worker.doing {
        Doing::Works(run) => {
            fields.value("task", Id(run.task));
            if let Some(lasts) = run.lasts {
                fields.value("seconds", lasts.as_secs_f64());
            }
        }
        Doing::Blocks(task) => fields.value("task", Id(*task)),
        Doing::Rests | Doing::Parks => {}
    }
    if let Some(main) = &worker.main {
        wait(&mut fields, "main_waits_for", main.wait);
    }
    if worker.is_hidden {
        fields.value("is_hidden", true);
    }
    fields.end();
}

fn circle(text: &mut String, dump: &Dump, circle: &Circle) {
    let mut fields = Fields::begin(text);
    fields.array("tasks", circle, |text, &task| put(text, Id(task)));
    if circle.iter().any(|&task| dump.has_beside(task)) {
        fields.value("waits_for_more", true);
    }
    if dump.is_over_locks(circle) {
        fields.value("over_locks", true);
    }
    if let Some(least) = dump.lasts(circle) {
        fields.value("unchanged_seconds", least.as_secs_f64());
    }
    fields.end();
}

fn task(text: &mut String, task: &DumpedTask) {
    let mut fields = Fields::begin(text);
    fields.value("id", task.id());
    fields.value("polls", task.polls());
    common(&mut fields, task.name(), task, task.waits(), task.beside());
    if let Some(host) = task.host() {
        fields.text("host", host);
    }
    if let Some(unchanged) = task.unchanged {
        fields.value("unchanged_seconds", unchanged.as_secs_f64());
    }
    fields.end();
}

fn group(text: &mut String, line: &Line<'_>) {
    let mut fields = Fields::begin(text);
    fields.value("count", line.tasks.len());
    common(&mut fields, line.name.as_deref(), line.tasks[0], line.wait(), line.beside());
    fields.value("polled", line.tasks.iter().map(|task| u64::from(task.polled_since.unwrap_or(0))).sum::<u64>());
    let unchanged = line.tasks.iter().filter_map(|task| task.unchanged);
    fields.value("unchanged", unchanged.clone().count());
    if let Some(longest) = unchanged.max() {
        fields.value("unchanged_seconds", longest.as_secs_f64());
    }
    fields.array("ids", line.tasks.iter().take(IDS), |text, task| put(text, task.id()));
    let hosts = line.hosts();
    if !hosts.is_empty() {
        fields.array("hosts", hosts, |text, host| put(text, Quoted(host)));
    }
    fields.end();
}

/// What the tasks of a group have in common.
fn common(fields: &mut Fields<'_>, name: Option<&str>, task: &DumpedTask, waits: Option<LastWait>, beside: Beside) {
    if let Some(name) = name {
        fields.text("name", name);
    }
    fields.text("spawned_at", task.location());
    let state = match task.standing {
        _ if task.is_lost => "lost",
        _ if task.is_running => "running",
        Standing::Waits => "waiting",
        Standing::Ready | Standing::Ended => "ready",
    };
    fields.text("state", state);
    if let Some(waits) = waits {
        wait(fields, "waits_for", waits);
    }
    if beside[0].is_some() {
        fields.array("beside", beside.into_iter().flatten(), |text, known| put_wait(text, LastWait::Known(known)));
    }
    if let Some(Held { kind, holder, .. }) = task.held() {
        let (location, number) = match kind {
            SyncKind::Receive => ("last_sender_made_at", Some("senders")),
            SyncKind::Send => ("received_at", Some("capacity")),
            _ => ("taken_at", None),
        };
        if let Some(line) = holder.location {
            fields.text(location, line);
        }
        match number {
            Some(name) => fields.value(name, holder.number),
            None if holder.number > 0 => fields.value("is_unpolled_since", true),
            None => {}
        }
    }
}

/// The text for people, and what a program would look for in it.
fn wait(fields: &mut Fields<'_>, name: &str, wait: LastWait) {
    put_wait(fields.name(name), wait);
}

fn put_wait(text: &mut String, wait: LastWait) {
    let mut inner = Fields::begin(text);
    inner.text("text", wait);
    if let LastWait::Known(known) = wait {
        match known.reason() {
            Reason::Io(kind, fd) => {
                inner.text("kind", format_args!("{kind:?}"));
                inner.value("fd", fd);
            }
            Reason::Timer(_) => inner.text("kind", "Timer"),
            Reason::Limit(_) => inner.text("kind", "Limit"),
            Reason::Join(task) => {
                inner.text("kind", "Join");
                inner.value("task", task);
            }
            Reason::JoinSet(_) => inner.text("kind", "JoinSet"),
            Reason::Idle => inner.text("kind", "Idle"),
            Reason::Cancel => inner.text("kind", "Cancel"),
            Reason::SyncAt(kind, _) => inner.text("kind", format_args!("{kind:?}")), // resolved before
            Reason::Sync(kind, holder) => {
                inner.text("kind", format_args!("{kind:?}"));
                match (holder, untaken(holder)) {
                    (0, _) => {}
                    (_, (task, _)) if kind == SyncKind::Send => inner.value("last_received_by", Id(task)),
                    (_, (task, _)) if kind == SyncKind::Receive => inner.value("last_sent_by", Id(task)),
                    (ITSELF, _) => inner.value("last_taken_by", "\"itself\""),
                    (_, (task, _)) => inner.value("last_taken_by", Id(task)),
                }
            }
        }
        inner.text("at", known.location());
    }
    inner.end();
}
