//! `Outcome`: which outputs of a group's task mean that it has failed, and what the report then says.
//!
//! A trait, not a guess by the name of the type as in `task/unseen.rs`: only a bound gives the text of an error of any
//! type. Outputs without such a text go through `spawn_any`, which guesses.
//!
//! Rejected: a trait that users implement. The type of a `loop` without an end can be named in a roundabout way only,
//! and the compiler then applies every other implementation to that type too. Such loops are more common than outputs
//! of a group's task that are neither `()` nor a `Result`.

use std::convert::Infallible;
use std::fmt;
use std::process::ExitStatus;

use super::super::Cancelled;
use super::super::unseen::text_of;

/// The output of a task in a [`Group`](super::Group), which says whether the task has failed.
///
/// Implemented for `()`, for a `Result` whose error can be displayed, for the exit status of a process, and for what
/// never returns. A [`Cancelled`] is no failure, also as the whole content of an [`std::io::Error`] or of a boxed
/// error: the task did as it was asked. No other crate can implement it; tasks with other outputs are started by
/// [`spawn_any`](super::Group::spawn_any).
///
/// The text of an [`std::io::Error`] or of a boxed error has its causes, after colons. Other errors are displayed by
/// `{:#}`, where `anyhow::Error` shows its causes too.
///
/// # Examples
///
/// ```
/// use mini::task::Outcome;
///
/// assert_eq!(Err::<(), _>("no space left").failure().as_deref(), Some("no space left"));
/// assert_eq!(Ok::<_, String>(7).failure(), None);
///
/// let token = mini::task::CancelToken::new();
/// token.cancel(mini::task::Reason::Requested);
/// assert_eq!(Err::<(), _>(token.why().unwrap()).failure(), None);
/// ```
#[diagnostic::on_unimplemented(
    message = "a group cannot tell from `{Self}` whether its task has failed",
    note = "let the task return `()` or a `Result` whose error implements `Display`, or start it with `spawn_any`"
)]
pub trait Outcome: Sealed {
    /// What has failed; `None` if nothing has.
    ///
    /// # Examples
    ///
    /// See [`Outcome`].
    fn failure(&self) -> Option<String>;
}

/// Implemented for the types that [`Outcome`] is.
pub trait Sealed {}

impl Sealed for () {}
impl<T, E> Sealed for Result<T, E> {}
impl Sealed for ExitStatus {}
impl Sealed for Infallible {}
impl Sealed for <fn() -> ! as Returns>::Output {}

impl Outcome for () {
    fn failure(&self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Display + 'static> Outcome for Result<T, E> {
    fn failure(&self) -> Option<String> {
        self.as_ref().err().filter(|error| !Cancelled::is_all_of(*error)).map(text_of)
    }
}

impl Outcome for ExitStatus {
    fn failure(&self) -> Option<String> {
        (!self.success()).then(|| self.to_string())
    }
}

impl Outcome for Infallible {
    fn failure(&self) -> Option<String> {
        match *self {}
    }
}

/// Names the type that a `loop` without an end has, which cannot be written yet.
pub trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

impl Outcome for <fn() -> ! as Returns>::Output {
    fn failure(&self) -> Option<String> {
        *self
    }
}
