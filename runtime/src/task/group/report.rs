//! The report of a group: counts of its tasks, and an entry for each task that failed or did not end by itself.
//!
//! One flat list for a group and its subgroups: a person reads it from the top, and no depth of groups can overflow a
//! stack. A group that ends gives its entries to its parent.
//!
//! A group of a server starts millions of tasks, so nothing is kept of a task that ended well, and of those that failed
//! the first [`KEPT`] in each group.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use mini_kernel::task::LastWait;

use super::super::{Cancelled, Id};

/// How many failures a group keeps, and how many lines of a kind a report prints.
const KEPT: usize = 100;

/// A report on the ends of the tasks of a [`Group`](super::Group) and its subgroups; returned by
/// [`Group::shutdown`](super::Group::shutdown).
///
/// Its `Display` has several lines, for people.
///
/// # Examples
///
/// ```
/// use mini::task::{Group, Reason};
/// use mini::time::{Duration, sleep};
///
/// mini::block_on(async {
/// # mini::time::pause();
///     let group = Group::new().grace(Duration::from_secs(5));
///     group.spawn(async {});
///     group.spawn_named("config", async { std::fs::read("/no such file").map(drop) });
///     group.spawn_named("deaf", sleep(Duration::from_secs(99)));
///     let report = group.shutdown(Reason::Requested).await;
///     assert_eq!((report.finished(), report.failed().len(), report.aborted().len()), (1, 1, 1));
///     assert!(!report.is_clean());
///     println!("{report}");
///     // shutdown after 5.0 s, requested at src/main.rs:9:24: 1 finished, 1 failed, 1 aborted
///     //   failed   "config" spawned at src/main.rs:7:11: No such file or directory (os error 2)
///     //   aborted  "deaf" spawned at src/main.rs:8:11, waiting for Timer at src/main.rs:8:31
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) why: Option<Cancelled>,
    pub(super) took: Duration,
    pub(super) tally: Tally,
    pub(super) running: Vec<Straggler>,
}

/// The known results of a group's ended tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) finished: u64,
    pub(super) cancelled: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) failures: Vec<FailedTask>,
    pub(super) aborted: Vec<Straggler>,
}

/// A task that failed: it gave an error or panicked. In a [`Report`].
///
/// # Examples
///
/// ```
/// use mini::task::{Group, Reason};
///
/// mini::block_on(async {
///     let group = Group::new().name("start");
///     group.spawn_named("config", async { Err::<(), _>("line 3: no such key") });
///     group.spawn(async { panic!("out of luck") });
///     group.wait().await;
///     let report = group.shutdown(Reason::Requested).await;
///     let [config, other] = report.failed() else { panic!("{report}") };
///     assert_eq!((config.name(), config.group()), (Some("config"), Some("start")));
///     assert_eq!((config.error(), config.is_panic()), ("line 3: no such key", false));
///     assert_eq!((other.name(), other.error(), other.is_panic()), (None, "out of luck", true));
///     assert_eq!(other.location().line(), config.location().line() + 1);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct FailedTask {
    pub(super) name: Option<Arc<str>>,
    pub(super) group: Option<Arc<str>>,
    pub(super) location: &'static Location<'static>,
    pub(super) error: String,
    pub(super) is_panic: bool,
}

/// A task that did not end within the grace. In a [`Report`].
///
/// # Examples
///
/// ```
/// use mini::task::{Group, Reason};
/// use mini::time::Duration;
///
/// mini::block_on(async {
/// # mini::time::pause();
///     let group = Group::new().grace(Duration::from_secs(2));
///     group.spawn_named("deaf", std::future::pending::<()>());
///     let report = group.shutdown(Reason::Requested).await;
///     let [deaf] = report.aborted() else { panic!("{report}") };
///     assert_eq!((deaf.name(), deaf.group()), (Some("deaf"), None));
///     assert_eq!(deaf.last_wait().as_deref(), Some("unknown")); // of a future that is not mini's
///     assert!(deaf.location().file().ends_with(".rs"));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Straggler {
    pub(super) id: Id,
    pub(super) name: Option<Arc<str>>,
    pub(super) group: Option<Arc<str>>,
    pub(super) location: &'static Location<'static>,
    pub(super) last_wait: Option<LastWait>,
    /// Which of all beginnings and aborts it was.
    pub(super) order: u64,
    /// A thread was at work on it when the report was made.
    pub(super) is_running: bool,
}

impl Tally {
    pub(super) fn fail(&mut self, task: FailedTask) {
        self.failed += 1;
        if self.failures.len() < KEPT {
            self.failures.push(task);
        }
    }

    /// Adds what a group below has counted.
    pub(super) fn add(&mut self, below: Tally) {
        self.finished += below.finished;
        self.cancelled += below.cancelled;
        self.refused += below.refused;
        self.failed += below.failed;
        let room = KEPT.saturating_sub(self.failures.len());
        self.failures.extend(below.failures.into_iter().take(room));
        self.aborted.extend(below.aborted);
    }

    /// Only counts the tasks that were aborted before `since`, which is an order: they have been reported then.
    pub(super) fn forget_aborted(&mut self, since: Option<u64>) {
        let all = self.aborted.len();
        self.aborted.retain(|task| since.is_some_and(|since| task.order > since));
        self.cancelled += (all - self.aborted.len()) as u64;
    }
}

impl Report {
    /// Returns the reason and the line of the shutdown: the first cancellation of the group's token.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let report = Group::new().shutdown(Reason::Deadline).await;
    ///     assert_eq!(report.why().unwrap().reason(), Reason::Deadline);
    ///     assert!(report.is_clean() && report.took() < std::time::Duration::from_secs(5));
    /// });
    /// ```
    #[must_use]
    pub fn why(&self) -> Option<Cancelled> {
        self.why
    }

    /// Returns the duration of the shutdown, or its duration so far.
    ///
    /// # Examples
    ///
    /// See [`why`](Self::why).
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Returns the number of tasks that have ended by themselves without failing, since the group was made.
    ///
    /// # Examples
    ///
    /// See [`Report`].
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.tally.finished
    }

    /// Returns the number of tasks whose futures were dropped before they were ready, but not by this shutdown: tasks
    /// that were aborted by their handles or by an earlier shutdown of a subgroup, or dropped with their runtime.
    ///
    /// A task that ends because its token is cancelled counts as [finished](Self::finished), even if it returns the
    /// [`Cancelled`] as an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let group = Group::new();
    ///     let _ = group.spawn(std::future::pending::<()>()).cancel().await;
    ///     let report = group.shutdown(Reason::Requested).await;
    ///     assert_eq!((report.cancelled(), report.aborted().len(), report.is_clean()), (1, 0, true));
    /// });
    /// ```
    #[must_use]
    pub fn cancelled(&self) -> u64 {
        self.tally.cancelled
    }

    /// Returns the number of tasks that the group has refused, as it had shut down already.
    ///
    /// # Examples
    ///
    /// See [`Group::spawn`](super::Group::spawn).
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.tally.refused
    }

    /// Returns the number of tasks that have failed since the group was made.
    ///
    /// # Examples
    ///
    /// See [`failed`](Self::failed).
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.tally.failed
    }

    /// Returns the tasks that have failed: the first hundred of each group.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    ///
    /// mini::block_on(async {
    ///     let group = Group::new();
    ///     for number in 0..1000 {
    ///         group.spawn(async move { Err::<(), _>(format!("no {number}")) });
    ///     }
    ///     let report = group.shutdown(Reason::Requested).await;
    ///     assert_eq!((report.failures(), report.failed().len()), (1000, 100));
    /// });
    /// ```
    #[must_use]
    pub fn failed(&self) -> &[FailedTask] {
        &self.tally.failures
    }

    /// Returns the tasks that were aborted at the end of the grace, and are gone.
    ///
    /// # Examples
    ///
    /// See [`Straggler`].
    #[must_use]
    pub fn aborted(&self) -> &[Straggler] {
        &self.tally.aborted
    }

    /// Returns the tasks that were aborted but not dropped within the next second: they block in a poll or in a
    /// destructor, or are blocking jobs. Or no thread was free to drop them, as other tasks block: see
    /// [`Straggler::is_running`].
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::task::{Group, Reason};
    /// use mini::time::Duration;
    /// use std::sync::mpsc;
    ///
    /// mini::block_on(async {
    ///     let (quit, wait) = mpsc::channel::<()>();
    ///     let (begins, has_begun) = mpsc::channel();
    ///     let group = Group::new().grace(Duration::ZERO);
    ///     group.spawn_blocking(move || {
    ///         let _ = begins.send(());
    ///         let _ = wait.recv();
    ///     });
    ///     has_begun.recv().unwrap();
    ///     let report = group.shutdown(Reason::Requested).await;
    ///     assert_eq!((report.aborted().len(), report.running().len()), (0, 1));
    ///     assert!(report.running()[0].is_running());
    ///     drop(quit);
    /// });
    /// ```
    #[must_use]
    pub fn running(&self) -> &[Straggler] {
        &self.running
    }

    /// Returns `true` if no task has failed, and all have ended without being aborted by the shutdown.
    ///
    /// # Examples
    ///
    /// See [`Report`].
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.is_complete() && self.tally.failed == 0
    }

    /// Whether all have ended within the grace, in one way or another.
    pub(crate) fn is_complete(&self) -> bool {
        self.tally.aborted.is_empty() && self.running.is_empty()
    }
}

impl FailedTask {
    /// Returns the name of the task.
    ///
    /// # Examples
    ///
    /// See [`FailedTask`].
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the name of the task's group.
    ///
    /// # Examples
    ///
    /// See [`FailedTask`].
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`FailedTask`].
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the text of the error with its causes, as from [`Outcome`](super::Outcome), or the message of the panic.
    ///
    /// # Examples
    ///
    /// See [`FailedTask`].
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }

    /// Returns `true` if the task panicked.
    ///
    /// # Examples
    ///
    /// See [`FailedTask`].
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.is_panic
    }
}

impl Straggler {
    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// Returns the id of the task, as [`JoinHandle::id`](crate::task::JoinHandle::id) does.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the name of the task.
    ///
    /// # Examples
    ///
    /// See [`Straggler`].
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns `true` if a thread was at work on the task when the report was made; `false` if the task waited for a
    /// thread that was busy with other tasks, and for a task that was aborted in time.
    ///
    /// # Examples
    ///
    /// See [`Report::running`].
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Returns the name of the task's group.
    ///
    /// # Examples
    ///
    /// See [`Straggler`].
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`Straggler`].
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Describes what the last poll of the task was pending for, with the line. Returns `None` if no poll was pending.
    ///
    /// # Examples
    ///
    /// See [`Straggler`].
    #[must_use]
    pub fn last_wait(&self) -> Option<String> {
        self.last_wait.map(|wait| wait.to_string())
    }
}

/// The part of a line that says which task is meant.
struct Who<'a>(Option<&'a str>, Option<&'a str>, &'static Location<'static>);

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "{name:?} ")?,
            None => f.write_str("a task ")?,
        }
        if let Some(group) = self.1 {
            write!(f, "of group {group:?} ")?;
        }
        write!(f, "spawned at {}", self.2)
    }
}

impl fmt::Display for FailedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}: {}",
            Who(self.name(), self.group(), self.location),
            ["", " panicked"][usize::from(self.is_panic)],
            self.error
        )
    }
}

impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = Who(self.name(), self.group(), self.location);
        match self.last_wait {
            Some(wait) => write!(f, "{who}, waiting for {wait}"),
            None => write!(f, "{who}, had not waited for anything yet"),
        }
    }
}

/// One beside others: it may have waited for what another one had.
struct Listed<'a>(&'a Straggler, &'a Report);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(task, report) = self;
        task.fmt(f)?;
        let Some(holder) = task.last_wait.and_then(LastWait::holder) else { return Ok(()) };
        let mut all = report.tally.aborted.iter().chain(&report.running);
        match all.find(|other| other.id.get() == holder).and_then(Straggler::name) {
            Some(name) => write!(f, " ({name:?})"),
            None => Ok(()),
        }
    }
}

/// One that runs, or would: what it waited for before says little.
struct Stuck<'a>(&'a Straggler);

impl fmt::Display for Stuck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(task) = self;
        let what = if task.is_running { "still occupies its thread" } else { "had no thread to end on" };
        write!(f, "{}, {what}", Who(task.name(), task.group(), task.location))?;
        task.last_wait.map_or(Ok(()), |wait| write!(f, "; its last wait: {wait}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (running, ready): (Vec<_>, Vec<_>) = self.running.iter().map(Stuck).partition(|task| task.0.is_running);
        write!(f, "shutdown after {:.1?}", self.took)?;
        if let Some(why) = self.why {
            write!(f, ", {why}")?;
        }
        write!(f, ": {} finished", self.tally.finished)?;
        let counts = [
            (self.tally.failed, "failed"),
            (self.tally.aborted.len() as u64, "aborted"),
            (running.len() as u64, "still running"),
            (ready.len() as u64, "without a thread"),
            (self.tally.cancelled, "cancelled by others"),
            (self.tally.refused, "refused"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        let Tally { failures, failed, aborted, .. } = &self.tally;
        lines(f, "failed ", failures.len(), *failed, &|f, task| failures[task].fmt(f))?;
        lines(f, "aborted", aborted.len(), aborted.len() as u64, &|f, task| Listed(&aborted[task], self).fmt(f))?;
        lines(f, "running", running.len(), running.len() as u64, &|f, task| running[task].fmt(f))?;
        lines(f, "ready  ", ready.len(), ready.len() as u64, &|f, task| ready[task].fmt(f))
    }
}

/// A line for each of the first tasks of a `kind`, of which there are `all`; `line` writes that of one of the `known`
/// ones, by its number.
fn lines(
    f: &mut fmt::Formatter<'_>,
    kind: &str,
    known: usize,
    all: u64,
    line: &dyn Fn(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    let shown = known.min(KEPT);
    for task in 0..shown {
        write!(f, "\n  {kind}  ")?;
        line(f, task)?;
    }
    match all - shown as u64 {
        0 => Ok(()),
        more => write!(f, "\n  {kind}  and {more} more"),
    }
}
