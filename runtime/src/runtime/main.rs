//! What `#[mini::main]` makes of its body: a shared task where it is `Send`, so that it waits for no other task that blocks a worker.
//!
//! The usual server accepts in the body of `main`. On the calling thread, as the future of a `block_on`, nobody could take it over from
//! a worker that a handler blocks. As a shared task it goes to any other worker.
//!
//! The attribute sees the tokens of a function and not its types, so the choice is made where the compiler knows the future: a method
//! of [`Body`] itself is found before one of a reference to it, but only where its bounds hold. An output that is not `Send`, as
//! `Result<(), Box<dyn Error>>`, cannot leave the task. What the process needs of it can: the task reports it there, and gives back
//! the exit code.
//!
//! Rejected: keeping shared tasks away from a thread whose main future is not `Send` (one worker less for them, for programs that
//! seldom are servers).

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::process::{ExitCode, Termination};

use crate::runtime::Runtime;

/// The future of a body, which is taken out once.
pub struct Body<F>(Cell<Option<F>>);

impl<F: Future> Body<F> {
    /// Of a function whose output the caller gets.
    pub fn new(future: F) -> Self {
        Self(Cell::new(Some(future)))
    }

    fn take(&self) -> F {
        self.0.take().expect("a body is run once")
    }
}

/// Of a program's `main`, whose output is reported where the body ends.
pub fn of_main<F: Future<Output: Termination>>(future: F) -> Body<impl Future<Output = ExitCode>> {
    Body::new(async move { future.await.report() })
}

impl<F> fmt::Debug for Body<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// Runs a body that may go to any worker, and gives back its output.
pub trait Output {
    type Output;
    fn output(&self, runtime: &Runtime) -> Self::Output;
}

impl<F> Output for Body<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    #[track_caller]
    fn output(&self, runtime: &Runtime) -> F::Output {
        run_as_task(runtime, self.take())
    }
}

/// Any other runs on the calling thread.
impl<F: Future> Output for &Body<F> {
    type Output = F::Output;

    #[track_caller]
    fn output(&self, runtime: &Runtime) -> F::Output {
        runtime.block_on(self.take())
    }
}

/// Its panic passes through.
#[track_caller]
fn run_as_task<F>(runtime: &Runtime, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let shared = runtime.shared();
    let origin = (Location::caller(), Some("main".into()));
    // Spawned in there, it begins on this thread, and no worker thread is started for it.
    match runtime.block_on(async { shared.spawn(future, origin).await }) {
        Ok(output) => output,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => panic!("the body of the function: {error}"),
    }
}
