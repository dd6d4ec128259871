//! The driver that a worker waits on: the reactor of its runtime and the timers of its core.
//!
//! [`Driver::park`] is the only place of the runtime that blocks for I/O or time. The worker also [polls](Driver::poll)
//! it at each driver check. While all workers are stuck the monitor turns it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mini_context::contain;
use mini_net::{Events, Reactor};
use mini_time::{Clock, Park, Timers};

use crate::primitives::{HAS_TIME, thread};
use crate::scheduler::poller::PollerRole;
use crate::scheduler::unparker::{ParkedIn, Unparker};

/// The number of events and timers that a call has delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    pub events: usize,
    pub(crate) timers: usize,
}

/// The reactor of a runtime, and which worker waits in it.
#[derive(Clone, Debug)]
pub(crate) struct ReactorHandle {
    pub(crate) reactor: Reactor,
    poller: Arc<PollerRole>,
}

impl ReactorHandle {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { reactor: Reactor::new()?, poller: Arc::new(PollerRole::new()) })
    }
}

/// The reactor of a runtime and the timers of one core.
#[derive(Debug)]
pub struct Driver {
    handle: ReactorHandle,
    timers: Timers,
    unparker: Arc<Unparker>,
}

impl Driver {
    /// The driver of a core of a runtime.
    pub(crate) fn new(clock: Clock, handle: ReactorHandle) -> (Self, Arc<Unparker>) {
        let unparker = Unparker::new(handle.reactor.clone());
        let timers = Timers::new(clock, unparker.clone().into());
        (Self { handle, timers, unparker: unparker.clone() }, unparker)
    }

    /// For another driver of the same runtime.
    pub(crate) fn handle(&self) -> ReactorHandle {
        self.handle.clone()
    }

    pub fn reactor(&self) -> &Reactor {
        &self.handle.reactor
    }

    /// Whether an event can come.
    pub fn has_sockets(&self) -> bool {
        self.handle.reactor.registrations() > 0
    }

    pub fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Whether an event or a deadline can come from here. One in more than nine years is none.
    pub fn is_to_be_heard_of(&self) -> bool {
        self.has_sockets() || self.has_deadline()
    }

    /// Whether a deadline may come by itself, as two loads tell: true a little too long after the last one.
    pub(crate) fn may_have_deadline(&self) -> bool {
        const LAST: u64 = u64::MAX - 1;
        self.timers.may_be_due(LAST)
    }

    /// Whether a deadline can come.
    pub fn has_deadline(&self) -> bool {
        const NEVER: Duration = Duration::from_nanos(1 << 58);
        let is_near = |at: mini_time::Instant| at.saturating_duration_since(self.timers.clock().now()) < NEVER;
        self.timers.next_deadline().is_some_and(is_near)
    }

    /// Delivers what has happened, without waiting. If the reactor's descriptor `is_watched`, it is quiet afterwards.
    pub fn poll(&self, events: &mut Events, is_watched: bool) -> Delivered {
        let mut count = 0;
        if self.has_sockets() || is_watched {
            count = self.turn(events, Some(Duration::ZERO));
            self.pass_notify_on(events);
        }
        Delivered { events: count, timers: self.fire() }
    }

    /// Whether there are sockets, and no worker waits for their events.
    pub(crate) fn lacks_poller(&self) -> bool {
        self.has_sockets() && !self.handle.poller.is_taken()
    }

    pub(crate) fn poller(&self) -> &PollerRole {
        &self.handle.poller
    }

    /// Notifies again if this poll of the reactor may have consumed a notification that was meant for the poller.
    fn pass_notify_on(&self, events: &Events) {
        if events.has_notifier() && self.handle.poller.is_taken() {
            self.handle.reactor.notify();
        }
    }

    /// Waits for an event, a deadline or the unparker, for at most `limit`, and delivers what has happened. The caller
    /// has announced the wait.
    pub(crate) fn park(&self, events: &mut Events, wait: ParkedIn, limit: Option<Duration>) -> Delivered {
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Some(Duration::ZERO),
            Park::Until(wait) => Some(wait),
            // Another thread has paused the clock since the caller looked: no deadline comes by itself now.
            Park::Forever if self.timers.clock().is_paused() => Some(Duration::ZERO),
            Park::Forever => None,
        };
        let timeout = timeout.into_iter().chain(limit).min();
        self.wait(events, timeout, wait)
    }

    /// [`park`](Self::park) where the clock may be paused: if nothing real is waited for, time jumps to the next
    /// deadline instead.
    pub(crate) fn park_advancing(
        &self,
        events: &mut Events,
        wait: ParkedIn,
        limit: Option<Duration>,
        is_waited_for: bool,
    ) -> Delivered {
        // Announced first: a timer that another thread adds from here on unparks this one.
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Some(Duration::ZERO),
            _ if !is_waited_for && self.timers.auto_advance() => Some(Duration::ZERO),
            Park::Until(wait) => Some(limit.map_or(wait, |limit| wait.min(limit))),
            Park::Forever => limit,
        };
        self.wait(events, timeout, wait)
    }

    /// The owner leaves, and waits elsewhere until the first deadline. From here on, an earlier deadline that another
    /// thread adds unparks the owner. Says whether a deadline is due, or would be after a jump of time.
    pub(crate) fn announce_leave(&self, is_waited_for: bool) -> bool {
        let is_due = self.timers.prepare_park() == Park::Ready;
        is_due || self.would_jump(is_waited_for)
    }

    /// Whether a wait would be a jump of time.
    pub(crate) fn would_jump(&self, is_waited_for: bool) -> bool {
        // A deadline, not just a timer: time does not jump to timers that never fire.
        !is_waited_for && self.timers.clock().is_paused() && self.timers.next_deadline().is_some()
    }

    /// Delivers what has happened, and with a limit what happens until then, in the place of the owner.
    pub(crate) fn serve(&self, events: &mut Events, limit: Option<Duration>) -> Delivered {
        let due = self.timers.wait_limit();
        let wait = limit.map_or(Duration::ZERO, |limit| due.map_or(limit, |due| due.min(limit)));
        let count = self.turn(events, Some(wait));
        self.pass_notify_on(events);
        Delivered { events: count, timers: self.fire() }
    }

    /// Waits as announced, and delivers what has happened.
    fn wait(&self, events: &mut Events, timeout: Option<Duration>, wait: ParkedIn) -> Delivered {
        let mut count = 0;
        match timeout {
            _ if wait == ParkedIn::Reactor => count = self.turn(events, timeout),
            Some(Duration::ZERO) => {}
            _ => self.unparker.wait(timeout),
        }
        self.timers.finish_park();
        Delivered { events: count, timers: self.fire() }
    }

    /// One turn of the reactor; returns how many events it has delivered.
    fn turn(&self, events: &mut Events, timeout: Option<Duration>) -> usize {
        match contain(|| turn(&self.handle.reactor, events, timeout)) {
            Some(Ok(count)) => count,
            Some(Err(error)) => {
                // Without events a worker would spin or sleep for ever, and its tasks with it.
                say!("waiting for events failed, so the process is aborted: {error}");
                std::process::abort()
            }
            // A turn contains the panics of wakers itself; after any other panic the next turn comes at once.
            None => {
                self.handle.reactor.notify();
                0
            }
        }
    }

    /// Fires the timers that are due, and returns how many.
    pub fn fire(&self) -> usize {
        loop {
            if let Some(count) = contain(|| self.timers.turn()) {
                return count;
            }
        }
    }

    /// Fails all waits here, and all later ones.
    pub(crate) fn shutdown(&self) {
        while contain(|| self.handle.reactor.shutdown()).is_none() {}
        while contain(|| self.timers.shutdown()).is_none() {}
    }
}

/// One turn of the reactor. In a model nothing takes time: other threads must get to run, and a limit is over once they
/// have.
fn turn(reactor: &Reactor, events: &mut Events, timeout: Option<Duration>) -> io::Result<usize> {
    if HAS_TIME {
        return reactor.turn(events, timeout);
    }
    let mut count = reactor.turn(events, Some(Duration::ZERO))?;
    while count == 0 && !events.has_notifier() && timeout.is_none() {
        thread::yield_now();
        count = reactor.turn(events, Some(Duration::ZERO))?;
    }
    if timeout.is_some_and(|timeout| !timeout.is_zero()) {
        thread::yield_now();
    }
    Ok(count)
}
