//! The span of `tracing` that is current where a task is spawned, kept by the task.
//!
//! Called by `new`, for tasks and blocking jobs alike. The span is entered for each poll, and while the future is
//! dropped. Where there is none, entering it is a look at an empty field. Without the feature, `no_span.rs` stands in
//! its place.
//!
//! Rejected: a field of the header (every task would have it, and every poll would look at it, with the feature off
//! too).

use tracing::Instrument;
use tracing::instrument::Instrumented;

#[inline]
pub(super) fn carried<F: Future>(future: F) -> Instrumented<F> {
    future.in_current_span()
}
