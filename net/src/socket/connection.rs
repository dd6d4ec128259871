//! Ending a connection, on everything that is connected to one peer.

/// Ending a connection.
macro_rules! connection_methods {
    () => {
        /// Closes one direction, or both, at once.
        ///
        /// With `Write` the peer reads the end of the stream after what was written. A further `Write` does nothing.
        ///
        /// The socket remembers only its own calls, not those on a duplicate of the descriptor or before
        /// [`from_std`](Self::from_std). If one of those has ended the writing, `Write` ends the reading too on FreeBSD
        /// and NetBSD.
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
        /// Those of shutdown(2): `NotConnected` if the peer is gone.
        pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
            self.source().shutdown(how)
        }
    };
}
pub(crate) use connection_methods;
