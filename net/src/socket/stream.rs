//! Reading and writing bytes, on TCP and Unix streams.

/// Reading and writing.
macro_rules! stream_methods {
    () => {
        /// Reads what has arrived into the front of `buf`.
        ///
        /// Returns the number of bytes, `0..=buf.len()`. If `buf` is not empty, 0 is the end of the stream (RFC 9293,
        /// section 3.6; read(2)). There is no time limit.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let mut buf = [0; 16];
        /// assert_eq!(b.read(&mut buf).await?, 4);
        /// assert_eq!(&buf[..4], b"ping");
        /// drop(a);
        /// assert_eq!(b.read(&mut buf).await?, 0);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2); `WouldBlock` and `Interrupted` are handled and never returned. Fails if it
        /// has to wait and the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Panics if it has to wait outside a mini runtime, unless the socket has already joined one.
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has taken no byte.
        #[track_caller]
        pub fn read<'a>(&'a self, buf: &'a mut [u8]) -> future::Read<'a> {
            future::Read::of(Op::new(self.source(), site!(read, Read), Recv(buf)))
        }

        /// Reads like [`read`](Self::read) into several buffers, filling each before the next. At most 1024 of them are
        /// used.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use std::io::IoSliceMut;
        ///
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// let (mut first, mut second) = ([0; 3], [0; 3]);
        /// let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        /// assert_eq!(b.read_vectored(&mut bufs).await?, 4);
        /// assert_eq!((&first, &second), (b"pin", b"g\0\0"));
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has taken no byte.
        #[track_caller]
        pub fn read_vectored<'a, 'b>(&'a self, bufs: &'a mut [IoSliceMut<'b>]) -> future::ReadVectored<'a, 'b> {
            future::ReadVectored::of(Op::new(self.source(), site!(read_vectored, Read), RecvVectored(bufs)))
        }

        /// Reads until `buf` is full.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// a.write_all(b"pong").await?;
        /// let mut buf = [0; 8];
        /// b.read_exact(&mut buf).await?;
        /// assert_eq!(&buf, b"pingpong");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns `UnexpectedEof` if the stream ends first, and otherwise the errors of [`read`](Self::read). After an
        /// error, the number of bytes read is unknown.
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Loses the number of bytes read: they are in the front of `buf`, and no longer in the socket.
        #[track_caller]
        pub fn read_exact<'a>(&'a self, buf: &'a mut [u8]) -> ReadExact<'a> {
            ReadExact::new(self.source(), site!(read_exact, Read), buf)
        }

        /// Reads to the end of the stream, and appends what it reads to `buf`.
        ///
        /// Returns the number of bytes read. There is no limit: a peer that never stops sending fills the memory.
        /// Unlike the method of the same name in `AsyncReadExt` of futures-io, it does not zero the room that it reads
        /// into.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// drop(a);
        /// let mut buf = b"read: ".to_vec();
        /// assert_eq!(b.read_to_end(&mut buf).await?, 4);
        /// assert_eq!(buf, b"read: ping");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of [`read`](Self::read). The bytes that were read before are in `buf`.
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Safe: the bytes that were read are in `buf`.
        #[track_caller]
        pub fn read_to_end<'a>(&'a self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a> {
            ReadToEnd::new(self.source(), site!(read_to_end, Read), buf)
        }

        /// Writes as much of the front of `buf` as there is room for.
        ///
        /// Returns the number of bytes that the kernel took, `0..=buf.len()`. If the peer is gone, the error is
        /// `BrokenPipe` or `ConnectionReset`, never a signal.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// assert_eq!(a.write(b"ping").await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of send(2); `WouldBlock` and `Interrupted` are handled and never returned. Fails if it
        /// has to wait and the runtime has shut down.
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has written no byte.
        #[track_caller]
        pub fn write<'a>(&'a self, buf: &'a [u8]) -> future::Write<'a> {
            future::Write::of(Op::new(self.source(), site!(write, Write), SendCall(buf)))
        }

        /// Writes like [`write`](Self::write) from several buffers, in order. At most 1024 of them are used.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// use std::io::IoSlice;
        ///
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// let bufs = [IoSlice::new(b"pi"), IoSlice::new(b"ng")];
        /// assert_eq!(a.write_vectored(&bufs).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Same as [`write`](Self::write).
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Safe: a future dropped before it is ready has written no byte.
        #[track_caller]
        pub fn write_vectored<'a, 'b>(&'a self, bufs: &'a [IoSlice<'b>]) -> future::WriteVectored<'a, 'b> {
            future::WriteVectored::of(Op::new(self.source(), site!(write_vectored, Write), SendVectored(bufs)))
        }

        /// Writes all of `buf`.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// a.write_all(b"ping").await?;
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        ///
        /// # Errors
        ///
        /// Returns `WriteZero` if the kernel takes nothing, and otherwise the errors of [`write`](Self::write). After
        /// an error, the number of bytes written is unknown.
        ///
        /// # Panics
        ///
        /// Same as [`read`](Self::read).
        ///
        /// # Cancel safety
        ///
        /// Loses the number of bytes written: a part of `buf` may be on its way.
        #[track_caller]
        pub fn write_all<'a>(&'a self, buf: &'a [u8]) -> WriteAll<'a> {
            WriteAll::new(self.source(), site!(write_all, Write), buf)
        }

        /// Reads once, without waiting. Returns `WouldBlock` if nothing has arrived.
        ///
        /// # Examples
        ///
        /// ```
        /// let (_a, b) = mini::net::UnixStream::pair()?;
        /// let error = b.try_read(&mut [0; 4]).unwrap_err();
        /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recv(2).
        pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
            self.source().try_call(Recv(buf))
        }

        /// Reads like [`try_read`](Self::try_read) into several buffers.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::io::IoSliceMut;
        ///
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// a.try_write(b"ping")?;
        /// let mut buf = [0; 8];
        /// assert_eq!(b.try_read_vectored(&mut [IoSliceMut::new(&mut buf)])?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of recvmsg(2).
        pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            self.source().try_call(RecvVectored(bufs))
        }

        /// Writes once, without waiting. Returns `WouldBlock` if there is no room.
        ///
        /// # Examples
        ///
        /// ```
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// assert_eq!(a.try_write(b"ping")?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of send(2).
        pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
            self.source().try_call(SendCall(buf))
        }

        /// Writes like [`try_write`](Self::try_write) from several buffers.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::io::IoSlice;
        ///
        /// let (a, _b) = mini::net::UnixStream::pair()?;
        /// assert_eq!(a.try_write_vectored(&[IoSlice::new(b"pi"), IoSlice::new(b"ng")])?, 4);
        /// # Ok::<(), std::io::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Returns the errors of sendmsg(2).
        pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
            self.source().try_call(SendVectored(bufs))
        }
    };
}
pub(crate) use stream_methods;
