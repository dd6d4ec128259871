//! Panics of the user's code that must not end a thread of the runtime: wakers, hooks, destructors.
//!
//! Called by the crates of the runtime. Futures do not run in here: their panics travel to those that wait for them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f` and returns its value, or `None` if it panicked.
///
/// The panic hook has printed the panic by then. The payload is dropped; if its destructor panics too, the second
/// payload is leaked.
///
/// # Examples
///
/// ```
/// use mini_context::contain;
///
/// assert_eq!(contain(|| 7), Some(7));
/// assert_eq!(contain(|| panic!("a waker that panics")), None::<()>);
/// ```
pub fn contain<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            drop_payload(payload);
            None
        }
    }
}

/// A payload may panic in its own destructor. The payload of that panic may do so too, so it is leaked.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use super::contain;
    use std::panic::{panic_any, resume_unwind};

    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            resume_unwind(Box::new(())); // of no memory, as it is leaked
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        assert_eq!(contain(|| 1), Some(1));
        assert_eq!(contain(|| panic_any(PanicsOnDrop)), None::<()>);
    }
}
