//! `Events`: the events of one turn of a reactor.

use std::fmt;
use std::task::Waker;

use mini_context::rules::EVENTS;

use crate::sys;

/// Room for the events of one turn. Every thread that turns a reactor has its own.
///
/// # Examples
///
/// ```
/// let events = mini_net::Events::with_capacity(64);
/// # drop(events);
/// ```
pub struct Events {
    pub(super) events: sys::Events,
    /// Empty between turns.
    pub(super) woken: Vec<Waker>,
}

impl Events {
    /// Makes room for 1024 events; more of them take another turn.
    ///
    /// # Examples
    ///
    /// ```
    /// let events = mini_net::Events::new();
    /// # drop(events);
    /// ```
    pub fn new() -> Events {
        Events::with_capacity(EVENTS)
    }

    /// Makes room for `capacity` events, at least one.
    ///
    /// # Examples
    ///
    /// ```
    /// let events = mini_net::Events::with_capacity(16);
    /// # drop(events);
    /// ```
    pub fn with_capacity(capacity: usize) -> Events {
        Events { events: sys::Events::with_capacity(capacity), woken: Vec::new() }
    }

    /// Returns `true` if the last turn consumed a call of [`notify`](crate::Reactor::notify). If so, a thread that
    /// polled in place of another may have to notify again.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini_net::{Events, Reactor};
    ///
    /// let reactor = Reactor::new()?;
    /// let mut events = Events::new();
    /// reactor.notify();
    /// reactor.turn(&mut events, None)?;
    /// assert!(events.has_notifier());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_notifier(&self) -> bool {
        (0..self.events.len()).any(|at| self.events.get(at).is_none())
    }
}

impl Default for Events {
    fn default() -> Events {
        Events::new()
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
