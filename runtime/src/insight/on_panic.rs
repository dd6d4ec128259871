//! The output of a runtime that warns when the future of a `block_on` panics: a dump of the remaining tasks.
//!
//! The future is gone then, but the tasks are not: they show what the program was doing when it failed. If there are no
//! other tasks, the panic's own message is enough. The dump is printed once per runtime, as a program may catch any
//! number of panics.

use std::thread;

use mini_context::contain;
use mini_kernel::primitives::atomic::Ordering::Relaxed;
use mini_kernel::scheduler::current;
use mini_kernel::scheduler::shared::Shared;

use super::gather::dump;
use crate::runtime::layers::Layers;

/// Prints the dump if a panic drops it in a task.
pub(crate) struct InTask;

impl Drop for InTask {
    fn drop(&mut self) {
        if thread::panicking() {
            current::with_shared(|shared| dump_on_panic(shared));
        }
    }
}

/// Prints a dump, where the program is warned on stderr and has tasks; not in the child of a fork(2), where another
/// thread of the parent may have the locks.
pub(crate) fn dump_on_panic(shared: &Shared) {
    let layers = Layers::of(shared);
    if !layers.settings.says_warnings()
        || !shared.process.is_current()
        || layers.insight.warned.has_dumped.swap(true, Relaxed)
    {
        return;
    }
    // Contained: it is called in mid-unwinding. By the macro, as a test then shows it with the panic or not at all;
    // and at once, as others want to write to stderr too.
    contain(|| {
        let dump = dump(shared);
        if !dump.tasks().is_empty() {
            let text = dump.to_string();
            eprint!("{text}");
        }
    });
}
