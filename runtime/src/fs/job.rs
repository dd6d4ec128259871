//! A call into the file system, in a thread that may block: a task of the pool, so that a shutdown waits for it.
//!
//! If the future that waits for the call is dropped, its answer is discarded, even an error: the runtime, which reports
//! errors of detached tasks, must not report this one.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mini_kernel::scheduler::shared::Shared;

use crate::task::spawn_blocking_on;
use crate::task::{JoinError, JoinHandle};

/// Resolves to what the call answers.
pub(super) struct Job<T>(JoinHandle<Answer<T>>);

/// An output that is no `Result`.
struct Answer<T>(T);

impl<T: Send + 'static> Job<T> {
    pub(super) fn start(
        pool: &Arc<Shared>,
        location: &'static Location<'static>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        Self(spawn_blocking_on(pool, move || Answer(job()), location))
    }
}

impl<T> Future for Job<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_ok(|Answer(answer)| answer)
    }
}
