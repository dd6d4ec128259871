//! The cores of threads in `block_on` of a multi-threaded runtime.
//!
//! Such a thread runs its future and the local tasks that are spawned on it, nothing else. So no other task can delay
//! them, and a shutdown can begin whatever other tasks do. It needs what a worker needs for owned tasks: queues, a list
//! of tasks, an inbox, an unparker. These are a core of its own, on which no shared task is queued. Sockets and timers
//! are served by the worker threads, as those of threads that have entered the runtime.
//!
//! The cores stay, for the next call: tasks point to them as to those of workers, and keep `Shared` alive. There are as
//! many as there were calls at one time.
//!
//! Rejected: a worker's core for the thread (any task then runs there, and one that blocks delays the future; the
//! accept loop of a server stood for as long as a handler blocked). A wheel of its own (what is left in it when the
//! call returns must go elsewhere; who polls a future there may not be who waits for it).

use std::sync::OnceLock;

use crate::scheduler::core::Core;

/// A list that only grows: each entry keeps its place.
#[derive(Default)]
pub(crate) struct Guests(OnceLock<Box<Guest>>);

struct Guest {
    core: Core,
    rest: Guests,
}

impl Guests {
    /// A free core, which the caller holds from now on; if there is none, one that `new` makes, for a number.
    pub(crate) fn take(&self, new: impl Fn(usize) -> Core) -> &Core {
        let (mut rest, mut number) = (self, 0);
        loop {
            let Some(guest) = rest.0.get() else {
                let _another = rest.0.set(Box::new(Guest { core: new(number), rest: Self::default() })).err();
                continue;
            };
            if guest.core.ownership.try_take() {
                return &guest.core;
            }
            (rest, number) = (&guest.rest, number + 1);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Core> {
        std::iter::successors(self.0.get(), |guest| guest.rest.0.get()).map(|guest| &guest.core)
    }
}

impl Drop for Guests {
    /// One after the other: there may be very many.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut guest) = next {
            next = guest.rest.0.take();
        }
    }
}
