//! Orphans: children whose `Child` was dropped before they had been reaped. Each is reaped when it ends,
//! unless the system can start no thread for it.
//!
//! Called by `child`. On a thread of a runtime an orphan is a small task there, which waits for the child's end. On
//! another thread, and when that task is dropped with its runtime, a thread of the orphan's own waits. An orphan of a
//! `current_thread` runtime waits until a thread runs that runtime, or drops it.
//!
//! Rejected:
//! - A task that looks after all orphans of a runtime, or a thread for all the others: each orphan would have to find
//!   it and be handed over.
//! - A list of the others, which the next spawn goes through: a killed child stays a zombie until then.
//! - A wait in the destructor for a child that was killed: one that waits for a disk may take its time to end.

use std::future::poll_fn;
use std::panic::Location;
use std::process;
use std::sync::Arc;

use super::child::waits_at;
use super::watch::{Running, try_wait};
use crate::scheduler::context;
use crate::scheduler::shared::Shared;
use crate::threads;

/// Looked after by a task. Dropped before its child has ended, it gets a thread.
struct Orphan(Option<Running>);

/// Takes over a child that no caller waits for any more.
pub(super) fn leave(mut child: process::Child, location: &'static Location<'static>) {
    if has_ended(&mut child) {
        return;
    }
    let Some(pool) = context::with_shared(Arc::clone) else { return wait_on_a_thread(child, location) };
    match Running::new(child, location) {
        Ok(running) => look_after(&pool, running),
        Err((child, _)) => wait_on_a_thread(child, location),
    }
}

/// Runs the task of an orphan that this runtime watches. A runtime that shuts down drops it at once.
pub(super) fn look_after(pool: &Arc<Shared>, running: Running) {
    let location = running.location;
    let mut orphan = Orphan(Some(running));
    let task = async move {
        let Some(Running { child, watch, .. }) = &mut orphan.0 else { return };
        let mut notice = watch.notice(waits_at(location));
        // After an error, dropping the orphan takes care of the child.
        let _ = poll_fn(|cx| notice.poll_reap(cx, child)).await;
    };
    drop(pool.spawn(task, location));
}

fn wait_on_a_thread(mut child: process::Child, location: &'static Location<'static>) {
    let id = child.id();
    let body = Box::new(move || drop(child.wait()));
    if let Err(error) = threads::start("mini-orphan".to_owned(), Some(64 * 1024), body) {
        say!("could not start a thread to wait for the dropped child process {id}, started at {location}: {error}");
    }
}

/// Reaps `child` if it has ended. On ECHILD other code has reaped it: then it has ended too.
fn has_ended(child: &mut process::Child) -> bool {
    match try_wait(child) {
        Ok(status) => status.is_some(),
        Err(error) => error.raw_os_error() == Some(libc::ECHILD),
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let Some(Running { mut child, watch, location }) = self.0.take() else { return };
        // First: the reactor that it is registered with may be gone for good.
        drop(watch);
        if !has_ended(&mut child) {
            wait_on_a_thread(child, location);
        }
    }
}
