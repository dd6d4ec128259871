//! Accepting connections, from TCP and Unix listeners.

/// Accepting connections of the type `$connection`, which come from an `$addr`.
macro_rules! listener_methods {
    ($connection:ty, $addr:ty, $accept:ident) => {
        /// Accepts the next connection; returns it with the address of the peer.
        ///
        /// Several tasks may accept from one listener. Connections that are gone before they can be accepted, or that
        /// have a network error, are skipped.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::{TcpListener, TcpStream};
        ///
        /// let listener = TcpListener::bind("127.0.0.1:0").await?;
        /// let client = TcpStream::connect(listener.local_addr()?).await?;
        /// let (server, from) = listener.accept().await?;
        /// assert_eq!(from, client.local_addr()?);
        /// # drop(server);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of accept(2). None of them ends the listener. If there are too many open files or too
        /// little memory, the connection stays in the queue, and the next `accept` tries again at once: pause before
        /// it, or close something. `mini::net::next_connection` does that for a server; a loop of your own tests for
        /// `EMFILE` by [`raw_os_error`](io::Error::raw_os_error). Fails if it has to wait and the runtime has shut
        /// down.
        ///
        /// # Panics
        ///
        /// Panics if it has to wait outside a mini runtime, unless the listener has already joined one.
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has accepted no connection.
        #[track_caller]
        pub fn accept(&self) -> future::$accept<'_> {
            future::$accept::of(Op::new(self.source(), site!(accept, Accept), Accept(PhantomData)))
        }

        /// Polls for a connection to accept: the `poll` form of [`accept`](Self::accept).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::{TcpListener, TcpStream};
        ///
        /// let listener = TcpListener::bind("127.0.0.1:0").await?;
        /// let client = TcpStream::connect(listener.local_addr()?).await?;
        /// let (_server, from) = std::future::poll_fn(|cx| listener.poll_accept(cx)).await?;
        /// assert_eq!(from, client.local_addr()?);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`accept`](Self::accept).
        ///
        /// # Panics
        ///
        /// Same as [`accept`](Self::accept).
        #[track_caller]
        pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<($connection, $addr)>> {
            let call_site = CallSite::here(site!(poll_accept, Accept));
            self.source().poll_call(cx, &call_site, None, &mut Accept::<Self>(PhantomData))
        }

        /// Accepts a connection that is already waiting. Returns `WouldBlock` if there is none.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let listener = mini::net::TcpListener::bind("127.0.0.1:0").await?;
        /// assert_eq!(listener.try_accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of [`accept`](Self::accept), and `WouldBlock` without a payload.
        pub fn try_accept(&self) -> io::Result<($connection, $addr)> {
            self.source().try_call(Accept::<Self>(PhantomData))
        }
    };
}
pub(crate) use listener_methods;
