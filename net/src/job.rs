//! `JobHandle`: a job on the runtime's blocking pool, and its result. A lost job is an error, never a hang.
//!
//! Called by `addr`, which looks up names.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::current::{self, Blocking};
use crate::source::CallSite;

/// The side that waits. After it is dropped, the job can see that it is no longer wanted.
pub(crate) struct JobHandle<T> {
    state: Arc<Mutex<State<T>>>,
    /// The call that the last poll was for.
    call_site: Option<CallSite>,
}

/// The side that works. If dropped without a result, by a panic or a pool that has shut down, it delivers an error.
pub(crate) struct Job<T> {
    state: Arc<Mutex<State<T>>>,
    has_begun: Cell<bool>,
}

enum State<T> {
    Working(Option<Waker>),
    Done(Option<io::Result<T>>),
}

impl<T: Send + 'static> JobHandle<T> {
    pub(crate) fn start(
        blocking: &Blocking,
        work: impl FnOnce(&Job<T>) -> io::Result<T> + Send + 'static,
    ) -> JobHandle<T> {
        let state = Arc::new(Mutex::new(State::Working(None)));
        let job = Job { state: Arc::clone(&state), has_begun: Cell::new(false) };
        blocking(Box::new(move || {
            job.has_begun.set(true);
            let result = work(&job);
            job.deliver(result);
        }));
        JobHandle { state, call_site: None }
    }

    /// # Panics
    ///
    /// Panics if it is polled again after it was ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, call_site: &CallSite) -> Poll<io::Result<T>> {
        let waker = cx.waker().clone();
        let displaced = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Working(waiter) => waiter.replace(waker),
                State::Done(result) => {
                    return Poll::Ready(result.take().expect("a result is taken once"));
                }
            }
        };
        drop(displaced);
        call_site.leave_note(-1);
        self.call_site = Some(*call_site);
        Poll::Pending
    }
}

impl<T> Drop for JobHandle<T> {
    fn drop(&mut self) {
        if let Some(call_site) = &self.call_site {
            call_site.forget_note();
        }
    }
}

impl<T> Job<T> {
    /// Returns `true` if a future still waits for the result.
    pub(crate) fn is_wanted(&self) -> bool {
        Arc::strong_count(&self.state) > 1
    }

    fn deliver(&self, result: io::Result<T>) {
        let before = {
            let mut state = lock(&self.state);
            match *state {
                State::Working(_) => std::mem::replace(&mut *state, State::Done(Some(result))),
                State::Done(_) => return,
            }
        };
        if let State::Working(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.deliver(Err(io::Error::other(match self.has_begun.get() {
            true => "its job panicked in the mini runtime's blocking pool",
            false => "the mini runtime's blocking pool could not start a thread, or has shut down",
        })));
    }
}

/// The pool of the current runtime.
///
/// # Panics
///
/// Panics outside a mini runtime, with the text that names the call.
pub(crate) fn pool(call_site: &CallSite) -> Blocking {
    current::blocking().unwrap_or_else(|| call_site.panic_without_runtime())
}

/// Poison is ignored: no user code runs under this lock.
fn lock<T>(state: &Mutex<State<T>>) -> std::sync::MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use mini_context::IoKind;

    use super::*;
    use crate::source::Site;

    #[test]
    fn a_lost_job_says_whether_it_has_begun() {
        let call_site = CallSite::here(&Site { owner: "tests", method: "job", kind: IoKind::Resolve });
        let lost = |blocking: Blocking| {
            let mut handle = JobHandle::start(&blocking, |_| -> io::Result<()> { resume_unwind(Box::new(())) });
            let Poll::Ready(Err(error)) = handle.poll(&mut Context::from_waker(Waker::noop()), &call_site) else {
                panic!("it is lost");
            };
            error.to_string()
        };
        let runs = lost(Arc::new(|job| drop(catch_unwind(AssertUnwindSafe(job)))));
        assert!(runs.contains("panicked"), "{runs}");
        let discards: Blocking = Arc::new(|job| {
            // As when a runtime is dropped by a panic.
            drop(catch_unwind(AssertUnwindSafe(move || {
                let _job = job;
                resume_unwind(Box::new(()));
            })));
        });
        let discards = lost(discards);
        assert!(discards.contains("could not start a thread, or has shut down"), "{discards}");
    }
}
