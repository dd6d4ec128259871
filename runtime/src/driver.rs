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
        self.reactor.registrations() > 0 || self.timers.len() > 0
    }

    /// Delivers what has happened, without waiting.
    pub(crate) fn poll(&self, events: &mut Events) {
        if self.reactor.registrations() > 0 {
            self.turn(events, Some(Duration::ZERO));
        }
        self.timers.turn();
    }

    /// Waits for an event, a deadline or the bell, and delivers what has happened.
    pub(crate) fn park(&self, events: &mut Events) {
        let timeout = match self.timers.prepare_park() {
            Park::Ready => Some(Duration::ZERO),
            Park::Until(wait) => Some(wait),
            Park::Forever => None,
        };
        self.turn(events, timeout);
        self.timers.turn();
    }

    /// [`park`](Self::park) under a paused clock: where nothing real is going on, time jumps to the next deadline.
    pub(crate) fn park_paused(&self, events: &mut Events, is_waited_for: impl FnOnce() -> bool) {
        let mut happened = self.turn(events, Some(Duration::ZERO));
        if happened == 0 && (is_waited_for() || !self.timers.auto_advance()) {
            happened = self.turn(events, None);
        }
        let _ = happened;
        self.timers.turn();
    }

    fn turn(&self, events: &mut Events, timeout: Option<Duration>) -> usize {
        match self.reactor.turn(events, timeout) {
            Ok(happened) => happened,
            Err(error) => panic!("mini: waiting for events failed, the runtime cannot go on: {error}"),
        }
    }

    /// Fails what waits here, and all that comes later.
    pub(crate) fn shutdown(&self) {
        self.reactor.shutdown();
        self.timers.shutdown();
    }
}
