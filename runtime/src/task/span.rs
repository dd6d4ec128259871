//! The span of `tracing` that is current where a task is spawned, kept by the task.
//!
//! Called where tasks and blocking jobs are spawned. The span is entered for each poll, and while the future is
//! dropped. If there is no span, entering it reads an empty field. Without the feature the future of a task is what was
//! spawned.
//!
//! Rejected: a field of the header (every task would have it, and every poll would read it, even with the feature off).

#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn carried<F: Future>(future: F) -> tracing::instrument::Instrumented<F> {
    tracing::Instrument::in_current_span(future)
}

#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn carried<F: Future>(future: F) -> F {
    future
}

/// [`carried`] for a job.
#[cfg(feature = "tracing")]
pub(crate) fn carried_job<T>(job: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let mut job = InSpan { job: Some(job), span: tracing::Span::current() };
    move || {
        let _inside = job.span.enter();
        (job.job.take().expect("called once"))()
    }
}

/// A job that is dropped inside its span, if it is not called.
#[cfg(feature = "tracing")]
struct InSpan<F> {
    job: Option<F>,
    span: tracing::Span,
}

#[cfg(feature = "tracing")]
impl<F> Drop for InSpan<F> {
    fn drop(&mut self) {
        let _inside = self.span.enter();
        self.job = None;
    }
}

#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn carried_job<T, F: FnOnce() -> T>(job: F) -> F {
    job
}

#[cfg(all(test, not(feature = "tracing")))]
mod tests {
    #[test]
    fn nothing_is_added_to_a_task() {
        let future = std::future::ready([0_u8; 24]);
        let size = size_of_val(&future);
        assert_eq!(size_of_val(&super::carried(future)), size);
    }
}
