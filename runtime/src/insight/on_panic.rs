//! What a runtime says by itself when the future of a `block_on` panics: the trace if it records, and if it warns a dump
//! of the tasks that are left.
//!
//! The future is gone then, and the tasks are not: they show what the program was at when it failed. A program without
//! other tasks has its panic's own message, and nothing more to say.

use std::thread;

use mini_context::contain;

use crate::scheduler::shared::Shared;

/// Speaks if a panic drops it.
pub(crate) struct OnPanic<'a> {
    shared: &'a Shared,
    was_panicking: bool,
}

impl<'a> OnPanic<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, was_panicking: thread::panicking() }
    }
}

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if !thread::panicking() || self.was_panicking {
            return;
        }
        if self.shared.recorder.is_some() {
            self.shared.write_trace();
        }
        self.shared.dump_on_panic();
    }
}

impl Shared {
    /// Prints a dump, where the program is warned on stderr and has tasks.
    pub(crate) fn dump_on_panic(&self) {
        if !self.says_warnings() {
            return;
        }
        // Contained: it may be called in mid-unwinding. By the macro, as a test shows it with the panic or not at all.
        contain(|| {
            let dump = self.dump();
            if !dump.tasks().is_empty() {
                eprint!("{dump}");
            }
        });
    }
}
