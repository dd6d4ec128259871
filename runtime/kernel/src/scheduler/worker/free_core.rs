//! A core that no thread holds: what a thread that has entered the runtime may do there for a moment, and its end.
//!
//! Rejected: making a `Worker` for that (it would count as one that has come and gone, and close what it leaves).

use std::sync::Arc;

use crate::primitives::thread::ThreadId;
use crate::scheduler::core::Core;
use crate::scheduler::current;
use crate::scheduler::shared::Shared;
use crate::task::hide;

/// Why a thread that has entered a runtime may not touch what only the holder of its core touches.
#[derive(Debug)]
pub(crate) enum NoCore {
    /// The runtime has threads of its own for its tasks.
    Shared,
    /// This thread runs code that may block: it never drives the runtime.
    Blocking,
    /// Another thread works on the core.
    Taken,
    /// The core has tasks that may not leave this other thread.
    Pinned(ThreadId),
}

/// Holds the core of a `current_thread` runtime while `f` runs, on a thread that has entered it, if no thread works
/// there. What `f` leaves to do is done by the next thread that works there.
pub(crate) fn with_free_core<T>(shared: &Arc<Shared>, f: impl FnOnce(&Core) -> T) -> Result<T, NoCore> {
    if shared.is_multi_thread() {
        return Err(NoCore::Shared);
    }
    if current::is_working_for(shared) {
        return Err(NoCore::Blocking);
    }
    let core = &shared.cores[0];
    // An external thread found the core taken, and its holder may have left since: refuse either way.
    if current::with_host(|_| ()).is_some() || !core.ownership.try_take() {
        return Err(NoCore::Taken);
    }
    let held = current::enter_held(shared, core);
    let done = match core.pinned_elsewhere() {
        Some(thread) => Err(NoCore::Pinned(thread)),
        None => Ok(f(core)),
    };
    core.note_queue();
    core.embedder.note_more(super::leaves_work(shared, core));
    drop(held);
    core.ownership.release();
    core.unparker.unpark(); // an embedder that waits between two turns
    close_if_closing(shared, core);
    done
}

/// Call after releasing the ownership: a shutdown that began meanwhile found the core taken, and left it to this
/// thread.
pub(super) fn close_if_closing(shared: &Arc<Shared>, core: &Core) {
    if shared.is_closing() && core.ownership.try_take() {
        close_core(shared, core);
    }
}

/// Closes a core that no thread held, whose ownership the caller has taken, and gives the ownership back.
pub(crate) fn close_core(shared: &Arc<Shared>, core: &Core) {
    let _hidden = hide(); // from the tasks that it drops
    let held = current::enter_held(shared, core);
    if let Some(thread) = core.pinned_elsewhere() {
        core.forget_pinned(thread);
    }
    if core.close() && !core.is_guest() {
        shared.core_closed();
    }
    drop(held);
    core.ownership.release();
}
