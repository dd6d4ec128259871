//! The signal that Linux does not have.

use super::SignalKind;

impl SignalKind {
    /// SIGINFO: Ctrl-T, the question how far the program is. By default nothing happens.
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
