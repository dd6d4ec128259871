//! The errors of this crate that carry text: those of `bind` and `connect`, and that of a thread that can't be started.
//!
//! All other errors of system calls go out as they are. An `io::Error` has a number or a payload, never both, and a
//! program that tests for a number, such as `EMFILE` after an accept, looks where the standard library has it.
//!
//! Rejected: the operation and its object in every error. The number moves into the payload then.

use std::error::Error;
use std::fmt;
use std::io;

use crate::sys;

/// The operations that name their address.
pub(crate) const BIND: &str = "bind to";
pub(crate) const CONNECT: &str = "connect to";

/// The payload of an error: what failed, and the system's error as the source.
struct Failed {
    what: String,
    error: io::Error,
}

/// Names the operation and its address in an error: an argument of `map_err`, which costs nothing without an error. The
/// kind stays.
pub(crate) fn failed(operation: &'static str, address: impl fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| wrap(error.kind(), format!("failed to {operation} {address}"), error)
}

/// Wraps the error of a thread that could not be started.
///
/// The number is usually `EAGAIN`, whose kind is `WouldBlock`; a caller would wait for a wake that never comes. So the
/// kind is `ResourceBusy`.
#[doc(hidden)]
pub fn no_thread(error: io::Error) -> io::Error {
    wrap(io::ErrorKind::ResourceBusy, "failed to start a thread".to_owned(), error)
}

#[cold]
fn wrap(kind: io::ErrorKind, what: String, error: io::Error) -> io::Error {
    io::Error::new(kind, Failed { what, error })
}

/// Returns `true` if the process or the system has run out of descriptors or memory. A later try may succeed.
#[doc(hidden)]
#[cold]
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// The text of an error; if the process has too many open files, it includes the limit.
#[doc(hidden)]
#[cold]
pub fn with_limit(error: &io::Error) -> String {
    match sys::limit::open_files().filter(|_| error.raw_os_error() == Some(libc::EMFILE)) {
        Some(limit) => format!("{error}; the limit is RLIMIT_NOFILE = {limit}"),
        None => error.to_string(),
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

/// The text: a program that unwraps the error, or returns it from `main`, shows this.
impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_where_it_has_been_reached() {
        let limit = sys::limit::open_files().expect("no test has an endless number of files");
        let [full, of_the_system] = [libc::EMFILE, libc::ENFILE].map(io::Error::from_raw_os_error);
        assert_eq!(with_limit(&full), format!("{full}; the limit is RLIMIT_NOFILE = {limit}"));
        assert_eq!(with_limit(&of_the_system), of_the_system.to_string());
        assert!(is_shortage(&full) && is_shortage(&of_the_system));
        assert!(!is_shortage(&io::Error::from_raw_os_error(libc::EBADF)) && !is_shortage(&io::Error::other("x")));
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_no_wait() {
        let error = no_thread(io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().starts_with("failed to start a thread: "), "{error}");
        let source = error.get_ref().and_then(Error::source).and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::EAGAIN));
    }
}
