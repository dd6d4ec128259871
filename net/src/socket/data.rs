//! Readiness, and operations of the user's own, on every socket that carries data.
//!
//! The operations of the neighbouring files are these methods with the call filled in.

/// Readiness, and operations of the user's own, for a type whose addresses are `$addr`.
macro_rules! data_methods {
    ($addr:ty) => {
        /// Returns the address of the peer.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::{TcpListener, TcpStream};
        ///
        /// let listener = TcpListener::bind("127.0.0.1:0").await?;
        /// let stream = TcpStream::connect(listener.local_addr()?).await?;
        /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of getpeername(2): the socket is not, or no longer, connected.
        pub fn peer_addr(&self) -> io::Result<$addr> {
            <Self as Kind>::addr(sys::socket::peer_addr(self.as_fd())?)
        }

        /// Waits until a read will probably not block: it would return data, the end or an error.
        ///
        /// The answer can be wrong if another task reads too, or if the kernel drops a bad datagram. So try the read,
        /// and wait again on `WouldBlock`.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::net::UnixStream;
        ///
        /// let (a, b) = UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let mut buf = [0; 16];
        /// let received = loop {
        ///     b.readable().await?;
        ///     match b.try_read(&mut buf) {
        ///         Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
        ///         result => break result?,
        ///     }
        /// };
        /// assert_eq!(&buf[..received], b"ping");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Fails if the runtime has shut down, or the kernel refuses to watch the socket.
        ///
        /// # Panics
        ///
        /// Panics outside a mini runtime, unless the socket has already joined one.
        ///
        /// # Cancel safety
        ///
        /// Safe: nothing is lost.
        #[track_caller]
        pub fn readable(&self) -> future::Readable<'_> {
            future::Readable::of(Readiness::new(self.source(), site!(readable, Ready), Interest::READABLE))
        }

        /// Waits until a write will probably not block. The answer can be wrong; see [`readable`](Self::readable).
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// a.writable().await?;
        /// assert_eq!(a.try_write(b"ping")?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Panics
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Cancel safety
        ///
        /// Safe: nothing is lost.
        #[track_caller]
        pub fn writable(&self) -> future::Writable<'_> {
            future::Writable::of(Readiness::new(self.source(), site!(writable, Ready), Interest::WRITABLE))
        }

        /// Waits until any part of `interest` is ready, and returns what is ready. See also
        /// [`readable`](Self::readable).
        ///
        /// A direction stays ready until an operation on it returns `WouldBlock`. For `ERROR` and `PRIORITY` the only
        /// such operation is [`try_io`](Self::try_io): for an error, call it with `Interest::ERROR` and a closure that
        /// returns `WouldBlock` once the error is taken. Otherwise each later wait for it ends at once.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use mini::io::Interest;
        /// use mini::net::UnixStream;
        ///
        /// let (a, _b) = UnixStream::pair()?;
        /// let ready = a.ready(Interest::READABLE | Interest::WRITABLE).await?;
        /// assert!(ready.is_writable() && !ready.is_readable());
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Panics
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Cancel safety
        ///
        /// Safe: nothing is lost.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> future::WaitReady<'_> {
            future::WaitReady::of(Readiness::new(self.source(), site!(ready, Ready), interest))
        }

        /// Polls for readiness to read: the `poll` form of [`readable`](Self::readable).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// std::future::poll_fn(|cx| b.poll_read_ready(cx)).await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Panics
        ///
        /// Same as [`readable`](Self::readable).
        #[track_caller]
        pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let call_site = CallSite::here(site!(poll_read_ready, Ready));
            self.source().poll_ready(cx, &call_site, Interest::READABLE, None).map_ok(drop)
        }

        /// Polls for readiness to write: the `poll` form of [`writable`](Self::writable).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// std::future::poll_fn(|cx| a.poll_write_ready(cx)).await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Panics
        ///
        /// Same as [`readable`](Self::readable).
        #[track_caller]
        pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let call_site = CallSite::here(site!(poll_write_ready, Ready));
            self.source().poll_ready(cx, &call_site, Interest::WRITABLE, None).map_ok(drop)
        }

        /// Reads what has arrived without removing it. Returns the number of bytes, at most the length of `buf`.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.peek(&mut buf).await?, 4);
        /// assert_eq!(b.read(&mut buf).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2), and those of [`readable`](Self::readable) if it has to wait.
        ///
        /// # Panics
        ///
        /// If it has to wait, panics in the same cases as [`readable`](Self::readable).
        ///
        /// # Cancel safety
        ///
        /// Safe: it removes no byte.
        #[track_caller]
        pub fn peek<'a>(&'a self, buf: &'a mut [u8]) -> future::Peek<'a> {
            future::Peek::of(Op::new(self.source(), site!(peek, Read), Peek(buf)))
        }

        /// Polls to peek at what has arrived: the `poll` form of [`peek`](Self::peek).
        ///
        /// Only the task that polled [last](Self#polling) is woken.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let mut buf = [0; 2];
        /// assert_eq!(std::future::poll_fn(|cx| b.poll_peek(cx, &mut buf)).await?, 2);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`peek`](Self::peek).
        ///
        /// # Panics
        ///
        /// Same as [`peek`](Self::peek).
        #[track_caller]
        pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            let call_site = CallSite::here(site!(poll_peek, Read));
            self.source().poll_call(cx, &call_site, None, &mut Peek(buf))
        }

        /// Peeks once, without waiting, like [`peek`](Self::peek). Returns `WouldBlock` if nothing has arrived.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.try_write(b"ping")?;
        /// assert_eq!(b.try_peek(&mut [0; 16])?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2).
        pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
            self.source().try_call(Peek(buf))
        }

        /// Runs `f` once: a system call on this socket that the crate has no method for.
        ///
        /// `f` may return `WouldBlock` only if the socket did; it clears the readiness. For an `interest` in both
        /// directions, see [`async_io`](Self::async_io).
        ///
        /// # Examples
        ///
        /// ```
        /// use std::io::{ErrorKind, Read};
        /// use std::os::fd::AsFd;
        /// use mini::io::Interest;
        /// use mini::net::UnixStream;
        ///
        /// let (a, _b) = UnixStream::pair()?;
        /// let mut file = std::fs::File::from(a.as_fd().try_clone_to_owned()?);
        /// let result = a.try_io(Interest::READABLE, || file.read(&mut [0; 8]));
        /// assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of `f`.
        pub fn try_io<R>(&self, interest: Interest, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.source().try_op(interest, |_| Ok((f()?, Left::Perhaps)))
        }

        /// Runs `f` until it returns something other than `WouldBlock`, waiting for `interest` in between.
        ///
        /// `f` may return `WouldBlock` only if the socket did.
        ///
        /// With both directions in `interest`, a `WouldBlock` of `f` clears the readiness of both, even if another task
        /// is waiting for one of them: that task then waits for the next event. So name both only if no other task
        /// reads or writes.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use std::io::Read;
        /// use std::os::fd::AsFd;
        /// use mini::io::Interest;
        /// use mini::net::UnixStream;
        ///
        /// let (a, b) = UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let mut file = std::fs::File::from(b.as_fd().try_clone_to_owned()?);
        /// let mut buf = [0; 8];
        /// let received = b.async_io(Interest::READABLE, || file.read(&mut buf)).await?;
        /// assert_eq!(received, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of `f` and of [`readable`](Self::readable).
        ///
        /// # Panics
        ///
        /// Same as [`readable`](Self::readable).
        ///
        /// # Cancel safety
        ///
        /// Safe: before the future is ready, `f` has done nothing but report `WouldBlock`.
        #[track_caller]
        pub fn async_io<R, F>(&self, interest: Interest, f: F) -> future::AsyncIo<'_, F>
        where
            F: FnMut() -> io::Result<R>,
        {
            future::AsyncIo(Op::new(self.source(), site!(async_io, Ready), Custom { interest, f }))
        }
    };
}
pub(crate) use data_methods;
