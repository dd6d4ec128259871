//! The holder of a core: no thread, a thread in `block_on`, or the core's worker thread, a background thread.
//!
//! Called when a thread enters or leaves a runtime. No thread serves a core without a holder, so a multi-threaded
//! runtime gives it a worker thread once something could happen there. A thread in `block_on` takes a free core, or
//! asks the worker threads to give one up, and then works as a worker. If it gets no core, it polls its future by
//! itself (as an *external thread*) until one is free.
//!
//! Rejected: `block_on` as a thread outside the workers that only polls its future (every message then crosses two
//! threads). A core of its own for `block_on` (its sockets and timers outlive it, and would have no owner).

use std::sync::{Arc, PoisonError};

use crate::primitives::atomic::{AtomicBool, Ordering::Relaxed};
use crate::primitives::{Condvar, Mutex, lock};
use crate::scheduler::parker::Parker;

#[derive(Debug, Default)]
pub(crate) struct Ownership {
    state: Mutex<State>,
    changed: Condvar,
    /// An external thread wants the core of the worker thread.
    wanted: AtomicBool,
    /// The worker thread has been asked, and cannot leave: it has tasks that must stay on its thread.
    declined: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    held: bool,
    /// The holder is the worker thread, which gives the core up when it is asked to.
    by_thread: bool,
    /// The worker thread has been started.
    has_thread: bool,
    /// The last attempt to start the worker thread failed.
    lacks_thread: bool,
    retired: bool,
    waiting: Vec<Arc<Parker>>,
}

impl State {
    /// Takes an external thread off the list.
    fn forget(&mut self, external: &Arc<Parker>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, external));
    }
}

impl Ownership {
    /// Takes the core if nobody holds it.
    pub(crate) fn try_take(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).held, true)
    }

    /// Takes a core that nobody holds, and whose worker thread could not be started.
    pub(crate) fn try_take_unserved(&self) -> bool {
        let mut state = lock(&self.state);
        state.lacks_thread && !std::mem::replace(&mut state.held, true)
    }

    /// Takes the core, or registers `external` to be unparked when it is released; says whether it was taken.
    ///
    /// A registered thread comes back, to take the core or to [leave](Self::leave): until then the worker thread stays
    /// away.
    pub(crate) fn take_or_wait(&self, external: &Arc<Parker>) -> bool {
        let mut state = lock(&self.state);
        let taken = !std::mem::replace(&mut state.held, true);
        state.forget(external);
        if !taken {
            state.waiting.push(external.clone());
        }
        self.wanted.store(!state.waiting.is_empty(), Relaxed);
        taken
    }

    /// An external thread does not need the core any more.
    pub(crate) fn leave(&self, external: &Arc<Parker>) {
        let mut state = lock(&self.state);
        state.forget(external);
        self.wanted.store(!state.waiting.is_empty(), Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    /// Whether a thread works on the core.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.state).held
    }

    /// Whether the worker thread works on the core, and has not said that it stays.
    pub(crate) fn is_held_by_thread(&self) -> bool {
        lock(&self.state).by_thread && !self.declined.load(Relaxed)
    }

    /// The worker thread cannot leave.
    pub(crate) fn decline(&self) {
        if self.declined.load(Relaxed) {
            return;
        }
        let state = lock(&self.state);
        self.declined.store(true, Relaxed);
        for external in &state.waiting {
            external.unpark();
        }
    }

    /// Whether an external thread waits; looked at by the worker thread between polls, which then may release the core.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// Gives the core up and tells the threads that wait for it.
    pub(crate) fn release(&self) {
        let mut state = lock(&self.state);
        state.held = false;
        state.by_thread = false;
        self.declined.store(false, Relaxed);
        for external in &state.waiting {
            external.unpark();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether the core needs a worker thread to be started; if so the caller starts it.
    pub(crate) fn wants_thread(&self) -> bool {
        let mut state = lock(&self.state);
        !state.held && !state.retired && !std::mem::replace(&mut state.has_thread, true)
    }

    /// The worker thread could not be started; says whether that is news.
    pub(crate) fn thread_failed(&self) -> bool {
        let mut state = lock(&self.state);
        state.has_thread = false;
        !std::mem::replace(&mut state.lacks_thread, true)
    }

    /// Whether the worker thread could not be started, and has not been since.
    pub(crate) fn lacks_thread(&self) -> bool {
        lock(&self.state).lacks_thread
    }

    /// Waits until the core is free and no external thread wants it, and takes it; `false` if the runtime has shut
    /// down.
    pub(crate) fn take_as_worker_thread(&self) -> bool {
        let mut state = lock(&self.state);
        state.lacks_thread = false;
        while !state.retired && (state.held || !state.waiting.is_empty()) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.held {
            return false;
        }
        state.held = true;
        state.by_thread = true;
        true
    }

    /// Lets the worker thread end if it does not hold the core; none is started any more.
    pub(crate) fn retire(&self) {
        lock(&self.state).retired = true;
        self.changed.notify_all();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::{atomic::Ordering::SeqCst, thread};
    use crate::scheduler::unparker::{Unparker, Wait};

    struct Place {
        ownership: Ownership,
        unparker: Arc<Unparker>,
        closing: AtomicBool,
        holders: loom::sync::atomic::AtomicU32,
    }

    impl Place {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                ownership: Ownership::default(),
                unparker: Unparker::new(mini_net::Reactor::new().unwrap()),
                closing: AtomicBool::new(false),
                holders: Default::default(),
            })
        }

        /// What the thread that holds the core does.
        fn hold(&self) {
            assert_eq!(self.holders.fetch_add(1, Relaxed), 0, "two hold the core");
            self.holders.fetch_sub(1, Relaxed);
        }

        /// The body of a worker thread, which has nothing to do but to leave when it is asked to.
        fn keep(&self) {
            while self.ownership.take_as_worker_thread() {
                self.hold();
                loop {
                    self.unparker.announce(Wait::Thread);
                    let must_leave = self.ownership.is_wanted() || self.closing.load(Relaxed);
                    if !must_leave {
                        self.unparker.wait(None);
                    }
                    self.unparker.retract();
                    if must_leave {
                        break;
                    }
                }
                self.ownership.release();
                if self.closing.load(Relaxed) {
                    break;
                }
            }
        }

        /// A thread in `block_on` that has found no free core.
        fn be_external(&self) {
            let parker = Parker::new();
            while !self.ownership.take_or_wait(&parker) {
                self.unparker.unpark();
                parker.park();
            }
            self.hold();
            self.ownership.release();
        }

        fn shut_down(&self) {
            self.closing.store(true, SeqCst);
            self.ownership.retire();
            self.unparker.unpark();
        }
    }

    fn model(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(model);
    }

    /// A worker thread gives its place to an external thread, takes it again, and goes when the runtime ends.
    ///
    /// Planted: `release` that unparks no thread; an unpark that is not kept for the next park.
    #[test]
    fn an_external_thread_gets_the_place_of_the_worker_thread() {
        model(|| {
            let place = Place::new();
            assert!(place.ownership.wants_thread());
            let kept = place.clone();
            let worker_thread = thread::spawn(move || kept.keep());
            place.be_external();
            place.shut_down();
            worker_thread.join().unwrap();
        });
    }

    /// Two external threads ask for one place.
    ///
    /// Planted: `take_or_wait` that takes a core that is held; `release` that unparks no thread.
    #[test]
    fn external_threads_come_one_after_the_other() {
        model(|| {
            let place = Place::new();
            let other = place.clone();
            let external = thread::spawn(move || other.be_external());
            place.be_external();
            external.join().unwrap();
        });
    }

    /// An external thread asks for the core, and goes without it: the worker thread takes it again.
    ///
    /// Planted: `leave` that notifies no thread; `release` that notifies none; `leave` that leaves `wanted` set.
    #[test]
    fn the_worker_thread_comes_back_when_an_external_one_has_gone() {
        model(|| {
            let place = Place::new();
            let parker = Parker::new();
            assert!(place.ownership.try_take());
            assert!(!place.ownership.take_or_wait(&parker));
            let kept = place.clone();
            let worker_thread = thread::spawn(move || assert!(kept.ownership.take_as_worker_thread()));
            let other = place.clone();
            let releasing = thread::spawn(move || other.ownership.release());
            place.ownership.leave(&parker);
            releasing.join().unwrap();
            worker_thread.join().unwrap();
            assert!(place.ownership.is_held_by_thread() && !place.ownership.is_wanted());
        });
    }

    /// The runtime ends while the worker thread waits for a core that another thread holds: the worker thread ends.
    ///
    /// Planted: `retire` that notifies no thread.
    #[test]
    fn a_worker_thread_without_a_place_goes_when_the_runtime_ends() {
        model(|| {
            let place = Place::new();
            assert!(place.ownership.try_take());
            let kept = place.clone();
            let worker_thread = thread::spawn(move || kept.ownership.take_as_worker_thread());
            place.shut_down();
            assert!(!worker_thread.join().unwrap());
        });
    }
}
