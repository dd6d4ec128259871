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

use super::core::Core;
use super::current::{self, SetAside};
use super::monitor;
use super::shared::Shared;
use crate::primitives::atomic::Ordering::Relaxed;

/// Runs `f`, which may block, and gives away what the calling worker has.
///
/// # Panics
///
/// In the tasks and `block_on` of a `current_thread` runtime.
#[track_caller]
pub fn block_in_place<F: FnOnce() -> R, R>(f: F) -> R {
    match current::with_held(|core| core.shared().is_multi_thread().then(|| core.schedule().arc())) {
        None => {
            if current::with_host(Shared::is_multi_thread) == Some(false) {
                refuse();
            }
            let (_blocks, _poll) = (current::leave_external(), set_poll_aside());
            f()
        }
        Some(None) if current::with_held(|core| core.shared().config.has_pick()) == Some(true) => f(),
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
        let blocked = Self(current::set_aside()?);
        let core = blocked.core();
        core.poll.is_blocked.store(true, Relaxed);
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
        core.poll.is_blocked.store(false, Relaxed);
        if !core.is_guest() {
            core.shared().monitor.rouse();
        }
    }
}
