//! `Warning`: a likely mistake of the program that the watcher has seen, in words for people.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mini_kernel::primitives::atomic::AtomicBool;
use mini_kernel::primitives::{Mutex, lock};
use mini_net::Process;

use crate::task;

/// A likely mistake of the program, seen while it runs; see [`Builder::warnings`].
///
/// Its `Display` is one line that names the task and the lines of code.
///
/// # Examples
///
/// A test that fails if a task stops its worker:
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let hook = {
///     let seen = seen.clone();
///     move |warning: &mini::runtime::Warning| seen.lock().unwrap().push(warning.clone())
/// };
/// let runtime = mini::runtime::Builder::new_current_thread().on_warning(hook).build()?;
/// runtime.block_on(async { /* the test */ });
/// assert!(seen.lock().unwrap().is_empty());
/// # std::io::Result::Ok(())
/// ```
///
/// [`Builder::warnings`]: crate::runtime::Builder::warnings
#[derive(Clone, Debug)]
pub struct Warning {
    pub(super) kind: WarningKind,
    pub(super) task: Option<task::Id>,
    pub(super) location: Option<&'static Location<'static>>,
    pub(super) text: Arc<str>,
    pub(super) stack: Arc<Explained>,
    pub(super) at: Duration,
}

/// The explanation of a native stack, if there is one; set when it has been worked out.
#[derive(Debug)]
pub(super) struct Explained {
    told: OnceLock<Option<String>>,
    /// In which that is found out.
    process: Process,
}

impl Explained {
    pub(super) fn new() -> Self {
        Self { told: OnceLock::new(), process: Process::current() }
    }

    pub(super) fn set(&self, told: Option<String>) {
        let _ = self.told.set(told);
    }

    /// Waits until it is set, but in the child of a fork(2), where nobody may be left to set it.
    fn wait(&self) -> Option<&str> {
        let told = if self.process.is_current() { self.told.wait() } else { self.told.get()? };
        told.as_deref()
    }
}

/// The kind of a [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A poll has lasted for more than 100 ms: its worker serves no other task, timer or socket during the poll. In a
    /// simulation: for a second of real time, reported once per line of code and process.
    LongPoll,
    /// A timer is late by more than 50 ms, since the worker that should fire it is in one poll.
    LateTimer,
    /// A task waits, and no waker is left that could wake it.
    LostTask,
    /// Tasks join each other in a circle, and none has made progress for a second; or for five seconds, if one of them
    /// may wait for something else too, or for a lock that the next one took.
    Deadlock,
    /// Nothing can wake the future of a `block_on`, or only another thread could; or timers of a paused clock have
    /// fired for long, and it was not polled.
    Stillness,
    /// A task asks to run again, over and over, without waiting for anything.
    BusyLoop,
}

/// The last warnings of a runtime, for callers that ask later.
#[derive(Default)]
pub(crate) struct LastWarnings {
    kept: Mutex<VecDeque<Warning>>,
    /// A panic has shown the tasks.
    pub(super) has_dumped: AtomicBool,
}

impl LastWarnings {
    /// Each is told once for a line of code, so these are most programs' all.
    const KEPT: usize = 64;

    pub(super) fn keep(&self, warning: &Warning) {
        let mut kept = lock(&self.kept);
        let forgotten = if kept.len() == Self::KEPT { kept.pop_front() } else { None };
        kept.push_back(warning.clone());
        drop(kept);
        drop(forgotten);
    }

    pub(crate) fn get(&self) -> Vec<Warning> {
        lock(&self.kept).iter().cloned().collect()
    }
}

impl Warning {
    /// Returns the kind of the warning.
    ///
    /// # Examples
    ///
    /// See [`Warning`].
    pub fn kind(&self) -> WarningKind {
        self.kind
    }

    /// Returns the id of the task, or `None` for the future of a `block_on`, or if the warning is about no task in
    /// particular.
    ///
    /// # Examples
    ///
    /// See [`Warning`].
    pub fn task(&self) -> Option<task::Id> {
        self.task
    }

    /// Returns the line that spawned the task. For the future of a `block_on` it is the line where it waits, if that is
    /// known.
    ///
    /// # Examples
    ///
    /// See [`Warning`].
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// Returns the native stack of the thread in a [long poll](WarningKind::LongPoll): the functions within the poll
    /// with their lines, one per line, the innermost first. If functions of the standard library call each other, only
    /// the outermost is listed. A `…` at the end stands for further functions.
    ///
    /// Requires the feature `backtrace` and Linux for x86-64; otherwise the result is `None`. A program without debug
    /// information has no lines, and a stripped program no stack. In a debug build a separate thread takes half a
    /// second to look the functions up; this call waits for it. In the child of a fork(2) the result is `None` if the
    /// thread had not finished at the fork.
    ///
    /// The thread is interrupted by a SIGURG, once per reported poll, unless the program handles that signal. Code that
    /// waits for this signal, for example by sigwait(3), receives it. The handler runs on the thread's alternate stack,
    /// takes no lock and makes two system calls. A waiting thread is interrupted only in a call that restarts after a
    /// signal (not for sockets, pipes or readiness), in a sleep, and in futex(2): [`std::thread::sleep`] and std's
    /// waits continue; sleep(3), usleep(3) and sem_timedwait(3) of C end early.
    ///
    /// That is asked just before. A thread that computed by then may come to another call before the signal does, and
    /// that call then ends early with `EINTR`, or `ErrorKind::Interrupted`: as poll(2) does, a read of a socket with a
    /// timeout, and what else signal(7) lists.
    ///
    /// # Examples
    ///
    /// ```
    /// let hook = |warning: &mini::runtime::Warning| eprintln!("{warning}\n{}", warning.stack().unwrap_or_default());
    /// let runtime = mini::runtime::Builder::new_current_thread().on_warning(hook).build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn stack(&self) -> Option<&str> {
        self.stack.wait()
    }

    /// Returns the age of the runtime when the warning was made.
    ///
    /// # Examples
    ///
    /// See [`Handle::warnings`](crate::runtime::Handle::warnings).
    pub fn at(&self) -> Duration {
        self.at
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LongPoll => "long poll",
            Self::LateTimer => "late timer",
            Self::LostTask => "lost task",
            Self::Deadlock => "deadlock",
            Self::Stillness => "stillness",
            Self::BusyLoop => "busy loop",
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_last_warnings_are_kept_and_the_oldest_forgotten() {
        let last = LastWarnings::default();
        let stack = Arc::new(Explained::new());
        for second in 0..70 {
            let (kind, at) = (WarningKind::Stillness, Duration::from_secs(second));
            last.keep(&Warning { kind, task: None, location: None, text: "".into(), stack: stack.clone(), at });
        }
        let kept: Vec<u64> = last.get().iter().map(|warning| warning.at().as_secs()).collect();
        assert_eq!(kept, (6..70).collect::<Vec<_>>());
    }
}
