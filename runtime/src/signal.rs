//! Waiting for signals: Ctrl-C, and on Unix any other.
//!
//! [`ctrl_c`] is for programs that want to stop in order; [`unix::signal`] has the rest. From the first call on the
//! signal has no effect by itself any more: a second Ctrl-C does not end the program.
//!
//! # Examples
//!
//! ```no_run
//! # mini::block_on(async {
//! mini::signal::ctrl_c().await?;
//! println!("stopping");
//! # std::io::Result::Ok(()) }).unwrap();
//! ```

// Called by users, and by `process` on systems where the end of a child is announced by SIGCHLD alone.
//
// # Who dispatches
//
// No thread. Each listener has a pair of connected sockets of its own. The signal's handler writes a byte into one end,
// and the reactor of the runtime that waits for the other end wakes the listener's task. So listeners do not know each
// other, there may be any number of runtimes, and a runtime that stands still holds up only its own listeners. What the
// handler may do, and why no signal is lost, is in `signal/mailbox.rs`.
//
// # Rejected
//
// - One pipe for the process with a reader per runtime: the reader that runs first takes the byte and has to pass it
//   on, and with the last runtime the reader ends.
// - signalfd(2): the signal has to be blocked in every thread, those of other libraries too, and stays blocked in
//   children.
// - Ignoring what a forked child hears before it runs its program, by comparing process ids: a program that forks by
//   itself to become a daemon would be deaf from then on.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mini_net::{IoKind, Object, Site, Wait, failed};

mod mailbox;
pub mod unix;

use unix::{Signal, SignalKind};

/// Waits for Ctrl-C; returned by [`ctrl_c`].
#[must_use = "futures do nothing unless awaited"]
pub struct CtrlC {
    signal: Result<Signal, Option<io::Error>>,
    wait: Wait,
}

/// Waits for the next Ctrl-C, that is, for SIGINT.
///
/// From this call on Ctrl-C no longer ends the program, not even when the future has been dropped; see [`Signal`]. A
/// Ctrl-C between the call and the first poll counts. In a loop, a Ctrl-C between two calls does not: a [`Signal`] that
/// is kept misses none.
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
/// As [`unix::signal`]; that the runtime has shut down meanwhile.
///
/// # Panics
///
/// If it is awaited outside a mini runtime.
///
/// # Cancel safety
///
/// Safe, but a Ctrl-C that has come since the call is lost with the future.
#[track_caller]
pub fn ctrl_c() -> CtrlC {
    const SITE: &Site = &Site { owner: "mini::signal", method: "ctrl_c", kind: IoKind::Ready };
    CtrlC { signal: unix::signal(SignalKind::interrupt()).map_err(Some), wait: Wait::here(SITE) }
}

impl Future for CtrlC {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let CtrlC { signal, wait } = self.get_mut();
        let heard = match signal {
            Ok(signal) => ready!(signal.poll_recv_for(cx, wait)),
            Err(refused) => return Poll::Ready(Err(refused.take().unwrap_or_else(over))),
        };
        Poll::Ready(heard.ok_or_else(over))
    }
}

fn over() -> io::Error {
    let error = io::Error::other("the mini runtime has shut down");
    failed("wait for", Object::Signal(SignalKind::interrupt().as_raw_value()))(error)
}

impl fmt::Debug for CtrlC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtrlC").finish_non_exhaustive()
    }
}
