//! How the runtime starts a thread of its own: a keeper, a blocking thread, the watch.
//!
//! One function for all of them, and a boxed body: `Builder::spawn` is instantiated once, and not for each kind of thread.

use std::io;
use std::thread::{Builder, Thread};

/// What a thread runs.
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// Starts a thread, which goes on by itself.
pub(crate) fn start(name: String, stack_size: Option<usize>, body: Body) -> io::Result<Thread> {
    let mut builder = Builder::new().name(name);
    if let Some(size) = stack_size {
        builder = builder.stack_size(size);
    }
    Ok(builder.spawn(body)?.thread().clone())
}
