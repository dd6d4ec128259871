//! Orphans: children whose `Child` was dropped before they had been reaped. Each is reaped: a zombie stays until a
//! runtime or a later spawn looks, not longer.
//!
//! Called by the destructor of `Child` (`leave`) and by `Command::spawn` (`sweep`). In a runtime an orphan is a small
//! task that waits for the child's end. When that task is dropped, with its runtime, or where there is no runtime, the
//! orphan goes into the list; `sweep` empties it. An orphan of a `current_thread` runtime waits until a thread runs
//! that runtime, or drops it.
//!
//! Rejected: a task that looks after all orphans of a runtime (it would have to be told of each, and be found). Going
//! through the list at every `wait` too: a caller that waits has spawned before.

use std::future::poll_fn;
use std::panic::Location;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::child::waits_at;
use super::watch::{Running, try_wait};
use crate::scheduler::context;
use crate::scheduler::shared::Shared;

/// Orphans without a runtime, with where they were started.
static LIST: Mutex<Vec<Listed>> = Mutex::new(Vec::new());

type Listed = (process::Child, &'static Location<'static>);

/// Looked after by a task. Dropped before its child has ended, it goes into the list.
struct Orphan(Option<Running>);

/// Locks a mutex of the standard library, also in models, which never come here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over a child that nobody waits for any more.
pub(super) fn leave(mut running: Running) {
    if has_ended(&mut running.child) {
        return;
    }
    let home = running.home.take().and_then(|home| home.upgrade());
    if let Some(home) = home.filter(|home| !home.is_closing()) {
        return look_after(&home, running);
    }
    // The child may be watched by a reactor that stands still: `take_over` watches it anew.
    let Running { child, watch, location, .. } = running;
    drop(watch);
    take_over(child, location);
}

/// As [`leave`], for one that could not be watched.
pub(super) fn leave_unwatched(child: process::Child, location: &'static Location<'static>) {
    lock(&LIST).push((child, location));
}

/// Reaps those in the list that have ended; the others go to the runtime of this thread, if there is one.
pub(super) fn sweep() {
    let listed = std::mem::take(&mut *lock(&LIST));
    for (child, location) in listed {
        take_over(child, location);
    }
}

/// Reaps an orphan that nobody watches, or gives it to the runtime of this thread, or else puts it into the list.
fn take_over(mut child: process::Child, location: &'static Location<'static>) {
    if has_ended(&mut child) {
        return;
    }
    let Some(pool) = context::with_shared(Arc::clone) else { return leave_unwatched(child, location) };
    match Running::new(child, location) {
        Ok(mut running) => {
            running.home = None;
            look_after(&pool, running);
        }
        Err((child, _)) => leave_unwatched(child, location),
    }
}

/// Runs the task of an orphan. A runtime that shuts down drops it at once.
fn look_after(pool: &Arc<Shared>, running: Running) {
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

/// Reaps `child` if it has ended. On ECHILD other code has reaped it: then it has ended too.
fn has_ended(child: &mut process::Child) -> bool {
    match try_wait(child) {
        Ok(status) => status.is_some(),
        Err(error) => error.raw_os_error() == Some(libc::ECHILD),
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let Some(Running { mut child, watch, location, .. }) = self.0.take() else { return };
        // First: the reactor that it is registered with may be gone for good.
        drop(watch);
        if !has_ended(&mut child) {
            leave_unwatched(child, location);
        }
    }
}
