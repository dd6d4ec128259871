//! `JoinError`: the reason why a task has no output.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;

use super::id::Id;
use crate::primitives::{Mutex, lock};

/// The error of a task without an output: it was cancelled, or it panicked.
///
/// A blocking job for which the system had no thread counts as cancelled; the text gives this reason.
///
/// # Examples
///
/// ```
/// mini::block_on(async {
///     let task = mini::spawn(std::future::pending::<()>());
///     let id = task.id();
///     task.abort();
///     let error = task.await.unwrap_err();
///     assert!(error.is_cancelled() && !error.is_panic());
///     assert_eq!((error.id(), error.name()), (id, None));
///     assert!(error.location().file().ends_with(".rs"));
/// });
/// ```
pub struct JoinError(Box<Inner>); // boxed, so that a task's output slot grows by one pointer only

struct Inner {
    source: Source,
    cause: Cause,
}

/// The task that an error is about.
#[derive(Clone, Debug)]
pub struct Source {
    pub id: Id,
    pub location: &'static Location<'static>,
    pub name: Option<Arc<str>>,
}

enum Cause {
    /// With the number of the system's error if there was no thread for it.
    Cancelled(Option<i32>),
    // The mutex makes the payload `Sync`; it is locked to print the message, and never elsewhere.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

thread_local! {
    /// Why the next task is cancelled on this thread.
    static REFUSAL: Cell<Option<i32>> = const { Cell::new(None) };
}

/// Calls `discard`, which discards a task, and makes its error say that no thread could be started.
pub(crate) fn because(refusal: &io::Error, discard: impl FnOnce()) {
    REFUSAL.set(refusal.raw_os_error());
    discard();
    REFUSAL.set(None); // it had been cancelled before, or was no task
}

impl JoinError {
    #[cold]
    pub(crate) fn cancelled(source: Source) -> Self {
        Self(Box::new(Inner { source, cause: Cause::Cancelled(REFUSAL.take()) }))
    }

    /// Returns the system's error for the thread that the task needed.
    #[doc(hidden)]
    pub fn refusal(&self) -> Option<io::Error> {
        match self.0.cause {
            Cause::Cancelled(refusal) => refusal.map(io::Error::from_raw_os_error).map(mini_net::no_thread),
            Cause::Panicked(_) => None,
        }
    }

    #[cold]
    pub(crate) fn panicked(source: Source, payload: Box<dyn Any + Send>) -> Self {
        Self(Box::new(Inner { source, cause: Cause::Panicked(Mutex::new(payload)) }))
    }

    /// Returns `true` if the task was cancelled: aborted, dropped with its runtime, or a blocking job that got no
    /// thread.
    ///
    /// # Examples
    ///
    /// See [`JoinError`].
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.cause, Cause::Cancelled(_))
    }

    /// Returns `true` if the task panicked, in its future or in that future's destructor.
    ///
    /// # Examples
    ///
    /// See [`JoinError`].
    pub fn is_panic(&self) -> bool {
        !self.is_cancelled()
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// See [`JoinError`].
    pub fn id(&self) -> Id {
        self.0.source.id
    }

    /// Returns the name of the task, if it was given one by a `mini::task::Builder`.
    ///
    /// # Examples
    ///
    /// See `mini::task::Builder`.
    pub fn name(&self) -> Option<&str> {
        self.0.source.name.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`JoinError`].
    pub fn location(&self) -> &'static Location<'static> {
        self.0.source.location
    }

    /// Returns the payload of the panic, to inspect or to resume.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let error = mini::spawn(async { panic!("no") }).await.unwrap_err();
    ///     assert_eq!(*error.into_panic().downcast_ref::<&str>().unwrap(), "no");
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If the task was cancelled; see [`try_into_panic`](Self::try_into_panic).
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("into_panic: {error}"),
        }
    }

    /// Returns the payload of the panic.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::block_on(async {
    ///     let error = mini::spawn(async { panic!("no") }).await.unwrap_err();
    ///     let payload = error.try_into_panic().expect("it was not cancelled");
    ///     assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "no");
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the error back if the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match self.0.cause {
            Cause::Cancelled(_) => Err(self),
            Cause::Panicked(payload) => Ok(payload.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.0.source)?;
        match &self.0.cause {
            Cause::Cancelled(None) => write!(f, "was cancelled"),
            Cause::Cancelled(Some(code)) => {
                write!(
                    f,
                    "was cancelled, as no thread could be started for it: {}",
                    io::Error::from_raw_os_error(*code)
                )
            }
            Cause::Panicked(payload) => {
                let text = message(&**lock(payload)).to_owned(); // the writer, a user's, may print this error too
                write!(f, "panicked: {text}")
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} ", self.id)?;
        if let Some(name) = &self.name {
            write!(f, "{name:?} ")?;
        }
        write!(f, "spawned at {}", self.location)
    }
}

/// The message of a panic, if its payload is text.
pub fn message(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<&str>() {
        Some(text) => text,
        None => payload.downcast_ref::<String>().map_or("(a payload that is no text)", String::as_str),
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(error)
    }
}
