//! Waiting for signals: Ctrl-C, and on Unix any other.
//!
//! [`termination`] is for programs that want to stop in order: it hears Ctrl-C and SIGTERM, and a second one ends the
//! program at once. [`ctrl_c`] hears each Ctrl-C, which then never ends the program by itself. [`unix::signal`] has the
//! rest.
//!
//! A listener belongs to the process that made it, and hears nothing that is sent to a child of fork(2). SIGINT,
//! SIGTERM and SIGQUIT end such a child, as they do by default, until it makes a listener of its own.
//!
//! # Examples
//!
//! ```no_run
//! # mini::block_on(async {
//! mini::signal::termination().await?; // Ctrl-C or SIGTERM
//! println!("stopping");
//! # std::io::Result::Ok(()) }).unwrap();
//! ```

// Called by users, and by `process` on systems where the end of a child is announced by SIGCHLD alone.
//
// # Who dispatches
//
// No thread. Each listener has a pair of connected sockets of its own. The signal's handler writes a byte into one end,
// and the reactor of the listener's runtime, which watches the other end, wakes the listener's task. So listeners do
// not know each other, there may be any number of runtimes, and a runtime that stands still holds up only its own
// listeners. What the handler may do, and why no signal is lost, is in `signal/mailbox.rs`.
//
// # Rejected
//
// - One pipe for the process with a reader per runtime: the reader that runs first takes the byte and has to pass it
//   on, and with the last runtime the reader ends.
// - signalfd(2): the signal has to be blocked in every thread, those of other libraries too, and stays blocked in
//   children.
// - A listener that serves in a child of fork(2): its pair of sockets would have to be exchanged for one that the child
//   does not share with its parent. It is refused, as the parent's runtime is.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mini_net::{CallSite, IoKind, Site};

mod ear;
mod mailbox;
#[cfg(feature = "insight")]
mod quits;
#[cfg_attr(not(feature = "sim"), path = "signal/not_simulated.rs")]
mod simulated;
mod unheard;
pub mod unix;

#[cfg(feature = "insight")]
pub(crate) use quits::Quits;

use simulated::is_simulated;
use unix::{Signal, SignalKind};

/// Future of [`ctrl_c`]: resolves to `io::Result<()>` when Ctrl-C is pressed.
#[must_use = "futures do nothing unless awaited"]
pub struct CtrlC(Next);

/// Future of [`termination`]: resolves to `io::Result<SignalKind>`, the signal that asks the program to end.
#[must_use = "futures do nothing unless awaited"]
pub struct TerminationSignal(Option<[Next; 2]>);

/// The next signal of one kind.
struct Next {
    kind: SignalKind,
    signal: Result<Signal, Option<io::Error>>,
    call_site: CallSite,
}

/// Waits for the next Ctrl-C, that is, for SIGINT.
///
/// From this call on, Ctrl-C no longer ends the program, even after the future has been dropped; see [`Signal`]. A
/// Ctrl-C between the call and the first poll counts. In a loop, a Ctrl-C between two calls does not count: keep a
/// [`Signal`] to miss none.
///
/// A server is asked to end by SIGTERM, too: [`termination`] waits for both signals.
///
/// # Examples
///
/// ```no_run
/// #[mini::main]
/// async fn main() -> std::io::Result<()> {
///     let server = mini::spawn(std::future::pending::<()>());
///     mini::signal::ctrl_c().await?;
///     println!("stopping");
///     let _ = server.cancel().await;
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// Returns the errors of [`unix::signal`], and an error if the runtime shuts down during the wait.
///
/// # Panics
///
/// If it is awaited outside a mini runtime, or in a child of the process that called it (fork(2)).
///
/// # Cancel safety
///
/// Safe, except that dropping the future loses a Ctrl-C that has arrived since the call.
#[track_caller]
pub fn ctrl_c() -> CtrlC {
    const SITE: &Site = &Site { owner: "mini::signal", method: "ctrl_c", kind: IoKind::Signal };
    CtrlC(Next::new(SignalKind::interrupt(), SITE))
}

/// Waits until the program is asked to end: by Ctrl-C (SIGINT), or by SIGTERM, which `kill`, systemd and Docker send.
///
/// Returns the signal that arrived.
///
/// From this call on, the first of these signals does not end the program. A second one does: once the first has been
/// received, both signals have their default effect again, unless another listener exists (another call, [`ctrl_c`], a
/// [`Signal`]). So a user who does not want to wait for the end presses Ctrl-C again. A signal within half a second of
/// the first counts as the same request: some programs forward a signal that the terminal has sent already.
///
/// # Examples
///
/// ```no_run
/// use mini::signal::termination;
///
/// #[mini::main]
/// async fn main() -> std::io::Result<()> {
///     let server = mini::spawn(std::future::pending::<()>());
///     let signal = termination().await?;
///     println!("stopping after {signal:?}"); // SIGINT or SIGTERM
///     let _ = server.cancel().await; // or whatever takes time
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// Returns the errors of [`unix::signal`], and an error if the runtime shuts down during the wait.
///
/// # Panics
///
/// If it is awaited outside a mini runtime, or in a child of the process that called it (fork(2)). If it is polled
/// again after it was ready.
///
/// # Cancel safety
///
/// Safe, except that dropping the future loses a signal that has arrived since the call. A future that is dropped
/// before any signal has received no request: then, as with [`ctrl_c`], no later signal ends the program either.
#[track_caller]
pub fn termination() -> TerminationSignal {
    const SITE: &Site = &Site { owner: "mini::signal", method: "termination", kind: IoKind::Signal };
    TerminationSignal(Some([SignalKind::interrupt(), SignalKind::terminate()].map(|kind| Next::new(kind, SITE))))
}

impl Next {
    #[track_caller]
    fn new(kind: SignalKind, site: &'static Site) -> Next {
        Next { kind, signal: unix::signal(kind).map_err(Some), call_site: CallSite::here(site) }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<SignalKind>> {
        let heard = match &mut self.signal {
            Ok(signal) => ready!(signal.poll_recv_for(cx, &self.call_site)),
            Err(refused) => {
                ready!(mini_context::poll_budget(cx, refused));
                return Poll::Ready(Err(refused.take().unwrap_or_else(over)));
            }
        };
        Poll::Ready(heard.map(|()| self.kind).ok_or_else(over))
    }
}

fn over() -> io::Error {
    io::Error::other("the mini runtime has shut down")
}

impl Future for CtrlC {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.poll(cx).map_ok(drop)
    }
}

impl Future for TerminationSignal {
    type Output = io::Result<SignalKind>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<SignalKind>> {
        let TerminationSignal(waiting) = self.get_mut();
        let requests = waiting.as_mut().expect("`termination` was polled again after it was ready");
        let heard = requests.iter_mut().find_map(|request| match request.poll(cx) {
            Poll::Pending => None,
            Poll::Ready(heard) => Some(heard),
        });
        let Some(heard) = heard else { return Poll::Pending };
        *waiting = None; // who keeps this value does not listen any more
        if heard.is_ok() && !is_simulated() {
            unheard::note_request();
        }
        Poll::Ready(heard)
    }
}

impl fmt::Debug for CtrlC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtrlC").finish_non_exhaustive()
    }
}

impl fmt::Debug for TerminationSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminationSignal").finish_non_exhaustive()
    }
}
