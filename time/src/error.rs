//! What a timer future can fail with.
//!
//! `mini::time::error` is this module.

use std::error::Error;
use std::fmt;
use std::io;

/// The time given to a [`timeout`](crate::timeout()) was over before its future was ready.
///
/// # Examples
///
/// ```
/// use mini::time::{error::Elapsed, sleep, timeout};
/// use std::time::Duration;
///
/// # mini::block_on(async {
/// # mini::time::pause();
/// let error: Elapsed = timeout(Duration::from_secs(1), sleep(Duration::from_secs(2))).await.unwrap_err();
/// assert_eq!(error.to_string(), "deadline has elapsed");
/// assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Elapsed {}

impl Elapsed {
    /// Makes an `Elapsed`, for code that has deadlines of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::time::error::Elapsed;
    ///
    /// assert_eq!(Elapsed::new().to_string(), "deadline has elapsed");
    /// ```
    pub const fn new() -> Elapsed {
        Elapsed {}
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
