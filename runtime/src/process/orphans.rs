//! Orphans: children whose `Child` was dropped before they had been reaped. Each is reaped when it ends, unless the
//! system can start no thread for it.
//!
//! Called by `child`. A thread of the orphan's own waits for its end, whichever thread has dropped it. The thread needs
//! no runtime, so an orphan is reaped even while its runtime stands still, and after it.
//!
//! Rejected:
//! - A task on the runtime of the thread that drops the child: it needs a new pidfd, and a thread takes over anyway
//!   when that runtime ends, or if there is none.
//! - A list of the orphans, which the next spawn goes through: a killed child stays a zombie until then.
//! - A wait in the destructor for a child that was killed: one that waits for a disk may take its time to end.

use std::panic::Location;
use std::process;

use mini_kernel::threads;

use super::watch::try_wait;

/// Takes over a child that no caller waits for any more. After an error (ECHILD: other code has reaped it) nothing is
/// left to do.
pub(super) fn leave(mut child: process::Child, location: &'static Location<'static>) {
    if !matches!(try_wait(&mut child), Ok(None)) {
        return;
    }
    let id = child.id();
    let body = Box::new(move || drop(child.wait()));
    if let Err(error) = threads::start("mini-orphan".to_owned(), Some(64 * 1024), body) {
        say!("could not start a thread to wait for the dropped child process {id}, started at {location}: {error}");
    }
}
