//! A `current_thread` runtime inside somebody else's event loop: `turn`, `next_deadline`, and the descriptor the
//! embedder watches.
//!
//! Called by the embedder's loop, which turns the runtime when the descriptor is readable or the deadline has passed,
//! and may spawn, drop handles and the like in between. The thread holds the core only during a turn; what the embedder
//! does between two turns takes the paths that other threads take.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::time::{Duration, Instant as SystemInstant};

use mini_kernel::primitives::Deadline;
use mini_kernel::scheduler::core::Core;
use mini_kernel::scheduler::current;
use mini_kernel::scheduler::parker::Parker;
use mini_kernel::scheduler::worker::Worker;
use mini_kernel::task::hide;
use mini_time::Instant;

use crate::runtime::Runtime;

/// The result of one [`turn`](Runtime::turn).
///
/// # Examples
///
/// See [`Runtime::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    polls: usize,
    has_more: bool,
}

impl Turn {
    /// Returns the number of tasks that were polled.
    ///
    /// # Examples
    ///
    /// See [`Runtime::turn`].
    pub fn polls(&self) -> usize {
        self.polls
    }

    /// Returns `true` if more tasks are ready: the descriptor is then readable, and the next turn does not wait.
    ///
    /// # Examples
    ///
    /// See [`Runtime::turn`].
    pub fn has_more(&self) -> bool {
        self.has_more
    }
}

/// Embedding in another event loop.
///
/// The embedder watches the runtime's descriptor ([`AsFd`], readable, level-triggered) and
/// [`next_deadline`](Runtime::next_deadline) beside its own events, and calls [`turn`](Runtime::turn) when either is
/// due. Tasks are spawned with [`Runtime::spawn`], also between turns. For `current_thread` runtimes only.
///
/// # Examples
///
/// ```no_run
/// # fn wait_for_events(fd: std::os::fd::BorrowedFd<'_>, limit: Option<std::time::Duration>) {}
/// use std::os::fd::AsFd;
/// use std::time::Duration;
/// use mini::runtime::Builder;
/// use mini::time::Instant;
///
/// let runtime = Builder::new_current_thread().build()?;
/// drop(runtime.spawn(async { println!("in the embedder's loop") }));
/// loop {
///     runtime.turn(Duration::ZERO);
///     let limit = runtime.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
///     wait_for_events(runtime.as_fd(), limit); // poll(2), with the embedder's own descriptors
///     // ... what the embedder has to do
/// }
/// # #[allow(unreachable_code)]
/// # std::io::Result::Ok(())
/// ```
impl Runtime {
    /// Delivers events, runs tasks that are ready, and returns.
    ///
    /// If nothing is ready, it waits for an event for at most `max_wait` (not at all if that is zero) and polls the
    /// tasks that the event wakes. It polls tasks for at most half a millisecond, plus the poll in progress, so that
    /// the embedder can do its own work. If more tasks are ready by then, [`Turn::has_more`] returns `true`.
    ///
    /// While another thread is in `block_on`, that thread does the work, and this call waits for its place, for at most
    /// `max_wait`. The descriptor may then be readable for as long as a poll on that thread lasts. With a
    /// `max_wait` of zero, the embedder's loop then spins. Under a [paused](crate::time::pause) clock, time jumps to
    /// the next deadline if nothing else is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let runtime = mini::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async { mini::time::sleep(Duration::from_millis(1)).await });
    /// while !task.is_finished() {
    ///     runtime.turn(Duration::from_secs(1));
    /// }
    /// assert_eq!(runtime.turn(Duration::ZERO).polls(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// On a `multi_thread` runtime; inside a task or `block_on`; on another thread than that of
    /// [`spawn_local`](crate::spawn_local) tasks of the runtime; in a child of [fork(2)](Runtime#fork).
    #[track_caller]
    pub fn turn(&self, max_wait: Duration) -> Turn {
        let core = self.embedded("turn");
        assert!(
            !current::is_polling(),
            "Runtime::turn inside a task (or inside block_on) would run tasks within a task: call it from the \
             embedder's loop"
        );
        // As in `block_on`: this thread may be inside a poll of another executor, or a scope of a task-local value.
        let _outer = (mini_context::set_poll_aside(), mini_context::set_due(None), hide());
        let begin = SystemInstant::now();
        if !take_within(core, max_wait) {
            return Turn { polls: 0, has_more: false };
        }
        match Worker::for_embedder(self.shared(), core) {
            Ok(mut worker) => {
                let (polls, has_more) = worker.turn(max_wait.saturating_sub(begin.elapsed()));
                Turn { polls, has_more }
            }
            Err(thread) => panic!("tasks made by spawn_local bind this runtime to {thread:?}: call turn there"),
        }
    }

    /// Returns the time of the next turn, unless the descriptor becomes readable first: now if there is work, or the
    /// end of the first timer. Returns `None` if there is neither, or if another thread in `block_on` does this work:
    /// when that thread leaves, the descriptor is readable.
    ///
    /// The answer may be too early: then a turn finds nothing to do. Ask right before waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use mini::time::Instant;
    /// let runtime = mini::runtime::Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.next_deadline(), None);
    /// drop(runtime.spawn(mini::time::sleep(Duration::from_secs(60))));
    /// assert!(runtime.next_deadline().unwrap() <= Instant::now(), "the task has yet to run");
    /// runtime.turn(Duration::ZERO);
    /// assert!(runtime.next_deadline().unwrap() > Instant::now() + Duration::from_secs(50));
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    ///
    /// On a `multi_thread` runtime.
    #[track_caller]
    pub fn next_deadline(&self) -> Option<Instant> {
        let core = self.embedded("next_deadline");
        if core.embedder.is_served() && !ptr::eq(current::held(), core) {
            return None;
        }
        if core.has_mail() || core.embedder.has_more() {
            return Some(Instant::now());
        }
        let timers = core.driver().timers();
        if timers.clock().is_paused() { None } else { timers.next_deadline() }
    }

    /// The one core of a runtime that can be embedded.
    #[track_caller]
    fn embedded(&self, call: &str) -> &Core {
        let shared = self.shared();
        shared.process.check(call);
        assert!(
            !shared.is_multi_thread(),
            "Runtime::{call}: a multi_thread runtime runs by itself; only a current_thread one can be embedded"
        );
        &shared.cores[0]
    }
}

impl AsFd for Runtime {
    /// Readable when [`turn`](Runtime::turn) has something to do, except for timers: for those ask
    /// [`next_deadline`](Runtime::next_deadline). It is an epoll or kqueue descriptor: watch it, and do nothing else
    /// with it.
    ///
    /// NetBSD before 10 refuses to add it to another kqueue(2), with `EPERM`: watch it by poll(2) there.
    ///
    /// # Panics
    ///
    /// On a `multi_thread` runtime.
    #[track_caller]
    fn as_fd(&self) -> BorrowedFd<'_> {
        let core = self.embedded("as_fd");
        let reactor = core.driver().reactor();
        if core.embedder.watch() {
            core.unparker.unpark(); // who waits as a thread waits in the reactor from now on, and hears the next line
            reactor.notify();
        }
        reactor.as_fd()
    }
}

impl AsRawFd for Runtime {
    /// As [`as_fd`](AsFd::as_fd). The runtime closes it.
    #[track_caller]
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Takes the core, or waits until another thread leaves it; `false` if that takes longer than `limit`.
fn take_within(core: &Core, limit: Duration) -> bool {
    if core.ownership.try_take() {
        return true;
    }
    let (parker, mut deadline) = (Parker::new(), Deadline::after(limit));
    loop {
        if deadline.is_over() {
            core.ownership.leave(&parker);
            return false;
        }
        if core.ownership.take_or_wait(&parker) {
            return true;
        }
        parker.park_until(&mut deadline);
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} polls{}", self.polls, if self.has_more { ", and more to run" } else { "" })
    }
}
