//! Task ids: unique in the process, in the order of spawning on each thread.
//!
//! A simulation has ids of its own (`sim/world.rs`), as what a program does by them must follow from the seed. So tasks
//! of two simulations may have the same id, and a table of the process must not mix them up: see `others.rs` of
//! `mini-context`.

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names a task for as long as the process runs; ids are never used twice.
///
/// In a simulation (feature `sim`) the seed determines the ids: each simulation counts from 1, and an id names a task
/// of that simulation alone.
///
/// Ids grow in the order in which one thread spawns its tasks; between threads the order is loose, because each
/// thread takes ids in blocks.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(async { mini::task::id() });
///     let id = task.id();
///     assert_eq!(task.await.unwrap(), id);
/// });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(NonZeroU64);

/// How many ids a thread takes at once: spawning must not bounce one cache line between all threads.
const BLOCK: u64 = 1024;

impl Id {
    pub(crate) fn next() -> Self {
        static BLOCKS: AtomicU64 = AtomicU64::new(0);
        // The last id that was taken. A block begins after a multiple of its size.
        thread_local! { static LAST: Cell<u64> = const { Cell::new(0) } }

        let mut last = LAST.get();
        if last.is_multiple_of(BLOCK) {
            last = BLOCKS.fetch_add(BLOCK, Relaxed);
        }
        LAST.set(last + 1);
        Self(NonZeroU64::new(last + 1).expect("2^64 tasks take centuries to spawn"))
    }

    /// The id of the task of that number, in a simulation.
    pub(crate) fn of(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// That of the future of a `block_on`, which no task has.
    pub(crate) fn of_main() -> Self {
        Self(NonZeroU64::new(mini_context::new_main()).expect("it has a flag"))
    }

    #[doc(hidden)]
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    #[test]
    fn each_thread_has_rising_ids_of_its_own() {
        let take = || (0..3 * BLOCK).map(|_| Id::next().get()).collect::<Vec<_>>();
        let mut all = HashSet::from([0]);
        for ids in [0; 2].map(|_| thread::spawn(take)).map(|thread| thread.join().unwrap()) {
            assert!(ids.is_sorted());
            assert!(ids.into_iter().all(|id| all.insert(id)), "taken twice, or zero");
        }
    }
}
