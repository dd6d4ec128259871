//! A [`Dump`] for programs.

use std::fmt::Display;
use std::time::Duration;

use mini_context::{ITSELF, Reason, SyncKind, is_main, untaken};
use mini_kernel::task::{Beside, LastWait, Standing};

use super::circles::Circle;
use super::line::{Line, lines};
use super::{Doing, Dump, DumpedTask, Held, Worker};
use crate::json::{Fields, Quoted, put};

/// How many of the ids of a group are told.
const IDS: usize = 8;

pub(super) fn of(dump: &Dump) -> String {
    with(dump, |fields| fields.objects("tasks", dump.tasks(), task))
}

/// With the `most` largest groups of tasks.
pub(super) fn of_groups(dump: &Dump, most: usize) -> String {
    let lines = lines(dump.tasks());
    with(dump, |fields| {
        fields.value("task_count", dump.seen.len());
        fields.objects("groups", lines.iter().take(most), group);
        fields.value("groups_left_out", lines.len().saturating_sub(most));
        fields.maybe("since_seconds", dump.before.map(seconds));
    })
}

fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

fn with(dump: &Dump, tasks: impl FnOnce(&mut Fields<'_>)) -> String {
    let mut text = String::new();
    write(&mut Fields::begin(&mut text), dump, tasks);
    text
}

fn write(fields: &mut Fields<'_>, dump: &Dump, tasks: impl FnOnce(&mut Fields<'_>)) {
    fields.value("runtime", dump.runtime);
    fields.text("flavour", dump.flavour);
    fields.value("up_seconds", seconds(dump.up));
    fields.value("has_ended", dump.has_ended);
    fields.value("warns", dump.warns);
    fields.value("records", dump.records);
    fields.objects("workers", &dump.workers, worker);
    fields.objects("block_on_threads", &dump.guests, worker);
    fields.objects("external_threads", &dump.externals, |fields, main| wait(fields.name("main_waits_for"), main.wait));
    tasks(fields);
    fields.objects("circles", dump.all_circles(), |fields, members| circle(fields, dump, members));
    fields.objects("possible_circles", &dump.possible_circles(), |fields, members| circle(fields, dump, members));
    fields.objects("crowded_channels", &dump.crowds, |fields, crowd| {
        fields.maybe("made_at", crowd.location.map(Quoted));
        fields.value("messages", crowd.number);
        fields.maybe("last_received_by", (crowd.task != 0).then_some(Id(crowd.task)));
    });
    fields.value("new_tasks", dump.new);
    fields.maybe("shortage", dump.shortage.as_ref().map(Quoted));
    let mut blocking = fields.object("blocking");
    blocking.value("threads", dump.threads);
    blocking.value("idle", dump.idle_threads);
    blocking.value("queued", dump.queued_jobs);
    blocking.objects("running", &dump.jobs, |fields, job| {
        fields.value("id", job.origin.id);
        fields.text("spawned_at", job.origin.location);
        fields.maybe("seconds", dump.before.filter(|_| job.is_unchanged).map(seconds));
    });
}

/// The id of a task; a main task has none, and is called so.
struct Id(u64);

impl Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if is_main(self.0) { f.write_str("\"main\"") } else { self.0.fmt(f) }
    }
}

fn worker(fields: &mut Fields<'_>, worker: &Worker) {
    fields.value("index", worker.index);
    let (state, task, lasts) = match &worker.doing {
        Doing::Rests => ("no thread", None, None),
        Doing::Parks => ("parked", None, None),
        Doing::Works(run) => (if run.is_stalled { "stalled" } else { "running" }, Some(run.task), run.lasts),
        Doing::Blocks(task) => ("block_in_place", Some(*task), None),
    };
    fields.text("state", state);
    fields.maybe("task", task.map(Id));
    fields.maybe("seconds", lasts.map(seconds));
    if let Some(main) = &worker.main {
        wait(fields.name("main_waits_for"), main.wait);
    }
    fields.maybe("is_hidden", worker.is_hidden.then_some(true));
}

fn circle(fields: &mut Fields<'_>, dump: &Dump, circle: &Circle) {
    fields.array("tasks", circle, |text, &task| put(text, Id(task)));
    fields.maybe("waits_for_more", circle.iter().any(|&task| dump.has_beside(task)).then_some(true));
    fields.maybe("over_locks", dump.is_over_locks(circle).then_some(true));
    fields.maybe("unchanged_seconds", dump.lasts(circle).map(seconds));
}

fn task(fields: &mut Fields<'_>, task: &DumpedTask) {
    fields.value("id", task.id());
    fields.value("polls", task.polls());
    common(fields, task.name(), task, task.waits(), task.beside());
    fields.maybe("host", task.host().map(Quoted));
    fields.maybe("unchanged_seconds", task.unchanged.map(seconds));
}

fn group(fields: &mut Fields<'_>, line: &Line<'_>) {
    fields.value("count", line.tasks.len());
    common(fields, line.name.as_deref(), line.tasks[0], line.wait(), line.beside());
    fields.value("polled", line.tasks.iter().map(|task| u64::from(task.polled_since.unwrap_or(0))).sum::<u64>());
    let unchanged = line.tasks.iter().filter_map(|task| task.unchanged);
    fields.value("unchanged", unchanged.clone().count());
    fields.maybe("unchanged_seconds", unchanged.max().map(seconds));
    fields.array("ids", line.tasks.iter().take(IDS), |text, task| put(text, task.id()));
    let hosts = line.hosts();
    if !hosts.is_empty() {
        fields.array("hosts", hosts, |text, host| put(text, Quoted(host)));
    }
}

/// What the tasks of a group have in common.
fn common(fields: &mut Fields<'_>, name: Option<&str>, task: &DumpedTask, waits: Option<LastWait>, beside: Beside) {
    fields.maybe("name", name.map(Quoted));
    fields.text("spawned_at", task.location());
    let state = match task.standing {
        _ if task.is_lost => "lost",
        _ if task.is_running => "running",
        Standing::Waits => "waiting",
        Standing::Ready | Standing::Ended => "ready",
    };
    fields.text("state", state);
    if let Some(waits) = waits {
        wait(fields.name("waits_for"), waits);
    }
    if beside[0].is_some() {
        fields.array("beside", beside.into_iter().flatten(), |text, known| wait(text, LastWait::Known(known)));
    }
    if let Some(Held { kind, holder, .. }) = task.held() {
        let (location, number) = match kind {
            SyncKind::Receive => ("last_sender_made_at", Some("senders")),
            SyncKind::Send => ("received_at", Some("capacity")),
            _ => ("taken_at", None),
        };
        fields.maybe(location, holder.location.map(Quoted));
        match number {
            Some(name) => fields.value(name, holder.number),
            None => fields.maybe("is_unpolled_since", (holder.number > 0).then_some(true)),
        }
    }
}

/// The text for people, and what a program would look for in it.
fn wait(text: &mut String, wait: LastWait) {
    let mut fields = Fields::begin(text);
    fields.text("text", wait);
    let LastWait::Known(known) = wait else { return };
    let reason = known.reason();
    match reason {
        Reason::Io(kind, _) => fields.text("kind", format_args!("{kind:?}")),
        Reason::Sync(kind, _) | Reason::SyncAt(kind, _) => fields.text("kind", format_args!("{kind:?}")),
        Reason::Timer(_) => fields.text("kind", "Timer"),
        Reason::Limit(_) => fields.text("kind", "Limit"),
        Reason::Join(_) => fields.text("kind", "Join"),
        Reason::JoinSet(_) => fields.text("kind", "JoinSet"),
        Reason::Idle => fields.text("kind", "Idle"),
        Reason::Cancel => fields.text("kind", "Cancel"),
    }
    match reason {
        Reason::Io(_, fd) => fields.value("fd", fd),
        Reason::Join(task) => fields.value("task", task),
        Reason::Sync(kind, holder) if holder != 0 => match kind {
            SyncKind::Send => fields.value("last_received_by", Id(untaken(holder).0)),
            SyncKind::Receive => fields.value("last_sent_by", Id(untaken(holder).0)),
            _ if holder == ITSELF => fields.text("last_taken_by", "itself"),
            _ => fields.value("last_taken_by", Id(untaken(holder).0)),
        },
        _ => {}
    }
    fields.text("at", known.location());
}
