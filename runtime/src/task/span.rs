//! The span of `tracing` that is current where a task is spawned, kept by the task.
//!
//! Called by `new`, for tasks and blocking jobs alike. The span is entered for each poll, and while the future is
//! dropped. If there is no span, entering it reads an empty field. Without the feature, `no_span.rs` replaces this
//! file.
//!
//! Rejected: a field of the header (every task would have it, and every poll would read it, even with the feature off).

use tracing::Instrument;
use tracing::instrument::Instrumented;

#[inline]
pub(super) fn carried<F: Future>(future: F) -> Instrumented<F> {
    future.in_current_span()
}
