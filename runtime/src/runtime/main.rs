//! The body of `#[mini::main]`: a shared task if it is `Send`, so that it waits for no other task that blocks a worker.
//!
//! The usual server accepts in the body of `main`. On the calling thread, as the future of a `block_on`, no other
//! worker could take it over while a handler blocks that thread. As a shared task it goes to any other worker.
//!
//! The attribute sees the tokens of a function and not its types, so the choice is made where the compiler knows the
//! future: a method of [`Body`] itself is found before one of a reference to it, but only where its bounds hold. An
//! output that is not `Send`, as `Result<(), Box<dyn Error>>`, cannot leave the task. But the process needs only its
//! report and its exit code: the task prints the report, and returns the exit code.
//!
//! An error is reported by its `Display` and those of its causes, where the standard library prints its `Debug`. In the
//! same way the compiler chooses how: [`OfError`], then [`OfText`], then [`OfAny`]. The last one leaves it to the type,
//! for example to error types that are not `Error` and whose `Debug` is made for reports (`anyhow`, `eyre`).
//!
//! Rejected: keeping shared tasks away from a thread whose main future is not `Send` (one worker less for them, for
//! programs that seldom are servers).

#[cfg_attr(not(feature = "signal"), path = "main/no_grace.rs")]
mod grace;

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::io::Write;
use std::panic::Location;
use std::pin::Pin;
use std::process::{ExitCode, Termination};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::insight;
use crate::insight::InTask;
use crate::runtime::Runtime;
use crate::task::group::program;
use crate::task::spawn_on;
use crate::task::{CancelOnDrop, spawn_local_from, with_causes};

/// The future of a body, which is taken out once.
pub struct Body<F>(Cell<Option<Pin<Box<F>>>>);

impl<F: Future> Body<F> {
    /// The body of a function whose output the caller gets.
    pub fn new(future: F) -> Self {
        Self(Cell::new(Some(Box::pin(future))))
    }

    fn take(&self) -> Pin<Box<F>> {
        self.0.take().expect("a body is run once")
    }

    /// Runs the body on the calling thread.
    #[track_caller]
    pub fn output_here(&self, runtime: Runtime) -> F::Output {
        let _written = Written;
        let runtime = runtime; // dropped before that: it waits for blocking jobs, which may write too
        runtime.block_on(self.take())
    }
}

/// The body of a program's `main`, whose output is reported where the body ends.
pub fn of_main<F: Future<Output: Termination>>(future: F) -> Main<F> {
    Main { body: Body::new(future), report: Termination::report }
}

/// The future of a program's `main`, and how its output is reported if nothing better is known.
#[derive(Debug)]
pub struct Main<F: Future> {
    body: Body<F>,
    report: fn(F::Output) -> ExitCode,
}

impl<F: Future> Main<F> {
    fn reported(&self, report: fn(F::Output) -> ExitCode) -> Body<Exit<F>> {
        Body::new(Exit { future: self.body.take(), report })
    }
}

/// A `main` that may fail with an error.
pub trait OfError {
    type Body;
    fn mini_exit(&self) -> Self::Body;
}

/// A `main` that may fail with something to print.
pub trait OfText {
    type Body;
    fn mini_exit(&self) -> Self::Body;
}

/// Any other `main`.
pub trait OfAny {
    type Body;
    fn mini_exit(&self) -> Self::Body;
}

impl<F, T, E> OfError for &&Main<F>
where
    F: Future<Output = Result<T, E>>,
    T: Termination,
    E: Error + 'static,
{
    type Body = Body<Exit<F>>;

    fn mini_exit(&self) -> Body<Exit<F>> {
        self.reported(|output| output.map_or_else(|error| tell(&error), Termination::report))
    }
}

impl<F, T, E> OfText for &Main<F>
where
    F: Future<Output = Result<T, E>>,
    T: Termination,
    E: Told,
{
    type Body = Body<Exit<F>>;

    fn mini_exit(&self) -> Body<Exit<F>> {
        self.reported(|output| output.map_or_else(|error| error.tell(), Termination::report))
    }
}

impl<F: Future> OfAny for Main<F> {
    type Body = Body<Exit<F>>;

    fn mini_exit(&self) -> Body<Exit<F>> {
        self.reported(self.report)
    }
}

/// A failure of `main` that is no `Error`.
pub trait Told {
    fn tell(&self) -> ExitCode;
}

impl Told for Box<dyn Error> {
    fn tell(&self) -> ExitCode {
        tell(&**self)
    }
}

impl Told for Box<dyn Error + Send> {
    fn tell(&self) -> ExitCode {
        tell(&**self)
    }
}

impl Told for Box<dyn Error + Send + Sync> {
    fn tell(&self) -> ExitCode {
        tell(&**self)
    }
}

impl Told for String {
    fn tell(&self) -> ExitCode {
        print(self)
    }
}

impl Told for &str {
    fn tell(&self) -> ExitCode {
        print(self)
    }
}

/// Each cause has a line.
const BEFORE_CAUSE: &str = "\n  caused by: ";

fn tell(error: &(dyn Error + 'static)) -> ExitCode {
    print(&with_causes(error, BEFORE_CAUSE))
}

fn print(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "Error: {text}"); // a closed stderr changes no exit code
    ExitCode::FAILURE
}

/// The body of a `main`, whose output becomes an exit code.
#[derive(Debug)]
pub struct Exit<F: Future> {
    future: Pin<Box<F>>,
    report: fn(F::Output) -> ExitCode,
}

impl<F: Future> Future for Exit<F> {
    type Output = ExitCode;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ExitCode> {
        let output = ready!(self.future.as_mut().poll(cx));
        Poll::Ready((self.report)(output))
    }
}

impl<F> fmt::Debug for Body<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// Runs a body that may go to any worker, and gives back its output.
pub trait Output {
    type Output;
    fn mini_output(&self, runtime: Runtime) -> Self::Output;
}

impl<F> Output for Body<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    #[track_caller]
    fn mini_output(&self, runtime: Runtime) -> F::Output {
        let _written = Written;
        let runtime = runtime; // as in `output_here`
        run_as_task(&runtime, self.take())
    }
}

/// Any other body runs on the calling thread.
impl<F: Future> Output for &Body<F> {
    type Output = F::Output;

    #[track_caller]
    fn mini_output(&self, runtime: Runtime) -> F::Output {
        self.output_here(runtime)
    }
}

/// How long the end of a program waits for what it has written: a disk takes 64 KiB sooner, and a reader that has
/// stopped must not keep the process.
const TO_WRITE: Duration = Duration::from_secs(1);

/// The body is over when this is dropped, by a panic too, and its runtime is gone: what they have written to the
/// standard outputs goes out.
struct Written;

impl Drop for Written {
    fn drop(&mut self) {
        mini_net::finish_output(TO_WRITE);
    }
}

/// The exit code of a program that has left something behind; timeout(1) ends with it too.
pub const LEFT: u8 = 124;

/// The grace of a program that many milliseconds long, if the feature `signal` is on.
pub fn grace<S: HasSignals>(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Implemented for `()` if the feature `signal` is on.
#[diagnostic::on_unimplemented(
    message = "`grace` needs the feature `signal` of `mini-rt`, to receive the signals that end the program",
    label = "the feature `signal` is off"
)]
pub trait HasSignals {}

#[cfg(feature = "signal")]
impl HasSignals for () {}

/// Tells of the end of the body when it is gone.
async fn guarded<F: Future>(future: F, guard: CancelOnDrop) -> F::Output {
    let _guard = guard;
    let _told = InTask; // before the guard, at which the groups begin to end
    future.await
}

/// Runs the body of a program's `main`, and ends what is left of the program within a grace.
pub trait InGrace {
    fn in_grace(&self, runtime: Runtime, grace: Duration) -> ExitCode;
}

impl<F> InGrace for Body<F>
where
    F: Future<Output = ExitCode> + Send + 'static,
{
    #[track_caller]
    fn in_grace(&self, runtime: Runtime, grace: Duration) -> ExitCode {
        let (future, location) = (self.take(), Location::caller());
        let origin = (location, Some("main".into()));
        let _written = Written;
        grace::run(runtime, grace, location, |shared, guard| {
            program::enter(guarded(future, guard), location, |member| spawn_on(shared, member, origin))
        })
    }
}

/// Any other body runs on the calling thread.
impl<F> InGrace for &Body<F>
where
    F: Future<Output = ExitCode> + 'static,
{
    #[track_caller]
    fn in_grace(&self, runtime: Runtime, grace: Duration) -> ExitCode {
        self.in_grace_here(runtime, grace)
    }
}

impl<F> Body<F>
where
    F: Future<Output = ExitCode> + 'static,
{
    /// [`InGrace::in_grace`] on the calling thread.
    #[track_caller]
    pub fn in_grace_here(&self, runtime: Runtime, grace: Duration) -> ExitCode {
        let (future, location) = (self.take(), Location::caller());
        let origin = (location, Some("main".into()));
        let _written = Written;
        grace::run(runtime, grace, location, |_, guard| {
            program::enter(guarded(future, guard), location, |member| spawn_local_from(member, origin, "mini::main"))
        })
    }
}

/// Runs `future` as a task; its panic passes through.
#[track_caller]
fn run_as_task<F>(runtime: &Runtime, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let shared = runtime.shared();
    let origin = (Location::caller(), Some("main".into()));
    // Spawned inside the `block_on`, the task begins on this thread, and no worker thread is started for it.
    match runtime.block_on(async { spawn_on(shared, future, origin).await }) {
        Ok(output) => output,
        Err(error) if error.is_panic() => {
            insight::dump_on_panic(shared);
            std::panic::resume_unwind(error.into_panic())
        }
        Err(error) => panic!("the body of the function: {error}"),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// An error whose text may or may not name its cause.
    #[derive(Debug)]
    struct Failed {
        text: &'static str,
        cause: Option<Box<Failed>>,
    }

    impl fmt::Display for Failed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.text)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.cause.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn an_error_is_told_with_the_causes_that_it_does_not_tell_itself() {
        let refused = Failed { text: "refused", cause: None };
        let connect = Failed { text: "connect: refused", cause: Some(Box::new(refused)) };
        let start = Failed { text: "the service does not start", cause: Some(Box::new(connect)) };
        assert_eq!(with_causes(&start, BEFORE_CAUSE), "the service does not start\n  caused by: connect: refused");
    }
}
