//! What a worker waits on: the reactor and the timers of one core.
//!
//! [`Driver::park`] is the only place of the runtime that blocks for I/O or time. The worker also [polls](Driver::poll)
//! it every few dozen tasks, and the watch polls it in the place of a worker that is stuck in a long poll.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mini_net::{Events, Reactor};
use mini_time::{Clock, Instant, Park, Timers};

use crate::bell::{Bell, Wait};
use crate::unwind::contain;

/// The reactor and the timers of one core.
#[derive(Debug)]
pub(crate) struct Driver {
    reactor: Reactor,
    timers: Timers,
    bell: Arc<Bell>,
}

impl Driver {
    /// The driver of a core of a runtime, which `group` stands for.
    pub(crate) fn new(clock: Clock, group: usize) -> io::Result<(Self, Arc<Bell>)> {
        let reactor = Reactor::new()?;
        reactor.join_group(group);
        let bell = Bell::new(reactor.clone());
        let timers = Timers::new(clock, bell.clone().into());
        Ok((Self { reactor, timers, bell: bell.clone() }, bell))
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Whether an event or a deadline can come from here.
    pub(crate) fn is_used(&self) -> bool {
        self.reactor.registrations() > 0 || !self.timers.is_empty()
    }

    /// Delivers what has happened, without waiting.
    pub(crate) fn poll(&self, events: &mut Events) {
        if self.reactor.registrations() > 0 {
            self.turn(events, Some(Duration::ZERO));
        }
        self.fire();
    }

    /// How the owner is to wait.
    pub(crate) fn choose_wait(&self) -> Wait {
        if self.reactor.registrations() > 0 { Wait::Reactor } else { Wait::Thread }
    }

    /// Waits for an event, a deadline or the bell, and delivers what has happened. The wait has been announced.
    pub(crate) fn park(&self, events: &mut Events, wait: Wait) {
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Some(Duration::ZERO),
            Park::Until(wait) => Some(wait),
            // Another thread has paused it since the caller looked: no deadline comes by itself now.
            Park::Forever if self.timers.clock().is_paused() => Some(Duration::ZERO),
            Park::Forever => None,
        };
        self.wait(events, timeout, wait);
        self.timers.finish_park();
        self.fire();
    }

    /// [`park`](Self::park) under a paused clock: if nothing real is waited for, time jumps to the next deadline instead.
    pub(crate) fn park_paused(&self, events: &mut Events, wait: Wait, is_waited_for: bool) {
        // Announced first: a timer that another thread adds from here on rings.
        match self.timers.prepare_park() {
            Park::Ready => {}
            _ if !is_waited_for && self.timers.auto_advance() => {}
            Park::Forever => self.wait(events, None, wait),
            // Another thread has let the clock run.
            Park::Until(limit) => self.wait(events, Some(limit), wait),
        }
        self.timers.finish_park();
        self.fire();
    }

    /// [`park`](Self::park) with a limit, where the bell is heard in the reactor; under a paused clock time jumps as in
    /// [`park_paused`](Self::park_paused).
    pub(crate) fn park_within(&self, events: &mut Events, limit: Duration, is_waited_for: bool) {
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Duration::ZERO,
            _ if !is_waited_for && self.timers.auto_advance() => Duration::ZERO,
            Park::Until(wait) => wait.min(limit),
            Park::Forever => limit,
        };
        self.turn(events, Some(timeout));
        self.timers.finish_park();
        self.fire();
    }

    /// The owner goes, and waits elsewhere until the first deadline: an earlier one, added by another thread from here on,
    /// rings. Says whether a deadline is due, or would be as time jumps.
    pub(crate) fn announce_leave(&self, is_waited_for: bool) -> bool {
        let is_due = self.timers.prepare_park() == Park::Ready;
        is_due || !is_waited_for && self.timers.clock().is_paused() && !self.timers.is_empty()
    }

    /// Delivers what has happened, and with a limit what happens until then, in the place of the owner.
    pub(crate) fn serve(&self, events: &mut Events, limit: Option<Duration>) {
        let due = self.timers.next_deadline().map(|next| next.saturating_duration_since(Instant::now()));
        let wait = limit.map_or(Duration::ZERO, |limit| due.map_or(limit, |due| due.min(limit)));
        self.turn(events, Some(wait));
        self.fire();
    }

    /// Delivers what has happened to the sockets here, in the place of the owner; returns how many events there were.
    pub(crate) fn help(&self, events: &mut Events) -> usize {
        if self.reactor.registrations() == 0 {
            return 0;
        }
        // An error is the owner's to see.
        contain(|| self.reactor.help(events)).map_or(0, |result| result.unwrap_or(0))
    }

    fn wait(&self, events: &mut Events, timeout: Option<Duration>, wait: Wait) {
        match timeout {
            _ if wait == Wait::Reactor => self.turn(events, timeout),
            // Registered since the wait was announced, perhaps without a ring.
            _ if self.reactor.registrations() > 0 => self.turn(events, Some(Duration::ZERO)),
            Some(Duration::ZERO) => {}
            _ => self.bell.wait(timeout),
        }
    }

    /// One turn of the reactor.
    fn turn(&self, events: &mut Events, timeout: Option<Duration>) {
        match contain(|| self.reactor.turn(events, timeout)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                // Without events a worker would spin or sleep for ever, and its tasks with it.
                say!("waiting for events failed, the runtime cannot go on: {error}");
                std::process::abort()
            }
            // A turn contains the panics of wakers itself; after any other the next one comes at once.
            None => self.reactor.notify(),
        }
    }

    /// Fires the timers that are due.
    fn fire(&self) {
        while contain(|| self.timers.turn()).is_none() {}
    }

    /// Fails what waits here, and all that comes later.
    pub(crate) fn shutdown(&self) {
        while contain(|| self.reactor.shutdown()).is_none() {}
        while contain(|| self.timers.shutdown()).is_none() {}
    }
}
