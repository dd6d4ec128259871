//! Runtime ids: unique in the process, in the order in which runtimes are built.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names a runtime for as long as the process runs; see [`Handle::id`](super::Handle::id). Ids are never used twice,
/// and grow.
///
/// # Examples
///
/// See [`Handle::id`](super::Handle::id).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    pub(crate) fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Relaxed) + 1)
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
