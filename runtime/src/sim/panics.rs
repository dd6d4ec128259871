//! Where a repeated run panicked, and that it says nothing: a seed that fails is run hundreds of times, and its panic
//! is shown once.
//!
//! Only a hook of the process hears where a panic was. It is set when the first seed of a process has failed, passes
//! on the panics of all other threads, and stays.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

use super::sites;

thread_local! {
    /// The panics of this thread are kept, and not printed.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    /// Where the last one was.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`, whose panics are not printed.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_QUIET.try_with(Cell::get) != Ok(true) {
                return before(info);
            }
            let _ = LAST.try_with(|last| last.replace(info.location().map(sites::shown)));
        }));
    });
    let _quiet = Quiet(IS_QUIET.replace(true));
    f()
}

struct Quiet(bool);

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(self.0);
    }
}

/// Where the last panic of this thread was, if that is known.
pub(super) fn last() -> Option<String> {
    LAST.with_borrow(Clone::clone)
}
