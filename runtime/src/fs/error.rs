//! `PathError`: what an `io::Error` of a file operation carries.
//!
//! Made in one place, `wrap`, by `operation` and `file`.
//!
//! Rejected: the path in the text alone. The number of the operating system would be lost: an `io::Error` has either a
//! number or a payload.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The payload of the errors of [`fs`](crate::fs): operation, path, and what the operating system said.
///
/// An [`io::Error`] that has a text has no [`raw_os_error`](io::Error::raw_os_error) of its own. It is here.
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// use mini::fs::PathError;
///
/// let error = mini::fs::read("/no/such/file").await.unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "failed to read `/no/such/file`: No such file or directory (os error 2)");
///
/// let details = PathError::of(&error).unwrap();
/// assert_eq!(details.raw_os_error(), Some(2)); // ENOENT
/// assert_eq!(details.path().to_str(), Some("/no/such/file"));
/// # });
/// ```
#[derive(Debug)]
pub struct PathError {
    operation: &'static str,
    path: PathBuf,
    to: Option<PathBuf>,
    error: io::Error,
}

impl PathError {
    /// The details of `error`, if it comes from [`fs`](crate::fs).
    ///
    /// # Examples
    ///
    /// See [`PathError`].
    pub fn of(error: &io::Error) -> Option<&PathError> {
        error.get_ref()?.downcast_ref()
    }

    /// What failed, as it stands in the text: "open", "create the directory".
    pub fn operation(&self) -> &str {
        self.operation
    }

    /// The path, as it was given; the first one if there were two. Empty for a file that came without one
    /// ([`File::from_std`](crate::fs::File::from_std)).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error without the words around it.
    pub fn io_error(&self) -> &io::Error {
        &self.error
    }

    /// The number of the operating system (errno(3)), if it was the one who refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.error.raw_os_error()
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.operation)?;
        if !self.path.as_os_str().is_empty() {
            write!(f, " `{}`", self.path.display())?;
        }
        if let Some(to) = &self.to {
            write!(f, " to `{}`", to.display())?;
        }
        write!(f, ": {}", self.error)
    }
}

impl Error for PathError {
    /// The text has the cause in it already, so this is what comes behind the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// `error` with what it was about.
#[cold]
pub(super) fn wrap(operation: &'static str, path: &Path, to: Option<&Path>, error: io::Error) -> io::Error {
    let (path, to) = (path.to_owned(), to.map(Path::to_owned));
    io::Error::new(error.kind(), PathError { operation, path, to, error })
}
