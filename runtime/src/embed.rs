//! A `current_thread` runtime inside somebody else's event loop: `turn`, `next_deadline`, and the descriptor the host watches.
//!
//! Called by the host's loop. It turns the runtime when the descriptor is readable or the deadline is there, and may spawn,
//! drop handles and the like in between. The thread holds the core during a turn alone; what the host does between two
//! turns takes the paths that other threads take.
//!
//! The hard part is a wake between two turns, from another thread or from the host. It must make the descriptor readable,
//! and only an announced wait is rung for (`bell.rs`). So a turn ends with the announcement that a worker's wait begins with,
//! and it stands while the host is out:
//!
//! ```text
//! host                                          other thread, or the host itself
//! A1 the turn ends: announce a wait             B1 push a task, add an earlier timer
//! A2 SeqCst fence                               B2 SeqCst fence
//! A3 look for work; if there is some, ring      B3 if a wait is announced: take that, and ring
//! A4 leave the core; wait in poll(2)
//!
//!        turn begins: take the core, retract, hear the bell
//!      .-------------------------------------------------.
//!      |                                                 v
//!    OUT, announced or rung                            IN TURN
//!      |   ^                                             |
//!      |   '---------------------------------------------'
//!      |        turn ends: A1 to A4
//!      '---> another thread in `block_on` ---> OUT, rung
//! ```
//!
//! A ring is a write to the eventfd in the epoll, so it makes that readable until a turn looks. Every turn looks there, also
//! without sockets. A thread in `block_on` retracts what was announced, and hears rings in the host's place; when it leaves, it
//! rings, and the host's next turn sets all right (`Host`).
//!
//! Rejected: keeping the core between turns (`block_on` of the host would wait for itself). A descriptor of its own beside the
//! epoll (a write more per wake).

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant as SystemInstant};

use mini_time::Instant;

use crate::context;
use crate::core::Core;
use crate::runtime::Runtime;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::{Deadline, thread};
use crate::worker::Worker;

/// What a core knows about a host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Somebody has asked for the descriptor.
    watched: AtomicBool,
    /// The last turn has left work.
    has_more: AtomicBool,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self { watched: AtomicBool::new(false), has_more: AtomicBool::new(false) }
    }

    /// The descriptor is watched from now on; whether the caller must ring, so that the host begins with a turn.
    #[must_use]
    fn watch(&self) -> bool {
        !self.watched.load(Relaxed) && !self.watched.swap(true, SeqCst)
    }

    /// Asked by who leaves the core, after its last look at the reactor: whether it must ring.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(SeqCst)
    }

    pub(crate) fn note_more(&self, has_more: bool) {
        self.has_more.store(has_more, Relaxed);
    }
}

/// What one [`turn`](Runtime::turn) has done.
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
    pub(crate) fn new(polls: usize, has_more: bool) -> Self {
        Self { polls, has_more }
    }

    /// How many tasks were polled.
    ///
    /// # Examples
    ///
    /// See [`Runtime::turn`].
    pub fn polls(&self) -> usize {
        self.polls
    }

    /// Whether there is more to run: then the descriptor is readable, and the next turn does not wait.
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
/// The host watches the runtime's descriptor ([`AsFd`], readable, level-triggered) and
/// [`next_deadline`](Runtime::next_deadline) beside its own events, and calls [`turn`](Runtime::turn) when either is due.
/// Tasks are spawned with [`Runtime::spawn`], also between turns. For `current_thread` runtimes only.
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
/// drop(runtime.spawn(async { println!("in the host's loop") }));
/// loop {
///     runtime.turn(Duration::ZERO);
///     let limit = runtime.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
///     wait_for_events(runtime.as_fd(), limit); // poll(2), with the host's own descriptors
///     // ... what the host has to do
/// }
/// # #[allow(unreachable_code)]
/// # std::io::Result::Ok(())
/// ```
impl Runtime {
    /// Delivers what has happened, runs what is ready, and returns.
    ///
    /// If nothing is ready it waits for something for at most `max_wait` (not at all if that is zero) and runs that. It
    /// polls 256 tasks at most, so that the host has its turn too; then [`Turn::has_more`] says so.
    ///
    /// While another thread is in `block_on` that one does the work, and this waits for its place, for at most `max_wait`. The
    /// descriptor may then be readable as long as one of its polls lasts.
    /// Under a [paused](crate::time::pause) clock, time jumps to the next deadline if nothing else is ready.
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
    /// [`spawn_local`](crate::spawn_local) tasks of the runtime.
    #[track_caller]
    pub fn turn(&self, max_wait: Duration) -> Turn {
        let core = self.embedded("turn");
        assert!(
            context::held().is_null(),
            "Runtime::turn inside a task (or inside block_on) would run tasks within a task: call it from the host's loop"
        );
        let begin = SystemInstant::now();
        if !take_within(core, max_wait) {
            return Turn::new(0, false);
        }
        match Worker::for_host(self.pool(), core) {
            Ok(mut worker) => worker.turn(max_wait.saturating_sub(begin.elapsed())),
            Err(thread) => panic!(
                "this runtime has tasks made by spawn_local on {thread:?}, which they may not leave: call turn there"
            ),
        }
    }

    /// When the next turn is due, if the descriptor does not become readable before: now, if there is work, or when the first
    /// timer ends. `None` if there is neither.
    ///
    /// It may be early, by a turn that finds nothing to do. Ask right before waiting.
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
        if core.has_mail() || core.host.has_more.load(Relaxed) {
            return Some(Instant::now());
        }
        let timers = core.driver().timers();
        if timers.clock().is_paused() { None } else { timers.next_deadline() }
    }

    /// The one core of a runtime that can be embedded.
    #[track_caller]
    fn embedded(&self, call: &str) -> &Core {
        let pool = self.pool();
        assert!(
            !pool.is_multi_thread(),
            "Runtime::{call}: a multi_thread runtime runs by itself; only a current_thread one can be embedded"
        );
        &pool.cores[0]
    }
}

impl AsFd for Runtime {
    /// Readable when [`turn`](Runtime::turn) has something to do, timers apart: they are told by
    /// [`next_deadline`](Runtime::next_deadline). It is an epoll or kqueue descriptor: watch it, and do nothing else with it.
    ///
    /// # Panics
    ///
    /// On a `multi_thread` runtime.
    #[track_caller]
    fn as_fd(&self) -> BorrowedFd<'_> {
        let core = self.embedded("as_fd");
        let reactor = core.driver().reactor();
        if core.host.watch() {
            core.bell.ring(); // who waits as a thread waits in the reactor from now on, and hears the next line
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

/// Takes the core, if need be when another thread leaves it; `false` if that takes longer than `limit`.
fn take_within(core: &Core, limit: Duration) -> bool {
    if core.seat.try_take() {
        return true;
    }
    let (thread, mut deadline) = (thread::current(), Deadline::after(limit));
    loop {
        if deadline.is_over() {
            core.seat.leave(&thread);
            return false;
        }
        if core.seat.take_or_wait(&thread) {
            return true;
        }
        deadline.park();
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} polls{}", self.polls, if self.has_more { ", and more to run" } else { "" })
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };

    /// A host begins to watch while a thread in `block_on` leaves, which may hear the host's ring: the descriptor is readable
    /// afterwards.
    ///
    /// Fails when `watch` rings before it says that it watches, or when the leaver asks before its last look.
    #[test]
    fn who_leaves_a_core_rings_for_the_host() {
        loom::model(|| {
            let shared = Arc::new((Host::new(), Mutex::new(false)));
            let leaving = shared.clone();
            let leaver = thread::spawn(move || {
                *leaving.1.lock().unwrap() = false; // its last look
                if leaving.0.is_watched() {
                    *leaving.1.lock().unwrap() = true;
                }
            });
            if shared.0.watch() {
                *shared.1.lock().unwrap() = true;
            }
            leaver.join().unwrap();
            assert!(*shared.1.lock().unwrap());
        });
    }
}
