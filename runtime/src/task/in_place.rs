//! Blocking on a worker, announced.
//!
//! The worker keeps its core, and gives away the contents. During the call it counts as parked and as stuck (see
//! `idle.rs` and `monitor.rs`), so other workers take its tasks, even new ones, and serve its timers.
//!
//! Rejected: handing the core to another thread. The core cannot be taken back while that thread is in a long poll,
//! perhaps one that waits for what this task has locked; a poll that continues without a core would need a second kind
//! of worker; and tasks of `spawn_local` could not move with the core.

use std::sync::Arc;

use mini_context::set_poll_aside;

use crate::primitives::atomic::Ordering::Relaxed;
use crate::scheduler::context::{self, SetAside};
use crate::scheduler::core::Core;
use crate::scheduler::monitor;
use crate::scheduler::shared::Shared;

/// Runs `f`, which may block, on this thread, while other workers take over its work.
///
/// The tasks in this worker's queue go to the other workers, and its sockets and timers are served in its place. So `f`
/// may compute or wait for a while, and may use values that are not `Send`. It may call [`block_on`](crate::block_on),
/// whose future may await sockets, timers and tasks of this runtime. This thread polls that future and no task of
/// others, so `f` may hold locks that tasks take.
///
/// Outside a runtime's tasks and `block_on` it just runs `f`.
///
/// It starts no additional worker. While all workers are in `block_in_place`, no task runs. So `f` must not wait for
/// tasks of this runtime unless the runtime has more workers than `block_in_place` calls can run at once. Tasks of
/// [`spawn_local`](crate::spawn_local) on this worker, and futures joined with the calling one, wait until `f` returns.
/// While `f` runs, a background thread wakes up every millisecond to serve this worker's sockets and timers, so an `f`
/// that never returns costs a little all the time. [`spawn_blocking`](crate::spawn_blocking) has none of these limits.
///
/// # Examples
///
/// ```
/// let runtime = mini::runtime::Runtime::new()?;
/// let task = runtime.spawn(async {
///     mini::task::block_in_place(|| std::fs::read_to_string("Cargo.toml"))
/// });
/// assert!(runtime.block_on(task).unwrap()?.contains("mini"));
/// # std::io::Result::Ok(())
/// ```
///
/// # Panics
///
/// In the tasks and `block_on` of a `current_thread` runtime, where no other worker could take its tasks: `f` might
/// wait forever for one of them. This holds for [`Handle::block_on`](crate::runtime::Handle::block_on) too, where tokio
/// allows it: tokio's only polls its future, while this one also runs the runtime's tasks unless another thread does.
/// It panics even then, so that the outcome does not depend on which thread came first. Use
/// [`spawn_blocking`](crate::spawn_blocking) there.
///
/// If `f` panics, for example because it calls `spawn_local`.
#[track_caller]
pub fn block_in_place<F: FnOnce() -> R, R>(f: F) -> R {
    match context::with_held(|core| core.shared().is_multi_thread().then(|| core.schedule().arc())) {
        None => {
            if context::with_host(Shared::is_multi_thread) == Some(false) {
                refuse();
            }
            let (_blocks, _poll) = (context::leave_external(), set_poll_aside());
            f()
        }
        Some(None) if context::with_held(|core| core.shared().config.is_simulated()) == Some(true) => f(),
        Some(None) => refuse(),
        Some(Some(shared)) => {
            // What runs in `f` is no part of this poll, whose budget may be an endless one.
            let (_blocked, _poll) = (Blocked::begin(&shared), set_poll_aside());
            f()
        }
    }
}

#[track_caller]
fn refuse() -> ! {
    panic!(
        "block_in_place on a current_thread runtime would stop all its tasks; use mini::spawn_blocking, or a \
         multi_thread runtime"
    )
}

/// While it lives, other workers use the core of this thread as far as they can.
struct Blocked(SetAside);

impl Blocked {
    fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let blocked = Self(context::set_aside()?);
        let core = blocked.core();
        core.run.is_blocked.store(true, Relaxed);
        core.idle_queue().disperse();
        if core.is_guest() {
            return Some(blocked);
        }
        shared.idle.park(core.index());
        if shared.is_closing() {
            shared.fail_waits_in_place();
        }
        shared.monitor.note_stuck();
        // After the above, as in a worker that parks: another thread may have seen this worker up, and woken none.
        if core.shared_len() > 0 || shared.has_injected() {
            shared.wake_one();
        }
        monitor::thread::start(shared);
        shared.monitor.rouse();
        shared.hand_over(core, u64::MAX - 1);
        Some(blocked)
    }

    fn core(&self) -> &Core {
        self.0.core()
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let core = self.core();
        if !core.is_guest() {
            core.shared().idle.unpark(core.index());
        }
        core.run.is_blocked.store(false, Relaxed);
        if !core.is_guest() {
            core.shared().monitor.rouse();
        }
    }
}
