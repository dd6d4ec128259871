//! The holder of a core: no thread, or the one thread that works there.
//!
//! The cores of a multi-threaded runtime have a worker thread each, which is started once there is work for it and
//! stays on its core until the runtime ends. The one core of a `current_thread` runtime is held by the thread in
//! `block_on` or `turn`; another thread in `block_on` polls its own future, as an *external thread*, until the core is
//! free. A guest (`guests.rs`) is held by its thread in `block_on`.
//!
//! Rejected: a thread in `block_on` that takes the core of a worker thread and gives it back (it runs any task then,
//! and one that blocks delays its future; and a core changes hands beside tasks that may not).

use std::sync::Arc;

use crate::primitives::{Mutex, lock};
use crate::scheduler::parker::Parker;

#[derive(Debug, Default)]
pub struct Ownership {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: bool,
    /// The worker thread has been started.
    has_thread: bool,
    retired: bool,
    /// Threads that wait for the core of a `current_thread` runtime.
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
    pub fn try_take(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).held, true)
    }

    /// Takes the core, or registers `external` to be unparked when it is released; says whether it was taken.
    pub fn take_or_wait(&self, external: &Arc<Parker>) -> bool {
        let mut state = lock(&self.state);
        let taken = !std::mem::replace(&mut state.held, true);
        state.forget(external);
        if !taken {
            state.waiting.push(external.clone());
        }
        taken
    }

    /// An external thread does not need the core any more.
    pub fn leave(&self, external: &Arc<Parker>) {
        lock(&self.state).forget(external);
    }

    /// Whether a thread works on the core.
    pub fn is_held(&self) -> bool {
        lock(&self.state).held
    }

    /// Gives the core up and tells the threads that wait for it.
    pub(crate) fn release(&self) {
        let mut state = lock(&self.state);
        state.held = false;
        for external in &state.waiting {
            external.unpark();
        }
    }

    /// Whether the core needs a worker thread to be started; if so the caller starts it.
    pub(crate) fn wants_thread(&self) -> bool {
        let mut state = lock(&self.state);
        !state.held && !state.retired && !std::mem::replace(&mut state.has_thread, true)
    }

    /// The worker thread could not be started.
    pub(crate) fn thread_failed(&self) {
        lock(&self.state).has_thread = false;
    }

    /// Takes the core for its worker thread; `false` if the runtime has closed it.
    pub(crate) fn take_as_worker_thread(&self) -> bool {
        let mut state = lock(&self.state);
        !state.retired && !std::mem::replace(&mut state.held, true)
    }

    /// The core is closed, or its holder is about to close it: no thread is started for it any more.
    pub(crate) fn retire(&self) {
        lock(&self.state).retired = true;
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::primitives::{atomic::AtomicU32, atomic::Ordering::Relaxed, thread};

    #[derive(Default)]
    struct Place {
        ownership: Ownership,
        holders: AtomicU32,
    }

    impl Place {
        /// What the thread that holds the core does.
        fn hold(&self) {
            assert_eq!(self.holders.fetch_add(1, Relaxed), 0, "two hold the core");
            self.holders.fetch_sub(1, Relaxed);
            self.ownership.release();
        }

        /// A thread in `block_on` that has found no free core.
        fn be_external(&self) {
            let parker = Parker::new();
            while !self.ownership.take_or_wait(&parker) {
                parker.park();
            }
            self.hold();
        }
    }

    /// Two external threads ask for one place.
    ///
    /// Planted: `take_or_wait` that takes a core that is held; `release` that unparks no thread.
    #[test]
    fn external_threads_come_one_after_the_other() {
        loom::model(|| {
            let place = Arc::new(Place::default());
            let other = place.clone();
            let external = thread::spawn(move || other.be_external());
            place.be_external();
            external.join().unwrap();
        });
    }

    /// A worker thread starts while the runtime ends, and closes the core of which nobody knows that it has one.
    ///
    /// Planted: `take_as_worker_thread` that does not ask whether the core is held.
    #[test]
    fn a_worker_thread_starts_or_the_core_is_closed_without_it() {
        loom::model(|| {
            let place = Arc::new(Place::default());
            assert!(place.ownership.wants_thread() && !place.ownership.wants_thread());
            let started = place.clone();
            let worker_thread = thread::spawn(move || {
                if started.ownership.take_as_worker_thread() {
                    started.hold();
                }
            });
            if place.ownership.try_take() {
                place.hold();
            }
            place.ownership.retire();
            worker_thread.join().unwrap();
            assert!(!place.ownership.wants_thread() && !place.ownership.is_held());
        });
    }
}
