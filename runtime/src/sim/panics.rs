//! The places of panics, and the silence of repeated runs: a seed that fails is run hundreds of times, and its panic is
//! shown once.
//!
//! Only a panic hook of the process learns the place of a panic. It is set when a process begins with its first test of
//! seeds, passes panics on unless a seed is repeated, and stays.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

use mini_context::{sim, task};

use super::sites;

thread_local! {
    /// The panics of this thread are not printed.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    /// In which task the last one was, and where.
    static LAST: RefCell<Option<(u64, String)>> = const { RefCell::new(None) };
}

/// From now on the places of panics are known.
pub(super) fn watch() {
    static HOOK: Once = Once::new();
    HOOK.call_once(set_hook);
}

/// Runs `f`, whose panics are not printed.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(set_hook); // once more: a test may have put its own in place of the first
    let _quiet = Quiet(IS_QUIET.replace(true));
    f()
}

fn set_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if sim::is_simulated() {
            let _ = LAST.try_with(|last| last.replace(info.location().map(|at| (task(), sites::shown(at)))));
        }
        if IS_QUIET.try_with(Cell::get) != Ok(true) {
            before(info);
        }
    }));
}

struct Quiet(bool);

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(self.0);
    }
}

/// Another simulation begins on this thread, with the ids of the one before.
pub(super) fn forget() {
    LAST.set(None);
}

/// Where the last panic of this thread was, if that is known.
pub(super) fn last() -> Option<String> {
    LAST.with_borrow(|last| last.as_ref().map(|(_, place)| place.clone()))
}

/// Where that task has panicked, if it was the last one to do so, and that is known.
pub(super) fn last_of(task: u64) -> Option<String> {
    LAST.with_borrow(|last| last.as_ref().filter(|(id, _)| *id == task).map(|(_, place)| place.clone()))
}
