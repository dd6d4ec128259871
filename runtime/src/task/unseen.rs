//! The text of an error that a task ended with and that would be unseen, as its handle was dropped.
//!
//! A task's output may be of any type. The kernel finds out whether it is an `Err`; here the error types that most
//! tasks end with are tried one by one, to print the content of the error.
//!
//! Rejected: a bound on the output (most tasks give something else); a `spawn` of its own for tasks that may fail (a
//! user who forgets to look at an error forgets that too).

use std::any::{self, Any, type_name};
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::Location;

use mini_kernel::task::is_err;

use super::group::GroupError;
use super::{Cancelled, Id, Source};

/// An error that a task ended with, whose [`JoinHandle`](super::JoinHandle) was dropped; see
/// [`on_task_error`](crate::runtime::Builder::on_task_error).
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// let (sender, receiver) = mpsc::channel();
/// let runtime = mini::runtime::Builder::new_current_thread()
///     .on_task_error(move |error| sender.send((error.location().line(), error.to_string())).unwrap())
///     .build()?;
/// runtime.block_on(async {
///     drop(mini::spawn(async { std::fs::read("/no such file").map(drop) }));
///     mini::task::yield_now().await;
/// });
/// let (line, text) = receiver.recv().unwrap();
/// assert!(line > 1 && text.contains("ended with an error: No such file or directory"), "{text}");
/// # std::io::Result::Ok(())
/// ```
pub struct TaskError {
    source: Source,
    /// The group of the task, as messages name it.
    group: Option<String>,
    text: String,
}

impl TaskError {
    #[cold]
    pub(crate) fn new(source: Source, text: String) -> Self {
        Self { source, group: None, text }
    }

    /// Of a task in a group, which can tell more.
    pub(crate) fn known_to_group(self, known: GroupError) -> Self {
        Self { source: self.source, group: Some(known.group), text: known.text }
    }

    pub(crate) fn is_of_group(&self) -> bool {
        self.group.is_some()
    }

    /// Returns the id of the task.
    ///
    /// # Examples
    ///
    /// See [`TaskError`].
    pub fn id(&self) -> Id {
        self.source.id
    }

    /// Returns the name of the task, if it was given one by a [`Builder`](super::Builder).
    ///
    /// # Examples
    ///
    /// See [`TaskError`].
    pub fn name(&self) -> Option<&str> {
        self.source.name.as_deref()
    }

    /// Returns the line that spawned the task.
    ///
    /// # Examples
    ///
    /// See [`TaskError`].
    pub fn location(&self) -> &'static Location<'static> {
        self.source.location
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(group) = &self.group {
            write!(f, ", of the group {group},")?;
        }
        write!(f, " ended with an error: {}", self.text)
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskError({self})")
    }
}

impl Error for TaskError {}

/// The text of the error that `output` is, or `None` if it is no error.
#[inline]
pub(super) fn error_in<T: 'static>(output: &T) -> Option<String> {
    if is_err(output) { describe(type_name::<T>(), output) } else { None }
}

/// The text of an `Err` of the type of that name; none if a cancellation is all that it says.
pub(crate) fn describe(type_name: &str, output: &dyn Any) -> Option<String> {
    if type_name.ends_with(&format!(", {}>", any::type_name::<Cancelled>())) {
        return None; // it did as it was asked
    }
    fn known<E: fmt::Display + 'static>(error: &E) -> Option<String> {
        (!Cancelled::is_all_of(error)).then(|| text_of(error))
    }
    if let Some(Err(error)) = output.downcast_ref::<io::Result<()>>() {
        return known(error);
    }
    if let Some(Err(error)) = output.downcast_ref::<Result<(), Box<dyn Error + Send + Sync>>>() {
        return known(error);
    }
    if let Some(Err(error)) = output.downcast_ref::<Result<(), Box<dyn Error>>>() {
        return known(error);
    }
    if let Some(Err(error)) = output.downcast_ref::<Result<(), String>>() {
        return known(error);
    }
    if let Some(Err(error)) = output.downcast_ref::<Result<(), &'static str>>() {
        return known(error);
    }
    // By the name that users know.
    Some(format!("an `Err` of a {}", type_name.replace("mini_kernel::task::error::", "mini::task::")))
}

/// What an error says, with its causes: those that its type is known to have, or shows where it is asked for more
/// (`{:#}`), as `anyhow::Error` does.
pub(super) fn text_of<E: fmt::Display + 'static>(error: &E) -> String {
    match as_error(error) {
        Some(error) => with_causes(error, ": "),
        None => format!("{error:#}"),
    }
}

fn as_error(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error);
    }
    if let Some(error) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
        return Some(&**error);
    }
    if let Some(error) = error.downcast_ref::<Box<dyn Error + Send>>() {
        return Some(&**error);
    }
    error.downcast_ref::<Box<dyn Error>>().map(|error| &**error)
}

/// The error, and each cause after a `separator`, unless the text before ends with it.
pub(crate) fn with_causes(error: &(dyn Error + 'static), separator: &str) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let line = error.to_string();
        if !text.ends_with(&line) {
            text.push_str(separator);
            text.push_str(&line);
        }
        cause = error.source();
    }
    text
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_err_is_found_in_outputs_of_any_type() {
        let kind = io::ErrorKind::BrokenPipe;
        assert_eq!(error_in(&io::Result::<()>::Err(kind.into())).as_deref(), Some("broken pipe"));
        assert_eq!(error_in(&Result::<(), Box<dyn Error + Send + Sync>>::Err("no".into())).as_deref(), Some("no"));
        assert_eq!(error_in(&Result::<(), Box<dyn Error>>::Err("no".into())).as_deref(), Some("no"));
        assert_eq!(error_in(&Result::<(), String>::Err("no".into())).as_deref(), Some("no"));
        let text = error_in(&Result::<u8, u64>::Err(7)).unwrap();
        assert_eq!(text, "an `Err` of a core::result::Result<u8, u64>");
        // Types without room for a tag, where the variant stands in the value.
        assert!(error_in(&Result::<Box<u8>, ()>::Err(())).is_some());
        assert!(error_in(&Result::<(), Box<u8>>::Err(Box::new(7))).is_some());
        assert!(error_in(&Result::<std::convert::Infallible, u8>::Err(7)).is_some());
    }

    #[test]
    fn a_known_error_is_told_with_its_causes() {
        #[derive(Debug)]
        struct Loading(io::Error);
        impl fmt::Display for Loading {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("loading")
            }
        }
        impl Error for Loading {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = || Loading(io::Error::other("no disk"));
        let texts = [
            error_in(&io::Result::<()>::Err(io::Error::other(error()))),
            error_in(&Result::<(), Box<dyn Error + Send + Sync>>::Err(error().into())),
            error_in(&Result::<(), Box<dyn Error>>::Err(error().into())),
        ];
        assert_eq!(texts.each_ref().map(Option::as_deref), [Some("loading: no disk"); 3]);
    }

    #[test]
    fn a_cancellation_is_no_error() {
        let token = crate::task::CancelToken::new();
        token.cancel(crate::task::Reason::Requested);
        let why = token.why().unwrap();
        assert_eq!(error_in(&Result::<u8, Cancelled>::Err(why)), None);
        assert_eq!(error_in(&io::Result::<()>::Err(io::Error::other(why))), None);
        assert_eq!(error_in(&Result::<(), Box<dyn Error + Send + Sync>>::Err(why.into())), None);
        assert_eq!(error_in(&Result::<(), Box<dyn Error>>::Err(why.into())), None);
        assert_eq!(error_in(&io::Result::<()>::Err(io::Error::other("cancelled"))).as_deref(), Some("cancelled"));
    }

    #[test]
    fn nothing_else_is_an_error() {
        assert_eq!(error_in(&io::Result::Ok(7)), None);
        assert_eq!(error_in(&Result::<Box<u8>, ()>::Ok(Box::new(7))), None);
        assert_eq!(error_in(&Result::<u8, std::convert::Infallible>::Ok(7)), None);
        assert_eq!(error_in(&()), None);
        assert_eq!(error_in(&None::<u8>), None);
        assert_eq!(error_in(&Some(7)), None);
        assert_eq!(error_in(&[io::Result::<()>::Ok(())]), None);
    }
}
