//! Who holds a core: nobody, a thread in `block_on`, or the core's keeper, a background thread.
//!
//! Called when a thread enters or leaves a runtime. A core without a holder is served by nobody, so a multi-threaded
//! runtime gives it a keeper as soon as something could happen there. A thread in `block_on` is worked for like a
//! worker: it takes a free core, or asks the keepers for the place of one. If it gets none it polls its future by itself
//! (as a *guest*) until one is free.
//!
//! Rejected: `block_on` beside the workers, as a thread that only polls its future (every message then crosses two
//! threads). A core of its own for `block_on` (its sockets and timers outlive it, and would be nobody's).

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::thread::Thread;
use crate::sync::{Condvar, Mutex, lock};

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

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::bell::{Bell, Wait};
    use crate::sync::{atomic::Ordering::SeqCst, thread};
    use std::sync::Arc;

    struct Place {
        seat: Seat,
        bell: Arc<Bell>,
        closing: AtomicBool,
        holders: loom::sync::atomic::AtomicU32,
    }

    impl Place {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                seat: Seat::default(),
                bell: Bell::new(mini_net::Reactor::new().unwrap()),
                closing: AtomicBool::new(false),
                holders: Default::default(),
            })
        }

        /// What is done by who holds the core.
        fn hold(&self) {
            assert_eq!(self.holders.fetch_add(1, Relaxed), 0, "two hold the core");
            self.holders.fetch_sub(1, Relaxed);
        }

        /// The body of a keeper, which has nothing to do but to leave when it is asked to.
        fn keep(&self) {
            while self.seat.take_as_keeper() {
                self.hold();
                loop {
                    self.bell.announce(Wait::Thread);
                    let must_leave = self.seat.is_wanted() || self.closing.load(Relaxed);
                    if !must_leave {
                        self.bell.wait(None);
                    }
                    self.bell.retract();
                    if must_leave {
                        break;
                    }
                }
                self.seat.release();
                if self.closing.load(Relaxed) {
                    break;
                }
            }
        }

        /// A thread in `block_on` that has found no place.
        fn be_guest(&self) {
            let thread = thread::current();
            while !self.seat.take_or_wait(&thread) {
                self.bell.ring();
                thread::park();
            }
            self.hold();
            self.seat.release();
        }

        fn shut_down(&self) {
            self.closing.store(true, SeqCst);
            self.seat.retire();
            self.bell.ring();
        }
    }

    fn model(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(model);
    }

    /// A keeper gives its place to a guest, takes it again, and goes when the runtime ends.
    ///
    /// Planted: `release` that unparks nobody.
    #[test]
    fn a_guest_gets_the_place_of_the_keeper() {
        model(|| {
            let place = Place::new();
            assert!(place.seat.wants_keeper());
            let kept = place.clone();
            let keeper = thread::spawn(move || kept.keep());
            place.be_guest();
            place.shut_down();
            keeper.join().unwrap();
        });
    }

    /// Two guests ask for one place.
    ///
    /// Planted: `take_or_wait` that takes what is held; `release` that unparks nobody.
    #[test]
    fn guests_come_one_after_the_other() {
        model(|| {
            let place = Place::new();
            let other = place.clone();
            let guest = thread::spawn(move || other.be_guest());
            place.be_guest();
            guest.join().unwrap();
        });
    }

    /// A guest asks, and goes without the place: the keeper comes back to it.
    ///
    /// Planted: `leave` that notifies nobody; `release` that doesn't; `leave` that leaves `wanted` set.
    #[test]
    fn the_keeper_comes_back_when_a_guest_has_gone() {
        model(|| {
            let place = Place::new();
            let thread = thread::current();
            assert!(place.seat.try_take());
            assert!(!place.seat.take_or_wait(&thread));
            let kept = place.clone();
            let keeper = thread::spawn(move || assert!(kept.seat.take_as_keeper()));
            let other = place.clone();
            let releasing = thread::spawn(move || other.seat.release());
            place.seat.leave(&thread);
            releasing.join().unwrap();
            keeper.join().unwrap();
            assert!(place.seat.is_kept() && !place.seat.is_wanted());
        });
    }

    /// The runtime ends while the keeper waits for a core that another thread holds: the keeper goes home.
    ///
    /// Planted: `retire` that notifies nobody.
    #[test]
    fn a_keeper_without_a_place_goes_when_the_runtime_ends() {
        model(|| {
            let place = Place::new();
            assert!(place.seat.try_take());
            let kept = place.clone();
            let keeper = thread::spawn(move || kept.seat.take_as_keeper());
            place.shut_down();
            assert!(!keeper.join().unwrap());
        });
    }
}
