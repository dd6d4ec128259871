//! Starts the runtime's own threads: a worker thread, a blocking thread, the monitor, a core of a `PerCore`.
//!
//! One function for all of them, and a boxed body: `Builder::spawn` is instantiated once, and not for each kind of
//! thread. The user's [`Hooks`] are called on threads that run the user's code, so not on the monitor.

use std::fmt;
use std::io;
use std::sync::Arc;

use mini_context::contain;

use crate::primitives::thread::{self, Builder, Thread};

/// What a thread runs.
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// What a user wants to be called on each thread.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;

/// The hooks around the life of a thread.
#[derive(Clone, Default)]
pub struct Hooks {
    pub start: Option<Hook>,
    pub stop: Option<Hook>,
    /// Before a worker waits, and after.
    pub park: Option<Hook>,
    pub unpark: Option<Hook>,
}

impl Hooks {
    /// Runs the body of a thread between the start and the stop hook.
    pub fn around<T>(&self, body: impl FnOnce() -> T) -> T {
        call(self.start.as_deref(), "on_thread_start");
        let output = body();
        call(self.stop.as_deref(), "on_thread_stop");
        output
    }

    pub(crate) fn before_park(&self) {
        call(self.park.as_deref(), "on_thread_park");
    }

    pub(crate) fn after_park(&self) {
        call(self.unpark.as_deref(), "on_thread_unpark");
    }
}

/// The names of a runtime's threads.
#[derive(Clone)]
pub enum Names {
    /// All begin with this; what follows says what a thread is.
    Prefix(String),
    /// This function gives the name of each thread.
    Each(Arc<dyn Fn() -> String + Send + Sync>),
}

impl Names {
    /// The name of a thread: the prefix and `suffix`, or what the function says.
    pub fn of(&self, suffix: fmt::Arguments<'_>) -> String {
        match self {
            Self::Prefix(prefix) => format!("{prefix}{suffix}"),
            // The system takes no NUL, and this is no place for an error.
            Self::Each(name) => contain(|| name()).map_or_else(|| "mini".to_owned(), |name| name.replace('\0', "?")),
        }
    }

    /// The names of a part of the runtime.
    pub fn of_part(&self, suffix: fmt::Arguments<'_>) -> Self {
        match self {
            Self::Prefix(prefix) => Self::Prefix(format!("{prefix}{suffix}")),
            Self::Each(name) => Self::Each(name.clone()),
        }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Each(_) => f.write_str("(a function)"),
        }
    }
}

/// Calls a hook, whose panic must not take the thread along.
pub fn call(hook: Option<impl Fn()>, name: &str) {
    if let Some(hook) = hook
        && contain(hook).is_none()
    {
        say!("{name} panicked on thread {:?}, which continues", thread::current().name().unwrap_or("unnamed"));
    }
}

/// Starts a thread, which goes on by itself.
pub fn start(name: String, stack_size: Option<usize>, body: Body) -> io::Result<Thread> {
    let mut builder = Builder::new().name(name);
    if let Some(size) = stack_size {
        builder = builder.stack_size(size);
    }
    Ok(builder.spawn(body)?.thread().clone())
}

/// Ends a process that a task or job has forked on a thread of the runtime, and has not ended itself.
#[cold]
pub(crate) fn end_child() -> ! {
    say!("returning from a task or job: {}", mini_net::Process::REFUSAL);
    std::process::abort()
}
