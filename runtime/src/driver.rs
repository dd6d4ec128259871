//! What a worker waits on: the reactor and the timers of one core.
//!
//! [`Driver::park`] is the only place of the runtime that blocks for I/O or time. The worker also [polls](Driver::poll)
//! it every few dozen tasks, and the watch polls it in the place of a worker that is stuck in a long poll.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mini_net::{Events, Reactor};
use mini_time::{Clock, Park, Timers};

use crate::bell::Bell;
use crate::unwind::contain;

/// The reactor and the timers of one core.
#[derive(Debug)]
pub(crate) struct Driver {
    reactor: Reactor,
    timers: Timers,
}

impl Driver {
    pub(crate) fn new(clock: Clock) -> io::Result<(Self, Arc<Bell>)> {
        let reactor = Reactor::new()?;
        let bell = Bell::new(reactor.clone());
        let timers = Timers::new(clock, bell.clone().into());
        Ok((Self { reactor, timers }, bell))
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

    /// Waits for an event, a deadline or the bell, and delivers what has happened.
    pub(crate) fn park(&self, events: &mut Events) {
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Some(Duration::ZERO),
            Park::Until(wait) => Some(wait),
            // Another thread has paused it since the caller looked: no deadline comes by itself now.
            Park::Forever if self.timers.clock().is_paused() => Some(Duration::ZERO),
            Park::Forever => None,
        };
        self.turn(events, timeout);
        self.timers.finish_park();
        self.fire();
    }

    /// [`park`](Self::park) under a paused clock: if nothing real is waited for, time jumps to the next deadline instead.
    pub(crate) fn park_paused(&self, events: &mut Events, is_waited_for: bool) {
        // Announced first: a timer that another thread adds from here on rings.
        match self.timers.prepare_park() {
            Park::Ready => {}
            _ if !is_waited_for && self.timers.auto_advance() => {}
            Park::Forever => self.turn(events, None),
            // Another thread has let the clock run.
            Park::Until(wait) => self.turn(events, Some(wait)),
        }
        self.timers.finish_park();
        self.fire();
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
