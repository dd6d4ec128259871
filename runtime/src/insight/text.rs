//! A [`Dump`] for people.

use std::fmt::{self, Write};
use std::time::Duration;

use mini_context::{Holder, SyncKind, is_main};
use mini_kernel::blocking::Origin;
use mini_kernel::task::{Beside, LastWait, Standing};

use super::circles::Circle;
use super::line::{Line, lines};
use super::{Doing, Dump, DumpedTask, Held, Job, Main, Run, Worker};

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        if let Some(error) = &self.shortage {
            writeln!(f, "  no file descriptor is free: {error}")?;
        }
        self.verdicts(f)?;
        for worker in &self.workers {
            match self.virtual_time {
                Some(_) => self.simulated(f, worker)?,
                None => writeln!(f, "  worker {}  {}", worker.index, Told(self, worker))?,
            }
        }
        let is_of_main = |guest: &Worker| guest.main.as_ref().is_some_and(|main| self.is_for_main(main.wait));
        for guest in self.guests.iter().filter(|guest| !is_of_main(guest)) {
            writeln!(f, "  thread in block_on  {}", Told(self, guest))?;
        }
        for external in &self.externals {
            writeln!(f, "  a thread in block_on that runs no worker waits for {external}")?;
        }
        for line in lines(self.tasks()) {
            writeln!(f, "  {}", Told(self, &line))?;
        }
        self.jobs(f)?;
        self.crowds(f)
    }
}

impl Dump {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (workers, tasks) = (Counted(self.workers.len(), "worker"), Counted(self.seen.len(), "task"));
        match self.virtual_time {
            Some(time) => {
                let time = time.saturating_add(Duration::from_nanos(500)); // to the nearest microsecond
                let (seconds, micros) = (time.as_secs(), time.subsec_micros());
                write!(f, "mini: {seconds}.{micros:06} s of virtual time, {tasks}")?;
            }
            None => {
                let up = Rounded(self.up);
                write!(f, "mini: runtime {}, {}, up {up}: {workers}, {tasks}", self.runtime, self.flavour)?;
            }
        }
        if self.new > 0 {
            write!(f, " and {} new", self.new)?;
        }
        if self.threads > 0 {
            write!(f, ", {}", Counted(self.threads, "blocking thread"))?;
        }
        if let Some(before) = self.before {
            write!(f, "; the dump before was made {} ago", Rounded(before))?;
        }
        writeln!(f)
    }

    /// The only worker, which is seen while nothing goes on: of interest is its main task.
    fn simulated(&self, f: &mut fmt::Formatter<'_>, worker: &Worker) -> fmt::Result {
        match (&worker.doing, &worker.main) {
            (_, Some(main)) => writeln!(f, "  the main task waits for {main}")?,
            (Doing::Works(run), None) if is_main(run.task) => writeln!(f, "  the main task is running")?,
            _ => {}
        }
        if worker.is_hidden { writeln!(f, "  its tasks could not be read") } else { Ok(()) }
    }

    /// Jobs that were spawned at one line share a line.
    fn jobs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let mut lines: Vec<(_, Vec<&Job>)> = Vec::new();
        for job in &self.jobs {
            let key = (job.origin.location, job.is_unchanged);
            match lines.iter_mut().find(|(other, _)| *other == key) {
                Some((_, jobs)) => jobs.push(job),
                None => lines.push((key, vec![job])),
            }
        }
        for ((location, is_unchanged), jobs) in lines {
            let ids: Vec<String> = jobs.iter().take(SHOWN).map(|job| job.origin.id.to_string()).collect();
            let (tasks, more) =
                (if jobs.len() > 1 { "tasks" } else { "task" }, if jobs.len() > SHOWN { ", …" } else { "" });
            write!(f, "  {} spawned at {location}", Counted(jobs.len(), "running blocking job"))?;
            write!(f, ", {tasks} {}{more}", ids.join(", "))?;
            match self.before.filter(|_| is_unchanged) {
                Some(before) => writeln!(f, ", for at least {}", Rounded(before))?,
                None => writeln!(f)?,
            }
        }
        if self.queued_jobs > 0 {
            let (threads, idle) = (Counted(self.threads, "thread"), self.idle_threads);
            write!(
                f,
                "  {} in the queue, for {threads}, {idle} of them idle",
                Counted(self.queued_jobs, "blocking job")
            )?;
            if let Some(Origin { id, location }) = self.next_job {
                write!(f, "; the next is task {id} spawned at {location}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn crowds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Holder { task, location, number } in &self.crowds {
            let Some(location) = location else { continue };
            write!(f, "  a channel made at {location} has grown to {}", Counted(*number as usize, "message"))?;
            if *task != 0 {
                write!(f, ", last received by {}", Name(self, *task))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn verdicts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for circle in self.all_circles() {
            let each = match self.is_over_locks(circle) {
                true => "MAYBE A CIRCLE: each of these waits for the next, or for a lock that it took",
                false => "CIRCLE: each of these waits for the next",
            };
            writeln!(f, "  {each}{}", self.since(circle))?;
            self.circle(f, circle)?;
        }
        for circle in self.possible_circles() {
            write!(f, "  MAYBE A CIRCLE: each of these waits for what the next one used last")?;
            self.lasts(&circle).map_or(Ok(()), |least| write!(f, "; none has made progress for {}", Rounded(least)))?;
            writeln!(f)?;
            self.circle(f, &circle)?;
        }
        let lost = self.tasks().iter().filter(|task| task.is_lost).count();
        match lost {
            0 => Ok(()),
            1 => writeln!(f, "  1 LOST task: it waits, and no waker for it is left"),
            _ => writeln!(f, "  {lost} LOST tasks: each waits, and no waker for it is left"),
        }
    }
}

impl Dump {
    fn circle(&self, f: &mut fmt::Formatter<'_>, circle: &Circle) -> fmt::Result {
        for &task in circle {
            write!(f, "    {} waits for {}", Name(self, task), self.wait_in(task))?;
            self.task(task).map_or(Ok(()), |task| write!(f, "{}{}", Since(task.held()), Ends(task.held())))?;
            writeln!(f)?;
        }
        Ok(())
    }

    /// How long it is known that no task of a circle has gone on.
    pub(super) fn lasts(&self, circle: &Circle) -> Option<Duration> {
        let before = self.before?;
        let waits = |&id: &u64| self.task(id).map_or(Some(before), |task| task.unchanged);
        circle.iter().map(waits).min().flatten()
    }

    /// `true` if a task of the circle waits for a lock. The guard may have moved to another task with its future, or
    /// the lock has just been granted to a task that was not polled since.
    pub(super) fn is_over_locks(&self, circle: &Circle) -> bool {
        circle.iter().any(|&id| self.wait_in(id).joins().is_none())
    }

    /// Whether a task of a circle waits for something else too.
    pub(super) fn has_beside(&self, task: u64) -> bool {
        let main = || self.mains().any(|main| main.id == task && main.has_beside);
        self.task(task).map_or_else(main, |task| task.has_beside)
    }

    /// What a task of a circle waits for.
    fn wait_in(&self, task: u64) -> LastWait {
        let wait = self.task(task).and_then(DumpedTask::waits);
        let wait = wait.or_else(|| Some(self.mains().find(|main| main.id == task)?.wait));
        wait.unwrap_or(LastWait::Unknown)
    }

    /// Whether that is how `#[mini::main]` waits for its body, which is a task.
    fn is_for_main(&self, wait: LastWait) -> bool {
        wait.joins().and_then(|id| self.task(id)).is_some_and(|task| task.name() == Some("main"))
    }

    /// How sure it is that a circle is a deadlock.
    fn since(&self, circle: &Circle) -> String {
        let lasts = self.lasts(circle);
        let waits_for_more = lasts.is_none() || circle.iter().any(|&id| self.has_beside(id));
        let sure = match (waits_for_more, self.is_over_locks(circle)) {
            (false, false) => "most likely",
            (false, true) => "unless a lock has passed to another task",
            (true, false) => "unless one also waits for something else",
            (true, true) => "unless one also waits for something else, or a lock has passed to another task",
        };
        match lasts {
            Some(least) => format!("; none has made progress for {}: a deadlock, {sure}", Rounded(least)),
            None if self.virtual_time.is_some() => format!("; a deadlock, {sure}"),
            None => format!("; a deadlock, {sure}: another dump will show"),
        }
    }
}

/// A part of a dump, told with what the rest of it knows.
struct Told<'a, T>(&'a Dump, &'a T);

impl fmt::Display for Told<'_, Worker> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dump, worker) = *self;
        match &worker.doing {
            Doing::Rests if dump.flavour == "current_thread" => {
                f.write_str("without a thread: no thread is in block_on or turn, so no task runs")?;
            }
            Doing::Rests => f.write_str("without a thread: it has nothing to do")?,
            Doing::Parks => f.write_str("parked")?,
            Doing::Works(run) => write!(f, "{}", Told(dump, run))?,
            Doing::Blocks(task) => write!(f, "in block_in_place, in {}", Name(dump, *task))?,
        }
        if let Some(main) = worker.main.as_ref().filter(|main| !dump.is_for_main(main.wait)) {
            write!(f, "; its main task waits for {main}")?;
        }
        if worker.is_hidden {
            f.write_str("; its own tasks could not be read")?;
        }
        Ok(())
    }
}

impl fmt::Display for Main {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.holder.and_then(|holder| Held::of(self.wait, holder));
        let wait = self.wait.without_timer();
        write!(f, "{wait}{}{}{}{}", Since(held), Ends(held), OrTimer(Some(self.wait)), Also(&self.beside))
    }
}

impl fmt::Display for Told<'_, Run> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dump, run) = *self;
        let Some(lasts) = run.lasts else { return f.write_str("at work") };
        f.write_str(if run.is_stalled { "STALLED for " } else { "for at least " })?;
        write!(f, "{} in {}", Rounded(lasts), Name(dump, run.task))?;
        match run.computes {
            Some(true) => f.write_str(", which computes"),
            Some(false) => f.write_str(", which waits in a system call"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Told<'_, Line<'_>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dump, line) = *self;
        let first = line.tasks[0];
        match &line.tasks[..] {
            [task] => write!(f, "{}", task.source)?,
            tasks => {
                write!(f, "{} tasks ", tasks.len())?;
                if let Some(name) = &line.name {
                    write!(f, "{name:?} ")?;
                }
                write!(f, "spawned at {}", first.location())?;
            }
        }
        self.hosts(f)?;
        match (first.standing, first.waits()) {
            (_, Some(LastWait::Unknown)) if first.is_lost => {
                f.write_str(", LOST; its last wait was for something unknown to mini")?
            }
            (_, Some(_)) if first.is_lost => write!(f, ", LOST; its last wait: {line}")?,
            (_, Some(_)) => {
                write!(f, ", waiting: {line}")?;
                self.due(f)?;
                self.holder(f)?;
                write!(f, "{}{}", OrTimer(first.waits()), Also(&line.beside()))?;
            }
            (Standing::Waits, None) => f.write_str(", waiting")?,
            _ if first.is_running => f.write_str(", running")?,
            _ => f.write_str(", ready to run")?,
        }
        if let (&[task], None) = (&line.tasks[..], first.waits()) {
            match (task.polled_since, dump.before) {
                (Some(polls), Some(before)) => {
                    write!(f, "; polled {} in {}", Counted(polls as usize, "time"), Rounded(before))?
                }
                _ => write!(f, "; polled {}", Counted(task.polls() as usize, "time"))?,
            }
        }
        let unchanged = line.tasks.iter().filter(|task| task.unchanged.is_some()).count();
        match unchanged {
            0 => Ok(()),
            _ if unchanged == line.tasks.len() => f.write_str("; unchanged since the dump before"),
            _ => write!(f, "; {unchanged} of them unchanged since the dump before"),
        }
    }
}

impl Told<'_, Line<'_>> {
    /// Of a simulation, on which hosts the tasks run.
    fn hosts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let hosts = self.1.hosts();
        match &hosts[..] {
            [] => Ok(()),
            [host] => write!(f, " on host {host}"),
            [shown @ .., last] if hosts.len() <= SHOWN => write!(f, " on hosts {} and {last}", shown.join(", ")),
            _ => write!(f, " on hosts {} and {} more", hosts[..SHOWN].join(", "), hosts.len() - SHOWN),
        }
    }

    /// What else is known of the task that has what is waited for, as far as it is the same for all.
    fn holder(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dump, line) = *self;
        let (first, has_one) = (line.tasks[0], line.has_one_holder());
        let held = first.held().map(|held| Held { has_task: held.has_task && has_one, ..held });
        write!(f, "{}", Since(held))?;
        let holder = first.waits().and_then(LastWait::holder).filter(|_| has_one);
        if holder.is_some_and(|id| !is_main(id) && dump.task(id).is_none()) {
            f.write_str(", which has ended, or is no task of this runtime")?;
        }
        let number = |task: &DumpedTask| task.holder.map(|holder| holder.number);
        let has_one = line.tasks.iter().all(|task| number(task) == number(first));
        if has_one { write!(f, "{}", Ends(held)) } else { Ok(()) }
    }

    /// When the first timer of the line fires.
    fn due(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(due) = self.1.due() else { return Ok(()) };
        let first = if self.1.tasks.len() > 1 { ", the first" } else { "" };
        match due.checked_sub(self.0.now) {
            Some(left) => write!(f, "{first}, due in {}", Rounded(Duration::from_nanos(left))),
            None => write!(f, "{first}, late by {}", Rounded(Duration::from_nanos(self.0.now - due))),
        }
    }
}

/// The line that took the lock for which a task waits, or where the messages of its channel are received; behind the
/// name of the holder.
struct Since(Option<Held>);

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Held { kind, has_task, holder }) = self.0 else { return Ok(()) };
        let Some(line) = holder.location else { return Ok(()) };
        match kind {
            SyncKind::Receive => Ok(()),
            _ if has_task => write!(f, " at {line}"),
            SyncKind::Send => write!(f, ", last received at {line}"),
            _ => write!(f, ", taken at {line}"), // by no task
        }
    }
}

/// Behind all that is told of a wait.
struct OrTimer(Option<LastWait>);

impl fmt::Display for OrTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_timed = matches!(self.0, Some(LastWait::Known(wait)) if wait.is_timed());
        if is_timed { f.write_str(", or a timer") } else { Ok(()) }
    }
}

/// What a task waits for too.
struct Also<'a>(&'a Beside);

impl fmt::Display for Also<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "; also: ";
        for wait in self.0.iter().flatten() {
            write!(f, "{comma}{wait}")?;
            comma = ", ";
        }
        Ok(())
    }
}

/// What else is known of the lock or channel for which a task waits.
struct Ends(Option<Held>);

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Held { kind, holder: Holder { location, number, .. }, .. }) = self.0 else { return Ok(()) };
        match (kind, location) {
            (SyncKind::Send, _) => write!(f, "; full: {number} of {number}"),
            (SyncKind::Receive, Some(line)) => {
                let are = if number == 1 { "is" } else { "are" };
                write!(f, "; {} {are} left, last made at {line}", Counted(number as usize, "sender"))
            }
            (SyncKind::Receive, None) => Ok(()),
            _ if number > 0 => f.write_str(", for a future that has not been polled since"),
            _ => Ok(()),
        }
    }
}

impl DumpedTask {
    /// The line that took the lock for which it waits, to be told behind the wait.
    pub(super) fn since(&self) -> impl fmt::Display {
        Since(self.held())
    }
}

/// How a task is called in a sentence about others.
struct Name<'a>(&'a Dump, u64);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.1, self.0.task(self.1)) {
            (main, _) if is_main(main) => f.write_str("the main task"),
            (_, Some(task)) => write!(f, "{}", task.source),
            (id, None) => write!(f, "task {id}"),
        }
    }
}

/// "1 task", "1,042 tasks".
struct Counted<'a>(usize, &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        write!(f, " {}{}", self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// A time as people say it.
pub(super) struct Rounded(pub(super) Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without floats, whose printing is 15 kB of code.
        let micros = self.0.as_secs().saturating_mul(1_000_000).saturating_add(self.0.subsec_micros().into());
        let to_nearest = |unit: u64| micros.saturating_add(unit / 2) / unit;
        match self.0.as_secs() {
            0 => write!(f, "{} ms", to_nearest(1_000)),
            1..120 => write!(f, "{}.{} s", to_nearest(100_000) / 10, to_nearest(100_000) % 10),
            120..7_200 => write!(f, "{} min", to_nearest(60_000_000)),
            7_200.. => write!(f, "{} h", to_nearest(3_600_000_000)),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        let counted = [0, 1, 42, 1042, 1_234_567].map(|count| Counted(count, "task").to_string());
        assert_eq!(counted, ["0 tasks", "1 task", "42 tasks", "1,042 tasks", "1,234,567 tasks"]);
        let times =
            [0.0123, 2.14, 119.94, 720.0, 7300.0].map(|seconds| Rounded(Duration::from_secs_f64(seconds)).to_string());
        assert_eq!(times, ["12 ms", "2.1 s", "119.9 s", "12 min", "2 h"]);
    }
}
