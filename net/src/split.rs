//! The two halves of a stream: one task reads, another writes.
//!
//! Made by `split` and `into_split`. A half is a reference to the stream, borrowed or counted, with the methods of one
//! direction; those are the stream's own, so a half adds nothing to their cost. Methods of streams take `&self`, so an
//! `Arc` of the stream does as well. With halves, each direction has one owner, and dropping the owned writing half
//! ends the writing, which the peer sees as the end.
//!
//! Rejected: `Deref` to the stream (a half that reads could write); a destructor on the borrowed half (it would keep
//! the stream borrowed to the end of the block).

/// Making halves; the module of the stream has called `halves!`.
macro_rules! split_methods {
    () => {
        /// Splits the stream into two halves that borrow it, for two futures of one task.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (mut a, b) = mini::net::UnixStream::pair()?;
        /// let (reader, writer) = a.split();
        /// writer.write_all(b"ping").await?;
        /// b.write_all(b"pong").await?;
        /// let mut buf = [0; 4];
        /// reader.read_exact(&mut buf).await?;
        /// assert_eq!(&buf, b"pong");
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
            (ReadHalf::of(self), WriteHalf::of(self))
        }

        /// Splits the stream into two halves that own it together, for two tasks.
        ///
        /// When the writing half is dropped, the peer sees the end of the stream. The stream is closed when both halves
        /// are gone.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let (a, b) = mini::net::UnixStream::pair()?;
        /// let (reader, writer) = a.into_split();
        /// writer.write_all(b"ping").await?;
        /// drop(writer);
        ///
        /// let mut buf = [0; 16];
        /// assert_eq!(b.read(&mut buf).await?, 4);
        /// assert_eq!(b.read(&mut buf).await?, 0);
        /// b.write_all(b"pong").await?;
        /// assert_eq!(reader.read(&mut buf).await?, 4);
        /// # Ok::<(), std::io::Error>(()) }).unwrap();
        /// ```
        pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
            OwnedReadHalf::pair(self)
        }
    };
}
pub(crate) use split_methods;

/// Methods that are the stream's own.
macro_rules! of_the_stream {
    ($stream:ident; $(
        fn $name:ident$(<$($lt:lifetime),*>)?(&$($life:lifetime)? $this:ident $(, $arg:ident: $ty:ty)*) -> $out:ty;
    )*) => { $(
        #[doc = concat!("[`", stringify!($name), "`](", stringify!($stream), "::", stringify!($name), ") of the")]
        /// stream.
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`split`](", stringify!($stream), "::split) and")]
        #[doc = concat!("[`into_split`](", stringify!($stream), "::into_split).")]
        ///
        /// # Errors
        ///
        /// Errors, panics and cancel safety are those of the stream's method.
        #[track_caller]
        pub fn $name$(<$($lt),*>)?(&$($life)? $this $(, $arg: $ty)*) -> $out {
            $this.stream().$name($($arg),*)
        }
    )* };
}
pub(crate) use of_the_stream;

/// A half that reads: the methods, and the access of this crate.
macro_rules! reading_half {
    ($stream:ident, $addr:ty; $half:ident$(<$a:lifetime>)?) => {
        impl$(<$a>)? $half$(<$a>)? {
            split::of_the_stream! { $stream;
                fn read<'b>(&'b self, buf: &'b mut [u8]) -> future::Read<'b>;
                fn read_exact<'b>(&'b self, buf: &'b mut [u8]) -> ReadExact<'b>;
                fn read_to_end<'b>(&'b self, buf: &'b mut Vec<u8>) -> ReadToEnd<'b>;
                fn read_vectored<'b, 'c>(&'b self, bufs: &'b mut [IoSliceMut<'c>]) -> future::ReadVectored<'b, 'c>;
                fn try_read(&self, buf: &mut [u8]) -> io::Result<usize>;
                fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
                fn peek<'b>(&'b self, buf: &'b mut [u8]) -> future::Peek<'b>;
                fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;
                fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize>;
                fn readable(&self) -> future::Readable<'_>;
                fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
                fn ready(&self, interest: Interest) -> future::WaitReady<'_>;
                fn local_addr(&self) -> io::Result<$addr>;
                fn peer_addr(&self) -> io::Result<$addr>;
            }
        }

        split::half!($stream; $half$(<$a>)?);
    };
}
pub(crate) use reading_half;

/// A half that writes: the methods, and the access of this crate.
macro_rules! writing_half {
    ($stream:ident, $addr:ty; $half:ident$(<$a:lifetime>)?) => {
        impl$(<$a>)? $half$(<$a>)? {
            split::of_the_stream! { $stream;
                fn write<'b>(&'b self, buf: &'b [u8]) -> future::Write<'b>;
                fn write_all<'b>(&'b self, buf: &'b [u8]) -> WriteAll<'b>;
                fn write_vectored<'b, 'c>(&'b self, bufs: &'b [IoSlice<'c>]) -> future::WriteVectored<'b, 'c>;
                fn try_write(&self, buf: &[u8]) -> io::Result<usize>;
                fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize>;
                fn writable(&self) -> future::Writable<'_>;
                fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
                fn ready(&self, interest: Interest) -> future::WaitReady<'_>;
                fn local_addr(&self) -> io::Result<$addr>;
                fn peer_addr(&self) -> io::Result<$addr>;
            }

            /// Shuts down writing at once: the peer reads what was written and then the end of the stream. A second
            /// call does nothing, nor does dropping an owned half afterwards.
            ///
            /// # Examples
            ///
            /// ```
            /// # mini::block_on(async {
            /// let (mut a, b) = mini::net::UnixStream::pair()?;
            /// a.split().1.shutdown()?;
            /// assert_eq!(b.read(&mut [0; 4]).await?, 0);
            /// # Ok::<(), std::io::Error>(()) }).unwrap();
            /// ```
            ///
            /// # Errors
            ///
            /// Returns the errors of shutdown(2): `NotConnected` if the peer is gone.
            pub fn shutdown(&self) -> io::Result<()> {
                self.stream().shutdown(Shutdown::Write)
            }
        }

        split::half!($stream; $half$(<$a>)?);
    };
}
pub(crate) use writing_half;

/// The access to the stream, for this crate and for users.
macro_rules! half {
    ($stream:ident; $half:ident$(<$a:lifetime>)?) => {
        impl$(<$a>)? $half$(<$a>)? {
            /// For the I/O traits.
            #[allow(dead_code, reason = "without them nothing asks")]
            pub(crate) fn source(&self) -> &Source {
                self.stream().source()
            }
        }

        impl$(<$a>)? AsRef<$stream> for $half$(<$a>)? {
            fn as_ref(&self) -> &$stream {
                self.stream()
            }
        }
    };
}
pub(crate) use half;

/// The halves of `$stream`, for its module, where its addresses are `$addr`.
macro_rules! halves {
    ($stream:ident, $addr:ty) => {
        #[doc = concat!("The reading half of a [`", stringify!($stream), "`], borrowed.")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`split`](", stringify!($stream), "::split).")]
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a $stream);

        #[doc = concat!("The writing half of a [`", stringify!($stream), "`], borrowed.")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`split`](", stringify!($stream), "::split).")]
        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a $stream);

        #[doc = concat!("The reading half of a [`", stringify!($stream), "`], by itself.")]
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`into_split`](", stringify!($stream), "::into_split).")]
        #[derive(Debug)]
        pub struct OwnedReadHalf(Arc<$stream>);

        #[doc = concat!("The writing half of a [`", stringify!($stream), "`], by itself;")]
        /// dropping it ends the writing.
        ///
        /// # Examples
        ///
        #[doc = concat!("See [`into_split`](", stringify!($stream), "::into_split).")]
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            stream: Arc<$stream>,
            /// True until the half is forgotten or reunited.
            is_armed: bool,
        }

        #[doc = concat!("The halves of two different [`", stringify!($stream), "`]s, given back to the caller.")]
        ///
        /// # Examples
        ///
        /// See [`reunite`](OwnedReadHalf::reunite).
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        split::reading_half!($stream, $addr; ReadHalf<'a>);
        split::reading_half!($stream, $addr; OwnedReadHalf);
        split::writing_half!($stream, $addr; WriteHalf<'a>);
        split::writing_half!($stream, $addr; OwnedWriteHalf);

        impl<'a> ReadHalf<'a> {
            fn of(stream: &'a $stream) -> Self {
                Self(stream)
            }

            fn stream(&self) -> &$stream {
                self.0
            }
        }

        impl<'a> WriteHalf<'a> {
            fn of(stream: &'a $stream) -> Self {
                Self(stream)
            }

            fn stream(&self) -> &$stream {
                self.0
            }
        }

        impl OwnedReadHalf {
            fn pair(stream: $stream) -> (Self, OwnedWriteHalf) {
                let stream = Arc::new(stream);
                (Self(stream.clone()), OwnedWriteHalf { stream, is_armed: true })
            }

            fn stream(&self) -> &$stream {
                &self.0
            }

            /// Joins the two halves into one stream again.
            ///
            /// # Examples
            ///
            /// ```
            /// let (a, b) = mini::net::UnixStream::pair()?;
            /// let ((a_reader, a_writer), (b_reader, b_writer)) = (a.into_split(), b.into_split());
            /// let error = a_reader.reunite(b_writer).unwrap_err();
            /// let a = error.0.reunite(a_writer).unwrap();
            /// # drop((a, b_reader));
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// Returns [`ReuniteError`], with both halves in it, if they are not of one stream.
            pub fn reunite(self, writer: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
                if !Arc::ptr_eq(&self.0, &writer.stream) {
                    return Err(ReuniteError(self, writer));
                }
                writer.forget();
                Ok(Arc::into_inner(self.0).expect("there were two halves, and one is gone"))
            }
        }

        impl OwnedWriteHalf {
            fn stream(&self) -> &$stream {
                &self.stream
            }

            /// Joins the two halves into one stream again, like [`reunite`](OwnedReadHalf::reunite) of the other half.
            ///
            /// # Examples
            ///
            /// See [`OwnedReadHalf::reunite`].
            ///
            /// # Errors
            ///
            /// See [`OwnedReadHalf::reunite`].
            pub fn reunite(self, reader: OwnedReadHalf) -> Result<$stream, ReuniteError> {
                reader.reunite(self)
            }

            /// Drops this half without ending the writing: the peer sees no end before the other half is dropped too.
            ///
            /// # Examples
            ///
            /// ```
            /// let (a, b) = mini::net::UnixStream::pair()?;
            /// let (_reader, writer) = a.into_split();
            /// writer.forget();
            /// assert_eq!(b.try_read(&mut [0; 16]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn forget(mut self) {
                self.is_armed = false;
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if self.is_armed {
                    // Fails only if the peer is gone.
                    let _ = self.stream.shutdown(Shutdown::Write);
                }
            }
        }

        impl std::error::Error for ReuniteError {}

        impl std::fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the two halves belong to different streams")
            }
        }
    };
}
pub(crate) use halves;
