//! Panics of the user's code that must not take a worker along: wakers, hooks, destructors.
//!
//! The panic hook has printed them by the time they arrive here. Futures are not run through this: their panics travel
//! in a [`JoinError`](crate::task::JoinError).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`; `None` if it panicked.
pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            drop_payload(payload);
            None
        }
    }
}

/// A payload may panic in its own destructor; what comes of that is leaked rather than dropped.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::contain;
    use std::panic::{panic_any, resume_unwind};

    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            resume_unwind(Box::new("again"));
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        assert_eq!(contain(|| 1), Some(1));
        assert_eq!(contain(|| panic_any(PanicsOnDrop)), None::<()>);
    }
}
