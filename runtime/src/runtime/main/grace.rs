//! `#[mini::main(grace = "10s")]`: a program that ends in order, and in time, when it is asked to or when `main` is
//! over.
//!
//! A separate thread, the supervisor, waits for the end and carries it out. It has a runtime of its own: so it receives
//! the signal, counts the grace and prints the report even while tasks block every worker of the program's runtime. The
//! calling thread runs the body, as a task of the program's group; afterwards it serves the other tasks until the
//! supervisor is done. If it does not come back then, because a task blocks it, the supervisor ends the process.
//!
//! 1. A request to end (`signal::termination`), a cancellation of the program's token, or the end of the body wakes the
//!    supervisor.
//! 2. It shuts down the program's group, with all groups below, and prints the report if something was left.
//! 3. If tasks could not be dropped it ends the process at once. Otherwise the calling thread returns, and drops the
//!    runtime as usual. For its return it has the rest of the grace, and [`TO_LEAVE`]. Until the runtime is gone the
//!    supervisor handles signals: a destructor may wait for something that never comes.
//!
//! Rejected: a task in the program's runtime as the supervisor (no thread, but of no use where a task blocks). A timer
//! signal (alarm(2) is the program's).

use std::future::poll_fn;
use std::io;
use std::panic::Location;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::{Poll, ready};
use std::thread;
use std::time::Duration;

use mini_kernel::scheduler::shared::Shared;

use super::LEFT;
use crate::runtime::{Builder, Runtime};
use crate::signal::{TerminationSignal, termination};
use crate::task::group::program;
use crate::task::{CancelOnDrop, CancelToken, JoinError, JoinHandle, Reason};
use crate::time::timeout;

/// How long the calling thread may take to come back when all is over.
const TO_LEAVE: Duration = Duration::from_secs(2);

/// What the calling thread and the supervisor tell each other.
struct Events {
    body_ended: CancelToken,
    is_over: CancelToken,
    /// The calling thread is free.
    came_back: CancelToken,
    /// It has dropped the runtime.
    is_gone: CancelToken,
    has_left: AtomicBool,
    /// The program's runtime.
    program: Weak<Shared>,
}

impl Events {
    /// Ends the process, which has left something.
    fn exit(&self) -> ! {
        if let Some(program) = self.program.upgrade() {
            program.config.observers.iter().for_each(|observer| observer.ended(&program)); // it will not shut down
        }
        drop(super::Written);
        std::process::exit(LEFT.into())
    }
}

/// Runs the body, which `start` spawns, and ends the program. A panic of the body passes through.
///
/// The body drops the guard when it ends: the calling thread may be blocked then, and could not tell.
pub(super) fn run<S>(runtime: Runtime, grace: Duration, location: &'static Location<'static>, start: S) -> ExitCode
where
    S: FnOnce(&Arc<Shared>, CancelOnDrop) -> JoinHandle<ExitCode>,
{
    let events = Arc::new(Events {
        body_ended: CancelToken::new(),
        is_over: CancelToken::new(),
        came_back: CancelToken::new(),
        is_gone: CancelToken::new(),
        has_left: AtomicBool::new(false),
        program: Arc::downgrade(runtime.shared()),
    });
    program::set_grace(grace);
    if let Err(error) = supervise(events.clone(), location) {
        panic!("`#[mini::main]` could not start the thread that ends the program: {error}");
    }
    let gone = events.is_gone.drop_guard(Reason::Requested);
    let runtime = runtime; // dropped before that guard by a panic, too
    let back = events.came_back.drop_guard(Reason::Requested);
    let output = runtime.block_on(async {
        let output = start(runtime.shared(), events.body_ended.drop_guard(Reason::Requested)).await;
        events.is_over.cancelled().await;
        output
    });
    drop(back);
    drop(runtime);
    drop(gone);
    match output {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Ok(code) if !events.has_left.load(SeqCst) => code,
        Ok(_) | Err(JoinError { .. }) => ExitCode::from(LEFT),
    }
}

/// Starts the supervisor. From now on signals are heard.
fn supervise(events: Arc<Events>, location: &'static Location<'static>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().internal().build()?;
    let request = termination();
    let work = move || runtime.block_on(supervisor(&events, request, location));
    thread::Builder::new().name("mini-shutdown".to_owned()).spawn(work).map(drop)
}

async fn supervisor(events: &Events, request: TerminationSignal, location: &'static Location<'static>) {
    let left = end(events, request, location).await;
    if timeout(left.saturating_add(TO_LEAVE), events.came_back.cancelled()).await.is_err() {
        say!("the program has shut down, and exits although a task outside every group blocks the thread of `main`");
        events.exit();
    }
    events.is_gone.cancelled().await;
}

/// Steps 1 and 2. Returns what is left of the grace.
async fn end(events: &Events, request: TerminationSignal, location: &'static Location<'static>) -> Duration {
    let mut request = Some(request);
    let reason = asked(events, &mut request).await;
    if let Some(request) = request {
        drop(crate::spawn(request)); // the first signal is still to come, and the second one ends the program
    }
    let report = program::end(reason, location).await;
    if !report.is_complete() {
        events.has_left.store(true, SeqCst);
        say!("{report}");
    }
    if !report.running().is_empty() {
        events.exit();
    }
    events.is_over.cancel(reason);
    program::grace().saturating_sub(report.took())
}

/// Why the program ends, once it does.
async fn asked(events: &Events, request: &mut Option<TerminationSignal>) -> Reason {
    let mut body = pin!(events.body_ended.cancelled());
    let program = crate::shutdown();
    let mut token = pin!(program.cancelled());
    poll_fn(|cx| {
        if body.as_mut().poll(cx).is_ready() || token.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Reason::Shutdown); // a token that is cancelled keeps its reason
        }
        let Some(heard) = request.as_mut().map(|request| pin!(request).poll(cx)) else { return Poll::Pending };
        let heard = ready!(heard);
        *request = None;
        match heard {
            Ok(_) => Poll::Ready(Reason::Signal),
            Err(error) => {
                say!("signals cannot start an orderly shutdown: {error}");
                Poll::Pending
            }
        }
    })
    .await
}
