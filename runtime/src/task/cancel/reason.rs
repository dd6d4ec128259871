//! Why something was cancelled: [`Reason`], and [`Cancelled`], which has the source line too.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::Location;

/// Why a [`CancelToken`](super::CancelToken) was cancelled.
///
/// # Examples
///
/// ```
/// use mini::task::{CancelToken, Reason};
///
/// let token = CancelToken::new();
/// token.cancel(Reason::Deadline);
/// assert_eq!(token.reason(), Some(Reason::Deadline));
/// assert_eq!(Reason::Deadline.to_string(), "deadline passed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The program asked for it.
    Requested,
    /// It took too long.
    Deadline,
    /// The owner of the token shuts down: a group, or the program at the end of `main`.
    Shutdown,
    /// The owner of the token is gone, such as a group whose last handle was dropped.
    ParentGone,
    /// Another task of the same group has failed. mini itself never cancels a token for this reason: a program passes
    /// it to [`drop_guard`](super::CancelToken::drop_guard) or [`cancel`](super::CancelToken::cancel), so that the
    /// first error ends the other tasks.
    SiblingFailed,
    /// A signal asked the program to end.
    Signal,
}

/// The cancellation of a [`CancelToken`](super::CancelToken): its reason and its line.
///
/// # Examples
///
/// ```
/// use mini::task::{CancelToken, Reason};
///
/// let token = CancelToken::new();
/// token.cancel(Reason::Requested);
/// let why = token.why().expect("it is cancelled");
/// assert_eq!(why.reason(), Reason::Requested);
/// assert_eq!(why.to_string(), format!("requested at {}", why.location()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cancelled {
    reason: Reason,
    location: &'static Location<'static>,
}

impl Cancelled {
    pub(in crate::task) fn new(reason: Reason, location: &'static Location<'static>) -> Self {
        Self { reason, location }
    }

    /// Whether an error says no more than that something was cancelled as it was asked to: then it is no failure.
    pub(in crate::task) fn is_all_of(error: &dyn Any) -> bool {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.get_ref().is_some_and(|inner| inner.is::<Self>());
        }
        if let Some(error) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
            return error.is::<Self>();
        }
        error.is::<Self>() || error.downcast_ref::<Box<dyn Error>>().is_some_and(|error| error.is::<Self>())
    }

    /// Returns the reason.
    ///
    /// # Examples
    ///
    /// See [`Cancelled`].
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the line that cancelled the token, or the token that this one descends from.
    ///
    /// # Examples
    ///
    /// See [`Cancelled`].
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl From<Cancelled> for io::Error {
    /// An error of the kind [`Interrupted`](io::ErrorKind::Interrupted) would be tried again, so it is `Other`.
    fn from(cancelled: Cancelled) -> Self {
        Self::other(cancelled)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "requested",
            Self::Deadline => "deadline passed",
            Self::Shutdown => "shutdown",
            Self::ParentGone => "parent gone",
            Self::SiblingFailed => "sibling failed",
            Self::Signal => "signal",
        })
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.reason, self.location)
    }
}

impl Error for Cancelled {}
