//! Who holds a core: nobody, a thread in `block_on`, or the core's keeper, a background thread.
//!
//! Called when a thread enters or leaves a runtime. A core without a holder is served by nobody, so a multi-threaded
//! runtime gives it a keeper as soon as something could happen there. A thread in `block_on` is worked for like a
//! worker: it takes a free core, or asks the keepers for the place of one. If it gets none it polls its future by itself
//! (as a *guest*) until one is free.
//!
//! Rejected: `block_on` beside the workers, as a thread that only polls its future (every message then crosses two
//! threads). A core of its own for `block_on` (its sockets and timers outlive it, and would be nobody's).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Thread;

use crate::sync::lock;

#[derive(Debug, Default)]
pub(crate) struct Seat {
    state: Mutex<State>,
    changed: Condvar,
    /// A guest would like to have the place of the keeper.
    wanted: AtomicBool,
    /// The keeper has been asked, and cannot leave: it has tasks that must stay on its thread.
    declined: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    held: bool,
    /// The holder is the keeper, who gives the core up when it is asked to.
    kept: bool,
    /// The keeper thread has been started.
    keeper: bool,
    /// It could not be started when it was last tried.
    lacks_keeper: bool,
    retired: bool,
    guests: Vec<Thread>,
}

impl State {
    /// Takes a guest off the list.
    fn forget(&mut self, guest: &Thread) {
        self.guests.retain(|other| other.id() != guest.id());
    }
}

impl Seat {
    /// Takes the core if nobody holds it.
    pub(crate) fn try_take(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).held, true)
    }

    /// Takes the core, or registers `guest` to be unparked when it is released; says whether it was taken.
    ///
    /// A registered guest comes back, to take the core or to [leave](Self::leave): until then the keeper stays away.
    pub(crate) fn take_or_wait(&self, guest: &Thread) -> bool {
        let mut state = lock(&self.state);
        let taken = !std::mem::replace(&mut state.held, true);
        state.forget(guest);
        if !taken {
            state.guests.push(guest.clone());
        }
        self.wanted.store(!state.guests.is_empty(), Relaxed);
        taken
    }

    /// A guest does not need the core any more.
    pub(crate) fn leave(&self, guest: &Thread) {
        let mut state = lock(&self.state);
        state.forget(guest);
        self.wanted.store(!state.guests.is_empty(), Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a thread works on the core.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.state).held
    }

    /// Whether the keeper works on the core, and has not said that it stays.
    pub(crate) fn is_kept(&self) -> bool {
        lock(&self.state).kept && !self.declined.load(Relaxed)
    }

    /// The keeper cannot leave.
    pub(crate) fn decline(&self) {
        if self.declined.load(Relaxed) {
            return;
        }
        let state = lock(&self.state);
        self.declined.store(true, Relaxed);
        for guest in &state.guests {
            guest.unpark();
        }
    }

    /// Whether a guest waits; looked at by the keeper between polls, who then may release the core.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Gives the core up and tells those who wait for it.
    pub(crate) fn release(&self) {
        let mut state = lock(&self.state);
        state.held = false;
        state.kept = false;
        self.declined.store(false, Relaxed);
        for guest in &state.guests {
            guest.unpark();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether the core needs a keeper thread to be started; if so the caller starts it.
    pub(crate) fn wants_keeper(&self) -> bool {
        let mut state = lock(&self.state);
        !state.held && !state.retired && !std::mem::replace(&mut state.keeper, true)
    }

    /// The keeper thread could not be started; says whether that is news.
    pub(crate) fn keeper_failed(&self) -> bool {
        let mut state = lock(&self.state);
        state.keeper = false;
        !std::mem::replace(&mut state.lacks_keeper, true)
    }

    /// Whether the keeper thread could not be started, and has not been since.
    pub(crate) fn lacks_keeper(&self) -> bool {
        lock(&self.state).lacks_keeper
    }

    /// Waits until the core is free and no guest wants it, and takes it; `false` if the runtime has shut down.
    pub(crate) fn take_as_keeper(&self) -> bool {
        let mut state = lock(&self.state);
        state.lacks_keeper = false;
        while !state.retired && (state.held || !state.guests.is_empty()) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.held {
            return false;
        }
        state.held = true;
        state.kept = true;
        true
    }

    /// Lets the keeper go home if it does not hold the core, and starts none any more.
    pub(crate) fn retire(&self) {
        lock(&self.state).retired = true;
        self.changed.notify_all();
    }
}
