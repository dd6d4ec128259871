//! Ending a connection, on everything that is connected to one peer.

/// Ending a connection.
macro_rules! connection_methods {
    () => {
        /// Shuts down reading, writing or both, at once.
        ///
        /// After `Write`, the peer reads what was written and then the end of the stream. A second `Write` does
        /// nothing.
        ///
        /// The socket remembers only calls of this method. If writing was shut down on a duplicate of the descriptor,
        /// or before [`from_std`](Self::from_std), `Write` shuts down reading too on FreeBSD and NetBSD.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use std::net::Shutdown;
        ///
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.shutdown(Shutdown::Write)?;
        /// assert_eq!(b.read(&mut [0; 4]).await?, 0);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of shutdown(2): `NotConnected` if the peer is gone.
        pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
            self.source().shutdown(how)
        }
    };
}
pub(crate) use connection_methods;
