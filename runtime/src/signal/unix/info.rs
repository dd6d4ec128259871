//! The signal that Linux does not have.

use super::SignalKind;

impl SignalKind {
    /// Returns SIGINFO: Ctrl-T, a request for the program's progress. By default nothing happens.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut signals = mini::signal::unix::signal(mini::signal::unix::SignalKind::info())?;
    /// # std::io::Result::Ok(())
    /// ```
    pub const fn info() -> Self {
        Self(libc::SIGINFO)
    }
}
