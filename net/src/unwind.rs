//! Panics of wakers and jobs that must not keep others waiting. The panic hook has printed them by the time they come here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`, and says whether it came to its end.
pub(crate) fn contain(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).map_err(drop_payload).is_ok()
}

/// A payload may panic in its own destructor; what comes of that is leaked rather than dropped.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}
